"""Says why a statement's outcome on cass differs from the one on heap. A difference that no rule explains is a failure."""

import re
from collections import Counter

import derive

FAILURE = "FAILURE"

# The rules, with the reason each stands for; docs/limits.md and docs/differences.md explain them to users.
REASONS = {
    "refused": "cass refuses the statement (0A000): docs/limits.md",
    "as heap": "the table is a partition, parent, child, unlogged or referenced, so it was made as a heap table",
    "overwrites": "an insert onto a live primary key overwrites; the statement was replaced on cass",
    "plan": "the output of EXPLAIN",
    "order": "the same rows in another order, from a statement without ORDER BY",
    "system column": "the statement shows ctid or a system column",
    "key am": "a catalog shows the access method or the options of a primary key",
    "follows": "the statement names a table that an earlier refused or replaced statement was about",
    "transaction": "the transaction failed at an earlier explained statement",
    FAILURE: "no rule explains it",
}

_UNPLACED = re.compile(r"^(?:psql:[^\n]*)?NOTICE:  table [^\n]* has no primary key yet[^\n]*\n(?:(?:DETAIL|HINT):[^\n]*\n)*", re.M)
_KEY_AM = re.compile(r"\bcass_key( \([^)]*\))? WITH \([^)]*\)")
_MESSAGE = re.compile(r"^ERROR:  (.*)$", re.M)
_EXPLAIN = re.compile(r"\bexplain\b|\bexplain_|_explain\b|pg_get_viewdef_plan", re.I)
_ORDERED = re.compile(r"\border\s+by\b", re.I)
_SYSTEM = re.compile(r"\b(?:ctid|xmin|xmax|cmin|cmax|tableoid)\b", re.I)
_WRITES = re.compile(r"^(?:\\copy|insert|update|delete|merge|copy|create|alter|drop|truncate|with|declare|prepare|refresh|comment|analyze|vacuum|cluster|reindex|do|call|execute)\b", re.I)
_TARGETS = re.compile(
    r"\b(?:insert\s+into|update|delete\s+from|merge\s+into|copy|truncate(?:\s+table)?|table|view|index|on|into|function|procedure|declare|prepare|sequence|cluster|type|policy|trigger|rule|domain)"
    r"\s+(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?(?:concurrently\s+)?((?:\w+\.)*(?:\w+|\"[^\"]+\"))",
    re.I,
)
_COMMON = {"select", "set", "from", "where", "to", "for", "as", "or", "and", "not", "null", "public", "each", "on", "only", "true", "false", "a", "b", "c", "x", "i"}


def normalised(output):
    """The output of cass without what it says on every table of its own."""
    output = _UNPLACED.sub("", output)
    return _KEY_AM.sub(lambda match: "btree" + (match[1] or ""), output)


def message(output):
    """The first error's text, with names taken out."""
    found = _MESSAGE.search(output)
    return re.sub(r'"[^"]*"', '"..."', found[1]) if found else ""


def _lines(output):
    return Counter(" ".join(line.replace("|", " ").split()) for line in output.splitlines() if not set(line) <= set("-+"))


class File:
    """The classification of one script's statements, in order."""

    def __init__(self, shared_taint):
        self.taint = set(shared_taint)
        self.broken = False

    def targets(self, text):
        return {derive.plain(name) for name in _TARGETS.findall(text)} - _COMMON

    def mentions_taint(self, text):
        words = set(re.findall(r"[\w$]+", text.lower()))
        return bool(words & self.taint)

    def classify(self, statement, heap, cass):
        """The rule for one statement, or None where both sides agree; and a note."""
        way = next((way for way in ("ran", "heap", "again", "replaced") if way in cass.states), "ran")
        rule, note = self._rule(statement, heap, cass, way)
        text = statement.bare
        if rule in ("refused", "follows", "overwrites", "transaction", FAILURE) and _WRITES.match(text):
            if rule != "overwrites":
                self.taint |= self.targets(text)
        elif _WRITES.match(text) and self.mentions_taint(text):
            self.taint |= self.targets(text)
        elif rule is None and derive.made_table(statement):
            self.taint.discard(derive.made_table(statement))
        if re.match(r"(?:commit|rollback|end|abort)\b(?!\s+to)", text, re.I):
            self.broken = False
        elif rule in ("refused", "follows") and "ran" in cass.states and cass.states["ran"] != "00000":
            self.broken = True
        return rule, note

    def _rule(self, statement, heap, cass, way):
        text = statement.bare
        heap_out, heap_state = heap.outputs.get("ran", ""), heap.states.get("ran")
        cass_out, cass_state = normalised(cass.outputs[way]), cass.states[way]
        if way == "replaced":
            return "overwrites", ""
        if heap_out == cass_out and heap_state == cass_state:
            return ("as heap", "") if way == "heap" else (None, "")
        if "again" in cass.states:
            again = normalised(cass.outputs["again"])
            if cass_state == "0A000" and cass.states["again"] == heap_state:
                return "as heap", message(cass_out)
            return (None, "") if heap_out == again and cass_state == heap_state else (FAILURE, message(cass_out))
        if cass_state.startswith("XX") and heap_state != cass_state:
            return FAILURE, "internal error: " + message(cass_out)
        if cass_state == "0A000" and heap_state != "0A000":
            return "refused", message(cass_out)
        if _EXPLAIN.search(text) and cass_state == heap_state:
            return "plan", ""
        if cass_state == heap_state and _lines(heap_out) == _lines(cass_out):
            return ("order" if not _ORDERED.search(text) else FAILURE), "ORDER BY"
        if cass_state == "25P02" and self.broken:
            return "transaction", ""
        if self.mentions_taint(text):
            return "follows", ""
        if _SYSTEM.search(text):
            return "system column", ""
        if "cass" in cass_out and cass_state == heap_state:
            return "key am", ""
        return FAILURE, message(cass_out)
