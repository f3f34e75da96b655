"""Which door a statement belongs to, decided on its tree: the data, or the catalog; never both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from bursar.service.wire.failures import UNAVAILABLE, WireError
from bursar.service.wire.protocol import Field
from bursar.service.wire.questions import (
    Context,
    DataQuestion,
    Result,
    is_data_table,
    no_relation,
    parse_statement,
    relations,
)
from bursar.service.wire.types import PgValue

if TYPE_CHECKING:
    from bursar.service.wire.server import WireServer


class Answerable(Protocol):
    """Something with rows: `fields` and `explain` run nothing, `run` does."""

    @property
    def parameters(self) -> Sequence[int]: ...

    def fields(self) -> Sequence[Field]: ...

    def run(self, values: Sequence[PgValue]) -> Result: ...

    def explain(self, values: Sequence[PgValue]) -> list[str]: ...


def route(text: str, context: Context, server: WireServer, given: Sequence[int] = ()) -> Answerable:
    """What a statement asks, and whom. Nothing is run."""
    from bursar.service.wire.catalog import CatalogQuestion, is_catalog

    parsed = parse_statement(text)
    tables = relations(parsed.tree)
    data = [table for table in tables if is_data_table(table, context)]
    catalog = [table for table in tables if table not in data and is_catalog(table)]
    for table in tables:
        if table not in data and table not in catalog:
            raise no_relation(table, context)
    if data and catalog:
        raise WireError(UNAVAILABLE, "a statement is about the data or about the catalog, not about both")
    if data:
        return DataQuestion(parsed, context, given)
    return CatalogQuestion(parsed, context, server.catalogs[context.database], given)
