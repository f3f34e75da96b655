"""Several people and one budget: what each mechanism answers, and whether anybody is worse off for sharing.

    python -m benchmarks.analysts [--quick] [--seeds 0 1 2] [--rows 48842]
                                  [--epsilons .1 1 10] [--out DIR]

Fig. 3 of Pujol et al.: 10 analysts with equal shares, 40 questions each from a workload (identity, prefix sums, H2,
race-style) on the whole of 86 ages or one half; the first analyst asks with probability p = .01, .1, .9; epsilon = .1,
1, 10; alpha = .01, n = 48,842 (another n with --rows), gamma = .25, lambda = sqrt(2)/(alpha n).

    independent    multiplicative weights, one instance and one share per analyst
    pmw            multiplicative weights, one instance and the whole budget
    round-robin    the same behind a scheduler; whoever has no more to ask is skipped
    randomized     the same behind a scheduler that draws the next analyst
    seeded-cache   Seeded Cache and Reconstruct as published: histogram seed, purchases add up
    default        Bursar under the policy `seeded-cache`: seed = the best strategy for the declared workloads, accounts
                   charged by the largest loss of a cell

A question counts if its error is at most alpha n, by two yardsticks for every system. *Expected*: the root mean square
error is; for the two last that is found without a draw from what the engine would buy, for multiplicative weights from
400 runs (100 with --quick). *Realised*: the error that occurs is, a mean over as many runs. A purchase whose root mean
square error equals the goal misses in 24 % of draws, so the two must not be mixed. `expected` and `realised` are sums
over analysts and cells, of which `asked` is the most; `max_ratio_error` and `interference` are the worst cell's by the
yardstick of the system's paper, above 1 where the sharing incentive or non-interference is broken; by realised errors
they also hold sampling noise. `time_to_completion` is the mean number of steps. At the size of the paper some systems
answer everything, which tells nothing; with --rows 4884 --epsilons .2 .3 .4 none does.

Fig. 1 comes first: 2 analysts ask the same points and ranges on disjoint halves, 220 each, epsilon = 1; the share of
questions answered, and what Bob would have had alone over what he gets.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.analysts_plots import by_chance, two_people
from benchmarks.analysts_setting import CELLS, GAMMA, PEOPLE, People, declared, people, ten_analysts, two_analysts
from benchmarks.harness import Figures, at_once, options, report
from benchmarks.systems.collective import (
    Fairness,
    Laplace,
    Mechanism,
    Questions,
    Scheduler,
    SeededCache,
    TwoYardsticks,
    as_it_comes,
    both_fairness,
    fairness,
    randomized,
    round_robin,
)
from benchmarks.systems.pmw import MultiplicativeWeights
from bursar.papers.eigen_design.workloads import gram_of
from bursar.strategies.optimal import integer_laplace

EPSILONS = (0.1, 1.0, 10.0)
CHANCES = (0.01, 0.1, 0.9)
PAIR_CHANCES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RUNS, QUICK_RUNS = 400, 100
"""Runs of multiplicative weights, and schedules drawn."""

SCHEDULERS: Mapping[str, Scheduler] = {"round-robin": round_robin, "randomized": randomized}
EXPECTED = ("seeded-cache", "default")
"""Systems whose paper counts expected errors; the others count those that occur."""

SYSTEMS = ("independent", "pmw", "seeded-cache", "round-robin", "randomized", "default")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One system in one setting of Fig. 3."""

    system: str
    epsilon: float
    chance: float
    seed: int
    fairness: Fairness  # by the yardstick of the system's paper
    expected: float  # utility of all analysts
    realised: float
    asked: int
    steps: float


def mechanism(system: str, data: People, seed: int, runs: int) -> TwoYardsticks:
    law: dict[str, Any] = {"gamma": GAMMA, "each": data.each, "largest": data.largest, "runs": runs}
    if system == "seeded-cache":
        return SeededCache(basis=np.eye(CELLS), **law)
    if system == "default":
        best = integer_laplace(gram_of(declared()), gap=1e-3)
        return SeededCache(basis=best.rows.astype(float), by_cell=True, **law)
    scheduler = SCHEDULERS.get(system, as_it_comes)
    joint = MultiplicativeWeights(truth=data.ages, largest=data.largest, runs=runs, scheduler=scheduler, seed=seed)
    return joint if system != "independent" else Independent(joint)


@dataclass(frozen=True)
class Independent:
    """Everybody alone with the own share: company changes nothing."""

    mechanism: TwoYardsticks

    def __call__(self, questions: Questions, collectives: Sequence[Any]) -> Any:
        return self.both(questions, collectives)[1]

    def both(self, questions: Questions, collectives: Sequence[Any]) -> Any:
        people = np.eye(questions.people)
        brought = np.max(collectives, axis=0)
        alone = self.mechanism.both(questions, [brought * own for own in people]).diagonal(axis1=1, axis2=2)
        return np.array([alone * (members > 0) for members in collectives]).transpose(1, 0, 2)


