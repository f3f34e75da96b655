"""Which door a statement belongs to, decided on its tree: the data, or the catalog; never both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bursar.service.wire.asked import Context, ResultSet
from bursar.service.wire.catalog import Catalog, CatalogQuestion, TypeInfo, is_catalog, is_type_info
from bursar.service.wire.catalog_spelling import Sessions
from bursar.service.wire.failures import UNAVAILABLE, WireError
from bursar.service.wire.protocol import Field
from bursar.service.wire.questions import DataQuestion, ReadBefore, is_data_table, no_relation
from bursar.service.wire.trees import parse_statement, relations
from bursar.service.wire.types import PgValue


class Answerable(Protocol):
    """Something with rows: `fields` and `explain` run nothing, `run` does."""

    @property
    def route(self) -> str:
        """What the journal calls it."""

    @property
    def parameters(self) -> Sequence[int]: ...

    @property
    def known(self) -> bool:
        """Whether `fields` and `repeat` take no time."""

    def repeat(self) -> ResultSet | None:
        """What `run` gives, where that takes neither work nor wait."""

    def fields(self) -> Sequence[Field]: ...

    def run(self, values: Sequence[PgValue]) -> ResultSet: ...

    def explain(self, values: Sequence[PgValue]) -> list[str]: ...


def route(
    text: str,
    context: Context,
    catalog: Catalog,
    sessions: Sessions,
    given: Sequence[int] = (),
    read_before: ReadBefore | None = None,
) -> Answerable:
    """What a statement asks, and whom. Nothing is run."""
    if is_type_info(text):
        return TypeInfo()
    parsed = parse_statement(text)
    data, public = [], []
    for table in relations(parsed.tree):
        if is_data_table(table, context):
            data.append(table)
        elif is_catalog(table):
            public.append(table)
        else:
            raise no_relation(table, context)
    if data and public:
        raise WireError(UNAVAILABLE, "a statement is about the data or about the catalog, not about both")
    if data:
        return DataQuestion(parsed, context, given, ReadBefore() if read_before is None else read_before)
    return CatalogQuestion(parsed, context, catalog, sessions, given)
