"""The kinds of question that record-play asks, and random neighbours to ask them about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bursar.core.accounting import Mode
from harness.people import DOMAIN, Pair, pair_of, settings_of
from harness.steps import Ask, Choose, Declare, FailSource, LoseCommit, Overtake, Refine, Rows, Seal, Squat, Step, Try

SIMPLE = (
    "sex = 'F'",
    "sex IN ('F', 'M')",
    "age >= 2",
    "age BETWEEN 1 AND 3",
    "age = 4",
    "age IS NULL",
    "NOT age < 2",
    "income >= 0 AND income < 20",
    "income >= 10 AND income < 20",
    "sex = 'M' AND age <= 1",
)
JOINT = (
    "sex = 'F' OR age > 2",
    "(sex = 'M' AND age < 2) OR (income >= 0 AND income < 10)",
    "age = 0 OR (income >= 10 AND income < 20)",
    "NOT (age < 3 AND income BETWEEN 20 AND 50)",
)
GROUPS = ("sex", "age", "income", "sex, age", "age, sex")
DISJOINT = (("sex = 'F'", "sex = 'M'"), ("age <= 1", "age > 1"), ("age IS NULL", "age >= 2"))
WRONG = (
    "SELECT",
    "SELECT SUM(age) FROM people",
    "SELECT COUNT(*) FROM nobody",
    "SELECT COUNT(*) FROM people WHERE height > 3",
    "SELECT COUNT(*) FROM people WHERE income < 15",
    "SELECT COUNT(*) FROM people WHERE sex = 'x'",
    "SELECT age FROM people GROUP BY age",
    "SELECT COUNT(*) FROM people; DROP TABLE people",
    "SELECT COUNT(*) FROM people WITH ERROR -3",
    "SELECT COUNT(*) FROM people WITH ERROR 0.0000000001 CONFIDENCE 99.999999999%",
    "SELECT COUNT(*) FROM people WHERE sex = 'F' AND sex = 'M'",
)


@dataclass(frozen=True)
class Scene:
    """A pair of neighbours and what is asked about it."""

    pair: Pair
    steps: tuple[Step, ...]


Kind = Callable[[Random, Mode], list[Step]]


def scene(kind: str, number: int) -> Scene:
    """The scene of a kind with a number: always the same."""
    seed = f"{kind}/{number}"
    rng = Random(seed)
    several = rng.random() < 0.35 or kind in ("several rows", "people", "per person")
    settings = settings_of(rng, several_rows=several, growing=kind == "growing")
    steps = KINDS[kind](rng, settings.budget.mode)
    taken = [step.step if isinstance(step, Overtake) else step for step in steps]
    declared = [step.same_rows for step in taken if isinstance(step, Declare)]
    pair = pair_of(rng, seed, settings, versions=1 + len(declared), same_rows=any(declared))
    return Scene(pair, tuple(steps))


def _select(what: str, where: str = "", group: str = "") -> str:
    keys = f"{group}, " if group else ""
    text = f"SELECT {keys}{what} FROM people"
    return text + (f" WHERE {where}" if where else "") + (f" GROUP BY {group}" if group else "")


def _error(rng: Random) -> dict[str, Any]:
    wanted: dict[str, Any] = {"within": rng.choice([2, 5, 12, 40])}
    if rng.random() < 0.3:
        wanted["confidence"] = rng.choice([0.8, "99%"])
    return wanted


def _any(rng: Random) -> Ask:
    """A question of any shape, with an error for a goal."""
    sql = rng.choice(
        [
            _select("COUNT(*)"),
            _select("COUNT(*)", rng.choice(SIMPLE)),
            _select("COUNT(*)", rng.choice(JOINT)),
            _select("COUNT(*)", group=rng.choice(GROUPS)),
            _select("COUNT(*)", rng.choice(SIMPLE), rng.choice(GROUPS)),
        ]
    )
    return Ask(sql=sql, wanted=_error(rng))


def _count(rng: Random, mode: Mode) -> list[Step]:
    return [Ask(sql=_select("COUNT(*)"), wanted=_error(rng)), Ask(sql=_select("COUNT(*)"), wanted=_error(rng))]


def _filter(rng: Random, mode: Mode) -> list[Step]:
    return [Ask(sql=_select("COUNT(*)", rng.choice(SIMPLE)), wanted=_error(rng)) for _ in range(2)]


def _group(rng: Random, mode: Mode) -> list[Step]:
    where = rng.choice(["", "", rng.choice(SIMPLE)])
    return [Ask(sql=_select("COUNT(*)", where, rng.choice(GROUPS)), wanted=_error(rng)), _any(rng)]


def _joint(rng: Random, mode: Mode) -> list[Step]:
    group = rng.choice(["", "", "sex", "age"])
    return [Ask(sql=_select("COUNT(*)", rng.choice(JOINT), group), wanted=_error(rng)), _any(rng)]


def _aggregates(rng: Random, mode: Mode) -> list[Step]:
    parts = [f"COUNT(*) FILTER (WHERE {rng.choice(SIMPLE + JOINT)}) AS a{i}" for i in range(rng.randint(1, 3))]
    sql = _select(", ".join(["COUNT(*) AS n", *parts]), group=rng.choice(["", "sex", "age"]))
    return [Ask(sql=sql, wanted=_error(rng)), _any(rng)]


def _tied(rng: Random, mode: Mode) -> list[Step]:
    """Several counts that tie columns together, fractions of them and groups, some asked before; commits are lost."""

    def ask(key: str | None = None) -> Ask:
        first, second = rng.sample(JOINT, 2)
        what = rng.choice(
            [
                f"COUNT(*) AS n, COUNT(*) FILTER (WHERE {first}) AS a",
                f"COUNT(*) FILTER (WHERE {first}) AS a, COUNT(*) FILTER (WHERE {second}) AS b",
                f"COUNT(*) FILTER (WHERE {first}) / COUNT(*) AS share",
            ]
        )
        where = rng.choice(["", second, rng.choice(SIMPLE)])
        return Ask(sql=_select(what, where, rng.choice(["", "", "sex", "age"])), wanted=_error(rng), key=key)

    again = ask(rng.choice([None, "k"]))
    between = rng.choice([LoseCommit(), FailSource(), Overtake(step=ask()), ask()])
    return [Ask(sql=again.sql, wanted=again.wanted), between, again, ask(), again]


def _people(rng: Random, mode: Mode) -> list[Step]:
    """Distinct people and values, alone, by group, filtered and beside counts of rows; commits are lost."""

    def ask(key: str | None = None) -> Ask:
        of = rng.choice(["person", "person", "sex", "age", "income"])
        filtered = rng.choice(["", "", f" FILTER (WHERE {rng.choice(SIMPLE + JOINT)})"])
        beside = rng.choice(["", "", ", COUNT(*) AS n", ", COUNT(DISTINCT age) AS ages"])
        what = f"COUNT(DISTINCT {of}){filtered} AS a{beside}"
        where = rng.choice(["", rng.choice(SIMPLE), rng.choice(JOINT)])
        return Ask(sql=_select(what, where, rng.choice(["", "", *GROUPS])), wanted=_error(rng), key=key)

    again = ask(rng.choice([None, "k"]))
    between = rng.choice([LoseCommit(), FailSource(), Overtake(step=ask()), Declare(same_rows=False)])
    return [again, _any(rng), between, again, ask(), _any(rng), again]


def _per_person(rng: Random, mode: Mode) -> list[Step]:
    """One number of each person: added up, counted, shown, under bounds; commits are lost, counts fail."""

    def ask(key: str | None = None) -> Ask:
        number = rng.choice(["COUNT(*)", "COUNT(age)", "SUM(age)", "LEAST(SUM(age), 5)", "GREATEST(SUM(age), 2)"])
        by = rng.choice(["", "", ", sex"])
        where = rng.choice(["", f" WHERE {rng.choice(SIMPLE)}"])
        inner = f"(SELECT person{by}, {number} AS n FROM people{where} GROUP BY person{by})"
        what = rng.choice(["AVG(n) AS a", "COUNT(*) AS a", "SUM(n) AS a", "COUNT(*) FILTER (WHERE n >= 3) AS a"])
        keys = by[2:] if rng.random() < 0.7 else f"{by[2:]}, n".lstrip(", ")
        outer = rng.choice(["", "", " WHERE n > 1", " WHERE n BETWEEN 2 AND 6"]) + (f" GROUP BY {keys}" if keys else "")
        return Ask(sql=f"SELECT {keys}{', ' if keys else ''}{what} FROM {inner}{outer}", wanted=_error(rng), key=key)

    again = ask(rng.choice([None, "k"]))
    between = rng.choice([LoseCommit(), FailSource(), Overtake(step=ask()), Declare(same_rows=False)])
    return [again, ask(), between, again, _any(rng), ask(), again]


def _explain(rng: Random, mode: Mode) -> list[Step]:
    asks = [_any(rng) for _ in range(2)]
    return [step for ask in asks for step in (Ask(sql=f"EXPLAIN {ask.sql}", wanted=ask.wanted), ask)]


def _keyed(rng: Random, mode: Mode) -> list[Step]:
    first, other = _any(rng), _any(rng)
    keyed = Ask(sql=first.sql, wanted=first.wanted, key="k")
    conflict = Ask(sql=other.sql, wanted=other.wanted, key="k")
    before = [Squat(ask=keyed)] if rng.random() < 0.3 else []
    return [*before, keyed, rng.choice([keyed, conflict]), keyed]


def _repeated(rng: Random, mode: Mode) -> list[Step]:
    ask = _any(rng)
    return [ask, ask, Ask(sql=ask.sql, wanted=_error(rng)), ask]


def _refused(rng: Random, mode: Mode) -> list[Step]:
    ask = _any(rng)
    dear = Ask(sql=ask.sql, wanted={"within": rng.choice([0.6, 1.5]), "confidence": 0.9999})
    capped = Ask(sql=_any(rng).sql, wanted={"within": 3, "max_cost": 1e-6})
    return [dear, ask, rng.choice([dear, capped])]


def _bad(rng: Random, mode: Mode) -> list[Step]:
    return [Ask(sql=rng.choice(WRONG), wanted=rng.choice([{}, _error(rng)])), _any(rng), Ask(sql=rng.choice(WRONG))]


def _percent(rng: Random, mode: Mode) -> list[Step]:
    def ask() -> Ask:
        return Ask(sql=_any(rng).sql, wanted={"within": rng.choice(["10%", "40%", "150%"])})

    return [ask(), Ask(sql=_select("COUNT(*)"), wanted={"within": rng.choice([4, 10])}), ask()]


def _rmse(rng: Random, mode: Mode) -> list[Step]:
    return [Ask(sql=_any(rng).sql, wanted={"rmse": rng.choice([1, 3.5, 20])}) for _ in range(2)]


def _spend(rng: Random, mode: Mode) -> list[Step]:
    def ask() -> Ask:
        unit = mode.value if rng.random() < 0.9 else "rho"
        return Ask(sql=_any(rng).sql, wanted={unit: rng.choice([0.01, 0.1, 0.3])})

    return [ask(), ask()]


def _overtaken(rng: Random, mode: Mode) -> list[Step]:
    """By a question that makes ours dearer, by our own question in another process, or by a new version."""
    wanted = {"within": rng.choice([5, 12])}
    here, there = (Ask(sql=_select("COUNT(*)", where), wanted=wanted, key="k") for where in rng.choice(DISJOINT))
    faster = rng.choice(
        [
            Overtake(step=Ask(sql=there.sql, wanted={"within": 3})),
            Overtake(step=there, analyst="ann"),
            Overtake(step=Declare(same_rows=rng.random() < 0.5)),
            Overtake(step=_any(rng)),
        ]
    )
    return [Ask(sql=here.sql, wanted={"within": 3}), faster, there, Overtake(step=_any(rng)), _any(rng)]


def _lost(rng: Random, mode: Mode) -> list[Step]:
    ask = _any(rng)
    keyed = Ask(sql=ask.sql, wanted=ask.wanted, key=rng.choice([None, "k"]))
    return [rng.choice([LoseCommit(), FailSource()]), keyed, keyed, rng.choice([LoseCommit(), FailSource()]), _any(rng)]


def _versions(rng: Random, mode: Mode) -> list[Step]:
    """Among others: questions about different people before and after, where somebody may have moved."""
    wanted = _error(rng)
    before, after = (Ask(sql=_select("COUNT(*)", where), wanted=wanted) for where in rng.choice(DISJOINT))
    if rng.random() < 0.3:
        before, after = _any(rng), _any(rng)
    between: list[Step] = [Overtake(step=_any(rng))] if rng.random() < 0.2 else []
    return [before, Declare(same_rows=rng.random() < 0.5), *between, after, before]


def _refined(rng: Random, mode: Mode) -> list[Step]:
    """Measured, refined as a whole or in part, overtaken by another refinement or a new version, and asked again."""

    def refine() -> Refine:
        factor = rng.choice([1.2, 2.0, 3.5])
        return Refine(block=rng.randrange(2), every=rng.choice([1, 1, 2]), factor=factor, parts=rng.choice([1, 1, 2]))

    other = rng.choice([refine(), refine(), Declare(same_rows=rng.random() < 0.5), _any(rng)])
    accident = rng.choice([Overtake(step=other), LoseCommit(), FailSource()])
    return [_any(rng), refine(), refine(), accident, refine(), _any(rng), refine()]


def _growing(rng: Random, mode: Mode) -> list[Step]:
    """Partitions are sealed between the questions, and while one is asked; some never are."""
    first, second, third = sorted(rng.randrange(6) for _ in range(3))
    by_age = Ask(sql=_select("COUNT(*)", rng.choice(["", *SIMPLE[:3]]), "age"), wanted=_error(rng))
    other: Step = rng.choice([Seal(third), _any(rng), Declare(same_rows=rng.random() < 0.5)])
    between: list[Step] = [Overtake(step=Seal(second))] if rng.random() < 0.5 else [Seal(second)]
    early: list[Step] = [_any(rng)] if rng.random() < 0.3 else []
    return [*early, Seal(first), by_age, _any(rng), *between, _any(rng), other, by_age, _any(rng)]


def _tested(rng: Random, mode: Mode) -> list[Step]:
    """Opened, tested again and again, overtaken by other tests or a new version, with commits and counts that fail."""
    columns = tuple(rng.sample(DOMAIN.names, rng.randint(1, 3)))

    def rows(names: Sequence[str], values: Sequence[int]) -> Rows:
        return tuple((name, tuple(rng.choice(values) for _ in range(DOMAIN[name].size))) for name in names)

    def test(*, anew: bool = False) -> Try:
        within = rng.random() < 0.85
        asked = rng.sample(columns if within else DOMAIN.names, rng.randint(1, len(columns)))
        return Try(
            scope=rows(columns, rng.choice([(1,), (1,), (0, 1), (1, 2)])),
            query=rows(asked, rng.choice([(0, 1), (0, 1), (0, 1), (-1, 0, 1), (0, 2)])),
            estimate=rng.choice([0, 1, 3, rng.randint(-9, 9), 10**6]),
            cut=rng.choice([0, 3, 50, -5]),
            scales=(rng.choice([0.8, 30.0, 100.0, 400.0]), rng.choice([8.0, 50.0, 100.0, 400.0])),
            anew=anew,
            own=rng.random() < 0.8,
            times=rng.choice([1, 1, 3]),
        )

    other = rng.choice([test(), test(), test(), Declare(same_rows=rng.random() < 0.5), _any(rng)])
    accident = rng.choice([Overtake(step=other), Overtake(step=other), LoseCommit(), LoseCommit(), FailSource()])
    before = [test(anew=True), test(anew=True), test()]
    return [*before, accident, test(), test(), _any(rng), test(anew=rng.random() < 0.3), test()]


def _chosen(rng: Random, mode: Mode) -> list[Step]:
    """Rows are selected from several histograms, measured next or not, overtaken, with commits and counts that fail."""

    def choose() -> Choose:
        values = rng.choice([(1,), (1,), (1,), (0, 1), (1, 2), (-1, 1)])
        sets = [rng.sample(DOMAIN.names, rng.randint(1, 2)) for _ in range(rng.choice([1, 1, 2, 3]))]
        rows = tuple(
            tuple((name, tuple(rng.choice(values) for _ in range(DOMAIN[name].size))) for name in names)
            for names in sets
        )
        return Choose(
            sets=rows,
            estimates=tuple(rng.choice([0, 1, 2, rng.randint(-9, 9), 10**6]) for _ in range(rng.randint(1, 4))),
            count=rng.choice([1, 1, 2, 3, 40]),
            scale=rng.choice([0.0, 6.0, 20.0, 60.0, 200.0]),
            barred=tuple(rng.sample(range(4), rng.choice([0, 0, 1, 2]))),
            then_measured=rng.choice([None, None, 30.0, 100.0]),
        )

    other = rng.choice([choose(), choose(), Declare(same_rows=rng.random() < 0.5), _any(rng)])
    accident = rng.choice([Overtake(step=other), Overtake(step=other), LoseCommit(), FailSource()])
    return [choose(), choose(), accident, choose(), _any(rng), choose()]


def _mixed(rng: Random, mode: Mode) -> list[Step]:
    return [_any(rng), _any(rng)]


KINDS: dict[str, Kind] = {
    "count": _count,
    "filter": _filter,
    "group by": _group,
    "joint or": _joint,
    "several aggregates": _aggregates,
    "tied": _tied,
    "people": _people,
    "per person": _per_person,
    "explain": _explain,
    "keyed": _keyed,
    "repeated": _repeated,
    "refused": _refused,
    "bad sql": _bad,
    "percent": _percent,
    "rmse": _rmse,
    "spend": _spend,
    "overtaken": _overtaken,
    "lost": _lost,
    "versions": _versions,
    "refined": _refined,
    "growing": _growing,
    "tested": _tested,
    "chosen": _chosen,
    "several rows": _mixed,
    "stored": _mixed,
}
