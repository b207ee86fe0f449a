"""A psql transcript (`psql -a`) as statements with what each answered."""

import re
from dataclasses import dataclass


@dataclass
class Step:
    """A statement and its answer. `line` is where it ends in the script."""

    line: int
    statement: str
    answer: list


def steps(script, output):
    """The answers in the output, each put behind the script's line that it follows.

    psql echoes every line it reads, so the script is a subsequence of the output. Blank lines are left out on both
    sides: an answer ends in one.
    """
    source = [(number, line.rstrip()) for number, line in enumerate(script.splitlines(), 1) if line.strip()]
    blocks = _data_blocks(source)
    found, answer, statement, last = [], [], [], 0
    upcoming = 0
    for line in output.splitlines():
        line = line.rstrip()
        after = blocks.get(upcoming)
        if after is not None and after < len(source) and line == source[after][1] and line != source[upcoming][1]:
            upcoming = after
        if upcoming < len(source) and line == source[upcoming][1]:
            number, text = source[upcoming]
            if answer:
                found.append(Step(last, "\n".join(statement), answer))
                answer, statement = [], []
            elif statement and _ends(statement[-1]):
                found.append(Step(last, "\n".join(statement), []))
                statement = []
            statement.append(text)
            last = number
            upcoming += 1
        elif line:
            answer.append(line)
    found.append(Step(last, "\n".join(statement), answer))
    return found


def _data_blocks(source):
    """Where the data of COPY FROM STDIN begins, and the line behind it: psql echoes none of it, unless COPY was refused."""
    blocks, reads_stdin = {}, False
    for at, (_, line) in enumerate(source):
        reads_stdin = reads_stdin or bool(re.search(r"\bfrom\s+stdin\b", line, re.IGNORECASE))
        if reads_stdin and _ends(line):
            reads_stdin = False
            end = next((later for later in range(at + 1, len(source)) if source[later][1] == "\\."), None)
            if end is not None:
                blocks[at + 1] = end + 1
    return blocks


def _ends(line):
    code = re.sub(r"--.*$", "", line).rstrip()
    return code.endswith((";", "\\.", "\\gset", "\\gexec", "\\gx")) or line.startswith("\\")


def paired(heap, cass):
    """Steps of both runs that end at the same line of the script, joined where one run answered in the middle."""
    def by_line(found):
        return {step.line: step for step in found}

    heap_lines, cass_lines = by_line(heap), by_line(cass)
    ends = sorted(set(heap_lines) & set(cass_lines))
    pairs, start = [], 0
    for end in ends:
        pairs.append((_joined(heap, start, end), _joined(cass, start, end)))
        start = end
    rest = max(max(heap_lines, default=0), max(cass_lines, default=0))
    if rest > start:
        pairs.append((_joined(heap, start, rest), _joined(cass, start, rest)))
    return pairs


def _joined(found, after, end):
    parts = [step for step in found if after < step.line <= end]
    answer = [line for step in parts for line in step.answer]
    return Step(end, "\n".join(step.statement for step in parts), answer)
