"""Names in statements: which objects a statement makes or changes, and which it mentions."""

import re

NAME = r'((?:"[^"]+"|[a-z_][\w$]*)(?:\.(?:"[^"]+"|[a-z_][\w$]*))?)'
CHANGES = [
    r"create\s+(?:or\s+replace\s+)?(?:global\s+|local\s+)?(?:temp\s+|temporary\s+|unlogged\s+|foreign\s+|recursive\s+)?"
    r"(?:table|view|materialized\s+view|sequence|function|procedure|type|domain|schema|publication|statistics|aggregate)\s+"
    r"(?:if\s+not\s+exists\s+)?" + NAME,
    r"create\s+(?:unique\s+)?index\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?" + NAME,
    r"create\s+(?:or\s+replace\s+)?(?:constraint\s+)?(?:trigger|rule|policy)\s+" + NAME,
    r"create\s+(?:or\s+replace\s+)?(?:constraint\s+)?(?:trigger|rule|policy)\b.*?\b(?:on|to)\s+" + NAME,
    r"(?:insert\s+into|update|delete\s+from|merge\s+into|truncate(?:\s+table)?|copy|\binto)\s+(?:only\s+)?" + NAME,
    r"alter\s+(?:table|index|view|materialized\s+view|publication|sequence)\s+(?:if\s+exists\s+)?(?:only\s+)?" + NAME,
    r"(?:attach|detach)\s+partition\s+" + NAME,
    r"partition\s+of\s+" + NAME,
    r"\binherits?\s*\(?\s*" + NAME,
    r"\binherits\s*\([^)]*,\s*" + NAME,
    r"(?:prepare|declare)\s+" + NAME,
    r"add\s+constraint\s+" + NAME,
]
CREATES = re.compile(CHANGES[0], re.IGNORECASE)
PATTERNS = [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in CHANGES]
DATA_CHANGE = re.compile(r"\b(insert\s+into|update|delete\s+from|merge\s+into|copy|select\b.*\binto|create\s+.*\bas)\b",
                         re.IGNORECASE | re.DOTALL)
WORD = re.compile(r'"[^"]+"|[a-z_][\w$]*', re.IGNORECASE)


def keywords(source):
    """Words that are never names where the patterns above meet them: the reserved ones of that source, and some more."""
    listed = (source / "src/include/parser/kwlist.h").read_text()
    reserved = set(re.findall(r'PG_KEYWORD\("(\w+)", \w+, RESERVED_KEYWORD', listed))
    return reserved | {"public", "update", "delete", "insert", "truncate", "cascade", "restrict", "schema", "set", "of", "concurrently", "if"}


def plain(name):
    """A name without its schema and quotes, in lower case."""
    return name.replace('"', "").lower().split(".")[-1]


def without_comments(statement):
    return re.sub(r"/\*.*?\*/", " ", re.sub(r"--[^\n]*", "", statement), flags=re.DOTALL)


def changed(statement):
    """Objects that the statement makes, fills, alters or drops."""
    code = without_comments(statement)
    names = {plain(found) for pattern in PATTERNS for found in pattern.findall(code)}
    if re.match(r"\s*drop\b", code, re.IGNORECASE):
        names |= mentioned(code)
    return names


def carries_rows(statement):
    """Whether the statement can carry rows of the objects that it mentions into those that it changes."""
    return bool(DATA_CHANGE.search(without_comments(statement)))


def created(statement):
    """Objects that the statement makes."""
    return {plain(found) for found in CREATES.findall(without_comments(statement))}


def mentioned(text):
    """All words that can be names."""
    return {plain(word) for word in WORD.findall(text)}
