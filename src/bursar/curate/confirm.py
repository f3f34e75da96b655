"""Settling the guesses of a draft: what each says, what it would make public, and the owner's word on it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from datetime import timedelta

from bursar.compile.values import Decimals, greatest, least
from bursar.config.load import SECTIONS, Config, label, parse_draft, read_text
from bursar.config.section import Place
from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Stray
from bursar.core.extensions.open_keys import OpenText
from bursar.curate import edit
from bursar.curate.check import in_total, protected
from bursar.curate.draft import toml
from bursar.errors import ConfigError

SHOWN = 20
ON_A_SCREEN = 15
BEYOND: dict[Stray | int, str] = {
    Stray.CLIP: "others count as the nearest of them",
    Stray.OTHER: "others count as other",
}


def named(config: Config, names: Sequence[str]) -> list[Place]:
    """The guesses that names stand for: source, privacy, budget, or columns, with or without `columns.` before them.

    Of further tables: tables.visits, and tables.visits.columns.ward.

    Edge cases: a name that is already confirmed is passed over, so that a script may say it twice.
    """
    every: list[Place] = [*((name,) for name in SECTIONS), *(("columns", name) for name in config.domain.names)]
    places: dict[str, Place] = {str(place[-1]): place for place in every}
    for table in config.further:
        table_place: Place = ("tables", table.table)
        every += [table_place, *((*table_place, "columns", name) for name in table.domain.names)]
    places |= {label(place): place for place in every}  # a section before a column of its name
    for name in names:
        if name not in places:
            raise ConfigError(f"there is nothing called {name} to confirm\ntry: {every_guess(config)}")
    return [place for place in dict.fromkeys(places[name] for name in names) if place in config.unconfirmed]


def every_guess(config: Config) -> str:
    """The command that confirms everything that is still open."""
    if not config.unconfirmed:
        return "bursar check"
    full = [place[-1] in SECTIONS or place[0] == "tables" for place in config.unconfirmed]
    short = [label(place) if whole else str(place[-1]) for place, whole in zip(config.unconfirmed, full, strict=True)]
    return f"bursar confirm --yes {shlex.join(short)}"


def says(config: Config, place: Place, *, shown: int = SHOWN) -> str:
    """What a section says, in plain words; of listed values, so many are shown."""
    if place == ("source",):
        return f"the table {config.table} in {config.source_name} will never have more than {config.max_rows:,} rows"
    if place == ("privacy",):
        return f"protected is {protected(config)}"
    if place == ("budget",):
        return in_total(config)
    about = of_table(config, place)
    if len(place) == 2 and place[0] == "tables":
        most = about.unit.max_contributions
        counted = f"of each {about.unit.column}, at most {most} row{'s are' if most > 1 else ' is'} counted"
        return f"{counted}, and {about.source_name} will never have more than {about.max_rows:,}"
    attribute = about.domain[str(place[-1])]
    return f"{_values(attribute, shown)}; {BEYOND.get(attribute.outside, 'others count as one of them')}"


def asks(config: Config, place: Place) -> str:
    """What the owner has to be sure of."""
    if place == ("source",):
        return "May anybody know this number?"
    if place == ("privacy",) and config.unit.column is not None:
        return "Is that who must be protected, and how many rows they have? Further rows are in no answer."
    if place == ("privacy",):
        return "Is that who must be protected?"
    if len(place) == 2 and place[0] == "tables":
        return "May anybody know these numbers, and is that how many rows people have? Further rows are in no answer."
    if place == ("budget",):
        later = "To raise it later takes a new ledger, which begins with what is spent."
        return f"Is that how much may be learnt, for good? {later}"
    return "May anybody know these values? Would you have named them without looking at the data?"


def screens(config: Config, places: Sequence[Place]) -> list[tuple[str, list[Place]]]:
    """The guesses as they are asked about: columns of one kind together under its name, all else alone, with no name.

    Guarantees: a column whose values are not all shown beside others is asked about alone.
    """
    kinds: dict[str, list[Place]] = {}
    for place in places:
        kinds.setdefault(_kind(config, place) or label(place), []).append(place)
    grouped: list[tuple[str, list[Place]]] = []
    for kind, members in kinds.items():
        parts = [members[first : first + ON_A_SCREEN] for first in range(0, len(members), ON_A_SCREEN)]
        grouped += [(kind if len(part) > 1 else "", part) for part in parts]
    return grouped


def _kind(config: Config, place: Place) -> str:
    if not is_column(place):
        return ""
    where = f" of {place[1]}" if place[0] == "tables" else ""
    match of_table(config, place).domain[str(place[-1])]:
        case Categories(values=values):
            return f"columns{where} of listed values" if len(values) <= SHOWN else ""
        case _:
            return f"columns{where} of numbers and days"


def is_column(place: Place) -> bool:
    """Whether a section declares a column."""
    return len(place) > 1 and place[-2] == "columns"


def whose(place: Place) -> bool:
    """Whether a section says whose rows they are, and how many of each are counted."""
    return place == ("privacy",) or place[:-1] == ("tables",)


def of_table(config: Config, place: Place) -> Config:
    """The config of the table that a section is about."""
    if place[0] != "tables":
        return config
    return next(table for table in config.further if table.table == place[1])


def counting(text: str, place: Place, rows: int) -> str:
    """The lines of a section, of `privacy` or of a further table, with so many rows of a person counted."""
    lines = [line for line in edit.keys(text, place).split("\n") if line.strip()]
    others = [line for line in lines if not re.match(r"\s*max_contributions\s*=", line)]
    return "\n".join([*others, f"max_contributions = {rows}"])


def change(path: str | os.PathLike[str], how: Callable[[str], str]) -> Config:
    """Change the file, if what comes out is a config that can be read; else it stays as it was."""
    text = how(read_text(path))
    config = parse_draft(text, path)
    edit.save(path, text)
    return config


def _values(attribute: Attribute, shown: int) -> str:
    match attribute:
        case Categories(values=values):
            more = f", and {len(values) - shown} more" if len(values) > shown else ""
            return f"the values {', '.join(toml(value) for value in values[:shown])}{more}"
        case OpenText(capacity=capacity):
            return f"any text; up to {capacity} of them are told apart, once a question names them"
        case IntegerRange(lower=lower, upper=upper):
            return f"whole numbers from {lower} to {upper}"
        case Decimals(step=step):
            return f"numbers from {least(attribute)} to {greatest(attribute)}, rounded to the nearest {step}"
        case Bins(edges=edges):
            return f"numbers from {edges[0]:.15g} to {edges[-1]:.15g}, told apart by {attribute.declared} bins"
        case Dates(by=by):
            last = attribute.start(attribute.declared) - timedelta(days=1)
            return f"dates from {attribute.start(0)} to {last}, told apart by {by.value}"
    raise AssertionError(attribute)
