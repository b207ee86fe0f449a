"""Says why the outcome of a permutation differs between heap and cass."""

import re

import classify

REASONS = {
    "refused": "a step is refused by cass (0A000): docs/limits.md",
    "overwrites": "an insert onto a live primary key overwrites",
    "plan": "the output of EXPLAIN",
    "order": "the same rows in another order",
    classify.FAILURE: "no rule explains it",
}

_STEP = re.compile(r"^step (\S+): ", re.M)
# Words of the refusals that a step can meet; each is explained in docs/limits.md.
_REFUSED = re.compile(r"ERROR:  [^\n]*(?:not supported|cannot|unsupported)", re.I)


def _sorted_steps(output):
    return [sorted(" ".join(line.replace("|", " ").split()) for line in part.splitlines()) for part in _STEP.split(output)]


def classify_permutation(heap, cass):
    """The rule, or None where both sides agree."""
    cass = classify.normalised(cass)
    if heap == cass:
        return None
    if _sorted_steps(heap) == _sorted_steps(cass):
        return "order"
    heap_errors, cass_errors = set(re.findall(r"ERROR:  .*", heap)), set(re.findall(r"ERROR:  .*", cass))
    if any(_REFUSED.search(error) for error in cass_errors - heap_errors):
        return "refused"
    if any("duplicate key" in error and "_pkey" in error for error in heap_errors - cass_errors):
        return "overwrites"
    if "QUERY PLAN" in heap:
        return "plan"
    return classify.FAILURE
