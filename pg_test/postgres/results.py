"""What one statement answered, taken apart: tables of rows, messages, other lines."""

import re
from dataclasses import dataclass, field

MESSAGE = re.compile(r"^(?:psql:\S* )?(ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|LOG|DEBUG):  (?:([0-9A-Z]{5}): )?(.*)")
MESSAGE_GOES_ON = re.compile(
    r"^(DETAIL|HINT|CONTEXT|QUERY|STATEMENT|LINE \d+|SCHEMA NAME|TABLE NAME|COLUMN NAME|CONSTRAINT NAME|DATATYPE NAME):? ?|^ {4,}\^$|^(PL/pgSQL|SQL) "
)
RULE = re.compile(r"^-[-+]*$")
ROW_COUNT = re.compile(r"^\((\d+) rows?\)$")


@dataclass
class Message:
    """An error or notice; `code` is its SQLSTATE where psql showed it, `by_cass` says that the extension raised it."""

    level: str
    code: str
    text: str
    more: list = field(default_factory=list)
    by_cass: bool = False

    @property
    def is_error(self):
        return self.level in ("ERROR", "FATAL", "PANIC")

    def lines(self):
        return [f"{self.level}:  {self.text}"] + self.more


@dataclass
class Table:
    """A table of rows as psql prints it, aligned."""

    header: str
    rows: list


@dataclass
class Results:
    """The answers of one statement, in their order by kind."""

    tables: list
    messages: list
    other: list

    @property
    def errors(self):
        return [message for message in self.messages if message.is_error]


def parse(lines):
    """Takes the lines apart that psql printed after one statement."""
    results = Results([], [], [])
    at = 0
    while at < len(lines):
        line = lines[at]
        found = MESSAGE.match(line)
        if found:
            at = _message(lines, at, found, results)
        elif at + 1 < len(lines) and RULE.match(lines[at + 1]) and not RULE.match(line):
            at = _table(lines, at, results)
        else:
            if line.strip():
                results.other.append(line.rstrip())
            at += 1
    return results


def _message(lines, at, found, results):
    message = Message(found[1], found[2] or "", found[3])
    results.messages.append(message)
    end = at + 1
    if message.code:
        # Verbose: everything up to the place in the source, which is the last line.
        while end < len(lines) and not lines[end].startswith("LOCATION:") and not MESSAGE.match(lines[end]):
            end += 1
        if end < len(lines) and lines[end].startswith("LOCATION:"):
            message.by_cass = lines[end].startswith("LOCATION:  cass")
            message.more = lines[at + 1:end]
            return end + 1
        end = at + 1
    while end < len(lines) and MESSAGE_GOES_ON.match(lines[end]):
        end += 1
    message.more = lines[at + 1:end]
    return end


def _table(lines, at, results):
    table = Table(lines[at].strip(), [])
    results.tables.append(table)
    at += 2
    while at < len(lines) and not ROW_COUNT.match(lines[at]) and lines[at].strip():
        if MESSAGE.match(lines[at]):
            return at
        # Widths follow the widest row, so blanks say nothing.
        table.rows.append(re.sub(r" +", " ", lines[at].rstrip().rstrip("+").strip()))
        at += 1
    if at < len(lines) and ROW_COUNT.match(lines[at]):
        at += 1
    return at