def cells(
    system: str, rows: int | None, seeds: Sequence[int], runs: int, epsilons: Sequence[float] = EPSILONS
) -> list[Cell]:
    """All settings of Fig. 3 for one system."""
    data, found = people(rows), []
    for seed in seeds:
        for chance in CHANCES:
            questions = ten_analysts(seed, chance)
            steps = waiting(system, questions, seed, runs)
            for epsilon in epsilons:
                shares = np.full(PEOPLE, epsilon / PEOPLE)
                two = both_fairness(mechanism(system, data, seed, runs), questions, shares)
                facts: dict[str, Any] = {"system": system, "epsilon": epsilon, "chance": chance, "seed": seed}
                expected, realised = (float(fair.utility.sum()) for fair in two)
                fair = two[0 if system in EXPECTED else 1]
                asked = len(questions.asked)
                found.append(
                    Cell(**facts, fairness=fair, expected=expected, realised=realised, asked=asked, steps=steps)
                )
    return found


def waiting(system: str, questions: Questions, seed: int, runs: int) -> float:
    """Steps until everything is answered: one question arrives and at most one is served at each."""
    rng, scheduler = np.random.default_rng(seed), SCHEDULERS.get(system, as_it_comes)
    return fmean(scheduler(questions, rng).steps for _ in range(runs if system == "randomized" else 1))


def pairs(rows: int | None, seed: int, runs: int) -> dict[str, list[tuple[float, float, float]]]:
    """Fig. 1: per mechanism and p, the share answered of Alice's and of Bob's, and the larger ratio error."""
    data = people(rows)
    shares = np.full(2, 0.5)
    compared: dict[str, Mechanism] = {
        "laplace": Laplace(each=data.each, largest=data.largest),
        "pmw": MultiplicativeWeights(truth=data.ages, largest=data.largest, runs=runs, seed=seed),
        "seeded-cache": mechanism("seeded-cache", data, seed, runs),
    }
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in compared}
    for chance in PAIR_CHANCES:
        questions = two_analysts(seed, chance)
        each = len(questions.asked) / 2
        for name, joint in compared.items():
            fair = fairness(joint, questions, shares)
            alice, bob = fair.utility / each
            found[name].append((float(alice), float(bob), fair.ratio_error))
    return found


def figures(found: Sequence[Cell]) -> dict[str, float]:
    """One system's cells in one line; utilities are means over the seeds of the sum over cells."""
    seeds = len({cell.seed for cell in found})
    return {
        "expected": sum(cell.expected for cell in found) / seeds,
        "realised": sum(cell.realised for cell in found) / seeds,
        "asked": sum(cell.asked for cell in found) / seeds,
        "max_ratio_error": max(cell.fairness.ratio_error for cell in found),
        "interference": max(cell.fairness.interference for cell in found),
        "time_to_completion": fmean(cell.steps for cell in found),
    }


def by_cell(found: Mapping[str, Sequence[Cell]]) -> str:
    """Utilities by both yardsticks, and the worst ratio error and interference over the seeds, of every cell."""
    lines = ["Fig. 3, expected / realised utility of asked (max ratio error, interference):"]
    epsilons = sorted({cell.epsilon for own in found.values() for cell in own})
    lines.append(f"  {'':<14}" + "".join(f"{f'eps {e:g}, p {p:g}':>25}" for e in epsilons for p in CHANCES))
    for system, own in found.items():
        texts = []
        for epsilon in epsilons:
            for chance in CHANCES:
                here = [cell for cell in own if (cell.epsilon, cell.chance) == (epsilon, chance)]
                fair = [cell.fairness for cell in here]
                utility = f"{fmean(cell.expected for cell in here):.0f}/{fmean(cell.realised for cell in here):.0f}"
                ratios = max(each.ratio_error for each in fair), max(each.interference for each in fair)
                texts.append(f"{utility} ({ratios[0]:.3g}, {ratios[1]:.3g})")
        lines.append(f"  {system:<14}" + "".join(f"{text:>25}" for text in texts))
    return "\n".join(lines)


def in_words(found: Mapping[str, Sequence[tuple[float, float, float]]]) -> str:
    lines = ["Fig. 1, share answered of Alice's / Bob's questions (max ratio error):"]
    lines.append(f"  {'':<14}" + "".join(f"{f'p {p:g}':>20}" for p in PAIR_CHANCES))
    for name, points in found.items():
        texts = (f"{alice:.2f} / {bob:.2f} ({worst:.2f})" for alice, bob, worst in points)
        lines.append(f"  {name:<14}" + "".join(f"{text:>20}" for text in texts))
    return "\n".join(lines)


def main() -> None:
    args = options(
        __doc__ or "", rows={"type": int, "default": None}, epsilons={"type": float, "nargs": "+", "default": EPSILONS}
    )
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    seeds, runs = args.seeds, QUICK_RUNS if args.quick else RUNS
    with ProcessPoolExecutor(at_once(), mp_context=multiprocessing.get_context("spawn")) as pool:
        pair = pool.submit(pairs, args.rows, seeds[0], runs)
        jobs = {name: pool.submit(cells, name, args.rows, seeds, runs, args.epsilons) for name in SYSTEMS}
        found = {name: job.result() for name, job in jobs.items()}
    two = pair.result()
    print(in_words(two))
    print(by_cell(found))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        two_people(args.out / "analysts-fig1.png", PAIR_CHANCES, two)
        by_chance(args.out / "analysts-fig3.png", CHANCES, found)
    result: Figures = {name: figures(own) for name, own in found.items()}
    report("analysts", args, result, data="real" if people(args.rows).real else "stand-in")


if __name__ == "__main__":
    main()
