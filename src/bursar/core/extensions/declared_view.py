"""The data owner's SELECT over the tables of a DuckDB file, whose rows stand for those of one of its tables."""

from __future__ import annotations

from functools import partial
from os import PathLike

from bursar.core.source.raw import Connection, Raw, attached, attempt, described, found_file, has_tables, open_raw
from bursar.errors import SourceError


def one_select(view: str) -> str:
    """The text of a view, if it is one SELECT; SourceError with the parser's reason, which knows the text alone."""
    import duckdb

    reason = "it must be one SELECT"
    try:
        if [statement.type for statement in duckdb.extract_statements(view)] == [duckdb.StatementType.SELECT]:
            return view.strip().rstrip(";")
    except duckdb.Error as fault:
        reason = str(fault).split("\n", 1)[0]
    raise SourceError(f"the view cannot be read: {reason}")


def open_view(connection: Connection, location: object, view: str) -> Raw:
    """The rows of the data owner's SELECT, computed once, into a table that is dropped with the other raw rows.

    Guarantees: while it runs no file is in reach but the attached one, which cannot be written to.
    Differs from a table: a row may be computed from rows of several people. The data owner promises that it is not.
    """
    if not isinstance(location, str | PathLike):
        return open_raw(connection, location, None)  # a data frame has its rows already
    path = found_file(location)
    if not has_tables(path):
        raise SourceError(f"{path} has no tables that a view could be about; a DuckDB file has")
    select = one_select(view)
    attached(connection, path)
    text = f"the view over {path} cannot be run: it is one SELECT over tables of that file, and reaches nothing else"
    steps = [
        "SET GLOBAL enable_external_access = false",
        "USE stored",
        f"CREATE TEMP TABLE viewed AS FROM (\n{select}\n)",
        "USE memory",
    ]
    for step in steps:
        attempt(partial(connection.execute, step), text)
    return described(connection, f"the view over {path}", "temp.main.viewed", text)
