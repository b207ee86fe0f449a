"""Running the files of a suite, one after another, each output kept as a file."""

import re
import subprocess
import time
from pathlib import Path

import scripts

# A file that takes longer hangs. The slowest one takes a minute on a slow machine.
HANGS_AFTER_SECONDS = 400
# A step of the isolation suite that waits longer is cancelled: where cass overwrites, one can wait for a session whose turn
# the tester does not see.
STEP_HANGS_AFTER_SECONDS = "10"

# What the files of the regression suite need: the tables all share, and the indexes on them.
SHARED_FILES = ("test_setup", "create_index", "create_misc")

# Lines of the server's log that name a fault, whatever the suite expected.
FAULT_IN_LOG = re.compile(r"PANIC:|was terminated by signal|panicked at|ERROR:  XX\d{3}:|all server processes terminated")


def scheduled(schedule):
    """The names of a schedule, in its order."""
    names = []
    for line in schedule.read_text().splitlines():
        if line.startswith("test:"):
            names += line.split()[1:]
    return names


def faults(log):
    """The lines of a server's log that name a fault, without time, process and session."""
    lines = (re.sub(r"^.*?(?=PANIC:|ERROR:|LOG:|thread)", "", line) for line in log.splitlines() if FAULT_IN_LOG.search(line))
    return [re.sub(r"\b(?:PID |pid )?\d{3,}\b", "N", line) for line in lines]


def script_folder(work, suite):
    """Where the scripts lie as a suite runs them."""
    return work / "scripts" / suite


class Suite:
    """One suite on one kind of table: `output` receives a file for each one run, and the server's log of it."""

    def __init__(self, server, source, work, access_method):
        self.server = server
        self.source = source
        self.work = work
        self.access_method = access_method
        self.output = work / "output" / self.name / access_method

    def run(self, names):
        self.output.mkdir(parents=True, exist_ok=True)
        self.server.create_database(self.database, self.access_method)
        for name in names:
            self.tidy()
            started, log_start = time.monotonic(), self.server.log_size()
            with open(self.output / f"{name}.out", "wb") as out:
                try:
                    self.run_file(name, out)
                    verdict = ""
                except subprocess.TimeoutExpired:
                    verdict = f"  no end after {HANGS_AFTER_SECONDS} s"
                    out.write(b"\nTIMEOUT\n")
                    self.after_hang()
            log = self.server.log_since(log_start)
            (self.output / f"{name}.log").write_text(log)
            found = len(faults(log))
            verdict += f"  {found} faults in the server's log" if found else ""
            print(f"{self.name} {self.access_method:5} {name:28} {time.monotonic() - started:6.1f} s{verdict}", flush=True)


    def after_hang(self):
        """Makes the next file independent of one that was ended."""

    def tidy(self):
        """Takes away what a file has left behind, before the next one runs."""


class Regress(Suite):
    """The regression suite: psql scripts."""

    name = "regress"
    database = "regression"
    with_heaps = False

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.folder = self.source / "src/test/regress"
        self.written = self.work / "written"

    def names(self, wanted):
        names = scheduled(self.folder / "parallel_schedule")
        return [name for name in names if name in wanted or name in SHARED_FILES] if wanted else names

    def run(self, names):
        # Files that the server writes as well as psql.
        results = self.written / "results"
        results.mkdir(parents=True, exist_ok=True)
        for folder in (self.written, results):
            folder.chmod(0o777)
        self.write_scripts()
        super().run(names)

    def write_scripts(self):
        """The suite's scripts, with heaps where cass refuses a table."""
        folder = script_folder(self.work, self.name)
        folder.mkdir(parents=True, exist_ok=True)
        names = scheduled(self.folder / "parallel_schedule")
        # Latin 1 gives every byte back.
        texts = {name: (self.folder / "sql" / f"{name}.sql").read_bytes().decode("latin-1") for name in names}
        texts = {name: scripts.with_ends_of_data(text) for name, text in texts.items()}
        if self.with_heaps:
            uses = {name: scripts.refused_uses(text) for name, text in texts.items()}
            anywhere = {table for found in uses.values() for table, _ in found}
            texts = {name: scripts.with_heaps(text, uses[name], anywhere if name in SHARED_FILES else ())
                     for name, text in texts.items()}
        for name, text in texts.items():
            (folder / f"{name}.sql").write_bytes(text.encode("latin-1"))

    def tidy(self):
        # Where one publication was refused, a DROP of several fails; those left would stop all updates of keyless tables.
        self.server.psql(self.database, """DO $$ DECLARE name text; BEGIN
            FOR name IN SELECT pubname FROM pg_publication LOOP EXECUTE format('DROP PUBLICATION %I', name); END LOOP;
            END $$""")

    def run_file(self, name, out):
        environment = self.server.environment(
            PG_ABS_SRCDIR=str(self.folder),
            PG_ABS_BUILDDIR=str(self.written),
            PG_LIBDIR=str(self.work / "lib"),
            PG_DLSUFFIX=".so",
            PGAPPNAME=f"pg_regress/{name}",
        )
        # Verbose messages show the SQLSTATE, by which they are judged.
        command = [self.server.bin / "psql", "-X", "-a", "-q", "-d", self.database, "-v", "HIDE_TABLEAM=on",
                   "-v", "HIDE_TOAST_COMPRESSION=on", "-v", "VERBOSITY=verbose"]
        with open(script_folder(self.work, self.name) / f"{name}.sql", "rb") as script:
            subprocess.run(command, stdin=script, stdout=out, stderr=subprocess.STDOUT, env=environment,
                           cwd=self.folder, timeout=HANGS_AFTER_SECONDS, check=False)


class RegressWithHeaps(Regress):
    """The regression suite, its tables that cass refuses made as heaps (`scripts` says why)."""

    name = "regress-with-heaps"
    with_heaps = True


class Isolation(Suite):
    """The isolation suite: permutations of several sessions' steps."""

    name = "isolation"
    database = "isolation_regression"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.folder = self.source / "src/test/isolation"
        package = subprocess.run([self.server.bin / "pg_config", "--pkglibdir"], check=True, capture_output=True, text=True)
        self.tester = Path(package.stdout.strip()) / "pgxs/src/test/isolation/isolationtester"

    def names(self, wanted):
        names = scheduled(self.folder / "isolation_schedule")
        return [name for name in names if name in wanted] if wanted else names

    def after_hang(self):
        self.server.psql("postgres", f"DROP DATABASE {self.database} WITH (FORCE)")
        self.server.create_database(self.database, self.access_method)

    def run_file(self, name, out):
        with open(self.folder / "specs" / f"{name}.spec", "rb") as spec:
            subprocess.run([self.tester, f"dbname={self.database}"], stdin=spec, stdout=out, stderr=subprocess.STDOUT,
                           env=self.server.environment(PGAPPNAME=f"isolation/{name}", PGISOLATIONTIMEOUT=STEP_HANGS_AFTER_SECONDS),
                           timeout=HANGS_AFTER_SECONDS, check=False)
