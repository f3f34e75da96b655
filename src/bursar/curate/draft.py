"""A draft of a config: what is known or guessed about a data set, written out as a commented TOML file."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from bursar.curate.survey import rounded_up

MOST_CELLS = 2_000
"""Whole numbers, or numbers with few decimals, are told apart one by one up to so many: a condition such as
`delay > 15` is then exact, and so are sums and averages. It costs no more than coarse bins would."""

BINS = 200
"""Other numbers have about so many bins, each of half a percent of the range."""

MOST_DAYS = 4_000
STEPS = (Fraction(1), Fraction(2), Fraction(5, 2), Fraction(5), Fraction(10))
EPSILON = 1.0
WIDTH = 118
ASKED = "confirmed = false"


@dataclass(frozen=True, kw_only=True)
class DraftColumn:
    """A column as it would be declared, and why: where the guess comes from, and what must be public."""

    name: str
    keys: Mapping[str, object]
    why: str


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A column that is not declared. `open`: only because something is missing that the data could tell."""

    name: str
    reason: str
    open: bool = False


@dataclass(frozen=True, kw_only=True)
class DraftUnit:
    """Whose privacy is protected. `given`: the owner said so; otherwise it is a guess."""

    column: str | None = None
    max_contributions: int = 1
    why: str = "a guess: each row is a person of its own. If people have several rows, name the column that says whose"
    given: bool = False
    candidates: tuple[str, ...] = ()  # columns that may say whose row it is, and are not taken for the unit


