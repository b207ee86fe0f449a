"""Runs scripts of the regression suite with psql on a cluster, as pg_regress does."""

import os
import re
import subprocess

import script

DATABASE = "regression"
FILE_TIMEOUT = 900


def schedule(source):
    """The names of the suite's scripts, in the order of its schedule."""
    names = []
    with open(os.path.join(source, "parallel_schedule")) as lines:
        for line in lines:
            if line.startswith("test:"):
                names.extend(line.split(":")[1].split())
    return names


def statements(source, name):
    with open(os.path.join(source, "sql", name + ".sql"), encoding="utf-8", errors="surrogateescape") as file:
        return script.split(file.read())


def build_library(source, bindir, folder):
    """Compiles the suite's C functions; the folder stands for PG_LIBDIR in the scripts."""
    os.makedirs(folder, exist_ok=True)

    def config(option):
        return subprocess.run(
            [os.path.join(bindir, "pg_config"), option], check=True, capture_output=True, text=True
        ).stdout.strip()

    library = os.path.join(folder, "regress.so")
    if not os.path.exists(library):
        subprocess.run(
            ["gcc", *config("--cppflags").split(), *config("--cflags").split(), "-w", "-fPIC", "-shared",
             "-I", config("--includedir-server"), "-o", library, os.path.join(source, "regress.c")],
            check=True,
        )
    for module in ("autoinc.so", "refint.so"):
        link = os.path.join(folder, module)
        if not os.path.lexists(link):
            os.symlink(os.path.join(config("--pkglibdir"), module), link)


def run(cluster, source, library, name, text):
    """Feeds a script to psql. Returns its output, with the cluster's own folder named the same for all clusters."""
    build = os.path.join(cluster.folder, "regress")
    os.makedirs(os.path.join(build, "results"), exist_ok=True)
    os.makedirs(os.path.join(build, "testtablespace"), exist_ok=True)
    environment = cluster.environment(
        PG_ABS_SRCDIR=source, PG_ABS_BUILDDIR=build, PG_LIBDIR=library, PG_DLSUFFIX=".so",
        PGAPPNAME="pg_regress/" + name,
    )
    command = [
        cluster.program("psql"), "-X", "-q", "-d", DATABASE, "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on",
    ]
    path = os.path.join(build, name + ".sql")
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    result = os.path.join(build, name + ".out")
    hung = False
    with open(path) as feed, open(result, "w") as out:
        psql = subprocess.Popen(command, stdin=feed, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=build)
        try:
            psql.wait(FILE_TIMEOUT)
        except subprocess.TimeoutExpired:
            hung = True
            psql.kill()
            psql.wait()
    with open(result, encoding="utf-8", errors="surrogateescape", newline="") as out:
        output = out.read()
    output = output.replace(cluster.folder, "<cluster>").replace(cluster.socket, "<socket>")
    return re.sub(r"\r\n", "\n", output), hung
