"""`bursar simulate`: from options to questions, and from figures to a table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from bursar.analysts.shares import Seed
from bursar.cli.opened import progress
from bursar.config import Config, load
from bursar.errors import AnalystError, QueryError
from bursar.planner.goals import Wanted
from bursar.simulate import (
    AnalystQuestion,
    Figures,
    LoggedQuestion,
    Setting,
    check_matplotlib,
    compare,
    expected,
    plot,
    replayed,
    shares_of,
)
from bursar.sql.tokens import LARGEST_SCRIPT, questions_of

SEED_FRACTION = Fraction(1, 4)
HEADER = ("policy", "answered", "of", "ratio error", "interference", "steps")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The options as they were typed."""

    mix: Sequence[str]
    often: Sequence[str]
    seed_on: str | None
    plot: Path | None


def run(data: Path, choice: Choice, goal: Wanted, *, log: Sequence[LoggedQuestion] | None, as_json: bool) -> None:
    """Compare all policies, print the table, and draw the picture if one is wanted."""
    if choice.plot is not None:
        check_matplotlib()
    config = load(data)
    arrivals = _asked(choice, config, log)
    members = list(dict.fromkeys(arrival.analyst for arrival in arrivals))
    seed = _seed(choice, config)
    shares = shares_of(config, members)
    setting = Setting(config=config, arrivals=arrivals, shares=shares, seed=seed, goal=goal)
    figures = compare(setting, progress)
    if choice.plot is not None:
        plot(figures, choice.plot)
    if as_json:
        print(json.dumps([_plain(figure) for figure in figures], indent=2))
        return
    _table([HEADER, *(_row(figure) for figure in figures)])
    if seed is None:
        print("seeded-cache is left out, since there is no seed; try: --seed-on COLUMNS")


def _asked(choice: Choice, config: Config, log: Sequence[LoggedQuestion] | None) -> list[AnalystQuestion]:
    if log is not None:
        if choice.mix or choice.often:
            raise QueryError("--replay takes the questions from the log; leave --mix and --often out")
        return replayed(log, config.analysts.shares or {line.analyst for line in log})
    if not choice.mix:
        raise QueryError("say what is expected to be asked\ntry: --mix alice=alice.sql, or --replay")
    scripts = {who: questions_of(_text(file)) for who, file in _pairs("--mix", choice.mix)}
    return expected(scripts, {who: _rate(number) for who, number in _pairs("--often", choice.often)})


def _seed(choice: Choice, config: Config) -> Seed | None:
    if choice.seed_on is None:
        return config.analysts.seed
    columns = [name.strip() for name in choice.seed_on.split(",")]
    if unknown := [name for name in columns if name not in config.domain]:
        raise QueryError(f"--seed-on names a column that is not declared: {unknown[0]!r}")
    return Seed(fraction=SEED_FRACTION, basis="best", columns=config.domain.ordered(columns))


def _pairs(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [(name, value) for name, _, value in (text.partition("=") for text in texts)]
    if wrong := [text for text, (name, value) in zip(texts, pairs, strict=True) if not name or not value]:
        raise QueryError(f"{option} takes NAME=..., not {wrong[0]!r}")
    if len({name for name, _ in pairs}) < len(pairs):
        raise QueryError(f"{option} names an analyst twice")
    return pairs


def _rate(text: str) -> Fraction:
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise QueryError(f"--often takes a number above 0, not {text!r}") from None
    if rate <= 0:
        raise AnalystError(f"--often takes a number above 0, not {text!r}\ntry: leave this analyst out of --mix")
    return rate


def _text(file: str) -> str:
    try:
        with Path(file).open(encoding="utf-8") as handle:
            return handle.read(LARGEST_SCRIPT + 1)
    except (OSError, ValueError):
        raise QueryError(f"the file {file!r} cannot be read as text") from None


def _plain(figures: Figures) -> dict[str, object]:
    """For JSON, which has no infinity: null stands for it."""
    return {key: None if value == math.inf else value for key, value in asdict(figures).items()}


def _row(figures: Figures) -> tuple[str, ...]:
    numbers = (figures.answered, figures.asked, figures.ratio_error, figures.interference, figures.steps)
    return (figures.policy, *(f"{number:.6g}" if math.isfinite(number) else "infinite" for number in numbers))


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        cells = [name.ljust(widths[0]), *(text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True))]
        print("  ".join(cells))
