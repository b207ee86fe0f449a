"""Runs PostgreSQL's suites on heap and on cass tables, and judges every difference."""

import argparse
import sys
from pathlib import Path

import judge
import server
import suites

SUITES = {suite.name: suite
          for suite in (suites.Regress, suites.RegressWithHeaps, suites.Isolation, suites.IsolationWithHeaps)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--port")
    parser.add_argument("--sockets")
    parser.add_argument("--bin", type=Path)
    parser.add_argument("--server-log", type=Path)
    parser.add_argument("--fresh-server", help="the command that makes the server anew")
    parser.add_argument("--only", choices=["heap", "cass"], help="runs one kind of table alone")
    parser.add_argument("what", nargs="?", default="all")
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def run(options):
    private = server.Server(options.port, options.sockets, options.bin, options.server_log, options.fresh_server)
    for suite in SUITES.values():
        if options.what not in ("all", suite.name):
            continue
        for access_method in ("heap", "cass"):
            if options.only in (None, access_method):
                private.fresh()
                runner = suite(private, options.source, options.work, access_method)
                runner.run(runner.names(options.names))


def main():
    options = arguments()
    if options.what != "compare":
        run(options)
    failures, reports = 0, {}
    # The suites with heaps first: the others are judged beside them.
    for suite in sorted(SUITES, reverse=True):
        if options.what in ("all", "compare", suite):
            if suite.startswith("isolation"):
                report = judge.judge_isolation(suite, options.work, options.source, options.names)
            else:
                comparable = reports.get(suites.RegressWithHeaps.name)
                report = judge.judge_regress(suite, options.work, options.source, options.names, comparable)
            reports[suite] = report
            report.print()
            report.write(options.work / "report")
            failures += len(report.failures)
    return 1 if failures else 0


sys.exit(main())
