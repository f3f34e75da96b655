"""What a policy would mean for its analysts, tried on people who do not exist.

A collective asks its questions of a real engine, on a ledger in memory and a table without rows, in the order that a
scheduler gives; policies are put side by side by the measures of Multi-Analyst DP, and drawn.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Protocol

from bursar.analysts.scheduler import Randomized, RoundRobin, Scheduler, Turns
from bursar.analysts.shares import AnalystSettings, Seed, Shares
from bursar.config import Config
from bursar.core.budget import Budget
from bursar.errors import AnalystError, BudgetError, GoalError, QueryError, Unsupported
from bursar.planner.goals import Wanted
from bursar.sql.tokens import questions_of
from bursar.synthetic.plan.workload import PREFIX
from bursar.testing import EmptySource, memory_ledger, stage

NO_GOAL = Wanted()
"""Every question names its own."""


@dataclass(frozen=True, kw_only=True)
class TrialPolicy:
    """How a collective would share its budget."""

    name: str
    policy: str = "shared"
    scheduler: str = "none"
    shares: bool = True  # whether each has an own share; else whoever comes first spends the one budget

    def settings(self, shares: Mapping[str, Fraction], seed: Seed | None) -> AnalystSettings:
        """For the engine. Turns are given by the simulation, so that nobody has to wait for them."""
        planted = seed if self.policy == "seeded-cache" else None
        return AnalystSettings(
            policy=self.policy, shares=Shares(dict(shares)) if self.shares else Shares(), seed=planted
        )


def utilities(
    config: Config,
    policy: TrialPolicy,
    questions: Sequence[AnalystQuestion],
    *,
    shares: Mapping[str, Fraction],
    seed: Seed | None = None,
    goal: Wanted = NO_GOAL,
) -> dict[str, int]:
    """How many questions of each member are answered within their goal: U_i(M, Q, epsilon).

    The members are those of `shares`. They bring in their shares of the config's budget, and nobody else's; a question
    is answered within its goal or refused, so answers are what is counted.
    """
    whole = sum(shares.values(), Fraction(0))
    amount = config.budget.amount * float(whole)
    brought = Budget(mode=config.budget.mode, amount=amount, order=config.budget.order)
    shares_in_all = {who: share / whole for who, share in shares.items()}
    config = replace(config, budget=brought, analysts=policy.settings(shares_in_all, seed), pace=0.0)
    nobody = EmptySource(config.domain)
    ledger = memory_ledger(config, lambda key: nobody)
    stage(config, lambda key: nobody, ledger=ledger).owner.declare_shares()
    sessions = {who: stage(config, lambda key: nobody, ledger=ledger, analyst=who) for who in shares}
    answered = dict.fromkeys(shares, 0)
    for question in questions:
        try:
            sessions[question.analyst].query(
                question.sql,
                within=goal.within,
                confidence=goal.confidence,
                rmse=goal.rmse,
                epsilon=goal.epsilon,
                rho=goal.rho,
                max_cost=goal.max_cost,
            )
            answered[question.analyst] += 1
        except BudgetError:
            continue
        except GoalError as error:
            raise GoalError(f"{error}\nin the question of {question.analyst!r}: {question.sql}") from None
    ledger.close()
    return answered


@dataclass(frozen=True, kw_only=True)
class AnalystQuestion:
    """One question, and who asks it."""

    analyst: str
    sql: str


class LoggedQuestion(Protocol):
    """What is read of a line of the log."""

    @property
    def analyst(self) -> str:
        """Who asked."""

    @property
    def purpose(self) -> str:
        """What was asked, as the log has it."""

    @property
    def rows(self) -> int: ...


def expected(
    scripts: Mapping[str, Sequence[str]], often: Mapping[str, Fraction] | None = None
) -> list[AnalystQuestion]:
    """Each analyst's questions in their order, merged: somebody with rate 3 asks three times as often as with rate 1,
    until nothing is left to ask."""
    rates = {who: Fraction(1) for who in scripts} | dict(often or {})
    if unknown := sorted(rates.keys() - scripts.keys()):
        raise AnalystError(f"{unknown[0]!r} has a rate, and no questions")
    left = {who: list(questions) for who, questions in scripts.items()}
    merged: list[AnalystQuestion] = []
    turns: Turns = {}
    while asking := [who for who, questions in left.items() if questions]:
        who, turns = RoundRobin(weights=rates).next(turns, asking)
        merged.append(AnalystQuestion(analyst=who, sql=left[who].pop(0)))
    return merged


def replayed(log: Iterable[LoggedQuestion], analysts: Iterable[str]) -> list[AnalystQuestion]:
    """The questions that these analysts have paid for, in their order; free answers are not in a log.

    Several records that one question paid for in a row are one question. Synthetic tables are none, and
    texts that were erased cannot be asked again.
    """
    members = set(analysts)
    asked_for = [line for line in log if line.rows and line.purpose and not line.purpose.startswith(PREFIX)]
    paid = [(line.analyst, line.purpose) for line in asked_for if line.analyst in members]
    questions = [
        AnalystQuestion(analyst=who, sql=sql) for (who, text), _ in groupby(paid) for sql in questions_of(text)
    ]
    if not questions:
        raise QueryError("the log has no question of an analyst who has a share\ntry: --mix NAME=FILE")
    return questions


POLICIES = (
    TrialPolicy(name="one budget", shares=False),
    TrialPolicy(name="shared"),
    TrialPolicy(name="round-robin", scheduler="round-robin"),
    TrialPolicy(name="randomized", scheduler="randomized"),
    TrialPolicy(name="independent", policy="independent"),
    TrialPolicy(name="seeded-cache", policy="seeded-cache"),
)
"""What a config can say. "one budget" has no shares; "round-robin" and "randomized" stand in front of "shared"."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one policy does for these analysts; see `measures`."""

    policy: str
    asked: int
    answered: float  # the sum of all utilities
    utility: Mapping[str, float]  # by analyst
    ratio_error: float
    interference: float
    steps: float  # time to completion


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is compared: the same questions and shares for every policy."""

    config: Config
    arrivals: Sequence[AnalystQuestion]
    shares: Mapping[str, Fraction]
    seed: Seed | None = None
    lots: int = 3  # orders by lot that are averaged
    goal: Wanted = NO_GOAL  # of questions that name none

    @property
    def policies(self) -> tuple[TrialPolicy, ...]:
        """All of them; without a seed there is nothing to put into its cache."""
        return tuple(policy for policy in POLICIES if policy.policy != "seeded-cache" or self.seed is not None)


def shares_of(config: Config, analysts: Sequence[str]) -> dict[str, Fraction]:
    """The shares of those who ask: the config's, or equal ones where it has none."""
    declared = config.analysts.shares
    if not declared:
        return {who: Fraction(1, len(analysts)) for who in analysts}
    if unknown := [who for who in analysts if who not in declared]:
        raise AnalystError(f"{unknown[0]!r} has no share in the config\ntry: one of {', '.join(declared)}")
    return {who: declared[who] for who in analysts}


