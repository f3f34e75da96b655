"""A text as the engine takes it: parsed and compiled, and where it is refused, with a question that works instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bursar.compile import Level, Workload, compile
from bursar.core.domain import Domain
from bursar.errors import QueryError
from bursar.rewrite.suggest import suggest, suggest_statement
from bursar.sql import Query, parse


def compiled(
    text: str, domain: Domain, table: str = "people", sealed: int | None = None, levels: Sequence[Level] = ()
) -> Workload:
    try:
        return compile(parse(text), domain, table, sealed, levels)
    except QueryError as refusal:
        raise suggest(text, refusal, domain, table, sealed, levels) from refusal.__cause__


def parsed(text: str) -> Query:
    """The question of a text; a refusal offers what can be parsed, whatever columns there are."""
    try:
        return parse(text)
    except QueryError as refusal:
        raise replace(refusal, rewrite=suggest_statement(text, refusal)) from refusal.__cause__
