"""Names in statements: which objects a statement makes or changes, and which it mentions."""

import re

NAME = r'((?:"[^"]+"|[a-z_][\w$]*)(?:\.(?:"[^"]+"|[a-z_][\w$]*))?)'
CHANGES = [
    r"create\s+(?:or\s+replace\s+)?(?:global\s+|local\s+)?(?:temp\s+|temporary\s+|unlogged\s+|foreign\s+|recursive\s+)?"
    r"(?:table|view|materialized\s+view|sequence|function|procedure|type|domain|schema|publication|statistics|aggregate)\s+"
    r"(?:if\s+not\s+exists\s+)?" + NAME,
    r"create\s+(?:unique\s+)?index\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?" + NAME,
    r"create\s+(?:or\s+replace\s+)?(?:constraint\s+)?(?:trigger|rule|policy)\s+" + NAME,
    r"create\s+(?:or\s+replace\s+)?(?:constraint\s+)?(?:trigger|rule|policy|index)\b.*?\b(?:on|to)\s+" + NAME,
    r"(?:insert\s+into|update|delete\s+from|merge\s+into|truncate(?:\s+table)?|copy|\binto)\s+(?:only\s+)?" + NAME,
    r"alter\s+(?:table|index|view|materialized\s+view|publication|sequence)\s+(?:if\s+exists\s+)?(?:only\s+)?" + NAME,
    r"(?:attach|detach)\s+partition\s+" + NAME,
    r"partition\s+of\s+" + NAME,
    r"\binherits?\s*\(?\s*" + NAME,
    r"\binherits\s*\([^)]*,\s*" + NAME,
    r"(?:prepare|declare)\s+" + NAME,
    r"add\s+constraint\s+" + NAME,
    r"(?:comment\s+on|drop)\s+(?:\w+\s+)" + NAME,
]
CREATES = re.compile(CHANGES[0], re.IGNORECASE)
PATTERNS = [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in CHANGES]
# Words that the patterns above can take for a name.
NO_NAMES = {"only", "table", "if", "set", "on", "as", "select", "into", "values", "from", "to", "unique", "concurrently", "public"}
WORD = re.compile(r'"[^"]+"|[a-z_][\w$]*', re.IGNORECASE)


def _plain(name):
    return name.replace('"', "").lower().split(".")[-1]


def without_comments(statement):
    return re.sub(r"/\*.*?\*/", " ", re.sub(r"--[^\n]*", "", statement), flags=re.DOTALL)


def changed(statement):
    """Objects that the statement makes, fills or alters."""
    code = without_comments(statement)
    names = {_plain(found) for pattern in PATTERNS for found in pattern.findall(code)}
    return {name for name in names if name and name not in NO_NAMES}


def created(statement):
    """Objects that the statement makes."""
    return {_plain(found) for found in CREATES.findall(without_comments(statement))}


def mentioned(text):
    """All words that can be names."""
    return {_plain(word) for word in WORD.findall(text)}