def compare(setting: Setting, progress: Progress = lambda done, of: None) -> list[Figures]:
    """Every policy on the same questions: all together, each alone, and all without each.

    Guarantees: nothing is read from or charged to the real data set; noise is drawn, and nothing depends on it.
    """
    policies, figures = setting.policies, []
    alone: dict[str, Utilities] = {}  # by policy: one who is alone has the whole budget, and no turns to wait for
    for place, policy in enumerate(policies):
        kind = "seeded-cache" if policy.policy == "seeded-cache" else "shared"
        if kind not in alone:
            alone[kind] = {who: _mean(setting, policy, [who])[0][who] for who in setting.shares}
        figures.append(_figures(setting, policy, alone[kind]))
        progress(place + 1, len(policies))
    return figures


def _figures(setting: Setting, policy: TrialPolicy, alone: Utilities) -> Figures:
    everybody = list(setting.shares)
    joint, steps = _mean(setting, policy, everybody)
    without = {who: _mean(setting, policy, [other for other in everybody if other != who])[0] for who in everybody}
    return Figures(
        policy=policy.name,
        asked=len(setting.arrivals),
        answered=sum(joint.values()),
        utility=joint,
        ratio_error=ratio_error(alone, joint),
        interference=interference(without, joint),
        steps=steps,
    )


def _mean(setting: Setting, policy: TrialPolicy, members: Sequence[str]) -> tuple[Utilities, float]:
    """Utilities and steps of a collective, averaged over several lots where the order is drawn."""
    if not members:
        return {}, 0.0
    runs = setting.lots if policy.scheduler == "randomized" and len(members) > 1 else 1
    tries = [_once(setting, policy, members) for _ in range(runs)]
    mean = {who: sum(answered[who] for answered, _ in tries) / runs for who in members}
    return mean, sum(steps for _, steps in tries) / runs


def _once(setting: Setting, policy: TrialPolicy, members: Sequence[str]) -> tuple[Utilities, int]:
    shares = {who: setting.shares[who] for who in members}
    arrivals = [question for question in setting.arrivals if question.analyst in shares]
    order, steps = served(arrivals, _scheduler(setting, policy, shares))
    answered = utilities(setting.config, policy, order, shares=shares, seed=setting.seed, goal=setting.goal)
    return answered, steps


def _scheduler(setting: Setting, policy: TrialPolicy, shares: Mapping[str, Fraction]) -> Scheduler | None:
    if policy.scheduler == "none":
        return None
    if policy.scheduler == "round-robin":
        return RoundRobin(weights=shares)
    declared = setting.config.analysts.probabilities
    return Randomized(weights=shares if declared is None else {who: declared[who] for who in shares})


