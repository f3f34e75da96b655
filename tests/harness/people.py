"""Neighbouring data sets for record-play: people with a few rows each, and a source that counts them plainly."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from bursar.config import Config
from bursar.core.budget import Budget
from bursar.core.domain import Bins, Categories, Domain, IntegerRange, Neighbours, Stray, Unit
from bursar.core.source.source import Source
from harness.cells import Cell, Numbers, Raw, cell_of, table_of
from harness.plainly import PeopleSource
from harness.small import config

DOMAIN = Domain(
    (
        Categories(name="sex", values=("F", "M"), null=Stray.OTHER),
        IntegerRange(name="age", lower=0, upper=4),
        Bins(name="income", edges=(0.0, 10.0, 20.0, 50.0), outside=Stray.OTHER),
    )
)
GROWING = Domain(DOMAIN.attributes, partition="age")
"""The same columns, where the data come in by age."""

RAW: tuple[tuple[str | None, ...], ...] = (
    ("F", "M", "F", "M", "F", "M", "x", "", "f", None),
    ("0", "1", "2", "3", "4", "2.7", "-3", "99", "old", "nan", None),
    ("0", "5", "10", "19.99", "20", "50", "50.01", "-1", "inf", "much", None),
)
BUDGETS = (
    *(Budget.of(epsilon=epsilon) for epsilon in (1.0, 5.0, 20.0)),
    *(Budget.of(rho=rho) for rho in (0.2, 2.0, 10.0)),
    Budget.of(epsilon=2.0, delta=1e-6),
    Budget.of(epsilon=8.0, delta=1e-6),
)


@dataclass(frozen=True, kw_only=True)
class Person:
    """A privacy unit. Rows of nobody (None) are counted only where each row is a unit of its own."""

    name: str | None
    rows: tuple[Raw, ...]


People = tuple[Person, ...]
History = tuple[People, ...]
"""The people in every version of the data."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two data sets that differ by one person, in every version, and the public facts about them."""

    seed: str
    settings: Config
    left: History
    right: History


def settings_of(rng: Random, *, several_rows: bool, growing: bool = False) -> Config:
    """Any mode and either notion of neighbours; units of one row, or, where that can be, of several."""
    neighbours = rng.choice(list(Neighbours))
    unit = Unit(neighbours=neighbours)
    if several_rows and not (growing and neighbours is Neighbours.REPLACE_ONE):
        unit = Unit(column="person", max_contributions=rng.choice([1, 2, 2, 3]), neighbours=neighbours)
    known = neighbours is Neighbours.REPLACE_ONE or rng.random() < 0.2
    return config(
        domain=GROWING if growing else DOMAIN,
        unit=unit,
        budget=rng.choice(BUDGETS),
        max_rows=1000,
        public_size=20 if known else None,
    )


def pair_of(rng: Random, seed: str, settings: Config, *, versions: int = 1, same_rows: bool = False) -> Pair:
    """Two random neighbours. Later versions hold somebody more, and the one person in any other cell.

    With `same_rows` nobody leaves and nobody's rows change: a person can only come, or get further rows.
    """
    replaced = settings.unit.neighbours is Neighbours.REPLACE_ONE
    several = settings.unit.column is not None
    others = [_person(rng, f"p{i}", several) for i in range(rng.randrange(7))]
    if several and rng.random() < 0.5:
        others.append(_person(rng, None, several))
    ours, theirs = _person(rng, "eve", several), _person(rng, "eve", several)
    left: list[People] = []
    right: list[People] = []
    for version in range(versions):
        if version > 0:
            others.append(_person(rng, f"q{version}", several))
            ours, theirs = (_later(rng, person, several, same_rows) for person in (ours, theirs))
        size = len(ours.rows)
        theirs = Person(name="eve", rows=(theirs.rows * size)[:size])
        if settings.domain.partition is not None and replaced:
            theirs = _in_the_partitions_of(theirs, ours)
        place = rng.randrange(len(others) + 1)
        left.append((*others[:place], theirs, *others[place:]) if replaced else tuple(others))
        right.append((*others[:place], ours, *others[place:]))
    return Pair(seed=seed, settings=settings, left=tuple(left), right=tuple(right))


