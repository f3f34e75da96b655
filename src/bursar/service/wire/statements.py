"""Statements as text: several in one message taken apart, and those that are no questions read.

What is about rows or the catalog stays text here (`Select`); `questions.py` and `catalog.py` read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bursar.service.wire.failures import READ_ONLY, SYNTAX, UNAVAILABLE, WireError

LONGEST_STATEMENT = 64 * 1024
MOST_STATEMENTS = 100
"""In one message."""


@dataclass(frozen=True)
class Select:
    """A question, or a look at the catalog; `offset` is where it begins in the text that the client sent."""

    text: str
    offset: int = 0


@dataclass(frozen=True)
class Explain:
    """What a question would cost."""

    query: Select


@dataclass(frozen=True)
class CopyOut:
    """COPY (query) TO STDOUT."""

    query: Select
    format: str = "text"
    header: bool = False


@dataclass(frozen=True)
class Declare:
    """A cursor; nothing is asked before the first FETCH."""

    cursor: str
    query: Select
    hold: bool = False


@dataclass(frozen=True)
class Fetch:
    """Rows of a cursor; all that are left where there is no count. MOVE skips them."""

    cursor: str
    count: int | None
    move: bool = False


@dataclass(frozen=True)
class CloseCursor:
    """Of the name, or all of them."""

    cursor: str | None


@dataclass(frozen=True)
class Begin:
    """BEGIN; transactions change nothing but what clients are told of them."""

    tag: str


@dataclass(frozen=True)
class End:
    """COMMIT, or ROLLBACK."""

    commit: bool


@dataclass(frozen=True)
class Savepoint:
    """SAVEPOINT, RELEASE and ROLLBACK TO."""

    word: str
    name: str


@dataclass(frozen=True)
class SetTo:
    """A setting, back to its default where there is no value; all of them where there is no name."""

    name: str | None
    value: str | None
    tag: str = "SET"


@dataclass(frozen=True)
class Show:
    """A setting, or all of them."""

    name: str


@dataclass(frozen=True)
class Deallocate:
    """Forget a prepared statement, or all of them."""

    name: str | None


@dataclass(frozen=True)
class Discard:
    """DISCARD ALL: as if the connection were new."""


@dataclass(frozen=True)
class Accepted:
    """Taken without any effect."""

    tag: str


@dataclass(frozen=True)
class Nothing:
    """An empty statement."""


Statement = (
    Select | Explain | CopyOut | Declare | Fetch | CloseCursor | Begin | End | Savepoint | SetTo | Show | Deallocate
    | Discard | Accepted | Nothing
)  # fmt: skip

_SPECIAL = re.compile(r"--|/\*|(?<![A-Za-z0-9_])[eE]'|'|\"|(?<![A-Za-z0-9_$])\$(?:[A-Za-z_][A-Za-z_0-9]*)?\$|;")


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """Comments, quotes and semicolons, with their ends; what is between them is plain text."""
    at = 0
    while (special := _SPECIAL.search(text, at)) is not None:
        mark, start = special[0], special.start()
        if mark == ";":
            kind, at = "semicolon", special.end()
        elif mark == "--":
            line = text.find("\n", start)
            kind, at = "comment", len(text) if line < 0 else line
        elif mark == "/*":
            kind, at = "comment", _comment_end(text, special.end())
        else:
            kind, at = "quote", _quote_end(text, mark, special.end())
        yield kind, start, at


def _comment_end(text: str, at: int) -> int:
    """Comments stand inside of one another."""
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise WireError(SYNTAX, "unterminated /* comment", position=at - 2)


def _quote_end(text: str, mark: str, at: int) -> int:
    if mark.startswith("$"):
        end = text.find(mark, at)
        closing = None if end < 0 else end + len(mark)
    else:
        pattern = {"'": r"(?:[^']|'')*+'", '"': r'(?:[^"]|"")*+"'}.get(mark, r"(?:[^'\\]|\\.|'')*+'")
        matched = re.compile(pattern, re.DOTALL).match(text, at)
        closing = None if matched is None else matched.end()
    if closing is None:
        what = "quoted identifier" if mark == '"' else "quoted string"
        raise WireError(SYNTAX, f"unterminated {what}", position=at - len(mark))
    return closing


def split(text: str) -> list[Select]:
    """The statements of a message, each with its place. Semicolons inside of quotes and comments separate nothing."""
    if len(text) > LONGEST_STATEMENT:
        raise WireError("54000", f"a statement has at most {LONGEST_STATEMENT} characters")
    ends = [(start, end) for kind, start, end in _pieces(text) if kind == "semicolon"]
    pieces: list[Select] = []
    begin = 0
    for start, end in [*ends, (len(text), len(text))]:
        if _words(text[begin:start]):
            pieces.append(Select(text[begin:start], begin))
        begin = end
    if len(pieces) > MOST_STATEMENTS:
        raise WireError("54000", f"a message has at most {MOST_STATEMENTS} statements")
    return pieces


def _words(text: str) -> str:
    """The statement without its comments, as one line but for what is quoted."""
    words, plain, at = "", "", 0
    for kind, start, end in _pieces(text):
        plain += text[at:start] + " " * (kind != "quote")
        if kind == "quote":
            words, plain = words + re.sub(r"\s+", " ", plain) + text[start:end], ""
        at = end
    return (words + re.sub(r"\s+", " ", plain + text[at:])).strip()


_NAME = r'("(?:[^"]|"")+"|[A-Za-z_][A-Za-z_0-9$.]*)'

_WRITES = (
    "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "GRANT", "REVOKE", "COMMENT",
    "VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "REFRESH", "IMPORT", "SECURITY", "REASSIGN",
)  # fmt: skip


def read(statement: Select) -> Statement:
    """What a statement is; refused where it is nothing that can be run here."""
    words = _words(statement.text)
    if not words:
        return Nothing()
    first = re.match(r"[A-Za-z]+|\(", words)
    word = "" if first is None else first[0].upper()
    match word:
        case "SELECT" | "WITH" | "VALUES" | "(":
            return statement
        case "TABLE":
            return Select(f"SELECT * FROM {words.partition(' ')[2]}", -1)
        case "EXPLAIN":
            return _explain(statement, words)
        case "COPY":
            return _copy(statement, words)
        case "DECLARE":
            return _declare(statement, words)
        case "FETCH" | "MOVE":
            return _fetch(words)
        case _ if word in _WRITES:
            raise WireError(READ_ONLY, f"cannot execute {word} in a read-only transaction")
    short = _short(word, words)
    if short is None:
        place = len(statement.text) - len(statement.text.lstrip())
        near = words.split()[0]
        raise WireError(SYNTAX, f'syntax error at or near "{near}"', position=place)
    return short


def _short(word: str, words: str) -> Statement | None:
    """Statements about the session itself."""
    match word:
        case "BEGIN":
            return Begin("BEGIN")
        case "START":
            return Begin("START TRANSACTION")
        case "COMMIT" | "END":
            return End(commit=True)
        case "ABORT":
            return End(commit=False)
        case "ROLLBACK":
            match = re.fullmatch(rf"ROLLBACK (?:(?:WORK|TRANSACTION) )?TO (?:SAVEPOINT )?{_NAME}", words, re.I)
            return End(commit=False) if match is None else Savepoint("ROLLBACK", name_of(match[1]))
        case "SAVEPOINT" | "RELEASE":
            match = re.fullmatch(rf"{word} (?:SAVEPOINT )?{_NAME}", words, re.I)
            return None if match is None else Savepoint(word, name_of(match[1]))
        case "SET":
            return _set(words)
        case "RESET":
            match = re.fullmatch(rf"RESET {_NAME}", words, re.I)
            return match and SetTo(None if match[1].upper() == "ALL" else name_of(match[1]), None, "RESET")
        case "SHOW":
            match = re.fullmatch(rf"SHOW (?:SESSION )?({_NAME}(?: [A-Za-z]+)*)", words, re.I)
            return match and Show(_setting(match[1]))
        case "DEALLOCATE":
            match = re.fullmatch(rf"DEALLOCATE (?:PREPARE )?{_NAME}", words, re.I)
            return match and Deallocate(None if match[1].upper() == "ALL" else name_of(match[1]))
        case "CLOSE":
            match = re.fullmatch(rf"CLOSE {_NAME}", words, re.I)
            return match and CloseCursor(None if match[1].upper() == "ALL" else name_of(match[1]))
        case "DISCARD":
            return Discard()
        case "UNLISTEN" | "LISTEN" | "LOCK":
            return Accepted(word if word != "LOCK" else "LOCK TABLE")
        case "PREPARE" | "EXECUTE" | "CALL" | "DO" | "NOTIFY" | "LOAD" | "CHECKPOINT":
            raise WireError(UNAVAILABLE, f"{word} is not available here")
    return None


def name_of(written: str) -> str:
    """A name as PostgreSQL reads it: as it stands where it is quoted, else in small letters."""
    return written[1:-1].replace('""', '"') if written.startswith('"') else written.lower()


def value_of(written: str) -> str:
    """The value of a setting, without its quotes."""
    written = written.strip()
    if len(written) >= 2 and written[0] == written[-1] and written[0] in "'\"":
        return written[1:-1].replace(written[0] * 2, written[0])
    return written


_SPELLINGS = {
    "time zone": "timezone",
    "transaction isolation level": "transaction_isolation",
    "session authorization": "session_authorization",
    "names": "client_encoding",
}


def _setting(written: str) -> str:
    name = name_of(" ".join(written.split()))
    return _SPELLINGS.get(name.lower(), name)


def _set(words: str) -> Statement | None:
    assignment = re.sub(r"^SET (?:(?:SESSION|LOCAL) )?", "", words, flags=re.I)
    if re.match(r"(CHARACTERISTICS|TRANSACTION|CONSTRAINTS)\b", assignment, re.I):
        return Accepted("SET")
    match = re.fullmatch(rf"(TIME ZONE|NAMES) (.+)|{_NAME} ?(?:=|TO\b) ?(.+)", assignment, re.I)
    if match is None:
        return None
    name, value = (_setting(match[1]), match[2]) if match[1] else (_setting(match[3]), match[4])
    return SetTo(name, None if value.strip().upper() == "DEFAULT" else value_of(value))


def _rest(statement: Select, words: str, pattern: str) -> tuple[re.Match[str], Select] | None:
    """A statement that has a query behind a head: what the head says, and the query with its own place."""
    spaced = pattern.replace(" ?", r"\s*").replace(" ", r"\s+")
    for text in (statement.text, words):  # without its comments, places are not known
        match = re.compile(r"\s*" + spaced, re.I | re.DOTALL).match(text)
        if match is not None:
            placed = text is statement.text and statement.offset >= 0
            return match, Select(match["query"], statement.offset + match.start("query") if placed else -1)
    return None


def _explain(statement: Select, words: str) -> Statement:
    head = _rest(statement, words, r"EXPLAIN ?(?P<options>\([^()]*\)|(?:(?:ANALYZE|VERBOSE) )*) ?(?P<query>.+)")
    if head is None:
        raise WireError(SYNTAX, "EXPLAIN is followed by a question")
    options = head[0]["options"].upper()
    if "ANALYZE" in options and not re.search(r"ANALYZE (FALSE|OFF|0)", options):
        raise WireError(UNAVAILABLE, "EXPLAIN ANALYZE would ask the question", hint="EXPLAIN alone costs nothing")
    if re.search(r"FORMAT (?!TEXT)", options):
        raise WireError(UNAVAILABLE, "EXPLAIN gives text")
    return Explain(head[1])


def _copy(statement: Select, words: str) -> Statement:
    pattern = r"COPY ?\((?P<query>.+)\) ?TO STDOUT ?(?:WITH )?(?P<options>\(.*\)|[A-Z\s]*) ?$"
    head = _rest(statement, words, pattern)
    if head is None:
        raise WireError(
            UNAVAILABLE,
            "of COPY, COPY (question) TO STDOUT is available",
            hint="COPY (SELECT ... GROUP BY ...) TO STDOUT (FORMAT csv)",
        )
    options = head[0]["options"].upper()
    kinds = re.findall(r"\b(BINARY|CSV|TEXT)\b", options)
    if re.sub(r"\b(FORMAT|BINARY|CSV|TEXT|HEADER|TRUE|ON|1)\b|[(),'\s]", "", options):
        raise WireError(UNAVAILABLE, "of the options of COPY, FORMAT and HEADER are available")
    return CopyOut(head[1], kinds[0].lower() if kinds else "text", "HEADER" in options)


def _declare(statement: Select, words: str) -> Statement:
    head = rf"DECLARE (?P<name>{_NAME}) (?P<kind>(?:(?:BINARY|INSENSITIVE|ASENSITIVE|NO|SCROLL) )*)CURSOR "
    parsed = _rest(statement, words, head + r"(?P<hold>(?:WITH|WITHOUT) HOLD )?FOR (?P<query>.+)")
    if parsed is None:
        raise WireError(SYNTAX, "a cursor is declared like this: DECLARE name CURSOR FOR SELECT ...")
    parts = parsed[0]
    return Declare(name_of(parts["name"]), parsed[1], (parts["hold"] or "").upper().startswith("WITH "))


def _fetch(words: str) -> Statement:
    count = r"(?P<count>NEXT|FIRST|ALL|FORWARD ALL|FORWARD \d+|FORWARD|\d+)? ?(?:FROM|IN)? ?"
    match = re.fullmatch(rf"(?P<word>FETCH|MOVE) {count}(?P<name>{_NAME})", words, re.I)
    if match is None:
        raise WireError(UNAVAILABLE, "a cursor is read forwards: FETCH 100 FROM name, or FETCH ALL FROM name")
    amount = (match["count"] or "NEXT").upper().removeprefix("FORWARD").strip()
    most = None if amount == "ALL" else int(amount) if amount.isdigit() else 1
    return Fetch(name_of(match["name"]), most, match["word"].upper() == "MOVE")
