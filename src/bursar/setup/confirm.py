"""Settling the guesses of a draft: what each says, what it would make public, and the owner's word on it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from datetime import timedelta

from bursar.config import edit
from bursar.config.confirmed import SECTIONS, label
from bursar.config.draft import toml
from bursar.config.lines import Place
from bursar.config.load import Config, parse_draft, read_text
from bursar.domain import Attribute, Bins, Categories, Dates, Integers, Stray
from bursar.errors import ConfigError
from bursar.setup.check import in_total, protected

SHOWN = 20
BEYOND: dict[Stray | int, str] = {
    Stray.CLIP: "others count as the nearest of them",
    Stray.OTHER: "others count as other",
}


def named(config: Config, names: Sequence[str]) -> list[Place]:
    """The guesses that names stand for: source, privacy, budget, or columns, with or without `columns.` before them.

    Edge cases: a name that is already confirmed is passed over, so that a script may say it twice.
    """
    every: list[Place] = [*((name,) for name in SECTIONS), *(("columns", name) for name in config.domain.names)]
    known: dict[str, Place] = {str(place[-1]): place for place in every}
    known |= {label(place): place for place in every}  # a section before a column of its name
    for name in names:
        if name not in known:
            raise ConfigError(f"there is nothing called {name} to confirm\ntry: {every_guess(config)}")
    return [place for place in dict.fromkeys(known[name] for name in names) if place in config.unconfirmed]


def every_guess(config: Config) -> str:
    """The command that confirms everything that is still open."""
    if not config.unconfirmed:
        return "bursar check"
    short = [label(place) if place[-1] in SECTIONS else str(place[-1]) for place in config.unconfirmed]
    return f"bursar confirm --yes {shlex.join(short)}"


def says(config: Config, place: Place) -> str:
    """What a section says, in plain words."""
    if place == ("source",):
        return f"the table {config.table} in {config.location.name} will never have more than {config.max_rows:,} rows"
    if place == ("privacy",):
        return f"protected is {protected(config)}"
    if place == ("budget",):
        return in_total(config)
    attribute = config.domain[str(place[-1])]
    return f"{_values(attribute)}; {BEYOND.get(attribute.outside, 'others count as one of them')}"


def asks(place: Place) -> str:
    """What the owner has to be sure of."""
    if place == ("source",):
        return "May anybody know this number?"
    if place == ("privacy",):
        return "Is that who must be protected?"
    if place == ("budget",):
        return "Is that how much may be learnt, for good? It cannot be raised later."
    return "May anybody know these values? Would you have named them without looking at the data?"


def change(path: str | os.PathLike[str], how: Callable[[str], str]) -> Config:
    """Change the file, if what comes out is a config that can be read; else it stays as it was."""
    text = how(read_text(path))
    config = parse_draft(text, path)
    edit.save(path, text)
    return config


def _values(attribute: Attribute) -> str:
    match attribute:
        case Categories(values=values):
            more = f", and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
            return f"the values {', '.join(toml(value) for value in values[:SHOWN])}{more}"
        case Integers(lower=lower, upper=upper):
            return f"whole numbers from {lower} to {upper}"
        case Bins(edges=edges):
            return f"numbers from {edges[0]:.15g} to {edges[-1]:.15g}, told apart by {attribute.declared} bins"
        case Dates(by=by):
            last = attribute.start(attribute.declared) - timedelta(days=1)
            return f"dates from {attribute.start(0)} to {last}, told apart by {by.value}"
    raise AssertionError(attribute)
