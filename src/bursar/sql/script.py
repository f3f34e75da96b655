"""A file of questions, one after the other, with semicolons between them."""

from __future__ import annotations

from sqlglot.tokens import TokenType

from bursar.errors import QueryError
from bursar.sql.tokens import tokenize

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
