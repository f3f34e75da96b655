"""DESCRIBE and SHOW TABLES as lines of an answer: what is declared, which is public and free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bursar.compile.partwise import SharedRows
from bursar.compile.values import Decimals, ListedKeys, greatest, least
from bursar.compile.workload import Workload
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Value
from bursar.core.extensions.open_keys import OpenText

LONGEST_DESCRIPTION = 500
"""Most characters about one column."""

_TYPES = {str: "VARCHAR", int: "BIGINT", bool: "BOOLEAN"}


def columns_workload(domain: Domain) -> Workload:
    """A line for each column: its name, its type in SQL, whether NULL can occur, and what else it can hold."""
    labels = [(each.name, type_of(each), each.has_null and each.nullable, describe(each)) for each in domain.attributes]
    return _told(("column_name", "column_type", "null", "declared"), labels, "what is declared, and not what occurs")


def tables_workload(names: Sequence[str]) -> Workload:
    """A line for each table that can be asked about."""
    return _told(("name",), [(name,) for name in names], "the tables that can be asked about")


def _told(keys: tuple[str, ...], labels: Sequence[tuple[Value, ...]], remark: str) -> Workload:
    index = np.zeros((len(labels), 0), np.int64)
    return Workload(map=SharedRows().map(), keys=keys, labels=tuple(labels), outputs=(), index=index, remarks=(remark,))


def type_of(column: Attribute) -> str:
    """The type that a column has in SQL."""
    match column:
        case Categories():
            return _TYPES[column.of]
        case IntegerRange():
            return "BIGINT"
        case Dates():
            return "DATE"
        case Decimals():
            return "DECIMAL"
        case Bins():
            return "DOUBLE"
    return "VARCHAR"


def _edges(column: Bins) -> str:
    edges = [f"{edge:.15g}" for edge in column.edges]
    wide = column.edges[1] - column.edges[0]
    even = [f"{column.edges[0] + place * wide:.15g}" for place in range(len(edges))]
    if len(edges) > 3 and edges == even:
        return f"of width {wide:.15g} from {edges[0]} to {edges[-1]}"
    return f"with the edges {', '.join(edges)}"


def describe(column: Attribute) -> str:
    """What is public about a column, in words."""
    match column:
        case IntegerRange():
            text = f"whole numbers from {column.lower} to {column.upper}"
        case Decimals():
            text = f"numbers from {least(column)} to {greatest(column)}, rounded to the nearest {column.step}"
        case Bins():
            text = f"numbers, known by bins {_edges(column)}"
        case Dates():
            text = f"days from {column.start(0)} to {column.last}, known by {column.by.value}"
        case OpenText() | ListedKeys():
            text = "any text; one that a question names is told apart"
        case Categories():
            text = f"one of {', '.join(map(str, column.values))}"
        case _:
            text = ""
    if column.other is not None:
        text = f"{text[:LONGEST_DESCRIPTION]}; anything else is called other"
    return text if len(text) <= LONGEST_DESCRIPTION else text[: LONGEST_DESCRIPTION - 3] + "..."
