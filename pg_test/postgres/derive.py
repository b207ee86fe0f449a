"""The script that is fed to psql, made from a script of the suite: the same statements with marks between them.

For cass it is also steered: a table that cass refuses by its nature (a partition, a parent, the target of a foreign
key) is made as a heap table, so that what follows is still tested; and an insert that heap refuses for its primary
key, where cass overwrites, is replaced by the error, so that both sides go on with the same rows.
"""

import re

MARK = "@@cass"
_MARKED = re.compile(r"@@cass (\w+) (\d+) (\S+)\n")

_NAME = r'((?:[\w$]+\.)*(?:[\w$]+|"[^"]+"))'
_MAKES_TABLE = re.compile(
    r"^(?:create\s+(?:(?:global|local)\s+)?(?:temp(?:orary)?\s+|unlogged\s+)?table\s+(?:if\s+not\s+exists\s+)?" + _NAME
    + r"|create\s+materialized\s+view\s+(?:if\s+not\s+exists\s+)?" + _NAME
    + r"|select\b.*?\binto\s+(?:temp(?:orary)?\s+|unlogged\s+)?(?:table\s+)?" + _NAME
    + r"|create\s+schema\b)",
    re.I | re.S,
)
_CHILD = re.compile(r"\b(?:inherits\s*\(([^)]*)\)|partition\s+of\s+)", re.I)
_PARENTS = re.compile(r"\binherits\s*\(([^)]*)\)", re.I)
_ALTERED = re.compile(
    r"^alter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?" + _NAME + r"\s+(?:no\s+)?inherit\s+" + _NAME, re.I
)
_ATTACHED = re.compile(r"\battach\s+partition\s+" + _NAME, re.I)
_REFERENCED = re.compile(r"\breferences\s+(?:only\s+)?" + _NAME, re.I)
_BY_NATURE = re.compile(r"\b(?:inherits\s*\(|partition\s+of\b|unlogged\b)|^create\s+materialized", re.I)


def plain(name):
    """The last part of a name, folded as SQL folds it."""
    last = name.strip().rpartition(".")[2] if '"' not in name else name.strip().rpartition(".")[2]
    return last[1:-1] if last.startswith('"') else last.lower()


def made_table(statement):
    """The name of the table that a statement makes, or None; an empty name for CREATE SCHEMA."""
    match = _MAKES_TABLE.match(statement.bare)
    return match and plain(next((group for group in match.groups() if group), ""))


_NAMED_KEY = re.compile(r"\bconstraint\s+" + _NAME + r"\s+primary\s+key", re.I)


def key_names(statement):
    """The names that a statement gives to primary keys."""
    return {plain(name) for name in _NAMED_KEY.findall(statement.bare)}


def made_by_nature(statement):
    """Whether a statement makes a kind of table that cass refuses."""
    return bool(_BY_NATURE.search(statement.bare))


def names_for_heap(statements):
    """Tables that some statement uses as a parent, a child, a partition or the target of a foreign key."""
    names = set()
    for statement in statements:
        text = statement.bare
        for parents in _PARENTS.findall(text):
            names.update(plain(name) for name in parents.split(",") if name.strip())
        for match in _ALTERED.finditer(text):
            names.update(plain(name) for name in match.groups())
        for pattern in (_ATTACHED, _REFERENCED):
            names.update(plain(name) for name in pattern.findall(text))
        if _CHILD.search(text) and made_table(statement):
            names.add(made_table(statement))
    return names


def marked(statements):
    """The script for heap."""
    parts = []
    for statement in statements:
        parts.append(_line(statement.text) + f"\\echo {MARK} ran {statement.number} :SQLSTATE\n")
    return "".join(parts)


def steered(statements, heap_names, overwriting):
    """The script for cass. `overwriting`: numbers of the statements to replace by a unique violation."""
    parts = []
    for statement in statements:
        text, number = _line(statement.text), statement.number
        table = made_table(statement)
        if number in overwriting:
            parts.append("DO $$BEGIN RAISE unique_violation; END$$;\n" + f"\\echo {MARK} replaced {number} 23505\n")
        elif table is None or "default_table_access_method" in text:
            parts.append(text + f"\\echo {MARK} ran {number} :SQLSTATE\n")
        elif table in heap_names or made_by_nature(statement):
            parts.append(
                "SET default_table_access_method = heap;\n" + f"\\echo {MARK} aside {number} 00000\n" + text
                + f"\\echo {MARK} heap {number} :SQLSTATE\n"
                + "SET default_table_access_method = cass;\n" + f"\\echo {MARK} aside {number} 00000\n"
            )
        else:
            parts.append(
                "\\set ON_ERROR_ROLLBACK on\n" + text + f"\\echo {MARK} ran {number} :SQLSTATE\n"
                + "\\set ON_ERROR_ROLLBACK off\n\\if :ERROR\nSET default_table_access_method = heap;\n"
                + f"\\echo {MARK} aside {number} 00000\n" + text + f"\\echo {MARK} again {number} :SQLSTATE\n"
                + f"SET default_table_access_method = cass;\n\\endif\n\\echo {MARK} aside {number} 00000\n"
            )
    return "".join(parts)


def _line(text):
    return text if text.endswith("\n") else text + "\n"


class Result:
    """What became of one statement: its output and SQLSTATE by the way it was run."""

    def __init__(self):
        self.outputs = {}
        self.states = {}


def results(output):
    """The results by statement number, and what stood behind the last mark."""
    found, at = {}, 0
    for mark in _MARKED.finditer(output):
        way, number, state = mark[1], int(mark[2]), mark[3]
        if way != "aside":
            result = found.setdefault(number, Result())
            result.outputs[way] = output[at:mark.start()]
            result.states[way] = state
        at = mark.end()
    return found, output[at:]
