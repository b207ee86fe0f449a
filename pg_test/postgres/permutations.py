"""The output of isolationtester: permutations of steps, each with what its steps answered."""

from dataclasses import dataclass, field


@dataclass
class Permutation:
    """One order of the steps: `lines` as printed."""

    title: str
    lines: list = field(default_factory=list)


def permutations(output):
    """All permutations; what stands before the first one has the title ""."""
    found = [Permutation("")]
    for line in output.splitlines():
        if line.startswith("starting permutation: "):
            found.append(Permutation(line[len("starting permutation: "):]))
        elif line.strip():
            found[-1].lines.append(line.rstrip())
    return found
