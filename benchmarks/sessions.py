"""What the first day of a data set costs: `python -m benchmarks.sessions [--quick] [--seeds 0] [--out DIR]`.

Sessions of questions that nobody announced, on the columns of Adult and of the demo table; each is asked of

    plain       plain noise for every question, prices added up
    cached      an exact cache in front of plain noise, loss counted by person: the baseline S
    default     Bursar as it is
    one-off     with horizon = "one-off": nothing is bought for later questions
    many        with horizon = "many": whatever is expected to pay off
    hindsight   the cheapest that is known afterwards: one of these, or all questions as one batch

The first columns are what is spent at the end, in epsilon or, where the name says so, in rho; then the ratio of the
default to S: `worst_first_10` over the first ten questions, `worst_prefix` over all prefixes, `end_ratio` at the end.
Generated sessions, which are asked of the default alone, are one line: means of what is spent, and the worst of the
ratios, beside `mean_end_ratio`. Behind them stand the worst of all sessions for each horizon, and last, as `default`,
the three ratios by which the rule for buying is judged: the worst of all sessions, and the end of 200 GROUP BYs. In the
quick run these are asked of the default alone. Nothing depends on the data, so there are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.harness import Figures, options, report
from benchmarks.peers_setting import ROWS, SPANS, VALUES, questions
from benchmarks.sheet import sheet
from bursar.config import Config
from bursar.core.accounting import from_units
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.curate.demo import REGIONS
from bursar.errors import BursarError
from bursar.goal import Horizon
from bursar.planner.batch import together
from bursar.planner.goals import Wanted
from bursar.planner.grant import Grant
from bursar.session import Bursar
from bursar.testing import EmptySource, stage
from bursar.views.baseline import CAP, FIRST_CAP, FIRST_QUESTIONS

Question = tuple[str, float]
"""SQL, and the error that no number may exceed with 95 % confidence."""

Curves = Mapping[str, list[float]]
"""What is spent after each question, by system."""

EPSILON, RHO = Budget.of(epsilon=1000.0), Budget.of(rho=1000.0)
GENERATED, QUICK_GENERATED = 100, 4
HORIZONS = {"default": Horizon.SOME, "one-off": Horizon.ONE_OFF, "many": Horizon.MANY}
GROUPED = (14, 30, 60, 100, 200)
"""After how many GROUP BYs what is spent is shown."""

RATIOS = ("worst_first_10", "worst_prefix", "end_ratio")


@dataclass(frozen=True)
class Session:
    """Questions that are asked one after the other, of a data set with this budget."""

    questions: list[Question]
    budget: Budget = EPSILON


def setting(budget: Budget, horizon: Horizon) -> Config:
    columns = [
        *(Categories(name=name, values=values) for name, values in VALUES.items()),
        *(IntegerRange(name=name, lower=low, upper=high) for name, (low, high) in SPANS.items()),
        Categories(name="region", values=REGIONS),
        IntegerRange(name="zip", lower=0, upper=9999),
    ]
    return Config(
        path=Path("adult.toml"),
        dataset="adult",
        location=Path("adult.csv"),
        table="people",
        domain=Domain(tuple(columns)),
        unit=Unit(),
        budget=budget,
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


def demo(seed: int) -> list[Question]:
    """Twelve questions as somebody asks them who meets a table for the first time."""
    rng = np.random.default_rng([7, seed])
    count, bys = "SELECT COUNT(*) AS n FROM people", ("sex", "region", "education", "occupation")
    asked = [f"{count} WHERE {spans(rng, 'age')}" for _ in range(3)]
    asked += [f"SELECT {by}, COUNT(*) AS n FROM people GROUP BY {by}" for by in bys]
    asked += [f"SELECT {by}, COUNT(*) AS n FROM people WHERE {spans(rng, 'age')} GROUP BY {by}" for by in bys[:3]]
    asked += [f"{count} WHERE region = '{rng.choice(REGIONS)}' AND {spans(rng, 'hours_per_week')}"]
    asked += ["SELECT age, COUNT(*) AS n FROM people GROUP BY age"]
    return [(asked[place], 200.0) for place in rng.permutation(len(asked))]


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


def generated(seed: int, number: int = 30) -> list[Question]:
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


def named(seed: int, *, quick: bool) -> dict[str, Session]:
    """Sessions of their own, by name."""
    number = 10 if quick else 20
    made: dict[str, Callable[[], list[Question]]] = {
        "14 one-off": lambda: one_off(seed),
        "2 ranges": lambda: ranges(seed, 2),
        "grouped": lambda: grouped(seed, GROUPED[-1]),
        "12 mixed, demo": lambda: demo(seed),
        "6 of peers": lambda: [(question.sql, 50.0) for question in questions(6, seed)],
        "tightening": lambda: tightening(seed),
        "120 tiny groups": lambda: tiny(seed),
        "many groups": lambda: many_groups(seed),
        "ranges, age": lambda: ranges(seed, 3 * number),
        "ranges, pair": lambda: pair(seed, 2 * number),
    }
    by_rho = {"ranges, age": made["ranges, age"](), "ranges, pair": made["ranges, pair"](), "mixed": generated(seed)}
    sessions = {name: Session(make()) for name, make in made.items()}
    return sessions | {f"{name} (rho)": Session(asked, RHO) for name, asked in by_rho.items()}


def ask(db: Bursar, question: Question) -> None:
    """As the engine does it, but for the error bars: they take longer than everything else, and cost nothing."""
    sql, within = question
    request = db.engine.prepare(sql, Wanted(within=within))
    offer = db.engine.planner.choose(request)
    events, at_most = offer.price.events, offer.price.at_most
    with Grant(db.kernel, db.analyst, sql, events, at_most, proposer=offer.proposer) as grant:
        offer.run(grant)


def curves(session: Session, systems: Sequence[str] = tuple(HORIZONS)) -> Curves:
    """Of plain noise, of the cache, and of these systems, the default among them."""
    spent: dict[str, list[float]] = {"plain": [], "cached": []}
    for name in systems:
        config, spent[name] = setting(session.budget, HORIZONS[name]), []
        with stage(config, lambda key, domain=config.domain: EmptySource(domain)) as db:  # type: ignore[misc]
            for question in session.questions:
                ask(db, question)
                compared = db.engine.planner.comparison(db.analyst)
                spent[name].append(compared.spent)
                if name == "default":
                    spent["plain"].append(compared.plain)
                    spent["cached"].append(compared.cached)
    return spent


def hindsight(session: Session, found: Curves) -> float:
    """The cheapest that is known afterwards."""
    return min(one_batch(session), *(curve[-1] for curve in found.values()))


def one_batch(session: Session) -> float:
    """The price of all questions as one batch with the tightest of their errors; infinite where there is no plan."""
    config = setting(session.budget, Horizon.SOME)
    tightest = min(within for _, within in session.questions)
    texts = dict.fromkeys(sql for sql, _ in session.questions)
    with stage(config, lambda key: EmptySource(config.domain)) as db:
        try:
            request = together([db.engine.prepare(sql, Wanted(within=tightest)) for sql in texts], None)
            return from_units(db.engine.planner.choose(request).price.at_most)
        except BursarError:
            return math.inf


def ratios(found: Curves, system: str = "default") -> dict[str, float]:
    ratio = np.array(found[system]) / np.array(found["cached"])
    values = (ratio[:FIRST_QUESTIONS].max(), ratio.max(), ratio[-1])
    return {key: float(value) for key, value in zip(RATIOS, values, strict=True)}


def ends(found: Curves, number: int | None = None) -> dict[str, float]:
    """What is spent after so many questions; hindsight knows of the whole session only."""
    shown = (system for system in found if number is None or system != "hindsight")
    return {system: found[system][-1 if number is None else number - 1] for system in shown}


def main() -> None:
    args = options(__doc__ or "")
    figures: Figures = {}
    everything: list[Curves] = []
    grouped_end = 0.0
    for seed in args.seeds:
        suffix = "" if len(args.seeds) == 1 else f", seed {seed}"
        for name, session in named(seed, quick=args.quick).items():
            systems = ["default"] if args.quick and name == "grouped" else [*HORIZONS]
            found = curves(session, systems)
            everything.append(found)
            if name == "grouped":
                grouped_end = max(grouped_end, ratios(found)["end_ratio"])
            found = {**found, "hindsight": [hindsight(session, found)] * len(session.questions)}
            for number in GROUPED if name == "grouped" else ():
                if number < len(session.questions):
                    ratio = found["default"][number - 1] / found["cached"][number - 1]
                    figures[f"grouped, {number}{suffix}"] = {**ends(found, number), "end_ratio": ratio}
            figures[f"{name}{suffix}"] = {**ends(found), **ratios(found)}
            if args.out is not None:
                args.out.mkdir(parents=True, exist_ok=True)
                draw(args.out / f"sessions-{name.replace(' ', '-').replace(',', '')}-{seed}.png", name, found)
        number = QUICK_GENERATED if args.quick else GENERATED
        many = [curves(Session(generated(1000 * seed + place)), ["default"]) for place in range(number)]
        everything += many
        figures[f"{number} generated{suffix}"] = over(many)
        if args.out is not None:
            draw_ratios(args.out / f"sessions-generated-{seed}.png", many)
    for system in HORIZONS:
        figures[f"{system}, worst"] = worst([found for found in everything if system in found], system)
    figures["default"] = {**figures["default, worst"], "end_ratio": grouped_end}
    report("sessions", args, figures)


def over(many: Sequence[Curves]) -> dict[str, float]:
    """Means of what is spent, and the worst ratios."""
    spent = {system: fmean(found[system][-1] for found in many) for system in many[0]}
    mean = fmean(ratios(found)["end_ratio"] for found in many)
    return {**spent, **worst(many, "default"), "mean_end_ratio": mean}


def worst(many: Sequence[Curves], system: str) -> dict[str, float]:
    return {key: max(ratios(found, system)[key] for found in many) for key in RATIOS}


def draw(file: Path, name: str, found: Curves) -> None:
    with sheet(file, title=f"{name}: spent after each question") as (panel,):
        for system, curve in found.items():
            panel.plot(range(1, len(curve) + 1), curve, label=system, linestyle=":" if system == "hindsight" else "-")
        panel.set_xlabel("questions")
        panel.set_ylabel("rho" if "rho" in name else "epsilon")
        panel.set_ylim(bottom=0)


def draw_ratios(file: Path, many: Sequence[Curves]) -> None:
    """Generated sessions, each a line."""
    with sheet(file, title="generated sessions: spent over the baseline") as (panel,):
        for place, found in enumerate(many):
            ratio = np.array(found["default"]) / np.array(found["cached"])
            panel.plot(
                range(1, len(ratio) + 1), ratio, color="tab:blue", alpha=0.3, label="default" if not place else None
            )
        longest = max(len(found["default"]) for found in many)
        steps = [1, FIRST_QUESTIONS + 0.5, FIRST_QUESTIONS + 0.5, longest]
        panel.plot(steps, [FIRST_CAP, FIRST_CAP, CAP, CAP], color="black", linestyle=":", label="cap")
        panel.set_xlabel("questions")
        panel.set_ylabel("spent / baseline")
        panel.set_ylim(bottom=0)


if __name__ == "__main__":
    main()
