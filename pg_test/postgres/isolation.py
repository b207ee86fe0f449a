"""Runs specifications of the isolation suite with isolationtester on a cluster."""

import os
import re
import subprocess

import derive
import script

DATABASE = "isolation_regression"
# Seconds until isolationtester gives a waiting step up; it cancels it after that and says so.
STEP_TIMEOUT = 60
FILE_TIMEOUT = 1200

_BLOCK = re.compile(r"\{(.*?)\}", re.S)


def schedule(source):
    with open(os.path.join(source, "isolation_schedule")) as lines:
        return [name for line in lines if line.startswith("test:") for name in line.split(":")[1].split()]


def specification(source, name):
    with open(os.path.join(source, "specs", name + ".spec"), encoding="utf-8") as file:
        return file.read()


def steered(text):
    """The specification for cass: tables that cass refuses by their nature are made as heap tables."""
    blocks = [script.split(block) for block in _BLOCK.findall(text)]
    names = derive.names_for_heap([statement for block in blocks for statement in block])

    def steer(match):
        parts = []
        for statement in script.split(match[1]):
            table = derive.made_table(statement)
            if table is not None and (table in names or derive.made_by_nature(statement)):
                parts.append(
                    " SET default_table_access_method = heap;" + statement.text.rstrip().rstrip(";")
                    + "; SET default_table_access_method = cass; "
                )
            else:
                parts.append(statement.text)
        return "{" + "".join(parts) + "}"

    return _BLOCK.sub(steer, text)


def run(cluster, tester, name, text):
    """The output of isolationtester by permutation, and whether it had to be killed."""
    folder = os.path.join(cluster.folder, "isolation")
    os.makedirs(folder, exist_ok=True)
    spec, result = os.path.join(folder, name + ".spec"), os.path.join(folder, name + ".out")
    with open(spec, "w") as file:
        file.write(text)
    environment = cluster.environment(PGAPPNAME="isolation/" + name, PGISOLATIONTIMEOUT=str(STEP_TIMEOUT))
    hung = False
    with open(spec) as feed, open(result, "w") as out:
        process = subprocess.Popen(
            [tester, "dbname=" + DATABASE], stdin=feed, stdout=out, stderr=subprocess.STDOUT, env=environment
        )
        try:
            process.wait(FILE_TIMEOUT)
        except subprocess.TimeoutExpired:
            hung = True
            process.kill()
            process.wait()
    with open(result, encoding="utf-8", errors="surrogateescape") as out:
        output = out.read()
    return permutations(output), hung or process.returncode != 0


def permutations(output):
    """The output of each permutation by its steps; the same steps named twice are numbered."""
    found = {}
    for part in re.split(r"^starting permutation: ", output, flags=re.M)[1:]:
        steps, _, rest = part.partition("\n")
        key, count = steps, 1
        while key in found:
            count += 1
            key = f"{steps} ({count})"
        found[key] = rest
    return found
