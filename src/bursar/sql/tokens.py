"""The words of one statement, within limits that hold before anything is parsed."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import Token, TokenType

from bursar.errors import QueryError
from bursar.sql.names import Name
from bursar.sql.query import Described

LARGEST_TEXT = 8 * 1024
"""Most bytes of a question."""

DEEPEST = 20
"""Most levels of brackets, CASEs, NOTs and signs inside one another; the parser recurses on each."""

MOST_ITEMS = 500
"""Most items between two brackets."""

LONGEST_CHAIN = 80
"""Most levels of a syntax tree without AND and OR: `a + b + c` and `x::int::text` nest without brackets."""

MOST_KEYS = 64
"""Most items of GROUP BY."""

MOST_NAMED_SELECTS = 64
"""Most sub-selects of one WITH: each is looked for in all that come after it."""

MOST_TEDIOUS = 8
"""Most of each thing that no question has and that the parser takes long for."""

NO_JOINS = (
    "joins are not available here: they are for tables that the config declares; the data owner can declare one under "
    "[tables], or join tables behind this one, as a view"
)

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_TYPES = DuckDB.Parser.TYPE_TOKENS


def statement_tokens(text: str) -> tuple[list[Token], bool]:
    """The words of the one question, without EXPLAIN and closing semicolons; and whether EXPLAIN stood there.

    Guarantees: the offsets of the tokens are those of the text, and the limits above hold.
    """
    if not isinstance(text, str):
        raise QueryError("a question is text")
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST_TEXT:
        raise QueryError(f"a question has at most {LARGEST_TEXT} bytes")
    tokens = tokenize(text)
    explain = bool(tokens) and tokens[0].token_type is TokenType.COMMAND and tokens[0].text.upper() == "EXPLAIN"
    if explain:
        # The tokenizer swallows the rest of a command as one string, so it is shown the text without the word.
        word = tokens[0]
        tokens = tokenize(text[: word.start] + " " * (word.end + 1 - word.start) + text[word.end + 1 :])
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    ticks = [token.start for token in tokens if token.token_type is TokenType.UNKNOWN and token.text == "`"]
    if ticks and text.count("`") == len(ticks) and not len(ticks) % 2 and '"' not in text:
        return statement_tokens(text.replace("`", '"'))  # as long as it was, so that places stay
    if ticks:
        raise QueryError('names are quoted like "this"', position=ticks[0])
    tokens = numbered_placeholders(without_top(without_escapes(tokens)))
    _begins_with_select(text, tokens, explain)
    _check(tokens)
    _check_tedious(tokens)
    return tokens, explain


class _Silence(logging.Filter):
    """Keeps what the parser would log of a question to itself, while a question is read."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _reading.get()


_reading: ContextVar[bool] = ContextVar("reading", default=False)
logging.getLogger("sqlglot").addFilter(_Silence())


@contextmanager
def silently() -> Iterator[None]:
    """Inside, the parser logs nothing: its lines have words of the question in them."""
    token = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(token)


def tokenize(text: str) -> list[Token]:
    """The tokens of DuckDB's SQL; whatever cannot be split into tokens is refused."""
    try:
        with silently():
            return list(DuckDB().tokenize(text))
    except Exception as fault:  # the tokenizer is not ours: no junk may bring up an error of its own
        raise QueryError("the question cannot be split into words: is a quote or a comment left open?") from fault


_ESCAPES = {"D": TokenType.DATE, "TS": TokenType.TIMESTAMP}


def without_escapes(tokens: list[Token]) -> list[Token]:
    """ODBC and JDBC escapes: {d '2024-12-31'} is DATE '2024-12-31', {fn UCASE(x)} is UCASE(x)."""
    plain: list[Token] = []
    open_braces = 0
    for place, token in enumerate(tokens):
        then = tokens[place + 1] if place + 1 < len(tokens) else None
        before = tokens[place - 1] if place else None
        word = str(token.text).upper()
        if token.token_type is TokenType.L_BRACE and then is not None and str(then.text).upper() in (*_ESCAPES, "FN"):
            open_braces += 1
        elif token.token_type is TokenType.R_BRACE and open_braces:
            open_braces -= 1
        elif before is not None and before.token_type is TokenType.L_BRACE and word in (*_ESCAPES, "FN"):
            if word != "FN":
                plain.append(_token(_ESCAPES[word], {"D": "DATE", "TS": "TIMESTAMP"}[word], token))
        else:
            plain.append(token)
    return plain


def without_top(tokens: list[Token]) -> list[Token]:
    """SELECT TOP 5 ... is SELECT ... LIMIT 5."""
    words = [str(token.text).upper() for token in tokens[:3]]
    if words[:2] != ["SELECT", "TOP"] or len(tokens) < 4 or tokens[2].token_type is not TokenType.NUMBER:
        return tokens
    limit = _token(TokenType.LIMIT, "LIMIT", tokens[1])
    return [tokens[0], *tokens[3:], limit, tokens[2]]


def numbered_placeholders(tokens: list[Token]) -> list[Token]:
    """? is $1, $2, ... in the order of the text, which a syntax tree does not keep."""
    if not any(token.token_type is TokenType.PLACEHOLDER for token in tokens):
        return tokens
    numbered: list[Token] = []
    numbers = itertools.count(1)
    for token in tokens:
        if token.token_type is TokenType.PARAMETER:
            raise QueryError("parameters are all written ?, or all $1, or all :name", position=token.start)
        if token.token_type is TokenType.PLACEHOLDER:
            numbered += [_token(TokenType.PARAMETER, "$", token), _token(TokenType.NUMBER, str(next(numbers)), token)]
        else:
            numbered.append(token)
    return numbered