GOAL = """# [goal]  # for questions that name no accuracy, as those of most tools: without this they are refused
# error = ...  # in rows; bursar check tells what some errors cost"""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Everything that a drafted config says."""

    origin: str  # what it was made from, in a few words
    dataset: str
    path: str
    table: str
    max_rows: int
    rows_why: str
    path_why: str = "relative to this file"
    url: bool = False  # whether the path is one of a database
    schema: str | None = None
    unit: DraftUnit = DraftUnit()
    epsilon: float | None = None  # None: nobody said, so a common value stands there to be confirmed
    columns: tuple[DraftColumn, ...]
    left_out: tuple[LeftOut, ...] = ()

    def text(self) -> str:
        """The config file."""
        parts = [self._head(), self._source(), self._privacy(), self._budget(), GOAL, *map(_column, self.columns)]
        return "\n\n".join([*parts, *self._rest()]) + "\n"

    def table_text(self, people: str) -> str:
        """The sections of a further table of a config whose people are told apart by this column."""
        place = f"tables.{_key(self.table)}"
        lines = [
            f"[{place}]",
            *([] if self.url else [f"{_pair('path', self.path)}  # {self.path_why}"]),
            _comment(self.unit.why),
            *([] if self.unit.column == people else [_pair("unit", self.unit.column)]),
            _pair("max_contributions", self.unit.max_contributions),
            _comment(self.rows_why),
            _pair("max_rows", self.max_rows),
            ASKED,
        ]
        parts = ["\n".join(lines), *(_column(column, f"{place}.") for column in self.columns), *self._rest()]
        return "\n\n".join(parts) + "\n"

    def _head(self) -> str:
        told = (
            f"A draft, made by bursar init from {_line(self.origin)}. Everything in this file is public: analysts see "
            "it, and no noise hides it. What says confirmed = false is a guess. Nothing can be asked until somebody "
            "who knows the data has looked at each guess: run bursar confirm, or correct the file and write "
            "confirmed = true. What every key means is told in docs/config.md."
        )
        return f"{_comment(told)}\n\n{_pair('dataset', self.dataset)}"

    def _source(self) -> str:
        lines = [
            "[source]",
            f"{_pair('url' if self.url else 'path', self.path)}  # {self.path_why}",
            *([] if self.schema is None else [_pair("schema", self.schema)]),
            f"{_pair('table', self.table)}  # SELECT ... FROM {_line(self.table)}",
            _comment(self.rows_why),
            _pair("max_rows", self.max_rows),
            "# public_size = ...  # the number of rows, only if it is no secret; errors can then be percentages of it",
            ASKED,
        ]
        return "\n".join(lines)

    def _privacy(self) -> str:
        unit = "row" if self.unit.column is None else {"column": self.unit.column}
        lines = ["[privacy]", _comment(self.unit.why), _pair("unit", unit)]
        if self.unit.column is not None:
            lines.append(_pair("max_contributions", self.unit.max_contributions))
        lines.append(_pair("neighbours", "add-remove") + "  # hide even whether somebody is in the table")
        return "\n".join([*lines, *([] if self.unit.given else [ASKED])])

    def _budget(self) -> str:
        why = "The most that all answers ever given may reveal about anybody. Less protects better; 1 is common."
        amount = _pair("epsilon", EPSILON if self.epsilon is None else self.epsilon)
        return "\n".join(["[budget]", _comment(why), amount, *([ASKED] if self.epsilon is None else [])])

    def _rest(self) -> Iterator[str]:
        if self.left_out:
            listed = [_comment(f"{_line(column.name)}: {column.reason}", indent="    ") for column in self.left_out]
            yield "\n".join([_comment("Left out, so nobody can ask about them:"), *listed])


def numeric(
    low: Fraction, high: Fraction, *, whole: bool, places: int | None = None, heaped: bool = False
) -> dict[str, object]:
    """The keys of a column of numbers: a range of whole ones or of decimals, or bins with round edges or middles.

    Numbers with so many decimal `places` (-1: multiples of ten) are told apart, if they are not too many: they can then
    be compared and added up as exactly as whole numbers. `heaped`: most people have the same number, such as 0; it is
    the middle of a bin, as it would count as something else in sums.
    """
    if whole and high - low <= MOST_CELLS:
        return {"lower": int(low), "upper": int(high)}
    grid = None if places is None else Fraction(10) ** -places
    if grid is not None and (high - low) / grid <= MOST_CELLS:
        ends = {"lower": low // grid * grid, "upper": -(-high // grid) * grid, "step": grid}
        return {key: _plain(end) for key, end in ends.items()}
    # A 64-bit float tells edges apart that are not too near to each other for their size.
    step = rounded_up(max((high - low) / BINS, max(abs(low), abs(high)) / 2**40), STEPS)
    wider = rounded_up(step * Fraction(6, 5), STEPS)
    if (low % step or high % step) and not (low % wider or high % wider):
        step = wider  # the ends stay where they are
    half = step / 2 if heaped else 0
    ends = {"from": low // step * step - half, "to": -(-high // step) * step + half, "step": step}
    return {"edges": {key: _plain(end) for key, end in ends.items()}}


def calendar(first: date, last: date) -> dict[str, object]:
    """The keys of a column of dates: day by day, or by month where that would be too many days."""
    return {"first": first, "last": last, "by": "day" if (last - first).days < MOST_DAYS else "month"}


def listed(values: Iterable[str | int | bool]) -> dict[str, object]:
    """The keys of a column of listed values. One that is called other is the cell for all others, too."""
    values = list(values)
    return {"values": values, "outside": {"as": "other"}} if "other" in values else {"values": values}


def toml(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return "{ " + ", ".join(_pair(key, inner) for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return _list([toml(inner) for inner in value])
    return repr(value)


def _column(column: DraftColumn, table: str = "") -> str:
    keys = [_pair(key, value) for key, value in column.keys.items()]
    return "\n".join([f"[{table}columns.{_key(column.name)}]", _comment(column.why), *keys, ASKED])


def _pair(key: str, value: object) -> str:
    return f"{_key(key)} = {toml(value)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def _list(items: list[str]) -> str:
    short = f"[{', '.join(items)}]"
    return short if len(short) < WIDTH - 20 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _comment(text: str, indent: str = "") -> str:
    lines = textwrap.wrap(text, WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"# {indent}{line}" for line in lines)


def _line(text: str) -> str:
    """A name in a comment: on one line, and nothing that could end it."""
    return "".join(character if character.isprintable() else "?" for character in text)
