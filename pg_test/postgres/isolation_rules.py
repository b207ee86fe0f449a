"""The rules that explain a difference between two runs of one permutation of the isolation suite."""

import re

import rules

TABLE_RULE = re.compile(r"^[-+]+$")
# What the tester prints when the first session's notices come: the notice and its hint.
UNPLACED = re.compile(r"has no primary key yet, so its rows|HINT:  Place them with ALTER TABLE")
SERIALIZATION_FAILURE = re.compile(r"ERROR: +could not serialize access")
NOTICE = re.compile(r"^s\d+: NOTICE:")
# Specs of which some permutations differ for a reason of their own, which docs/limits.md gives ("Behaviour to know").
KNOWN = {
    "lock-committed-update": "KEY SHARE gives the newest version",
    "lock-update-delete": "KEY SHARE gives the newest version",
    "predicate-gin": "SERIALIZABLE: no bitmap scan, and a read under LIMIT locks what it has read",
    "eval-plan-qual-trigger": "a row whose key changes is gone for those who wait for it",
    "intra-grant-inplace": "ADD PRIMARY KEY updates the row of pg_class",
}
# Columns whose values tell of files and counters.
PHYSICAL = re.compile(r"relpages|seq_scan|reltuples|Heap Fetches|pg_prewarm|\?column\?")


def _plain(line):
    return "" if TABLE_RULE.match(line) else re.sub(r" *\| *", "|", re.sub(r" +", " ", line)).strip()


def _groups(lines):
    """The lines under the step that they follow, the step's own line first."""
    groups = [[]]
    for line in lines:
        if line.startswith("step "):
            groups.append([])
        plain = _plain(line)
        if plain:
            groups[-1].append(plain)
    return groups


def _same_but_for_order(heap, cass):
    """Notices tell of rows as they are met, before a wait or after it; the steps and their rows have to agree."""
    def without_notices(lines):
        groups = _groups([line for line in lines if not NOTICE.match(line)])
        return [group[:1] + sorted(group[1:]) for group in groups]

    def notices(lines):
        return sorted(line for line in lines if NOTICE.match(line))

    return without_notices(heap) == without_notices(cass) and notices(heap) == notices(cass)


def judge(spec, setup_refused, heap, cass):
    """The rule that explains the difference, "" if there is none, None if no rule explains it."""
    cass.lines = [line for line in cass.lines if not UNPLACED.search(line)]
    heap_groups, cass_groups = _groups(heap.lines), _groups(cass.lines)
    if heap_groups == cass_groups:
        return ""
    refused = refusal(heap, cass)
    if refused:
        return refused
    if setup_refused:
        return "follows: " + setup_refused
    if _same_but_for_order(heap.lines, cass.lines):
        return "order of rows"
    text = "\n".join(heap.lines)
    if "duplicate key value violates unique constraint" in text and "duplicate key" not in "\n".join(cass.lines):
        return "overwrite instead of 23505"
    differing = [(ours, theirs) for ours, theirs in zip(cass_groups, heap_groups) if ours != theirs]
    if len(heap_groups) == len(cass_groups):
        if all(_is_plan(group) for pair in differing for group in pair):
            return "plan"
        if all(any(PHYSICAL.search(line) for line in ours) for ours, _ in differing):
            return "physical properties"
    return _serialization(heap, cass, differing) or KNOWN.get(spec)


def _is_plan(group):
    return any(re.search(r"QUERY PLAN|-> |Scan on|Sort Key|Index Cond", line) for line in group)


def _serialization(heap, cass, differing):
    """40001 is raised earlier, in other words, or more often; one that is missing is explained by nothing."""
    heap_failures, cass_failures = (
        sum(bool(SERIALIZATION_FAILURE.search(line)) for line in run.lines) for run in (heap, cass))
    first = differing[0][0] if differing else []
    if cass_failures >= max(heap_failures, 1) and any(SERIALIZATION_FAILURE.search(line) for line in first):
        return "40001 more often, or in other words"
    return None


def refusal(heap, cass):
    """The refusal of docs/limits.md that stands in the one output and not in the other."""
    expected = "\n".join(heap.lines)
    for line in cass.lines:
        for pattern, name in rules.REFUSALS:
            if ("ERROR:" in line or "failed:" in line) and pattern.search(line) and not pattern.search(expected):
                return name
    return ""
