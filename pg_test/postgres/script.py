"""A psql script taken apart into its statements, by the rules of psql's own scanner."""

import re
from dataclasses import dataclass

# Meta-commands that send the query buffer, as a semicolon does.
SENDING = {"g", "gx", "gset", "gexec", "gdesc", "crosstabview", "watch", "bind"}

_WORD = re.compile(r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*")
_DOLLAR = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$")
_FROM_STDIN = re.compile(r"\bcopy\b[^;]*?\bfrom\s+(?:p?stdin)\b", re.I | re.S)
_STRINGS = re.compile(r"\bset\s+(?:local\s+|session\s+)?standard_conforming_strings\s*(?:to|=)\s*'?(\w+)", re.I)
_RESET_STRINGS = re.compile(r"\breset\s+standard_conforming_strings", re.I)
_DATA_END = re.compile(r"^\\\.\r?\n", re.M)
_STATEMENT_LINE = re.compile(
    r"^\s*(?:select|insert|update|delete|copy|set|reset|drop|create|alter|begin|commit|rollback|truncate|grant|revoke)\b"
    r"[^\n]*;\s*(?:--[^\n]*)?$",
    re.I | re.M,
)


@dataclass
class Statement:
    """One statement or standalone meta-command: its text as written, COPY data included."""

    number: int
    text: str
    line: int

    @property
    def is_meta(self):
        return self.bare.startswith("\\")

    @property
    def bare(self):
        """The text without the comments and blanks that lead it."""
        text = self.text
        while True:
            text = text.lstrip()
            if text.startswith("--"):
                text = text.partition("\n")[2]
            elif text.startswith("/*"):
                text = text[_end_of_comment(text, 0):]
            else:
                return text


def _end_of_comment(text, start):
    depth, at = 0, start
    while at < len(text):
        if text.startswith("/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith("*/", at):
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    return at


def _end_of_quote(text, start, quote, backslashes):
    at = start + 1
    while at < len(text):
        if backslashes and text[at] == "\\":
            at += 2
        elif text[at] == quote:
            return at + 1
        else:
            at += 1
    return at


class _Scanner:
    def __init__(self, text):
        self.text = text
        self.statements = []
        self.conforming = True
        self.at = 0
        self.begin_statement()

    def begin_statement(self):
        self.start = self.at
        self.parens = 0
        self.begins = 0
        self.words = []
        self.empty = True

    def finish(self, at):
        """Ends the statement at a position, together with the COPY data behind it."""
        text, self.at = self.text, at
        body = text[self.start:at]
        blocks = len(_FROM_STDIN.findall(_without_comments(body)))
        for _ in range(blocks):
            line_end = text.find("\n", self.at)
            end = _DATA_END.search(text, line_end + 1 if line_end >= 0 else len(text))
            # A COPY that is meant to fail has no data: statements follow.
            if end and not _STATEMENT_LINE.search(text, line_end + 1, end.start()):
                self.at = end.end()
        setting = _STRINGS.search(body)
        if setting:
            self.conforming = setting[1].lower() in ("on", "true", "1")
        elif _RESET_STRINGS.search(body):
            self.conforming = True
        line = text.count("\n", 0, self.start) + 1
        self.statements.append(Statement(len(self.statements), text[self.start:self.at], line))
        self.begin_statement()

    def meta_command(self):
        """A backslash outside quotes: a separator, or a command to the end of its line."""
        text = self.text
        if text.startswith("\\;", self.at) or text.startswith("\\:", self.at):
            self.at += 2
            return
        end = text.find("\n", self.at)
        end = len(text) if end < 0 else end
        # Two backslashes outside quotes end a command's arguments early.
        arguments = re.sub(r"'[^'\n]*'", lambda quoted: "'" * len(quoted[0]), text[self.at:end])
        early = arguments.find("\\\\", 1)
        early = early if early < 0 else self.at + early
        name = re.match(r"\\([A-Za-z!?]+|.)", text[self.at:])
        word = name[1] if name else ""
        stop = early + 2 if early >= 0 else min(end + 1, len(text))
        if word == "copy":
            self.at = stop
            self.finish(end)
        elif word in SENDING or self.empty:
            self.at = stop
            self.finish(stop)
        else:
            self.at = stop

    def word(self):
        match = _WORD.match(self.text, self.at)
        self.at = match.end()
        self.empty = False
        lower = match[0].lower()
        if len(self.words) < 4:
            self.words.append(lower)
        routine = self.words[0] == "create" and any(
            word in ("function", "procedure") for word in self.words[1:4]
        )
        if routine and self.parens == 0:
            if lower == "begin":
                self.begins += 1
            elif lower == "case" and self.begins:
                self.begins += 1
            elif lower == "end" and self.begins:
                self.begins -= 1

    def step(self):
        text, at = self.text, self.at
        char = text[at]
        if char == "'":
            before = text[at - 1:at].lower()
            escapes = not self.conforming or (before == "e" and not text[at - 2:at - 1].isalnum())
            self.at, self.empty = _end_of_quote(text, at, "'", escapes), False
        elif char == '"':
            self.at, self.empty = _end_of_quote(text, at, '"', False), False
        elif char == "$" and _DOLLAR.match(text, at):
            tag = _DOLLAR.match(text, at)[0]
            end = text.find(tag, at + len(tag))
            self.at, self.empty = (len(text) if end < 0 else end + len(tag)), False
        elif text.startswith("--", at):
            end = text.find("\n", at)
            self.at = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            self.at = _end_of_comment(text, at)
        elif char == "\\":
            self.meta_command()
        elif _WORD.match(text, at):
            self.word()
        elif char == ";" and self.parens <= 0 and self.begins == 0:
            self.finish(at + 1)
        else:
            self.parens += (char == "(") - (char == ")")
            self.empty = self.empty and char.isspace()
            self.at += 1


def _without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"--[^\n]*", " ", text)


def split(text):
    """The statements of a psql script, in order."""
    scanner = _Scanner(text)
    while scanner.at < len(text):
        scanner.step()
    if text[scanner.start:].strip():
        scanner.finish(len(text))
    return scanner.statements
