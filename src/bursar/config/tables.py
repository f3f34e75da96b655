"""[tables.*]: tables of the same database or DuckDB file that add columns to the rows, joined by declared keys; and
private tables with rows of their own, each with columns and tables under it like the first."""

from __future__ import annotations

from pathlib import PurePath

from bursar.config.section import HOMES, Section, nearest, shown
from bursar.config.sections import Sealing
from bursar.config.source_url import TABLE, SourceUrl
from bursar.core.domain import Attribute, Categories, Domain, Neighbours, Unit
from bursar.core.extensions.joins import Parent

EXAMPLE = '[tables.people]\ncolumns = ["sex", "born"]'
MOST_TABLES = 16
MOST = "max_contributions"
JOINED = ("key", "columns", "public", "owner")
OWN = ("max_contributions", "unit", "path", "max_rows", "columns", "tables", "confirmed")


def own_rows(top: Section) -> list[str]:
    """The names of the private tables that have rows of their own: those that say how many of one person count."""
    section = top.section("tables", EXAMPLE)
    return [name for name in section.entries if MOST in section.section(name, EXAMPLE)]


def tables(
    holder: Section,
    domain: Domain,
    unit: Unit,
    sealing: Sealing,
    *,
    table: str,
    path: str,
    url: SourceUrl | None,
    view: bool = False,
) -> tuple[Parent, ...]:
    """The tables that add columns to the one that `holder` describes, in their order; none where there are none.

    `table` is its name, `path` its file or `url` its database, `view` says whether its rows are those of a SELECT.
    """
    beside = own_rows(holder)
    section = holder.section("tables", EXAMPLE)
    names = [name for name in section.entries if name not in beside]
    if not names:
        return ()
    if unit.column is None:
        reason = "joined rows belong to somebody whom a column names, and privacy.unit is the row"
        section.refuse(reason=reason, hint='unit = { column = "person" } under [privacy]')
    if view:
        section.refuse(reason="source.view joins tables itself", hint="keep [tables.*] or source.view, not both")
    if url is None and PurePath(path).suffix.lower() not in (".duckdb", ".db"):
        hint = 'path = "clinic.duckdb", or a url'
        section.refuse(reason="tables are joined that stand in one database or DuckDB file", hint=hint)
    check_files(section, url)
    if sealing.growing:
        reason = "tables are joined whose rows are complete: a changed row would change others behind a seal"
        section.refuse(reason=reason, hint='seal = "all" under [partition]')
    if len(section.entries) > MOST_TABLES:
        section.refuse(reason=f"there are at most {MOST_TABLES} tables", hint="leave some out")
    parents = [_parent(section.section(name, EXAMPLE), name, domain) for name in names]
    _check_together(section, table, parents, unit)
    return tuple(parents)


def check_files(section: Section, url: SourceUrl | None) -> None:
    """Refuse Parquet files that would be those of every table."""
    if url is not None and url.files is not None and TABLE not in url.files:
        reason = "source.files does not say where each table's files are"
        section.refuse(reason=reason, hint=f'files = "/data/{TABLE}/*.parquet", with the name in place of {TABLE}')


def _parent(section: Section, name: str, domain: Domain) -> Parent:
    if isinstance(section.entries.get("columns"), dict):
        reason = f"{section.label()} declares columns of its own, and not how many rows of one person count"
        section.refuse(reason=reason, hint=f"{MOST} = 5, the most rows of one person")
    section.only(JOINED, HOMES)
    columns: list[str] = []
    for place, column in enumerate(section.items("columns", 'columns = ["sex"]') if "columns" in section else ()):
        if not isinstance(column, str) or column not in domain:
            near = nearest(column, domain.names) if isinstance(column, str) else ""
            hint = f'did you mean "{near}"?' if near else f"declare it: [columns.{column}]"
            reason = f"{section.label('columns', place)} is no declared column: {shown(column)}"
            section.refuse("columns", place, reason=reason, hint=hint)
        columns.append(column)
    flags = {}
    for key in ("public", "owner"):
        value = section.entries.get(key, False)
        if not isinstance(value, bool):
            section.refuse(key, reason=f"{section.label(key)} must be true or false, not {shown(value)}")
        flags[key] = value
    with section.located():
        return Parent(table=name, keys=_keys(section), columns=tuple(columns), **flags)


def _keys(section: Section) -> tuple[tuple[str, str], ...]:
    """key = "ward", or key = { ward = "id" } where the columns have different names; none: the unit column alone."""
    hint = 'key = "ward", or key = { ward = "id" }, the column of the rows and that of this table'
    if "key" not in section:
        return ()
    value = section.entries["key"]
    if isinstance(value, str):
        return ((value, value),)
    if not isinstance(value, dict) or not value or not all(isinstance(theirs, str) for theirs in value.values()):
        section.refuse("key", reason=f"{section.label('key')} names columns, not {shown(value)}", hint=hint)
    return tuple((mine, str(theirs)) for mine, theirs in value.items())


def _check_together(section: Section, table: str, parents: list[Parent], unit: Unit) -> None:
    seen: dict[str, str] = {}
    for parent in parents:
        if parent.table.casefold() == table.casefold():
            section.refuse(parent.table, reason=f"{parent.table} is the table that the others are joined to")
        for column in parent.columns:
            if (other := seen.setdefault(column, parent.table)) != parent.table:
                reason = f"{column} stands in {other} and in {parent.table}; each column has one table"
                section.refuse(parent.table, "columns", reason=reason)
    owners = [parent.table for parent in parents if parent.owner]
    if len(owners) > 1:
        reason = f"{' and '.join(owners)} both say whose rows are; one table does"
        section.refuse(owners[1], "owner", reason=reason, hint="owner = true in one of them")
    if unit.neighbours is Neighbours.REPLACE_ONE and any(not parent.public for parent in parents):
        reason = 'neighbours = "replace-one" keeps the number of rows, which several private tables do not'
        section.refuse(reason=reason, hint='neighbours = "add-remove" under [privacy]')


def with_flags(domain: Domain, parents: tuple[Parent, ...], top: Section) -> Domain:
    """The domain with a column for each table that says whether a row has a row there."""
    flags: list[Attribute] = []
    for parent in parents:
        if parent.owner:
            continue
        if parent.has in domain:
            reason = f"{parent.has} says whether there is a row of {parent.table}, and is declared as a column too"
            top.section("columns").refuse(parent.has, reason=reason, hint="give the column another name")
        flags.append(Categories(name=parent.has, values=(True, False), outside=1, null=1))
    return Domain((*domain.attributes, *flags), domain.partition) if flags else domain
