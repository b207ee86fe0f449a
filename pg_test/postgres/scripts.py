"""The regression suite's scripts as both runs get them.

A COPY FROM STDIN that is to fail has no data in the suite's scripts. psql of the later minor releases takes all that
follows for its data, so an end of data is put there.

Tables that have to be heaps are, if that is asked for: where cass refuses a table (a partition, the target of a foreign key), all that follows in the file would differ, and say
nothing. So those tables are made with access method heap, by settings around the statement that makes them.
"""

import re

import identifiers

NAME = identifiers.NAME
# Where a table's name stands in a statement that cass refuses for it.
REFUSED_FOR = [re.compile(pattern, re.IGNORECASE) for pattern in (
    r"\bpartition\s+of\s+" + NAME,
    r"\binherit\s+" + NAME,
    r"\b(?:attach|detach)\s+partition\s+" + NAME,
    r"\breferences\s+(?!old\b|new\b)" + NAME,
    r"\balter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?" + NAME + r"\s+(?:no\s+)?inherit\b",
    r"\balter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?" + NAME + r"\s+(?:attach|detach)\s+partition\b",
    r"\balter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?" + NAME + r"\s+set\s+(?:un)?logged\b",
    r"\bon\s+" + NAME + r"\s+using\s+brin\b",
    r"\bcluster\s+" + NAME + r"\s+using\s+\w*pkey",
    NAME + r"(?:\s+\w+)?\s+tablesample\b",
)]
ON_CONFLICT = re.compile(r"\binsert\s+into\s+" + NAME + r"(?:[^;]|';')*?\bon\s+conflict\b", re.IGNORECASE)
INHERITS = re.compile(r"\binherits\s*\(([^)]*)\)", re.IGNORECASE)
PUBLISHED = re.compile(r"\b(?:create|alter)\s+publication\s+[^;]*?\btables?\s+([^;]*);", re.IGNORECASE)
MAKES_TABLE = re.compile(
    r"\s*create\s+(?:(?:global\s+|local\s+)?(?:temp|temporary)\s+|unlogged\s+)?(table|materialized\s+view)\s+(?:if\s+not\s+exists\s+)?"
    + NAME, re.IGNORECASE)
ALWAYS_HEAP = re.compile(r"\bpartition\s+of\b|\binherits\s*\(|^\s*create\s+(?:unlogged|materialized)\b", re.IGNORECASE)
DOLLAR_QUOTE = re.compile(r"\$\w*\$")

FROM_STDIN = re.compile(r"^\s*copy\b[^;]*\bfrom\s+stdin\b[^;]*;", re.IGNORECASE)
# How a line of SQL begins, as opposed to data.
SQL_LINE = re.compile(r"\s*(?:--|\\(?!\.)|(?:select|copy|insert|set|drop|reset|create|truncate|begin|commit|rollback|alter|update|grant|revoke|delete|table)\b)",
                      re.IGNORECASE)

HEAP = "SET default_table_access_method = heap;"
DEFAULT = "RESET default_table_access_method;"


def with_ends_of_data(script):
    """The script, with an end of data behind each COPY FROM STDIN that has no data."""
    lines, written = script.split("\n"), []
    for at, line in enumerate(lines):
        written.append(line)
        if FROM_STDIN.match(line):
            end = next((later for later in range(at + 1, len(lines)) if lines[later] == "\\."), None)
            if end is None or any(SQL_LINE.match(data) for data in lines[at + 1:end]):
                written.append("\\.")
    return "\n".join(written)


def refused_uses(script):
    """Where a script uses a table in a way that cass refuses: pairs of table name and offset, in the script's order."""
    code = re.sub(r"--[^\n]*", lambda comment: " " * len(comment[0]), script)
    found = [(match[1], match.start()) for pattern in REFUSED_FOR + [ON_CONFLICT] for match in pattern.finditer(code)]
    for pattern in (INHERITS, PUBLISHED):
        for match in pattern.finditer(code):
            found += [(name, match.start()) for name in re.findall(NAME, match[1], re.IGNORECASE)]
    return sorted(((identifiers.plain(name), offset) for name, offset in found), key=lambda use: use[1])


def with_heaps(script, uses, used_elsewhere):
    """The script, with the statements that make a refused table put between the settings.

    A name stands for one table from the statement that makes it to the next one that makes a table of that name.
    """
    lines, written, at, quoted = script.split("\n"), [], 0, False
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    made = [(identifiers.plain(found[2]), offsets[number])
            for number, line in enumerate(lines) if (found := MAKES_TABLE.match(line))]
    while at < len(lines):
        found = None if quoted else MAKES_TABLE.match(lines[at])
        end = _end_of_statement(lines, at) if found else None
        if end is not None:
            name, start = identifiers.plain(found[2]), offsets[at]
            until = min((offset for other, offset in made if other == name and offset > start), default=len(script))
            refused = name in used_elsewhere or any(use == name and start <= offset < until for use, offset in uses)
            if refused or ALWAYS_HEAP.search("\n".join(lines[at:end + 1])):
                written += [HEAP] + lines[at:end + 1] + [DEFAULT]
                at = end + 1
                continue
        quoted ^= len(DOLLAR_QUOTE.findall(lines[at])) % 2 == 1
        written.append(lines[at])
        at += 1
    return "\n".join(written)


def _end_of_statement(lines, start):
    for at in range(start, min(start + 60, len(lines))):
        code = re.sub(r"--.*", "", lines[at]).rstrip()
        if code.startswith("\\"):
            return None
        if code.endswith(";"):
            return at
    return None
