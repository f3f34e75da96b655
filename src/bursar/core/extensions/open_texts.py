"""Open columns in a source: texts as keys are compared, and views in which they have the cells of the time, in SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bursar.core.domain import Domain
from bursar.core.extensions.open_keys import LONGEST_KEY, SPACES, UNNAMED, OpenText, is_key
from bursar.core.extensions.predicate import condition_sql
from bursar.core.source.raw import FAILED, attempt
from bursar.errors import SourceError

if TYPE_CHECKING:
    from bursar.core.extensions.discovery import Found
    from bursar.core.source.duckdb import DuckDBSource
    from bursar.core.source.source import Source


@runtime_checkable
class KeyedSource(Protocol):
    """A source of data with open columns, which reads their texts as it finds them."""

    def assign(self, texts: Mapping[str, Sequence[str]]) -> None:
        """From now on the rows with these texts of open columns are in the cells 0, 1, ...; all others in `other`.

        Edge cases: texts are only ever added, behind those that were assigned before.
        """


def give_cells(source: Source, texts: Mapping[str, Sequence[str]]) -> None:
    """Give texts of open columns their cells; SourceError where the source reads no such columns."""
    if not isinstance(source, KeyedSource):
        raise SourceError("open columns are read from files and data frames, not from this kind of source")
    source.assign(texts)


def as_key(text: str) -> str:
    """SQL for `normalised` of a text, and for a text that can have no cell where there is none."""
    spaces = " || ".join(f"chr({ord(space)})" for space in SPACES)
    key = f"rtrim(left(trim(nfc_normalize({text}), {spaces}), {LONGEST_KEY}), {spaces})"
    return f"coalesce({key}, '{UNNAMED}')"


def views(domain: Domain, tables: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """SQL that makes views keyed_<table>, in which c<place> of an open column is its cell and t<place> its text.

    keys<place>(key, cell) will have the texts that have cells. `tables` have further columns of their own.
    """
    columns, joins = [], []
    for place, attribute in enumerate(domain.attributes):
        column, keys = f"c{place}", f"keys{place}"
        if isinstance(attribute, OpenText):
            yield f"CREATE TABLE {keys} (key VARCHAR, cell INTEGER)"
            joins.append(f"LEFT JOIN {keys} ON {column} = {keys}.key")
            columns.append(f"{column} AS t{place}")
            cell = f"coalesce({keys}.cell, {attribute.other})"
            column = f"CASE WHEN {column} IS NULL THEN {attribute.null_cell} ELSE {cell} END"
        columns.append(f"{column} AS c{place}")
    for table, others in tables.items():
        yield f"CREATE VIEW keyed_{table} AS SELECT {', '.join([*others, *columns])} FROM {table} {' '.join(joins)}"


def assign(source: DuckDBSource, texts: Mapping[str, Sequence[str]]) -> None:
    """`KeyedSource.assign` of a source in DuckDB."""
    for name, listed in texts.items():
        place = source._domain.place(name)
        new, first = list(listed[source._assigned[place] :]), source._assigned[place]
        keys = f"SELECT unnest(CAST(? AS VARCHAR[])), unnest(range({first}, {first + len(new)}))"
        attempt(partial(source._fetch, f"INSERT INTO keys{place} {keys}", [new]), FAILED)
        source._assigned[place] += len(new)


def unlisted(source: DuckDBSource, event: Found) -> list[tuple[str, int]]:
    """`TextSource.unlisted` of a source in DuckDB."""
    attribute, place = source._domain[event.column], source._domain.place(event.column)
    scope = "TRUE" if event.scope is None else condition_sql(event.scope.condition, source._domain)
    free = f"FROM {{}} WHERE c{place} = {attribute.other} AND t{place} IS NOT NULL AND ({scope})"
    units = f"SELECT t{place} AS text, CAST(sum(rows) AS BIGINT) AS units, 1 AS texts {free.format(source._cells)}"
    if source._people:
        texts_of_people = f"SELECT DISTINCT unit, t{place} AS text {free.format(source._kept)}"
        each = f"SELECT text, count(*) OVER (PARTITION BY unit) AS texts FROM ({texts_of_people})"
        units = f"SELECT text, count(*) AS units, texts FROM ({each})"
    fetched = attempt(lambda: source._fetch(f"{units} GROUP BY ALL"), FAILED)
    weights: dict[str, int] = defaultdict(int)
    for text, number, texts in zip(*(fetched[name].tolist() for name in ("text", "units", "texts")), strict=True):
        weights[text] += number * event.share(texts)
    order = {text: source._keyed("order", [text.encode()]).digest() for text in weights if is_key(text)}
    return [(text, weights[text]) for text in sorted(order, key=order.__getitem__)]