def cells_by_person(people: People) -> dict[str | None, Counter[Cell]]:
    """The coded rows of everybody."""
    coded: dict[str | None, Counter[Cell]] = {}
    for person in people:
        coded.setdefault(person.name, Counter()).update(cell_of(DOMAIN, row) for row in person.rows)
    return coded


def table_faults(unit: Unit, left: People, right: People, here: Numbers, there: Numbers) -> list[str]:
    """What is wrong with the counts of two neighbours, by the row -> cell rule and the bound on a unit's rows.

    Which rows of a unit are kept is secret; that they are its own, as many as allowed, and nobody else's, is not.
    """
    faults = []
    for people, table in ((left, here), (right, there)):
        everyone = table_of(DOMAIN, (cell_of(DOMAIN, row) for person in people for row in person.rows))
        if unit.column is None and not np.array_equal(table, everyone):
            faults.append("the counts are not those of the rows")
        bounded = [p for p in people if p.name is not None]
        if unit.column is not None and table.sum() != sum(min(len(p.rows), unit.max_contributions) for p in bounded):
            faults.append("a unit has more or fewer rows than its bound allows")
        if np.any(table > everyone):
            faults.append("rows are counted that are not there")
    change = there - here
    own = [cells_by_person(people).get("eve", Counter()) for people in (left, right)]
    came = Counter({cell: int(change[cell]) for cell in zip(*np.nonzero(change > 0), strict=True)})
    went = Counter({cell: -int(change[cell]) for cell in zip(*np.nonzero(change < 0), strict=True)})
    if unit.column is None:
        fits = came == own[1] - own[0] and went == own[0] - own[1]
    else:
        kept = [min(rows.total(), unit.max_contributions) for rows in own]
        fits = came <= own[1] and went <= own[0] and came.total() - went.total() == kept[1] - kept[0]
    return faults if fits else [*faults, "the counts differ by more than the rows of one unit"]


def plain_source(settings: Config, people: People, key: bytes) -> Source:
    """A source whose bound on a unit's rows is a keyed choice, as the real one's is, and otherwise plain counting."""
    kept: list[tuple[str, Cell]] = []
    for name, coded in cells_by_person(people).items():
        rows = sorted(coded.elements())
        if settings.unit.column is not None:
            rows = [] if name is None else _chosen(rows, name, key, settings.unit.max_contributions)
        kept += [(name or "", row) for row in rows]
    digest = hashlib.blake2b(repr(sorted(cell for _, cell in kept)).encode(), key=key).hexdigest()
    return PeopleSource(kept, settings.domain, content=digest)


def stored_source(settings: Config, people: People, key: bytes) -> Source:
    """The real source, over a data frame of texts."""
    import pandas

    from bursar.core.source.duckdb import DuckDBSource

    lines = [(person.name, *row) for person in people for row in person.rows]
    frame = pandas.DataFrame(lines, columns=["person", *DOMAIN.names], dtype=object)
    return DuckDBSource(frame, settings.domain, settings.unit, key=key, max_rows=settings.max_rows)


MakeSource = Callable[[Config, People, bytes], Source]


def _in_the_partitions_of(person: Person, other: Person) -> Person:
    """The person's rows, each in the partition of a row of the other's: sizes of partitions are public."""
    place = DOMAIN.place("age")
    rows = [(*mine[:place], own[place], *mine[place + 1 :]) for mine, own in zip(person.rows, other.rows, strict=True)]
    return Person(name=person.name, rows=tuple(rows))


def _person(rng: Random, name: str | None, several: bool) -> Person:
    return Person(name=name, rows=_rows(rng, rng.randint(1, 5) if several else 1))


def _rows(rng: Random, count: int) -> tuple[Raw, ...]:
    return tuple(tuple(rng.choice(values) for values in RAW) for _ in range(count))


def _later(rng: Random, person: Person, several: bool, same_rows: bool) -> Person:
    if same_rows:
        return Person(name=person.name, rows=person.rows + _rows(rng, rng.randrange(3) if several else 0))
    return _person(rng, person.name, several)


def _chosen(rows: list[Cell], name: str, key: bytes, most: int) -> list[Cell]:
    def rank(place: int) -> bytes:
        copy = rows[:place].count(rows[place])
        return hashlib.blake2b(repr((name, rows[place], copy)).encode(), key=key).digest()

    return [rows[place] for place in sorted(range(len(rows)), key=rank)[:most]]
