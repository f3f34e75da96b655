"""What the first day of a data set costs: `python -m benchmarks.sessions [--quick] [--seeds 0] [--out DIR]`.

Sessions of questions that nobody announced, on the columns of Adult; each is asked of

    plain       plain noise for every question, prices added up
    cached      an exact cache in front of plain noise, loss counted by person: the baseline S
    default     Bursar as it is
    one-off     with horizon = "one-off": nothing is bought for later questions
    many        with horizon = "many": whatever is expected to pay off
    hindsight   all questions of the session as one batch

Columns: what is spent at the end; and for Bursar the ratio to S: `worst_first_10` over the first ten questions,
`worst_prefix` over all prefixes, `end_ratio` at the end. Nothing depends on the data, so there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness import Figures, options, report
from benchmarks.peers_setting import ROWS, SPANS, VALUES, questions
from benchmarks.sheet import sheet
from bursar.config import Config
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.errors import BursarError
from bursar.goal import Horizon
from bursar.testing import EmptySource, stage

Question = tuple[str, float]
"""SQL, and the error that no number may exceed with 95 % confidence."""

Curves = Mapping[str, list[float]]

BUDGET = Budget.of(epsilon=1000.0)
GENERATED, QUICK_GENERATED = 100, 4
HORIZONS = {"default": Horizon.SOME, "one-off": Horizon.ONE_OFF, "many": Horizon.MANY}


def setting(horizon: Horizon) -> Config:
    columns = [
        *(Categories(name=name, values=values) for name, values in VALUES.items()),
        *(IntegerRange(name=name, lower=low, upper=high) for name, (low, high) in SPANS.items()),
        IntegerRange(name="zip", lower=0, upper=9999),
    ]
    return Config(
        path=Path("adult.toml"),
        dataset="adult",
        location=Path("adult.csv"),
        table="people",
        domain=Domain(tuple(columns)),
        unit=Unit(),
        budget=BUDGET,
        max_rows=10 * ROWS,
        horizon=horizon,
    )


def spans(rng: np.random.Generator, name: str) -> str:
    low, high = sorted(int(end) for end in rng.integers(SPANS[name][0], SPANS[name][1] + 1, 2))
    return f"{name} BETWEEN {low} AND {high}"


def grouped(seed: int, number: int) -> list[Question]:
    """GROUP BYs with a range, within 1 % of the rows."""
    rng = np.random.default_rng([1, seed])
    asked = []
    for _ in range(number):
        by = str(rng.choice(list(VALUES)))
        where = spans(rng, str(rng.choice(list(SPANS))))
        asked.append((f"SELECT {by}, COUNT(*) AS n FROM people WHERE {where} GROUP BY {by}", 0.01 * ROWS))
    return asked


def ranges(seed: int, number: int) -> list[Question]:
    rng = np.random.default_rng([2, seed])
    return [(f"SELECT COUNT(*) AS n FROM people WHERE {spans(rng, 'age')}", 100.0) for _ in range(number)]


def pair(seed: int, number: int) -> list[Question]:
    rng = np.random.default_rng([3, seed])
    sql = "SELECT sex, COUNT(*) AS n FROM people WHERE {} GROUP BY sex"
    return [(sql.format(spans(rng, "age")), 100.0) for _ in range(number)]


def one_off(seed: int) -> list[Question]:
    """Fourteen questions of which no two are about the same columns."""
    rng = np.random.default_rng([4, seed])
    asked: list[Question] = []
    for place, by in enumerate(VALUES):
        where = spans(rng, list(SPANS)[place % 2])
        asked.append((f"SELECT {by}, COUNT(*) AS n FROM people WHERE {where} GROUP BY {by}", 200.0))
        value = rng.choice(VALUES[by])
        where = spans(rng, list(SPANS)[1 - place % 2])
        asked.append((f"SELECT COUNT(*) AS n FROM people WHERE {by} = '{value}' AND {where}", 100.0))
    return asked


def tightening(seed: int) -> list[Question]:
    where = spans(np.random.default_rng([5, seed]), "age")
    return [(f"SELECT COUNT(*) AS n FROM people WHERE {where}", within) for within in (400.0, 200.0, 100.0, 50.0, 25.0)]


def tiny(seed: int) -> list[Question]:
    """A hundred and twenty small groups, one by one."""
    cells = [(one, other) for one in VALUES["education"][:8] for other in VALUES["occupation"]]
    sql = "SELECT COUNT(*) AS n FROM people WHERE education = '{}' AND occupation = '{}'"
    return [(sql.format(*cell), 20.0) for cell in cells]


def many_groups(seed: int) -> list[Question]:
    by = "SELECT zip, COUNT(*) AS n FROM people{} GROUP BY zip"
    wide = "SELECT COUNT(*) AS n FROM people WHERE zip BETWEEN 1000 AND 3000"
    return [(by.format(" WHERE zip < 5000"), 200.0), (by.format(""), 200.0), (wide, 200.0)]


def generated(seed: int, number: int = 40) -> list[Question]:
    """One to four columns, and questions of mixed kinds about them."""
    rng = np.random.default_rng([6, seed])
    columns = [str(name) for name in rng.choice([*VALUES, *SPANS], int(rng.integers(1, 5)), replace=False)]
    asked = []
    for _ in range(number):
        used = [
            str(name) for name in rng.choice(columns, int(rng.integers(1, min(3, len(columns)) + 1)), replace=False)
        ]
        by = [name for name in used if rng.random() < (0.2 if name in SPANS else 0.5)]
        where = [
            spans(rng, name) if name in SPANS else f"{name} = '{rng.choice(VALUES[name])}'"
            for name in used
            if name not in by
        ]
        sql = f"SELECT {', '.join([*by, 'COUNT(*) AS n'])} FROM people"
        sql += f" WHERE {' AND '.join(where)}" if where else ""
        sql += f" GROUP BY {', '.join(by)}" if by else ""
        asked.append((sql, float(rng.choice([50, 100, 200, 500]))))
    return asked


def sessions(seed: int, *, quick: bool) -> dict[str, list[Question]]:
    """By name."""
    fixed: dict[str, Callable[[], list[Question]]] = {
        "14 one-off": lambda: one_off(seed),
        "2 ranges": lambda: ranges(seed, 2),
        "grouped 60": lambda: grouped(seed, 60),
        "6 of peers": lambda: [(question.sql, 50.0) for question in questions(6, seed)],
        "tightening": lambda: tightening(seed),
        "120 tiny groups": lambda: tiny(seed),
        "many groups": lambda: many_groups(seed),
        "age 60": lambda: ranges(seed, 60),
        "sex, age 40": lambda: pair(seed, 40),
    }
    if not quick:
        fixed["grouped 200"] = lambda: grouped(seed, 200)
    number = QUICK_GENERATED if quick else GENERATED
    made = {name: make() for name, make in fixed.items()}
    return made | {f"generated {place}": generated(1000 * seed + place) for place in range(number)}


def curves(asked: Sequence[Question]) -> Curves:
    """What is spent after each question, by system."""
    spent: dict[str, list[float]] = {"plain": [], "cached": []}
    for name, horizon in HORIZONS.items():
        config = setting(horizon)
        with stage(config, lambda key, config=config: EmptySource(config.domain)) as db:  # type: ignore[misc]
            spent[name] = []
            for sql, within in asked:
                db.query(sql, within=within)
                compared = db.engine.planner.comparison(db.analyst)
                spent[name].append(compared.spent)
                if name == "default":
                    spent["plain"].append(compared.plain)
                    spent["cached"].append(compared.cached)
    return {**spent, "hindsight": [hindsight(asked)] * len(asked)}


def hindsight(asked: Sequence[Question]) -> float:
    """All questions as one batch, with the tightest of their errors; NaN where that cannot be planned."""
    config = setting(Horizon.SOME)
    with stage(config, lambda key: EmptySource(config.domain)) as db:
        try:
            batch = db.batch(list(dict.fromkeys(sql for sql, _ in asked)), within=min(within for _, within in asked))
            return batch.charge
        except BursarError:
            return float("nan")


def figures_of(found: Curves) -> dict[str, float]:
    ratio = np.array(found["default"]) / np.array(found["cached"])
    ends = {name: curve[-1] for name, curve in found.items()}
    judged = {"worst_first_10": ratio[:10].max(), "worst_prefix": ratio.max(), "end_ratio": ratio[-1]}
    return {**ends, **{name: float(value) for name, value in judged.items()}}


def main() -> None:
    args = options(__doc__ or "")
    figures: Figures = {}
    for seed in args.seeds:
        for name, asked in sessions(seed, quick=args.quick).items():
            found = curves(asked)
            figures[name if len(args.seeds) == 1 else f"{name} ({seed})"] = figures_of(found)
            if args.out is not None:
                args.out.mkdir(parents=True, exist_ok=True)
                draw(args.out / f"sessions-{name.replace(' ', '-').replace(',', '')}-{seed}.png", name, found)
    keys = ("worst_first_10", "worst_prefix", "end_ratio")
    figures["default, worst"] = {key: max(row[key] for row in figures.values()) for key in keys}
    report("sessions", args, figures)


def draw(file: Path, name: str, found: Curves) -> None:
    with sheet(file, title=f"{name}: epsilon spent after each question") as (panel,):
        for system, curve in found.items():
            panel.plot(range(1, len(curve) + 1), curve, label=system, linestyle=":" if system == "hindsight" else "-")
        panel.set_xlabel("questions")
        panel.set_ylabel("epsilon")
        panel.set_ylim(bottom=0)


if __name__ == "__main__":
    main()
