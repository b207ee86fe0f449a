"""Reads both runs' output of a suite, judges each difference, and writes the report."""

from collections import Counter, defaultdict

import results
import rules
import suites
import transcript


class Report:
    """Differences by rule; those without one are failures."""

    def __init__(self):
        self.files = 0
        self.steps = 0
        self.by_rule = defaultdict(list)

    def add(self, rule, name, heap_step, cass_step):
        self.by_rule[rule].append((name, heap_step, cass_step))

    @property
    def failures(self):
        return self.by_rule.get(None, [])

    def write(self, folder, suite):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{suite}-*.txt"):
            old.unlink()
        for rule, found in self.by_rule.items():
            title = "failures" if rule is None else "".join(c if c.isalnum() else "_" for c in rule)
            with open(folder / f"{suite}-{title}.txt", "w") as out:
                for name, heap_step, cass_step in found:
                    out.write(f"=== {name}:{cass_step.line}\n{cass_step.statement}\n--- heap\n")
                    out.write("\n".join(heap_step.answer) + "\n--- cass\n" + "\n".join(cass_step.answer) + "\n\n")

    def print(self, suite):
        counts = Counter({rule: len(found) for rule, found in self.by_rule.items() if rule is not None})
        print(f"\n{suite}: {self.files} files, {self.steps} statements")
        for rule, count in sorted(counts.items()):
            print(f"  {count:6}  {rule}")
        print(f"  {len(self.failures):6}  explained by no rule")


def judge_regress(work, source, only=()):
    report, state = Report(), rules.State()
    output = work / "output" / "regress"
    sql = source / "src/test/regress/sql"
    names = [name for name in suites.scheduled(source / "src/test/regress/parallel_schedule")
             if all((output / kind / f"{name}.out").exists() for kind in ("heap", "cass"))]
    for name in names:
        script = (sql / f"{name}.sql").read_text(errors="replace")
        heap_out, cass_out = ((output / kind / f"{name}.out").read_text(errors="replace") for kind in ("heap", "cass"))
        state.begin_file()
        report.files += 1
        pairs = transcript.paired(transcript.steps(script, heap_out), transcript.steps(script, cass_out))
        report.steps += len(pairs)
        for heap_step, cass_step in pairs:
            rule = rules.judge(heap_step, cass_step, results.parse(heap_step.answer), results.parse(cass_step.answer), state)
            if rule != "" and (not only or name in only):
                report.add(rule, name, heap_step, cass_step)
    return report
