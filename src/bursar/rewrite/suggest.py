"""The one entry: the nearest question that can be asked of these columns in place of one that was refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bursar.compile import MOST_ANSWERS, Level, compile
from bursar.compile.resolve import ambiguous_names, end_with_sealed, with_levels
from bursar.core.domain import Domain, Unit
from bursar.errors import QueryError
from bursar.rewrite.differences import differences
from bursar.rewrite.query import repairs
from bursar.rewrite.statement_repairs import repaired
from bursar.sql import parse, render
from bursar.sql.accuracy import nearest_goal
from bursar.sql.parse import read_query, read_syntax
from bursar.sql.render import quoted as quoted_name
from bursar.sql.syntax import innermost_select, open_subselects
from bursar.sql.tokens import described, needs_quotes, tokenize

MOST_CANDIDATES = 32
"""Most questions that are compiled in search of one that is accepted; the nearest come first."""


def suggest(
    text: str,
    refusal: QueryError,
    domain: Domain,
    table: str,
    sealed: int | None = None,
    levels: Sequence[Level] = (),
    unit: Unit | None = None,
) -> QueryError:
    """The refusal of a question, by the parser or the compiler, with a question that works for its rewrite.

    Guarantees: the rewrite can be parsed and compiled; it is empty where none was found among MOST_CANDIDATES. Where it
    does not mean the same, the refusal says in what it differs.
    """
    quoted = _with_quotes(text, (*with_levels(domain, levels).names, table))
    if quoted is not None and _compiles(quoted.text, domain, table, sealed, levels, unit):
        return QueryError(
            f"{quoted.word} is a word of SQL; a name that is one stands in quotes",
            text=text,
            position=quoted.position,
            rewrite=quoted.text,
        )
    tried: set[str] = set()
    for candidate in _candidates(text, refusal, domain, table, sealed, levels):
        if candidate in tried:
            continue
        if len(tried) == MOST_CANDIDATES:
            break
        tried.add(candidate)
        if _compiles(candidate, domain, table, sealed, levels, unit):
            told = refusal.differs if candidate == refusal.rewrite else ""
            return replace(refusal, rewrite=candidate, differs=told or differences(text, candidate))
    return replace(refusal, rewrite="", differs="")


@dataclass(frozen=True)
class _Quoted:
    """A text with names in quotes that SQL takes for its own words, and the first of them."""

    text: str
    word: str
    position: int


def _with_quotes(text: str, names: Sequence[str]) -> _Quoted | None:
    """A text that cannot be read, with quotes around names that are words of SQL; None where it has none."""
    named = {name.casefold(): name for name in names if needs_quotes(name)}
    try:
        tokens = tokenize(text) if named else []
    except QueryError:
        return None
    places = [(token.start, token.end + 1) for token in tokens]
    words = [(start, end) for start, end in places if text[start:end].casefold() in named]
    if not words or _can_be_read(text):
        return None
    quoted = text
    for start, end in reversed(words):
        quoted = f'{quoted[:start]}"{named[quoted[start:end].casefold()]}"{quoted[end:]}'
    start, end = words[0]
    return _Quoted(quoted, text[start:end], start)


def _can_be_read(text: str) -> bool:
    try:
        parse(text)
    except QueryError:
        return False
    return True


def _candidates(
    text: str, refusal: QueryError, domain: Domain, table: str, sealed: int | None, levels: Sequence[Level]
) -> Iterator[str]:
    """Texts near to a refused one, the nearest first; each can be parsed."""
    if described(text) is not None:
        yield f"DESCRIBE {quoted_name(table) if needs_quotes(table) else table}"
        return
    try:
        query = parse(text)
    except QueryError:
        readable = suggest_statement(text, refusal)
        if not readable:
            return
        yield readable
        query = parse(readable)
    columns = with_levels(domain, levels)
    if ambiguous_names(query, columns):
        return  # which of two columns is meant is lost once the sub-select is opened
    for near in repairs(query, columns, table):
        for candidate in (near, end_with_sealed(near, domain, sealed)):
            try:
                yield render(candidate)
            except QueryError:  # it has no text
                continue


def suggest_statement(text: str, refusal: QueryError) -> str:
    """For a text that the parser refused, one that it accepts, whatever columns there are; empty if none is found.

    Where the refusal knows itself what should have been typed, it is that or nothing.
    """
    try:
        candidate = refusal.rewrite or next(_statements(text), "")
        parse(candidate)
    except Exception:  # no rewrite is better than a wrong one, and this is not the error to report
        return ""
    return candidate


def _statements(text: str) -> Iterator[str]:
    """The statement with its tree repaired; then the sub-select in it that reads the table, by itself."""
    syntax = read_syntax(text)
    for near in (open_subselects, innermost_select):
        try:
            query = read_query(repaired(near(syntax.tree)), syntax.tokens)
            goal = nearest_goal(syntax.goal, query.names)
            yield render(replace(query, goal=goal, search=syntax.search, explain=syntax.explain))
        except Exception:  # as above
            continue


def _compiles(
    text: str, domain: Domain, table: str, sealed: int | None, levels: Sequence[Level], unit: Unit | None
) -> bool:
    try:
        compile(parse(text), domain, table, sealed, levels, unit, MOST_ANSWERS)  # a larger one takes too long to try
    except QueryError:
        return False
    return True
