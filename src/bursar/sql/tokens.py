"""The limits that hold before anything is parsed, and the words of one statement."""

from __future__ import annotations

import itertools
import re
from typing import Any

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import TokenType

from bursar.errors import QueryError

LARGEST_TEXT = 8 * 1024
"""Most bytes of a question."""

DEEPEST = 20
"""Most levels of brackets, CASEs, NOTs and signs inside one another; the parser recurses on each."""

MOST_ITEMS = 500
"""Most items between two brackets."""

MOST_TEDIOUS = 8
"""Most of each thing that no question has and that the parser takes long for."""

NO_JOINS = "joins are not available: a question is about one table; the data owner can join tables behind it, as a view"

Token = Any
"""A token of sqlglot: token_type, text, start, end (the offset of its last character), comments."""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
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
    if ticks:
        rewrite = text.replace("`", '"') if text.count("`") == len(ticks) else ""
        raise QueryError('names are quoted like "this"', position=ticks[0], rewrite=rewrite)
    _begins_with_select(text, tokens, explain)
    _check(tokens)
    _check_tedious(tokens)
    return tokens, explain


def tokenize(text: str) -> list[Token]:
    """The tokens of DuckDB's SQL; whatever cannot be split into tokens is refused."""
    try:
        return list(DuckDB().tokenize(text))
    except Exception as fault:  # the tokenizer is not ours: no junk may bring up an error of its own
        raise QueryError("the question cannot be split into words: is a quote or a comment left open?") from fault


def needs_quotes(name: str) -> bool:
    """Whether a name cannot stand in a question as it is; words that may be keywords are quoted to be safe."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) is None or name.upper() in DuckDB.Tokenizer.KEYWORDS


def depths(tokens: list[Token]) -> list[int]:
    """How many brackets and CASEs are open before each token."""
    steps = [(t.token_type in _OPENING) - (t.token_type in _CLOSING) for t in tokens]
    return list(itertools.accumulate(steps, initial=0))[: len(tokens)]


def _begins_with_select(text: str, tokens: list[Token], explain: bool) -> None:
    if not tokens:
        raise QueryError("there is no question")
    outer = [t for t, deep in zip(tokens, depths(tokens), strict=True) if t.token_type is TokenType.SELECT and not deep]
    if tokens[0].token_type is TokenType.SELECT or (tokens[0].token_type is TokenType.WITH and outer):
        return
    selects = [token.start for token in tokens if token.token_type is TokenType.SELECT]
    bracketed = tokens[0].token_type is TokenType.L_PAREN and tokens[-1].token_type is TokenType.R_PAREN
    end = tokens[-1].start if bracketed else tokens[-1].end + 1
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
        elif kind in _CLOSING:
            items = items[:-1] or [0]
        elif kind is TokenType.COMMA:
            items[-1] += 1
            if len(items) > 1 and items[-1] >= MOST_ITEMS:
                raise QueryError(f"a list has at most {MOST_ITEMS} items", position=token.start)
        if len(items) - 1 + prefixes > DEEPEST:
            raise QueryError(f"conditions can be nested at most {DEEPEST} deep", position=token.start)


def _check_tedious(tokens: list[Token]) -> None:
    """Each JOIN without ON, and each type with brackets inside another, doubles the parser's time; [ ] square it."""
    found = {
        NO_JOINS: [t for t in tokens if t.token_type is TokenType.JOIN],
        "square brackets are not available": [t for t in tokens if t.token_type is TokenType.L_BRACKET],
        "functions are not available": [
            word
            for word, then in itertools.pairwise(tokens)
            if word.token_type in _TYPES and then.token_type is TokenType.L_PAREN
        ],
    }
    for reason, places in found.items():
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
