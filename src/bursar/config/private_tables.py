"""[tables.NAME] with max_contributions: a private table with rows of its own, beside the one under [source].

[tables.visits]
max_contributions = 5           # of one person, at most so many rows of this table are counted
path = "visits.csv"             # the file; that under [source] where nothing is said

[tables.visits.columns.ward]
values = ["A", "B"]

[tables.visits.tables.people]   # joins: columns of people beside each row of visits
columns = ["sex"]
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.config import sections
from bursar.config.columns import levels
from bursar.config.section import HOMES, Section
from bursar.config.sections import Sealing
from bursar.config.tables import EXAMPLE, MOST, OWN, check_files, own_rows, tables, with_flags
from bursar.core.domain import Attribute, Domain, Neighbours, Unit
from bursar.core.extensions.joins import Parent
from bursar.goal import Contract

if TYPE_CHECKING:
    from bursar.config.load import Config

LONGEST_PATH = 4096
LARGEST_ROWS = 10**12


def with_private_tables(top: Section, first: Config) -> Config:
    """The config with every private table that has rows of its own, each as a config over the same ledger."""
    names = own_rows(top)
    if not names:
        return first
    section = top.section("tables")
    _check_alone(top, first)
    for name in names:
        table = _private(section.section(name, EXAMPLE), name, first)
        first = replace(first, further=(*first.further, table))
    return first


def _check_alone(top: Section, first: Config) -> None:
    """Refuse what is declared for one private table only."""
    section = top.section("tables")
    if first.unit.column is None:
        reason = "people who have rows in several tables are told apart by a column, and privacy.unit is the row"
        section.refuse(reason=reason, hint='unit = { column = "person" } under [privacy]')
    if first.unit.neighbours is Neighbours.REPLACE_ONE:
        reason = 'neighbours = "replace-one" keeps the number of rows, which several private tables do not'
        top.section("privacy").refuse("neighbours", reason=reason, hint='neighbours = "add-remove"')
    if first.preset is not None:
        top.refuse("preset", reason="a published system answers about one private table", hint="leave preset out")
    if first.contract is Contract.SIMULTANEOUS:
        reason = 'goal.contract = "simultaneous" covers questions about one private table'
        top.section("goal").refuse("contract", reason=reason, hint='contract = "per-query"')
    if first.analysts.seed is not None:
        reason = "a seed is measured of one private table"
        top.section("analysts").refuse("policy", reason=reason, hint='policy = "shared" or "independent"')


def _private(section: Section, name: str, first: Config) -> Config:
    section.only(OWN, HOMES)
    if name.casefold() in [config.table.casefold() for config in first.private]:
        section.refuse(reason=f"{name} is declared twice", hint="give each private table one section")
    rows = first.max_rows
    if "max_rows" in section:
        hint = "max_rows = 100000, a public number that the table will never exceed"
        rows = section.integer("max_rows", hint, least=1, most=LARGEST_ROWS)
    most = section.integer(MOST, f"{MOST} = 5, the most rows of one person", least=1, most=rows)
    column = (
        section.text("unit", 'unit = "person", the column that says whose each row is') if "unit" in section else None
    )
    unit = Unit(column=column or first.unit.column, max_contributions=most)
    location, url = first.location, first.url
    if "path" in section:
        path = section.text("path", f'path = "{name}.csv"', longest=LONGEST_PATH)
        location, url = Path(os.path.abspath(first.path.parent / path)), None
    elif url is None and (location is None or location.suffix.lower() not in (".duckdb", ".db")):
        reason = f"the file under [source] holds one table, and {name} is another"
        section.refuse(reason=reason, hint=f'path = "{name}.csv"')
    columns = sections.domain(section)
    declared = levels(section, columns)
    domain = _with_joined(section, columns, first)
    check_files(section, url)
    parents: tuple[Parent, ...] = ()
    if "tables" in section:
        parents = tables(section, domain, unit, Sealing(), table=name, path=str(location or ""), url=url)
    return replace(
        first,
        relation=name,
        table=name,
        location=location,
        url=url,
        view=None,
        unit=unit,
        max_rows=rows,
        levels=declared,
        domain=with_flags(domain, parents, section),
        parents=parents,
        public_size=None,
        groups=(),
        sealing=Sealing(),
        further=(),
    )


def _with_joined(section: Section, domain: Domain, first: Config) -> Domain:
    """The columns with those that joined private tables bring along, as these declare them."""
    attributes: dict[str, Attribute] = {}
    for name, joined in section.section("tables", EXAMPLE).entries.items() if "tables" in section else ():
        table = next((config for config in first.private if config.table.casefold() == name.casefold()), None)
        names_given = joined.get("columns") if isinstance(joined, dict) else None
        if table is not None and isinstance(names_given, list):
            names = [column for column in names_given if isinstance(column, str)]
            attributes |= {column: table.domain[column] for column in names if column in table.domain}
    return Domain((*domain.attributes, *(attribute for name, attribute in attributes.items() if name not in domain)))