Utilities = Mapping[str, float]
"""The utility of each analyst under one mechanism, one collective and one sequence of questions."""


def utility(errors: Iterable[float | None], *, alpha: float) -> int:
    """Number of questions whose error is at most alpha; None stands for a question that was refused."""
    return sum(error is not None and error <= alpha for error in errors)


def ratio(other: float, joint: float) -> float:
    """other / joint; above 1 where an analyst would be better off otherwise.

    Edge cases: 0/0 = 1, since nothing was lost; anything else over 0 is infinite.
    """
    if joint == 0:
        return 1.0 if other == 0 else math.inf
    return other / joint


def ratio_error(alone: Utilities, joint: Utilities) -> float:
    """max_i U_i(M, Q^i, s_i epsilon) / U_i(M, Q, epsilon): at most 1 exactly if everybody gains by sharing.

    `alone[i]` is what analyst i gets from the same mechanism with the own questions and the own share only.
    Edge cases: 1 where there is no analyst.
    """
    _same_people(alone, joint)
    return max((ratio(alone[who], joint[who]) for who in joint), default=1.0)


def interference(without: Mapping[str, Utilities], joint: Utilities) -> float:
    """max_{i != j} U_i(M, Q without Q^j, (1 - s_j) epsilon) / U_i(M, Q, epsilon): at most 1 if nobody is in the way.

    `without[j]` has the utilities of everybody else where analyst j has stayed away, with share and questions.
    Edge cases: 1 where there are no two analysts.
    """
    _same_people(without, joint)
    pairs = [(i, j) for j in joint for i in joint if i != j]
    return max((ratio(without[j][i], joint[i]) for i, j in pairs), default=1.0)


def _same_people(first: Mapping[str, object], second: Mapping[str, object]) -> None:
    if first.keys() != second.keys():
        raise ValueError("utilities of different analysts are compared")


def served(arrivals: Sequence[AnalystQuestion], scheduler: Scheduler | None) -> tuple[list[AnalystQuestion], int]:
    """The order of answers and the time to completion.

    In each step one question arrives, as long as there are more, and one can be answered. Without a scheduler that is
    the one that has arrived. In turn, everybody waits until whoever is next has asked; by lot, a step whose lot falls
    on somebody who has not asked is lost. Analysts who will ask nothing more let their turns go.
    """
    if scheduler is None:
        return list(arrivals), len(arrivals)
    left = Counter(question.analyst for question in arrivals)
    line: dict[str, deque[AnalystQuestion]] = {who: deque() for who in left}
    turns: Turns = {}
    turn: str | None = None
    done: list[AnalystQuestion] = []
    steps = 0
    while len(done) < len(arrivals):
        if steps < len(arrivals):
            line[arrivals[steps].analyst].append(arrivals[steps])
        steps += 1
        if turn is None or isinstance(scheduler, Randomized):
            turn, turns = scheduler.next(turns, [who for who, number in left.items() if number])
        if line[turn]:
            done.append(line[turn].popleft())
            left[turn] -= 1
            turn = None
    return done, steps


PANELS = (
    ("answered", "questions answered", None),
    ("ratio_error", "maximum ratio error", 1.0),
    ("interference", "interference", 1.0),
    ("steps", "time to completion", None),
)


def check_matplotlib() -> None:
    """Refuse before anything is computed, where no picture can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise Unsupported("a picture needs matplotlib\ntry: pip install matplotlib, or leave --plot out") from None


def plot(figures: Sequence[Figures], path: Path) -> None:
    """Write the picture. Where a measure is infinite its bar ends at the top, and says so."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(12, 3.4), layout="constrained")
    names = [figure.policy for figure in figures]
    for axis, (measure, title, limit) in zip(picture.subplots(1, len(PANELS)), PANELS, strict=True):
        values = [float(getattr(figure, measure)) for figure in figures]
        top = 1.15 * max([value for value in values if math.isfinite(value)] + [limit or 0.0, 1.0])
        axis.bar(range(len(names)), [min(value, top) for value in values], color="#4c72b0")
        for place, value in enumerate(values):
            text = f"{value:.4g}" if math.isfinite(value) else "infinite"
            axis.annotate(text, (place, min(value, top)), ha="center", va="bottom", fontsize=8)
        if limit is not None:
            axis.axhline(limit, color="#c44e52", linewidth=1)
        axis.set_ylim(0, 1.1 * top)
        axis.set_title(title, fontsize=10)
        axis.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    try:
        picture.savefig(path, dpi=120)
    except (OSError, ValueError) as fault:
        raise Unsupported(f"the picture cannot be written: {getattr(fault, 'strerror', None) or fault}") from None
