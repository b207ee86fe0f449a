"""Measures a cass table against a heap table with the same rows and key. Run by scripts/bench.sh, which starts the
server and sets PGHOST, PGPORT, PGDATABASE, CASS_PGBIN, BENCH_WORK (a folder that the server can read) and
BENCH_COLD_START (a command that restarts the server with an empty page cache). bench/README.md says what is measured.
"""

import json
import os
import platform
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import report
from dataset import FIRST_SENSOR, START, whole_days, write_rows

ROWS = int(os.environ.get("BENCH_ROWS", 6_000_000))
SENSORS = int(os.environ.get("BENCH_SENSORS", max(ROWS // 300, 1)))
SECONDS = int(os.environ.get("BENCH_SECONDS", 8))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", 3))
COLD_STARTS = int(os.environ.get("BENCH_COLD_STARTS", 7))
NOISY = os.environ.get("BENCH_DATA", "regular") == "noisy"
PGBIN = Path(os.environ["CASS_PGBIN"])
WORK = Path(os.environ["BENCH_WORK"])
HERE = Path(__file__).parent

TABLES = {"heap": "readings_heap", "cass": "readings_cass"}
COLUMNS = "sensor text, day date, ts timestamptz, value float8, status text, PRIMARY KEY (sensor, day, ts)"
STORAGE = {
    "heap": "USING heap",
    "cass": "USING cass WITH (partition_key = 'sensor, day', clustering_order = 'ts DESC')",
}
READS = {
    "newest 20": "SELECT * FROM {table} WHERE sensor = {sensor} AND day = '{day}' ORDER BY ts DESC LIMIT 20",
    "whole partition": "SELECT * FROM {table} WHERE sensor = {sensor} AND day = '{day}' ORDER BY ts DESC",
}
# What of an upsert differs: cass overwrites by itself.
ON_CONFLICT = {
    "heap": " ON CONFLICT (sensor, day, ts) DO UPDATE SET value = excluded.value, status = excluded.status",
    "cass": "",
}

# A condition on pg_class c: the hidden delta of a cass table.
DELTA = "(c.relname = 'cass_delta_' || '{table}'::regclass::oid AND c.relnamespace = 'pg_toast'::regnamespace)"


def say(text: str) -> None:
    print(text, flush=True)


def sql(statement: str) -> str:
    """Runs SQL and returns what psql prints, unaligned and without headings; ends the benchmark if it fails."""
    done = subprocess.run(
        [PGBIN / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], input=statement, text=True, capture_output=True
    )
    if done.returncode != 0:
        sys.exit(f"this failed:\n{statement}\n{done.stderr}")
    return done.stdout.strip()


def timed(statement: str) -> float:
    """Seconds that a statement takes, a new connection included."""
    started = time.monotonic()
    sql(statement)
    return time.monotonic() - started


def pgbench(scripts: list, arguments: list, options: str = "") -> tuple:
    """Runs pgbench with scripts of equal weight. Returns the latencies of all transactions in microseconds, in the
    order of each client's transactions, and the transactions per second."""
    with tempfile.TemporaryDirectory() as folder:
        command = [PGBIN / "pgbench", "-n", "-M", "prepared", "-l", f"--log-prefix={folder}/log", *arguments]
        for number, text in enumerate(scripts):
            path = Path(folder) / f"script{number}.sql"
            path.write_text(text)
            command += ["-f", path]
        done = subprocess.run(
            command, text=True, capture_output=True, env={**os.environ, "PGOPTIONS": options}
        )
        rate = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
        if done.returncode != 0 or rate is None:
            sys.exit(f"pgbench failed:\n{scripts[0]}\n{done.stderr}")
        latencies = [
            int(line.split()[2]) for log in Path(folder).glob("log.*") for line in log.read_text().splitlines()
        ]
    return latencies, float(rate[1])


def read_scripts(read: str, table: str) -> list:
    """One script for each whole day: a partition of a random sensor."""
    choose = f"\\set sensor random({FIRST_SENSOR}, {FIRST_SENSOR + SENSORS - 1})\n"
    return [
        choose + READS[read].format(table=table, sensor=":sensor", day=day) + ";\n"
        for day in whole_days(ROWS, SENSORS)
    ]


def size(kind: str, part: str = "true") -> int:
    """Bytes on disk of all that belongs to a table: forks, TOAST, indexes, and the hidden delta of a cass table with its
    indexes. `part`: a condition on pg_class c that picks some of it."""
    table = TABLES[kind]
    return int(
        sql(
            f"""SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
                 WHERE (c.oid = '{table}'::regclass OR {DELTA.format(table=table)}) AND {part}"""
        )
    )


def load(figures: dict) -> None:
    csv = WORK / f"readings-{ROWS}-{SENSORS}-{'noisy' if NOISY else 'regular'}.csv"
    say(f"Generating {ROWS:,} rows of {SENSORS:,} sensors")
    WORK.mkdir(parents=True, exist_ok=True)
    write_rows(csv, ROWS, SENSORS, NOISY)
    sql("DROP TABLE IF EXISTS readings_heap, readings_cass; DROP EXTENSION IF EXISTS cass CASCADE")
    sql("CREATE EXTENSION cass; CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    for kind, table in TABLES.items():
        say(f"Loading the {kind} table")
        sql(f"CREATE TABLE {table} ({COLUMNS}) {STORAGE[kind]}; CHECKPOINT")
        figures["COPY"][kind] = timed(f"COPY {table} FROM '{csv}' WITH (FORMAT csv)")
        figures["VACUUM after it"][kind] = timed(f"VACUUM (ANALYZE) {table}")
        figures["bytes on disk"][kind] = size(kind)
    figures["bytes of it in the delta"]["cass"] = size("cass", DELTA.format(table=TABLES["cass"]))
    say("Comparing the tables, row by row")
    sums = [sql(f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {table} t") for table in TABLES.values()]
    if sums[0] != sums[1]:
        sys.exit(f"the tables differ: heap {sums[0]}, cass {sums[1]}")


def warm_reads(figures: dict) -> None:
    # All of both tables is in memory: the heap's in shared buffers, cass's in the page cache that it maps.
    sql("SELECT pg_prewarm('readings_heap'), pg_prewarm('readings_heap_pkey'); SELECT sum(value) FROM readings_cass")
    for read in READS:
        say(f"Reading warm: {read}")
        latencies = {kind: [] for kind in TABLES}
        for _ in range(ROUNDS):
            for kind, table in TABLES.items():
                latencies[kind] += pgbench(read_scripts(read, table), ["-c1", f"-T{SECONDS}"])[0]
        for kind in TABLES:
            figures[f"{read}, warm"][kind] = statistics.median(latencies[kind]) / 1e6


def cold_read(query: str) -> float:
    """Seconds of a query, the first of its session to read the table; planning has loaded catalogs and code."""
    output = sql(f"EXPLAIN {query};\n\\timing on\n{query} \\g /dev/null")
    return float(re.search(r"^Time: ([\d.]+) ms", output, re.MULTILINE)[1]) / 1e3


def cold_reads(figures: dict) -> None:
    command = shlex.split(os.environ["BENCH_COLD_START"])
    dice = random.Random(7)
    for read, text in READS.items():
        say(f"Reading cold: {read}")
        times = {kind: [] for kind in TABLES}
        for _ in range(COLD_STARTS):
            sensor, day = FIRST_SENSOR + dice.randrange(SENSORS), dice.choice(whole_days(ROWS, SENSORS))
            for kind, table in TABLES.items():
                code = subprocess.run(command, stdin=subprocess.DEVNULL).returncode
                if code == 3:
                    say("The page cache cannot be dropped here (/proc/sys/vm/drop_caches): no cold reads")
                    return
                if code != 0:
                    sys.exit("the server did not restart")
                times[kind].append(cold_read(text.format(table=table, sensor=f"'{sensor}'", day=day)))
        for kind in TABLES:
            figures[f"{read}, cold"][kind] = statistics.median(times[kind])


def plan_nodes(plan: dict):
    yield plan
    for child in plan.get("Plans", []):
        yield from plan_nodes(child)


def pages_touched(figures: dict) -> None:
    """Shared buffers of the execution, and every property of a plan node that counts pages of its own."""
    day = whole_days(ROWS, SENSORS)[0]
    for read, text in READS.items():
        for kind, table in TABLES.items():
            query = text.format(table=table, sensor=f"'{FIRST_SENSOR + SENSORS // 2}'", day=day)
            # The first run of a session loads catalogs; the second shows the read.
            output = sql(f"{query} \\g /dev/null\nEXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}")
            plan = json.loads(output)[0]["Plan"]
            figures[f"{read}, shared buffers"][kind] = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
            mapped = {
                name: value
                for node in plan_nodes(plan)
                for name, value in node.items()
                if "page" in name.lower() and isinstance(value, (int, float))
            }
            for name, value in mapped.items():
                figures[f"{read}, {name.lower()}"][kind] = value


def upserts(figures: dict) -> None:
    say("Upserts")
    rates = {kind: [] for kind in TABLES}
    ts = f"timestamptz '{START.isoformat()}' + :step * interval '10 minutes'"
    for _ in range(ROUNDS):
        for kind, table in TABLES.items():
            sql("CHECKPOINT")
            script = f"""\\set sensor random({FIRST_SENSOR}, {FIRST_SENSOR + SENSORS - 1})
\\set step random(0, {max(ROWS // SENSORS, 1) - 1})
\\set value random(1500, 2500)
INSERT INTO {table} VALUES (:sensor, ({ts})::date, {ts}, :value / 100.0, 'ok'){ON_CONFLICT[kind]};
"""
            arguments = ["-c2", "-j2", f"-T{SECONDS}"]
            rates[kind].append(pgbench([script], arguments, "-c synchronous_commit=off")[1])
    for kind in TABLES:
        figures["upserts, 2 clients"][kind] = statistics.median(rates[kind])


def token_rate(figures: dict) -> None:
    say("Tokens")
    # The same rows again and again, so that the calls outweigh what else a statement takes.
    repeats, rows = 400, min(ROWS, 10_000)
    statement = (
        "SET max_parallel_workers_per_gather = 0; "
        f"WITH r AS MATERIALIZED (SELECT sensor, day FROM readings_heap LIMIT {rows}) "
        "SELECT count({what}) FROM r, generate_series(1, {repeats})"
    )
    with_token, without = (
        min(timed(statement.format(what=what, repeats=repeats)) for _ in range(max(ROUNDS, 3)))
        for what in ("cass_token(sensor, day)", "sensor")
    )
    figures["cass_token() calls"]["cass"] = repeats * rows / (with_token - without)


def machine() -> dict:
    """What the figures were measured on."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cpu": cpu[1] if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "server": sql("SELECT version()"),
        "rows": ROWS,
        "sensors": SENSORS,
        "rounds": ROUNDS,
        "seconds": SECONDS,
        "data": "noisy" if NOISY else "regular",
    }


def main() -> None:
    figures = report.Figures()
    load(figures)
    warm_reads(figures)
    pages_touched(figures)
    cold_reads(figures)
    token_rate(figures)
    # Last, as it leaves new versions behind.
    upserts(figures)
    facts = machine()
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    path = results / f"{facts['time'].replace(':', '')[:17]}-{ROWS}.json"
    path.write_text(json.dumps({"machine": facts, "figures": figures}, indent=1) + "\n")
    print(report.table(figures, f"{ROWS:,} {facts['data']} rows, {SENSORS:,} sensors, {facts['cpu']}, {facts['cores']} cores"))
    print(f"\nraw figures: {path}")


if __name__ == "__main__":
    main()
