"""The rules that explain a difference between the two kinds of table. docs/limits.md states each of them for users."""

import re

import identifiers
import suites
from results import Results, Table

# Errors and warnings of the extension: what docs/limits.md lists as refused. Pattern of the text, name of the class.
REFUSALS = [
    (r"cannot be part of an inheritance tree or a partition|cannot (?:have children|be a partition)", "refused: inheritance, partitions"),
    (r"unlogged", "refused: UNLOGGED"),
    (r"materialized view", "refused: materialized view"),
    (r"ON CONFLICT is not supported", "refused: ON CONFLICT"),
    (r"TABLESAMPLE is not supported", "refused: TABLESAMPLE"),
    (r"foreign key cannot reference cass table", "refused: foreign key to a cass table"),
    (r"system column .* is not supported for table", "refused: system column"),
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
ORDER_OF_A_CURSOR = "order of rows, met by a cursor"
SHARED_FILES = tuple(f"{name}:" for name in suites.SHARED_FILES)
# Names of fewer letters are not taken for the same object in another file.
SHORTEST_LASTING_NAME = 5
# A statement that changes nothing, so that nothing differs after its refusal.
READS = re.compile(r"\s*(?:select|explain|table|values|fetch|declare)\b", re.IGNORECASE)
UNPLACED = re.compile(r"has no primary key yet, so its rows are kept unplaced")
ABORTED = re.compile(r"current transaction is aborted|savepoint .* does not exist|there is no transaction in progress")
SYSTEM_COLUMNS = re.compile(r"\b(ctid|xmin|xmax|cmin|cmax|currtid2?|tid)\b", re.IGNORECASE)
PHYSICAL = re.compile(
    r"pg_relation_size|pg_table_size|pg_total_relation_size|pg_indexes_size|relfilenode|pg_relation_filepath|relpages|reltuples|"
    r"pg_stat_\w+|pg_statio_\w+|pg_locks|pg_visibility|pageinspect|relfrozenxid|relallvisible|pg_column_compression|brin_\w+|gin_clean",
    re.IGNORECASE)


# Statements that differ by what is not in their text: the file's name, a part of the statement, the rule.
KNOWN = [
    ("window", "unbounded_syntax_test1b(", "order of rows, through a window"),
    # Its views are of other tables here, whose DROP was refused beside that of a partition, or it is written with ON CONFLICT.
    ("updatable_views", "select * from base_tbl", "follows: refused: ON CONFLICT"),
    # The query prepared here needs the primary key that the test drops.
    ("functional_deps", "EXECUTE foo", "follows: refused: form of the primary key"),
]


class State:
    """What is known while a suite's steps are read in order."""

    def __init__(self, keywords):
        # Words of SQL that the patterns of `identifiers` can take for names.
        self.keywords = keywords
        # Objects that differ between the runs, because a statement on them was explained; and where that was.
        self.differing = {}
        self.transaction_broken = False
        self.cursors_differ = False
        self.in_transaction = False
        self.changed_in_transaction = set()
        self.place = ""

    def begin_file(self):
        self.transaction_broken = self.cursors_differ = self.in_transaction = False
        # Short names are used again for other objects.
        self.differing = {name: place for name, place in self.differing.items()
                          if len(name) >= SHORTEST_LASTING_NAME or place.startswith(SHARED_FILES)}

    def add_differing(self, names, reason):
        for name in names - self.keywords:
            self.differing.setdefault(name, f"{self.place} {reason}")

    def differing_among(self, words):
        return sorted(word for word in words if word in self.differing)


def judge(place, statement, heap, cass, state):
    """The name of the rule that explains the difference, "" if there is none, None if no rule explains it."""
    state.place = place
    cass.messages = [message for message in cass.messages if not UNPLACED.search(message.text)]
    verdict = _judge(statement, heap, cass, state)
    if verdict is None:
        verdict = next((rule for file, part, rule in KNOWN if place.startswith(file + ":") and part in statement), None)
    _remember(statement, heap, cass, state, verdict)
    return verdict


def _remember(statement, heap, cass, state, verdict):
    code = identifiers.without_comments(statement)
    words = identifiers.mentioned(code)
    lasting = bool(verdict) and verdict.startswith(("refused", "overwrite", "follows"))
    # Rows can be carried from a differing object, or changed through a cursor that stands on another row.
    lasting |= not cass.errors and identifiers.carries_rows(code) and bool(state.differing_among(words))
    lasting |= state.cursors_differ and bool(re.search(r"where\s+current\s+of", code, re.IGNORECASE))
    changed = identifiers.changed(code)
    if verdict and verdict.startswith("refused") and not READS.match(code):
        # The table refused can stand behind a view or a function.
        quoted = [name for message in cass.messages for name in re.findall(r'"([^"]+)"', message.text)]
        changed |= {identifiers.plain(name) for name in quoted}
    if lasting:
        state.add_differing(changed, verdict or "rows carried")
    elif verdict == "" and not cass.errors:
        for name in identifiers.created(code):
            state.differing.pop(name, None)
    state.changed_in_transaction |= changed
    if verdict == ORDER_OF_A_CURSOR:
        state.cursors_differ = True
    if len(cass.errors) > len(heap.errors):
        state.transaction_broken = True
        # What the transaction has changed before is undone with it.
        if verdict and state.in_transaction:
            state.add_differing(state.changed_in_transaction, verdict)
    if re.match(r"\s*(begin|start\s+transaction)\b", code, re.IGNORECASE):
        state.in_transaction, state.changed_in_transaction = True, set()
    if re.match(r"\s*(commit|rollback(?!\s+to)|abort)\b", code, re.IGNORECASE):
        state.transaction_broken = state.cursors_differ = state.in_transaction = False


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
    if _own_words(heap, cass):
        return "same SQLSTATE in words of cass's own"
    if _overwrites(heap, cass):
        return "overwrite instead of 23505"
    if _is_plan(statement, heap, cass):
        return "plan"
    if _same(heap, cass, ordered=False):
        return _order_rule(statement)
    if any("no partition of relation" in message.text for message in cass.errors):
        return "follows: no partition, as it was refused"
    if re.match(r"\s*(fetch|move)\b", statement, re.IGNORECASE) and _row_count(heap) == _row_count(cass):
        return ORDER_OF_A_CURSOR
    if not heap.errors and not cass.errors and not cass.messages and _row_count(heap) == _row_count(cass):
        if sorted(re.findall(r"\w+", _text(heap))) == sorted(re.findall(r"\w+", _text(cass))):
            return "order of rows, inside a value"
        if re.search(r"\bover\s*\(|\bwindow\b", statement, re.IGNORECASE):
            return "order of rows, through a window"
    if not heap.errors and not cass.errors and re.search(r"\bover\s*\(\s*\)", statement, re.IGNORECASE):
        return "order of rows, through a window"
    if _same(heap, _without_deltas(cass), ordered=False):
        return "delta shown in the catalogs"
    if re.match(r"\s*vacuum\b", identifiers.without_comments(statement), re.IGNORECASE) and not cass.errors and not heap.errors:
        return "messages of heap's VACUUM"
    if _without_key_method(heap) == _without_key_method(cass):
        return "access method of the primary key shown"
    words = words_of(statement, [_text(heap), _text(cass)])
    if state.differing_among(words):
        if [m.code + m.text for m in heap.errors] != [m.code + m.text for m in cass.errors]:
            return "follows: other error on a differing object"
        return "follows: other rows of a differing object"
    if SYSTEM_COLUMNS.search(statement) or any(SYSTEM_COLUMNS.search(table.header) for table in heap.tables):
        return "system columns"
    if PHYSICAL.search(statement):
        return "physical properties"
    return None


def words_of(statement, answer):
    """All words of a statement and its answers that can be names of objects."""
    return identifiers.mentioned(identifiers.without_comments(statement)) | identifiers.mentioned("\n".join(answer))


def _row_count(results):
    return [len(table.rows) for table in results.tables]


def _text(results):
    lines = [line for message in results.messages for line in message.lines()]
    lines += [line for table in results.tables for line in [table.header] + table.rows]
    return "\n".join(lines + results.other)


def _same(heap, cass, ordered):
    def rows(results):
        found = [(table.header, table.rows if ordered else sorted(table.rows)) for table in results.tables]
        return found if ordered else sorted(found)

    def messages(results):
        found = [(message.level, message.text, message.more if ordered else sorted(message.more)) for message in results.messages]
        return found if ordered else sorted(found)

    def other(results):
        return results.other if ordered else sorted(results.other)

    return rows(heap) == rows(cass) and messages(heap) == messages(cass) and other(heap) == other(cass)


def _overwrites(heap, cass):
    duplicates = [m for m in heap.errors if m.code in ("23505", "") and "duplicate key value violates unique constraint" in m.text]
    return bool(duplicates) and not cass.errors


def _own_words(heap, cass):
    """Whether both end in one error of the same SQLSTATE, and the one of cass is its own or has a hint more."""
    if len(heap.errors) != 1 or len(cass.errors) != 1 or not cass.errors[0].code or heap.tables or cass.tables:
        return False
    ours, theirs = cass.errors[0], heap.errors[0]
    return ours.code == theirs.code and ours.code != "0A000" and ours.by_cass


def _is_plan(statement, heap, cass):
    if heap.errors or cass.errors:
        return False
    if re.match(r"\s*explain\b", identifiers.without_comments(statement), re.IGNORECASE):
        return True
    # A plan that a function of the suite returns, or that a DO block looks into.
    headers = [table.header for table in heap.tables + cass.tables]
    shown = any("QUERY PLAN" in header or "explain" in header for header in headers)
    return shown or bool(cass.messages) and all("did not get bitmap indexscan plan" in m.text for m in cass.messages)


def _order_rule(statement):
    code = identifiers.without_comments(statement)
    depth, outer = 0, []
    for character in code:
        depth += (character == "(") - (character == ")")
        outer.append(character if depth == 0 else " ")
    if re.search(r"\border\s+by\b", "".join(outer), re.IGNORECASE):
        return "order of rows, with ORDER BY"
    return "order of rows"


def _without_deltas(results):
    tables = [Table(table.header, [row for row in table.rows if "cass_delta_" not in row]) for table in results.tables]
    return Results(tables, results.messages, results.other)


def _without_key_method(results):
    text = _text(results)
    text = re.sub(r"\b(?:cass_key|btree)\b", "key", text)
    text = re.sub(r" WITH \(partition_key[^)]*\)", "", text)
    return text
