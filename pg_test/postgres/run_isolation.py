"""Runs PostgreSQL's isolation suite with heap and with cass as the default access method, and compares."""

import os
import sys
from collections import Counter

import classify
import isolation
import isolation_rules
import options
from cluster import Cluster


class Suite:
    def __init__(self, given):
        self.given = given
        self.source = os.path.join(given.source, "src/test/isolation")
        self.reports = os.path.join(given.work, "reports-isolation")
        self.tester = options.isolation_tester(given.bindir)
        self.names = [name for name in isolation.schedule(self.source) if not given.files or name in given.files]
        self.totals = Counter()
        self.failures = []

    def run_spec(self, name, heap, cass):
        text = isolation.specification(self.source, name)
        heap_found, _ = isolation.run(heap, self.tester, name, text)
        heap.new_faults()
        cass_found, broken = isolation.run(cass, self.tester, name, isolation.steered(text))
        faults = cass.new_faults()
        counts = Counter()
        with open(os.path.join(self.reports, name + ".txt"), "w", errors="surrogateescape") as report:
            for steps, heap_output in heap_found.items():
                if steps not in cass_found:
                    counts["not reached"] += 1
                    continue
                rule = isolation_rules.classify_permutation(heap_output, cass_found[steps])
                counts[rule or "equal"] += 1
                if rule:
                    report.write(f"==== {name} {rule}: {steps}\n---- heap\n{heap_output}---- cass\n{cass_found[steps]}")
            for fault in faults:
                report.write(f"==== {name} server log: {fault}\n")
        self.totals.update(counts)
        failed = counts[classify.FAILURE] + counts["not reached"] + len(faults) + broken
        print(f"{'FAILED' if failed else 'ok':7}{name:32}" + ", ".join(f"{key} {counts[key]}" for key in counts)
              + (f", log faults {len(faults)}" if faults else "") + (", BROKEN" if broken else ""), flush=True)
        if failed:
            self.failures.append(name)
        cass.revive()

    def run(self):
        os.makedirs(self.reports, exist_ok=True)
        clusters = [Cluster(am, self.given.bindir, os.path.join(self.given.work, "isolation")) for am in ("heap", "cass")]
        try:
            for cluster in clusters:
                cluster.create()
                cluster.create_database(isolation.DATABASE)
                cluster.new_faults()
            for name in self.names:
                self.run_spec(name, *clusters)
        finally:
            for cluster in clusters:
                cluster.stop()
                cluster.remove_socket()
        print("\nTotals")
        for rule, count in self.totals.most_common():
            print(f"{count:8} {rule:16} {isolation_rules.REASONS.get(rule, '')}")
        return 1 if self.failures else 0


if __name__ == "__main__":
    sys.exit(Suite(options.read(__doc__)).run())