def _token(kind: TokenType, text: str, place: Token) -> Token:
    return Token(kind, text, place.line, place.col, place.start, place.end)


def needs_quotes(name: str) -> bool:
    """Whether a name cannot stand in a question as it is; words that may be keywords are quoted to be safe."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) is None or name.upper() in DuckDB.Tokenizer.KEYWORDS


def depths(tokens: list[Token]) -> list[int]:
    """How many brackets and CASEs are open before each token."""
    steps = [(t.token_type in _OPENING) - (t.token_type in CLOSING) for t in tokens]
    return list(itertools.accumulate(steps, initial=0))[: len(tokens)]


def _begins_with_select(text: str, tokens: list[Token], explain: bool) -> None:
    if not tokens:
        raise QueryError("there is no question")
    outer = [t for t, deep in zip(tokens, depths(tokens), strict=True) if t.token_type is TokenType.SELECT and not deep]
    first = tokens[0].token_type
    if first in (TokenType.SELECT, TokenType.PIVOT) or (first in (TokenType.WITH, TokenType.FROM) and outer):
        return
    selects = [token.start for token in tokens if token.token_type is TokenType.SELECT]
    bracketed = tokens[0].token_type is TokenType.L_PAREN and tokens[-1].token_type is TokenType.R_PAREN
    end = tokens[-1].start if bracketed else tokens[-1].end + 1
    if str(tokens[0].text).upper() == "SUMMARIZE" and len(tokens) == 2:
        raise QueryError(
            "SUMMARIZE would show what single people have; DESCRIBE shows what is declared",
            position=tokens[0].start,
            rewrite=f"DESCRIBE {text[tokens[1].start : tokens[1].end + 1]}",
            differs="tells what is declared about each column, and nothing is measured",
        )
    raise QueryError(
        "a question begins with SELECT, or EXPLAIN SELECT; nothing else is run",
        position=tokens[0].start,
        rewrite="EXPLAIN " * explain + text[selects[0] : end] if selects else "",
    )


def _check(tokens: list[Token]) -> None:
    items = [0]  # commas seen so far in each open bracket
    prefixes = 0
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.SEMICOLON:
            raise QueryError("only one statement can be asked at a time", position=token.start)
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if kind in _OPENING:
            items.append(0)
        elif kind in CLOSING:
            items = items[:-1] or [0]
        elif kind is TokenType.COMMA:
            items[-1] += 1
            if len(items) > 1 and items[-1] >= MOST_ITEMS:
                raise QueryError(f"a list has at most {MOST_ITEMS} items", position=token.start)
        if len(items) - 1 + prefixes > DEEPEST:
            raise QueryError(f"conditions can be nested at most {DEEPEST} deep", position=token.start)


def _check_tedious(tokens: list[Token]) -> None:
    """Each JOIN without ON, and each type with brackets inside another, doubles the parser's time; [ ] square it."""
    tedious = {
        NO_JOINS: [t for t in tokens if t.token_type is TokenType.JOIN],
        "square brackets are not available": [t for t in tokens if t.token_type is TokenType.L_BRACKET],
        "functions are not available": [
            word
            for word, then in itertools.pairwise(tokens)
            if word.token_type in _TYPES and then.token_type is TokenType.L_PAREN
        ],
    }
    for reason, places in tedious.items():
        if len(places) > MOST_TEDIOUS:
            raise QueryError(reason, position=places[0].start)


LARGEST_SCRIPT = 2**20
MOST_QUESTIONS = 1000


def questions_of(text: str) -> list[str]:
    """The questions of a script. Semicolons inside quotes and comments separate nothing."""
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST_SCRIPT:
        raise QueryError(f"a file of questions has at most {LARGEST_SCRIPT} bytes")
    pieces: list[str] = []
    start: int | None = None
    for token in tokenize(text):
        if token.token_type is TokenType.SEMICOLON:
            pieces += [] if start is None else [text[start : token.start].strip()]
            start = None
        elif start is None:
            start = token.start
    pieces += [] if start is None else [text[start:].strip()]
    if not pieces:
        raise QueryError("the file has no question in it")
    if len(pieces) > MOST_QUESTIONS:
        raise QueryError(f"a batch has at most {MOST_QUESTIONS} questions")
    return pieces


LONGEST_DESCRIBE = 400
"""Most characters of DESCRIBE and SHOW."""

_TABLE = r"""(?:\w+\.)?(?:"(?P<quoted>[^"]+)"|'(?P<text>[^']+)'|(?P<plain>\w+))"""

_COLUMNS = tuple(
    re.compile(rf"\s*{words}\s*;?\s*", re.IGNORECASE)
    for words in (
        rf"(?:DESCRIBE|DESC)\s+(?:TABLE\s+)?{_TABLE}",
        rf"SHOW\s+(?:COLUMNS|FIELDS)\s+(?:FROM|IN)\s+{_TABLE}",
        rf"PRAGMA\s+(?:table_info|show)\s*\(\s*{_TABLE}\s*\)",
    )
)
_TABLES = re.compile(r"\s*(?:SHOW\s+(?:ALL\s+)?TABLES|DESCRIBE|PRAGMA\s+show_tables)\s*;?\s*", re.IGNORECASE)


def described(text: str) -> tuple[Described, Name] | None:
    """What a text asks to be described, with the table, if it names one; None where it is another statement."""
    if len(text) > LONGEST_DESCRIBE:
        return None
    if _TABLES.fullmatch(text):
        return Described.TABLES, Name(text="")
    for pattern in _COLUMNS:
        if (matched := pattern.fullmatch(text)) is not None:
            (word,) = (word for word in ("quoted", "text", "plain") if matched[word] is not None)
            return Described.COLUMNS, Name(text=matched[word], quoted=word == "quoted", position=matched.start(word))
    return None
