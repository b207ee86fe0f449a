"""The private server the suites run on, and the programs that talk to it."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

# What pg_regress sets for its sessions: the expected notation of times and numbers.
SESSION_ENVIRONMENT = {
    "PGTZ": "America/Los_Angeles",
    "PGDATESTYLE": "Postgres, MDY",
    "PGOPTIONS": "-c intervalstyle=postgres_verbose",
    "LC_MESSAGES": "C",
    "LANG": "C",
}

DATABASE_SETTINGS = {
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "bytea_output": "hex",
    "timezone_abbreviations": "Default",
    "cass.enforcement": "off",
}


@dataclass
class Server:
    """A server that `fresh` makes anew, with an empty data folder."""

    port: str
    sockets: str
    bin: Path
    log: Path
    fresh_command: str

    def environment(self, **more):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        environment.update(SESSION_ENVIRONMENT, PGHOST=self.sockets, PGPORT=self.port)
        environment.update(more)
        return environment

    def fresh(self):
        """A new data folder, so that neither roles nor settings of an earlier run remain."""
        subprocess.run(self.fresh_command, shell=True, check=True)

    def psql(self, database, *statements):
        arguments = [self.bin / "psql", "-X", "-q", "-d", database, "-v", "ON_ERROR_STOP=1"]
        for statement in statements:
            arguments += ["-c", statement]
        subprocess.run(arguments, env=self.environment(), check=True, stdout=subprocess.DEVNULL)

    def create_database(self, name, access_method):
        """A database whose new tables have the given access method, with the extension in it."""
        self.psql("postgres", f"CREATE DATABASE {name} TEMPLATE template0")
        settings = {**DATABASE_SETTINGS, "default_table_access_method": access_method}
        # The extension first: its own tables are heaps.
        self.psql(name, "CREATE EXTENSION cass")
        self.psql("postgres", *[f"ALTER DATABASE {name} SET {key} = '{value}'" for key, value in settings.items()])

    def log_size(self):
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, size):
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(size)
            return log.read().decode(errors="replace")
