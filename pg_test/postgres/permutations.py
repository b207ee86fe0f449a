"""The output of isolationtester: permutations of steps, each with what its steps answered."""

import re
from dataclasses import dataclass, field

STEP = re.compile(r"^step (\S+): (.*)$", re.DOTALL)


@dataclass
class Permutation:
    """One order of the steps: `lines` as printed."""

    title: str
    lines: list = field(default_factory=list)

    def answers(self):
        """The lines grouped under the step that they follow; the step's line first."""
        groups = [[]]
        for line in self.lines:
            if line.startswith(("step ", "s1: ", "s2: ", "s3: ", "teardown")):
                groups.append([])
            groups[-1].append(line)
        return groups


def permutations(output):
    """All permutations; what stands before the first one has the title ""."""
    found = [Permutation("")]
    for line in output.splitlines():
        if line.startswith("starting permutation: "):
            found.append(Permutation(line[len("starting permutation: "):]))
        elif line.strip():
            found[-1].lines.append(line.rstrip())
    return found
