"""What Multi-Analyst DP says of its figures."""

from __future__ import annotations

from statistics import fmean

from benchmarks.claims.claim import Here, PaperFigure, at_most, between, computed, more, number
from benchmarks.harness import Figures

SEQUENCES = 10


def _two_analysts(quick: bool) -> Figures:
    """Means over sequences: in a single one the budget ends while somebody is ahead by chance."""
    from benchmarks.analysts import PAIR_CHANCES, QUICK_RUNS, RUNS, pairs

    runs = [pairs(None, seed, QUICK_RUNS if quick else RUNS) for seed in range(2 if quick else SEQUENCES)]
    found: Figures = {}
    for name in runs[0]:
        for place, chance in enumerate(PAIR_CHANCES):
            alice, bob, worst = (fmean(run[name][place][i] for run in runs) for i in range(3))
            found[f"{name}, p {chance:g}"] = {"alice": alice, "bob": bob, "ratio": worst}
    return found


def _real_ages() -> bool:
    from benchmarks.analysts_setting import people

    return people().real


def _ten_analysts(quick: bool) -> Figures:
    from benchmarks.analysts import QUICK_RUNS, RUNS, SYSTEMS, cells

    found: Figures = {}
    for system in SYSTEMS:
        for cell in cells(system, None, [0], QUICK_RUNS if quick else RUNS, (1.0,)):
            found[f"{system}, p {cell.chance:g}"] = {
                "expected": cell.expected,
                "realised": cell.realised,
                "asked": float(cell.asked),
                "ratio": cell.fairness.ratio_error,
                "interference": cell.fairness.interference,
                "steps": cell.steps,
            }
    return found


def _worst(system: str, key: str) -> Here:
    return lambda found: max(row[key] for name, row in found["computed"].items() if name.startswith(f"{system}, "))


def _least(system: str, key: str, over: str) -> Here:
    return lambda found: min(
        row[key] / found["computed"][name.replace(system, over)][key]
        for name, row in found["computed"].items()
        if name.startswith(f"{system}, ")
    )


def _over(row: str, above: str, below: str) -> Here:
    return lambda found: found["computed"][row][above] / found["computed"][row][below]


def _share_answered(system: str) -> Here:
    return lambda found: max(
        row["realised"] / row["asked"] for name, row in found["computed"].items() if name.startswith(f"{system}, ")
    )


def _steps() -> Here:
    return lambda found: max(
        row["steps"] / row["asked"] for name, row in found["computed"].items() if name.startswith(("round", "random"))
    )


OTHER_AGES = "ages of Adult and workloads drawn by us: the census data of the paper are not at hand"

MULTI_ANALYST = (
    PaperFigure(
        paper="multi-analyst",
        name="fig1",
        title="two analysts with the same questions on disjoint halves, by how often Alice asks",
        compute=_two_analysts,
        real=_real_ages,
        claims=(
            number("pmw, p = .5: Alice over Bob", 1, _over("pmw, p 0.5", "alice", "bob"), within=1.1, why=OTHER_AGES),
            number("laplace, p = .5: Alice over Bob", 1, _over("laplace, p 0.5", "alice", "bob"), within=1.1),
            more("pmw, p = .9: Alice over Bob", _over("pmw, p 0.9", "alice", "bob"), why=OTHER_AGES),
            more("laplace, p = .9: Alice over Bob", _over("laplace, p 0.9", "alice", "bob")),
            more("laplace, p = .9: max ratio error", computed("laplace, p 0.9", "ratio")),
            at_most("seeded cache: max ratio error", 1.0, _worst("seeded-cache", "ratio")),
        ),
    ),
    PaperFigure(
        paper="multi-analyst",
        name="fig3",
        title="ten analysts, epsilon 1, alpha .01; realised errors",
        compute=_ten_analysts,
        real=_real_ages,
        claims=(
            at_most("independent: share of questions answered", 0.5, _share_answered("independent"), why=OTHER_AGES),
            between(
                "seeded cache over pmw", 0.8, 1.0, _least("seeded-cache", "realised", "pmw"), told="slightly fewer"
            ),
            between("pmw: max ratio error", 1.2, 3, _worst("pmw", "ratio"), told="as many as 3", why=OTHER_AGES),
            at_most("seeded cache: max ratio error", 1.0, _worst("seeded-cache", "ratio")),
            number(
                "round-robin: worst interference",
                2.2,
                _worst("round-robin", "interference"),
                within=1.3,
                why=OTHER_AGES,
            ),
            number(
                "randomized: worst interference", 1.5, _worst("randomized", "interference"), within=1.3, why=OTHER_AGES
            ),
            at_most("schedulers: steps over questions", 2.2, _steps(), told="up to twice"),
        ),
    ),
)
