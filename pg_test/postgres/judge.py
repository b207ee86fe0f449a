"""Reads both runs' output of a suite, judges each difference, and writes the report."""

from collections import Counter, defaultdict

import identifiers
import isolation_rules
import permutations
import results
import rules
import suites
import transcript


class Report:
    """Differences by rule; those without one are failures."""

    def __init__(self, suite, unit):
        self.suite = suite
        self.unit = unit
        self.files = 0
        self.steps = 0
        self.by_rule = defaultdict(list)
        # Where both kinds of table give the same: file, statement, and the how manieth of its kind in the file.
        self.alike = set()

    def add(self, rule, title, statement, heap_answer, cass_answer):
        self.by_rule[rule].append((title, statement, heap_answer, cass_answer))

    @property
    def failures(self):
        return self.by_rule.get(None, [])

    def write(self, folder):
        """A file for each rule, with all that it explains."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{self.suite}-*.txt"):
            old.unlink()
        for rule, found in self.by_rule.items():
            title = "failures" if rule is None else "".join(c if c.isalnum() else "_" for c in rule)
            with open(folder / f"{self.suite}-{title}.txt", "w") as out:
                for title, statement, heap_answer, cass_answer in found:
                    out.write(f"=== {title}\n{statement}\n--- heap\n")
                    out.write("\n".join(heap_answer) + "\n--- cass\n" + "\n".join(cass_answer) + "\n\n")

    def print(self):
        counts = Counter({rule: len(found) for rule, found in self.by_rule.items() if rule is not None})
        print(f"\n{self.suite}: {self.files} files, {self.steps} {self.unit}")
        for rule, count in sorted(counts.items()):
            print(f"  {count:6}  {rule}")
        print(f"  {len(self.failures):6}  explained by no rule")


def judge_regress(suite, work, source, only=(), comparable=None):
    """`comparable` is the report of the same scripts with heaps in the place of what cass refuses: a statement that is alike there
    differs here for want of what was refused before it, by ways that no rule follows (views left behind, for one)."""
    report, state = Report(suite, "statements"), rules.State(identifiers.keywords(source))
    output = work / "output" / suite
    scripts = suites.script_folder(work, suite)
    names = [name for name in suites.scheduled(source / "src/test/regress/parallel_schedule")
             if all((output / kind / f"{name}.out").exists() for kind in ("heap", "cass"))]
    for name in names:
        _add_faults_in_log(report, output, name)
        script = (scripts / f"{name}.sql").read_text(errors="replace")
        heap_out, cass_out = ((output / kind / f"{name}.out").read_text(errors="replace") for kind in ("heap", "cass"))
        state.begin_file()
        met = Counter()
        report.files += 1
        pairs = transcript.paired(transcript.steps(script, heap_out), transcript.steps(script, cass_out))
        report.steps += len(pairs)
        for heap_step, cass_step in pairs:
            place = f"{name}:{cass_step.line}"
            rule = rules.judge(place, cass_step.statement, results.parse(heap_step.answer), results.parse(cass_step.answer), state)
            met[cass_step.statement] += 1
            occurrence = (name, cass_step.statement, met[cass_step.statement])
            if rule == "":
                report.alike.add(occurrence)
            if rule is None and comparable is not None and occurrence in comparable.alike:
                rule = "follows: alike where what is refused is a heap"
            if rule != "" and (not only or name in only):
                report.add(rule, place + _causes(rule, cass_step, state), cass_step.statement, heap_step.answer, cass_step.answer)
    return report


def _causes(rule, step, state):
    """Which differing objects explain the difference, and the statements since which they differ."""
    if not (rule or "").startswith("follows"):
        return ""
    words = rules.words_of(step.statement, step.answer)
    return "".join(f"  [{word}: {state.differing[word]}]" for word in state.differing_among(words))


def _add_faults_in_log(report, output, name, known=None):
    """Internal errors, panics and ended processes that the server logged for cass and not for heap."""
    logs = ((output / kind / f"{name}.log") for kind in ("heap", "cass"))
    heap, cass = (Counter(suites.faults(log.read_text(errors="replace")) if log.exists() else []) for log in logs)
    more = list((cass - heap).elements())
    if more:
        report.add(known, f"{name}, server's log", "", list(heap.elements()), more)


def judge_isolation(suite, work, source, only=()):
    report = Report(suite, "permutations")
    output = work / "output" / suite
    for name in suites.scheduled(source / "src/test/isolation/isolation_schedule"):
        files = [output / kind / f"{name}.out" for kind in ("heap", "cass")]
        if not all(file.exists() for file in files):
            continue
        # The one that is known to end in an internal error, as other rewrites do.
        known = isolation_rules.KNOWN[name] if name == "intra-grant-inplace" else None
        _add_faults_in_log(report, output, name, known)
        heap, cass = (permutations.permutations(file.read_text(errors="replace")) for file in files)
        report.files += 1
        report.steps += len(heap) - 1
        setup_refused = isolation_rules.refusal(heap[0], cass[0])
        missing = permutations.Permutation("", ["the run ended before this permutation"])
        explained = False
        for at, expected in enumerate(heap):
            actual = cass[at] if at < len(cass) else missing
            if explained and not setup_refused and (actual is missing or "TIMEOUT" in actual.lines):
                rule = "follows: the tester gave up on the spec"
            else:
                rule = isolation_rules.judge(name, setup_refused, expected, actual)
            explained = explained or bool(rule)
            if not setup_refused:
                setup_refused = isolation_rules.refusal(expected, actual) if actual.lines[:1] != expected.lines[:1] else ""
            if rule != "" and (not only or name in only):
                report.add(rule, f"{name} [{at}]", expected.title, expected.lines, actual.lines)
    return report
