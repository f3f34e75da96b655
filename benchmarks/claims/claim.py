"""A figure of a paper, and what the text claims of it.

A claim is a number, a range, or a bound. Numbers that a text gives for its own machine (seconds) are compared too, with
wide bounds: they say what was measured, not what must be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.harness import Figures

Found = dict[str, Figures]
"""Figures of each benchmark that was run, by its name; those that were computed at once, by `computed`."""

Here = Callable[[Mapping[str, Figures]], float]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement of a paper."""

    what: str
    told: str  # as the paper has it
    bounds: tuple[float, float]  # within which it is taken to agree
    here: Here
    why: str = ""  # why it differs, where that is known


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """A figure or table: the benchmarks behind it, and what the paper says of it."""

    paper: str
    name: str
    title: str
    commands: tuple[tuple[str, ...], ...] = ()  # benchmarks with their options
    compute: Callable[[bool], Figures] | None = None  # for what takes seconds; told whether to be quick
    real: Callable[[], bool] | None = None  # whether the data of `compute` are; None where it needs none
    claims: tuple[Claim, ...] = ()


def number(what: str, value: float, here: Here, *, within: float = 1.1, why: str = "") -> Claim:
    """A number, which agrees within a factor."""
    return Claim(what=what, told=f"{value:g}", bounds=(value / within, value * within), here=here, why=why)


def between(
    what: str, low: float, high: float, here: Here, *, slack: float = 1.05, told: str = "", why: str = ""
) -> Claim:
    """A range, with some slack for how it was rounded; `told` where the paper has words and no numbers."""
    said = told or f"{low:g} to {high:g}"
    return Claim(what=what, told=said, bounds=(low / slack, high * slack), here=here, why=why)


def at_least(what: str, value: float, here: Here, *, told: str = "", why: str = "") -> Claim:
    return Claim(what=what, told=told or f"at least {value:g}", bounds=(value, math.inf), here=here, why=why)


def at_most(what: str, value: float, here: Here, *, told: str = "", why: str = "") -> Claim:
    return Claim(what=what, told=told or f"at most {value:g}", bounds=(-math.inf, value), here=here, why=why)


def more(what: str, here: Here, *, why: str = "") -> Claim:
    """The paper says that one thing is larger than another: by a twentieth at least, to be taken for it."""
    return at_least(what, 1.05, here, told="more", why=why)


def of(bench: str, system: str, key: str) -> Here:
    return lambda found: found[bench][system][key]


def ratio(bench: str, above: str, below: str, key: str = "epsilon") -> Here:
    """What one system has over another."""
    return lambda found: found[bench][above][key] / found[bench][below][key]


def computed(row: str, column: str) -> Here:
    return of("computed", row, column)


def best_over(bench: str, others: tuple[str, ...], system: str, key: str = "epsilon") -> Here:
    """The best of some systems over one."""
    return lambda found: min(found[bench][other][key] for other in others) / found[bench][system][key]
