"""The rules that explain a difference between the two kinds of table. docs/limits.md states each of them for users."""

import re

import identifiers

# Errors and warnings of the extension: what docs/limits.md lists as refused. Pattern of the text, name of the class.
REFUSALS = [
    (r"cannot be part of an inheritance tree or a partition|cannot (?:have children|be a partition)", "refused: inheritance, partitions"),
    (r"unlogged", "refused: UNLOGGED"),
    (r"materialized view", "refused: materialized view"),
    (r"ON CONFLICT is not supported", "refused: ON CONFLICT"),
    (r"TABLESAMPLE is not supported", "refused: TABLESAMPLE"),
    (r"foreign key cannot reference cass table", "refused: foreign key to a cass table"),
    (r"cass tables have no such system column", "refused: system column"),
    (r"cannot publish table", "refused: publication"),
    (r"primary key of a cass table cannot|cannot drop the primary key of|cannot be deferrable", "refused: form of the primary key"),
    (r"access method .* cannot index|BRIN|brin", "refused: BRIN"),
    (r"cannot be clustered|cannot cluster", "refused: CLUSTER by the primary key"),
    (r"collation of key column|partition column|cannot be in the primary key of a cass table", "refused: type of a key column"),
    (r"cannot (?:change the type of|drop) column .* in the primary key of a cass table", "refused: change of a key column"),
    (r"row is too big", "refused: size of a row or key"),
    (r"cannot use access method cass|access method cass_key", "refused: access method"),
]
REFUSALS = [(re.compile(pattern), name) for pattern, name in REFUSALS]
UNPLACED = re.compile(r"has no primary key yet, so its rows are kept unplaced")
ABORTED = re.compile(r"current transaction is aborted|savepoint .* does not exist|there is no transaction in progress")
SYSTEM_COLUMNS = re.compile(r"\b(ctid|xmin|xmax|cmin|cmax|currtid2?|tid)\b", re.IGNORECASE)
PHYSICAL = re.compile(
    r"pg_relation_size|pg_table_size|pg_total_relation_size|pg_indexes_size|relfilenode|pg_relation_filepath|relpages|reltuples|"
    r"pg_stat_\w+|pg_statio_\w+|pg_locks|pg_visibility|pageinspect|relfrozenxid|relallvisible|pg_column_compression|brin_\w+|gin_clean",
    re.IGNORECASE)
CATALOGS = re.compile(r"\bpg_(class|index|attribute|depend|am|toast|opclass|opfamily|constraint|proc|description|shdepend|init_privs)\b|"
                      r"information_schema|reltoastrelid|regclass", re.IGNORECASE)


class State:
    """What is known while a file's steps are read in order."""

    def __init__(self):
        # Objects that differ between the runs, because a statement on them was explained.
        self.differing = set()
        self.transaction_broken = False

    def begin_file(self):
        self.transaction_broken = False


def judge(heap_step, cass_step, heap, cass, state):
    """The name of the rule that explains the difference, "" if there is none, None if no rule explains it."""
    statement = cass_step.statement or heap_step.statement
    cass.messages = [message for message in cass.messages if not UNPLACED.search(message.text)]
    verdict = _judge(statement, heap, cass, state)
    _remember(statement, heap, cass, state, verdict)
    return verdict


def _remember(statement, heap, cass, state, verdict):
    lasting = verdict and (verdict.startswith(("refused", "overwrite", "follows")))
    if lasting:
        # Rows that only differ in a query's answer do not make its tables differ.
        state.differing |= identifiers.changed(statement)
    elif verdict == "":
        if not cass.errors:
            state.differing -= identifiers.created(statement)
    if lasting and len(cass.errors) > len(heap.errors):
        state.transaction_broken = True
    if re.search(r"\b(commit|rollback|abort|end)\b", statement, re.IGNORECASE) and not ABORTED.search(
            " ".join(message.text for message in cass.messages)):
        state.transaction_broken = False


def _judge(statement, heap, cass, state):
    if _same(heap, cass, ordered=True):
        return ""
    for message in cass.messages:
        # Within a DO block the refusal can be the text of another message.
        for pattern, name in REFUSALS:
            if pattern.search(message.text) and not any(pattern.search(other.text) for other in heap.messages):
                return name
    if state.transaction_broken and any(ABORTED.search(message.text) for message in cass.messages + heap.messages):
        return "follows: aborted transaction"
    if _overwrites(heap, cass):
        return "overwrite instead of 23505"
    if _is_plan(statement, heap, cass):
        return "plan"
    if _same(heap, cass, ordered=False):
        return _order_rule(statement)
    if any("no partition of relation" in message.text for message in cass.errors):
        return "follows: no partition, as it was refused"
    if _without_key_method(heap) == _without_key_method(cass):
        return "access method of the primary key shown"
    words = identifiers.mentioned(identifiers.without_comments(statement)) | identifiers.mentioned(_text(heap) + _text(cass))
    if words & state.differing:
        if [m.code + m.text for m in heap.errors] != [m.code + m.text for m in cass.errors]:
            return "follows: other error on a differing object"
        return "follows: other rows of a differing object"
    if SYSTEM_COLUMNS.search(statement):
        return "system columns"
    if PHYSICAL.search(statement):
        return "physical properties"
    return None


def _text(results):
    lines = [line for message in results.messages for line in message.lines()]
    lines += [line for table in results.tables for line in [table.header] + table.rows]
    return "\n".join(lines + results.other)


def _same(heap, cass, ordered):
    def rows(results):
        found = [(table.header, table.rows if ordered else sorted(table.rows)) for table in results.tables]
        return found if ordered else sorted(found)

    def messages(results):
        found = [(message.level, message.text, message.more) for message in results.messages]
        return found if ordered else sorted(found)

    def other(results):
        return results.other if ordered else sorted(results.other)

    return rows(heap) == rows(cass) and messages(heap) == messages(cass) and other(heap) == other(cass)


def _overwrites(heap, cass):
    duplicates = [m for m in heap.errors if m.code in ("23505", "") and "duplicate key value violates unique constraint" in m.text]
    return bool(duplicates) and not cass.errors


def _is_plan(statement, heap, cass):
    tables = heap.tables + cass.tables
    return any("QUERY PLAN" in table.header for table in tables) and not heap.errors and not cass.errors or (
        re.match(r"\s*(?:--[^\n]*\n|\s)*explain\b", statement, re.IGNORECASE) and not heap.errors and not cass.errors)


def _order_rule(statement):
    code = identifiers.without_comments(statement)
    depth, outer = 0, []
    for character in code:
        depth += (character == "(") - (character == ")")
        outer.append(character if depth == 0 else " ")
    if re.search(r"\border\s+by\b", "".join(outer), re.IGNORECASE):
        return "order of rows, with ORDER BY"
    return "order of rows"


def _without_key_method(results):
    text = _text(results)
    text = re.sub(r"\b(?:cass_key|btree)\b", "key", text)
    text = re.sub(r" WITH \(partition_key[^)]*\)", "", text)
    return text
