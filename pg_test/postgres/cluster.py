"""A throw-away PostgreSQL cluster on a Unix socket. Runs as the current user, which must not be root."""

import os
import re
import shutil
import subprocess
import tempfile
import time

SETTINGS = """
listen_addresses = ''
fsync = off
max_prepared_transactions = 2
max_connections = 60
log_line_prefix = '%m [%p] %e %a '
log_lock_waits = on
shared_preload_libraries = 'cass'
cass.enforcement = off
"""

# What a server writes about a fault of its own: an internal error, a panic, a death.
_FAULT = re.compile(r"\] XX\d\d\d |PANIC:|panicked|was terminated by signal|TRAP:|memory allocation of")


class Cluster:
    """`name` is the access method that its tables get by default."""

    def __init__(self, name, bindir, folder):
        self.name = name
        self.bindir = bindir
        self.folder = os.path.join(folder, name)
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "log")
        self.socket = None
        self.log_offset = 0

    def program(self, name):
        return os.path.join(self.bindir, name)

    def environment(self, **more):
        """The environment that pg_regress gives to its tests."""
        keep = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_", "LANG"))}
        return {
            **keep,
            "LANG": "C",
            "LC_MESSAGES": "C",
            "PGHOST": self.socket,
            "PGPORT": "5432",
            "PGTZ": "America/Los_Angeles",
            "PGDATESTYLE": "Postgres, MDY",
            "PGOPTIONS": "-c intervalstyle=postgres_verbose",
            **more,
        }

    def create(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.socket = tempfile.mkdtemp(prefix="cass-suite-", dir="/tmp")
        self._quietly("initdb", "-D", self.data, "--no-locale", "--encoding=UTF8", "--auth=trust", "-N")
        with open(os.path.join(self.data, "postgresql.conf"), "a") as conf:
            conf.write(SETTINGS + f"unix_socket_directories = '{self.socket}'\n")
        self.start()
        self.sql("template1", "CREATE EXTENSION cass")

    def create_database(self, database):
        # The settings are those that pg_regress gives to its database.
        self.sql("postgres", f"CREATE DATABASE {database}")
        for setting in (
            "lc_messages TO 'C'",
            "lc_monetary TO 'C'",
            "lc_numeric TO 'C'",
            "lc_time TO 'C'",
            "bytea_output TO 'hex'",
            "timezone_abbreviations TO 'Default'",
            f"default_table_access_method TO '{self.name}'",
        ):
            self.sql("postgres", f"ALTER DATABASE {database} SET {setting}")

    def _quietly(self, program, *arguments):
        subprocess.run(
            [self.program(program), *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )

    def start(self):
        self._quietly("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "120", "start")

    def stop(self, mode="immediate"):
        subprocess.run(
            [self.program("pg_ctl"), "-D", self.data, "-m", mode, "-w", "stop"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    def remove_socket(self):
        if self.socket:
            shutil.rmtree(self.socket, ignore_errors=True)

    def sql(self, database, text):
        return subprocess.run(
            [self.program("psql"), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", text],
            check=True, capture_output=True, text=True, env=self.environment(),
        ).stdout

    def revive(self):
        """Waits for the end of crash recovery; starts a server that is down or does not answer."""
        for _ in range(60):
            try:
                self.sql("postgres", "SELECT 1")
                return
            except subprocess.CalledProcessError:
                time.sleep(1)
        self.stop()
        self.start()

    def new_faults(self):
        """The faults logged since the last call."""
        with open(self.log, errors="replace") as log:
            log.seek(self.log_offset)
            text = log.read()
            self.log_offset = log.tell()
        return [line for line in text.splitlines() if _FAULT.search(line)]
