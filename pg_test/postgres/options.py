"""What both suites are told: where the source, the programs and the work folder are."""

import argparse
import os
import subprocess


def read(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--source", required=True, help="the unpacked source of PostgreSQL")
    parser.add_argument("--bindir", required=True, help="the server's programs")
    parser.add_argument("--work", required=True, help="folder for clusters, outputs and reports")
    parser.add_argument("files", nargs="*", help="files of the suite to run; all if none")
    return parser.parse_args()


def config(bindir, option):
    """One value of pg_config."""
    return subprocess.run(
        [os.path.join(bindir, "pg_config"), option], check=True, capture_output=True, text=True
    ).stdout.strip()


def isolation_tester(bindir):
    """The program that postgresql-server-dev installs."""
    return os.path.join(config(bindir, "--pkglibdir"), "pgxs/src/test/isolation/isolationtester")
