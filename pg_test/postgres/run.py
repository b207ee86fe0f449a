"""Runs PostgreSQL's regression suite with heap and with cass as the default access method, and compares.

Takes the unpacked source, the server's programs and a work folder; see scripts/test-postgres.sh.
"""

import argparse
import os
import sys
from collections import Counter

import classify
import derive
import regress
from cluster import Cluster


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="the unpacked source of PostgreSQL")
    parser.add_argument("--bindir", required=True, help="the server's programs")
    parser.add_argument("--work", required=True, help="folder for clusters, outputs and reports")
    parser.add_argument("files", nargs="*", help="scripts to run, behind those that others need; all if none")
    return parser.parse_args()


# What other scripts of the suite need, by the comments of its schedule.
NEEDED = ["test_setup", "create_index", "create_misc", "create_aggregate", "create_view", "create_am", "rangetypes"]


def chosen(source, files):
    names = regress.schedule(source)
    return [name for name in names if not files or name in files or name in NEEDED]


def overwriting(heap, key_names):
    """Statements that heap refuses because they insert a primary key again."""
    numbers = set()
    for number, result in heap.items():
        if result.states.get("ran") != "23505":
            continue
        output = result.outputs["ran"]
        if "duplicate key value violates unique constraint" in output:
            constraint = output.split('unique constraint "', 1)[1].split('"', 1)[0]
            if constraint.endswith("_pkey") or constraint in key_names:
                numbers.add(number)
    return numbers


class Suite:
    def __init__(self, options):
        self.options = options
        self.source = os.path.join(options.source, "src/test/regress")
        self.library = os.path.join(options.work, "lib")
        self.reports = os.path.join(options.work, "regress")
        self.names = chosen(self.source, options.files)
        self.scripts = {name: regress.statements(self.source, name) for name in regress.schedule(self.source)}
        self.taint = set()
        self.totals = Counter()
        self.notes = Counter()
        self.failures = []

    def heap_names(self, name):
        made = {derive.made_table(statement) for statement in self.scripts[name]}
        names = derive.names_for_heap(self.scripts[name])
        for other, statements in self.scripts.items():
            if other != name:
                made_there = {derive.made_table(statement) for statement in statements}
                names |= (derive.names_for_heap(statements) & made) - made_there
        return names

    def run_file(self, name, heap, cass):
        statements = self.scripts[name]
        text = derive.marked(statements)
        heap_output, _ = regress.run(heap, self.source, self.library, name, text)
        heap_results, _ = derive.results(heap_output)
        heap_faults = {line.split("] ", 1)[-1] for line in heap.new_faults()}
        keys = {
            word for statement in statements
            for word in derive.key_names(statement)
        }
        text = derive.steered(statements, self.heap_names(name), overwriting(heap_results, keys))
        output, hung = regress.run(cass, self.source, self.library, name, text)
        cass_results, rest = derive.results(output)
        faults = [line for line in cass.new_faults() if line.split("] ", 1)[-1] not in heap_faults]
        self.compare(name, statements, heap_results, cass_results, hung, rest, faults)
        cass.revive()

    def compare(self, name, statements, heap_results, cass_results, hung, rest, faults):
        file = classify.File(self.taint)
        counts = Counter()
        with open(os.path.join(self.reports, name + ".txt"), "w", errors="surrogateescape") as report:
            for statement in statements:
                heap, cass = heap_results.get(statement.number), cass_results.get(statement.number)
                if heap is None:
                    continue
                if cass is None:
                    counts["not reached"] += 1
                    continue
                rule, note = file.classify(statement, heap, cass)
                counts[rule or "equal"] += 1
                if rule in ("refused", "as heap") and note:
                    self.notes[rule + ": " + note] += 1
                if rule:
                    report.write(f"==== {name}.sql:{statement.line} #{statement.number} {rule} {note}\n")
                    report.write(statement.text.strip()[:1500] + "\n")
                    report.write(f"---- heap {heap.states}\n{heap.outputs.get('ran', '')}")
                    for way, output in cass.outputs.items():
                        report.write(f"---- cass {way} {cass.states[way]}\n{output}")
            for fault in faults:
                report.write(f"==== {name} server log: {fault}\n")
            if hung or counts["not reached"]:
                report.write(f"==== {name} {'hung' if hung else 'not reached'}; the last output:\n{rest[-2000:]}\n")
        self.taint |= file.taint
        self.totals.update(counts)
        failed = counts[classify.FAILURE] + counts["not reached"] + len(faults) + hung
        summary = ", ".join(f"{key} {counts[key]}" for key in counts)
        print(f"{'FAILED' if failed else 'ok':7}{name:24}{summary}{f', log faults {len(faults)}' if faults else ''}"
              f"{', HUNG' if hung else ''}", flush=True)
        if failed:
            self.failures.append(name)

    def run(self):
        os.makedirs(self.reports, exist_ok=True)
        regress.build_library(self.source, self.options.bindir, self.library)
        clusters = [Cluster(am, self.options.bindir, self.options.work) for am in ("heap", "cass")]
        try:
            for cluster in clusters:
                cluster.create()
                cluster.create_database(regress.DATABASE)
                cluster.new_faults()
            for name in self.names:
                self.run_file(name, *clusters)
        finally:
            for cluster in clusters:
                cluster.stop()
                cluster.remove_socket()
        print("\nTotals")
        for rule, count in self.totals.most_common():
            print(f"{count:8} {rule:16} {classify.REASONS.get(rule, '')}")
        for note, count in self.notes.most_common():
            print(f"{count:8} {note}")
        return 1 if self.failures else 0


if __name__ == "__main__":
    sys.exit(Suite(arguments()).run())
