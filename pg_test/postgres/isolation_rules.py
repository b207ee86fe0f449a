"""The rules that explain a difference between two runs of one permutation of the isolation suite."""

import re

import rules

# Lines in which the same answer can be printed with other widths.
TABLE_RULE = re.compile(r"^-[-+]*$")


def _plain(line):
    return "-" if TABLE_RULE.match(line) else re.sub(r" *\| *", "|", re.sub(r" +", " ", line)).strip()


def _groups(permutation, keep_order):
    groups = [[_plain(line) for line in group] for group in permutation.answers()]
    return groups if keep_order else [group[:1] + sorted(group[1:]) for group in groups]


def judge(setup_refused, heap, cass):
    """The rule that explains the difference, "" if there is none, None if no rule explains it."""
    cass.lines = [line for line in cass.lines if not rules.UNPLACED.search(line)]
    heap_groups, cass_groups = _groups(heap, True), _groups(cass, True)
    if heap_groups == cass_groups:
        return ""
    refused = refusal(heap, cass)
    if refused:
        return refused
    if setup_refused:
        return "follows: " + setup_refused
    if _groups(heap, False) == _groups(cass, False):
        return "order of rows"
    text = "\n".join(line for group in heap_groups for line in group)
    if "duplicate key value violates unique constraint" in text and "duplicate key" not in "\n".join(cass.lines):
        return "overwrite instead of 23505"
    return None


def refusal(heap, cass):
    """The refusal of docs/limits.md that stands in the one output and not in the other."""
    expected = "\n".join(heap.lines)
    for line in cass.lines:
        for pattern, name in rules.REFUSALS:
            if ("ERROR:" in line or "failed:" in line) and pattern.search(line) and not pattern.search(expected):
                return name
    return ""
