"""What RAP says of its tables and figures; most of it without numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from statistics import fmean

from benchmarks.claims.claim import Claim, Here, PaperFigure, at_least, at_most, between, computed, more, number, of
from benchmarks.harness import Figures


def _grid(part: str) -> Callable[[bool], Figures]:
    """The values that a table of the paper varies, as they are here."""

    def compute(quick: bool) -> Figures:
        from benchmarks.rap_grids import FULL

        grid = FULL[part]
        return {
            "grid": {
                "largest |W|": float(max(grid.sizes)),
                "sizes": float(len(grid.sizes)),
                "epsilons": float(len(grid.epsilons)),
                "pairs (T, K)": float(len(grid.pairs)),
                "k": float(grid.k),
                "n'": float(max(grid.rows)),
            }
        }

    return compute


def _table(name: str, part: str, sizes: int, largest: int, epsilons: int, k: int, rows: int) -> PaperFigure:
    def same(what: str, value: float, why: str = "") -> Claim:
        return number(what, value, computed("grid", what), within=1.0000001, why=why)

    return PaperFigure(
        paper="rap",
        name=name,
        title=f"the grid of `benchmarks.rap --part {part}`",
        compute=_grid(part),
        claims=(
            same("sizes", sizes),
            same("largest |W|", largest),
            same("epsilons", epsilons),
            same("pairs (T, K)", 16),
            same("k", k),
            same("n'", rows),
        ),
    )


Match = dict[str, str]


def _rows_like(found: Mapping[str, Figures], part: str, pattern: str) -> list[tuple[Match, dict[str, float]]]:
    """The rows of a part of RAP's benchmark whose names fit a pattern, with what its groups say."""
    matches = ((re.fullmatch(pattern, name), row) for name, row in found[f"rap/adult-{part}"].items())
    rows = [(match.groupdict(), row) for match, row in matches if match is not None]
    if not rows:
        raise KeyError(pattern)
    return rows


def _largest(rows: list[tuple[Match, dict[str, float]]], by: str, group: str) -> list[dict[str, dict[str, float]]]:
    """For every value of the other groups, the rows of the largest `by`, by what `group` says."""
    largest = max(float(match[by]) for match, _ in rows)
    found: dict[tuple[str, ...], dict[str, dict[str, float]]] = {}
    for match, row in rows:
        if float(match[by]) == largest:
            rest = tuple(text for name, text in match.items() if name not in (by, group))
            found.setdefault(rest, {})[match[group]] = row
    return list(found.values())


TABLES = r"W=(?P<W>\d+) eps=(?P<eps>[\d.]+) (?P<system>[a-z-]+)"
THRESHOLDS = r"r=(?P<r>\d) W=(?P<W>\d+) eps=(?P<eps>[\d.]+) (?P<system>[a-z-]+)"
BY_ROWS = r"r=(?P<r>\d) n'=(?P<n>\d+) (?P<system>rap)"
HISTORY = r"(?P<distribution>[a-z]+) W_H=(?P<W>\d+)"
DRIFT = r"(?P<distribution>[a-z]+) W_H=\d+ gamma=(?P<gamma>[\d.]+)"


def _over_rap(system: str) -> Here:
    """The least that a system's present error is over that of RAP, at the largest |W|, over epsilons."""
    return lambda found: min(
        one[system]["max_error"] / one["rap"]["max_error"]
        for one in _largest(_rows_like(found, "tables", TABLES), "W", "system")
    )


def _band(found: Mapping[str, Figures]) -> float:
    """T K of the best setting at the largest epsilon over that at the smallest, at the largest |W|."""
    (one,) = _largest(_rows_like(found, "tables", TABLES.replace("[a-z-]+", "rap")), "W", "eps")
    picked = {float(epsilon): row["T"] * row["K"] for epsilon, row in one.items()}
    if len(picked) < 2:
        raise KeyError("epsilons")
    return picked[max(picked)] / picked[min(picked)]


def _over_baselines(found: Mapping[str, Figures]) -> float:
    """The least that the better of the paper's two baselines is over RAP, over all settings of thresholds."""
    settings: dict[tuple[str, ...], dict[str, float]] = {}
    for match, row in _rows_like(found, "thresholds", THRESHOLDS):
        settings.setdefault((match["r"], match["W"], match["eps"]), {})[match["system"]] = row["max_error"]
    return min(min(one["all-zero"], one["gaussian-naive"]) / one["rap"] for one in settings.values())


def _easiest(found: Mapping[str, Figures]) -> float:
    """The present error of 4-of-4 thresholds over the least of the others, at the largest |W|."""
    ones = _largest(_rows_like(found, "thresholds", THRESHOLDS.replace("[a-z-]+", "rap")), "W", "r")
    return max(one["4"]["max_error"] / min(one[r]["max_error"] for r in "123") for one in ones)


def _rounds_over_picks(found: Mapping[str, Figures]) -> float:
    """The least T / K of the best settings of r < 4."""
    rows = _rows_like(found, "thresholds", THRESHOLDS.replace("[a-z-]+", "rap"))
    return min(row["T"] / row["K"] for match, row in rows if match["r"] != "4")


def _more_rows(found: Mapping[str, Figures]) -> float:
    """The mean over r of the error at the most relaxed rows over that at the fewest."""
    errors: dict[str, dict[int, float]] = {}
    for match, row in _rows_like(found, "thresholds", BY_ROWS):
        errors.setdefault(match["r"], {})[int(match["n"])] = row["max_error"]
    return fmean(by_rows[max(by_rows)] / by_rows[min(by_rows)] for by_rows in errors.values())


def _with_history(found: Mapping[str, Figures]) -> float:
    """The largest, over distributions, of the future error at the largest history over that at the smallest."""
    errors: dict[str, dict[int, float]] = {}
    for match, row in _rows_like(found, "partial", HISTORY):
        errors.setdefault(match["distribution"], {})[int(match["W"])] = row["future_error"]
    return max(by_size[max(by_size)] / by_size[min(by_size)] for by_size in errors.values())


def _chosen_over_best(found: Mapping[str, Figures]) -> float:
    """The future error at the (T, K) of least present error over that at the best one, in the mean."""
    rows = _rows_like(found, "partial", HISTORY)
    return fmean(row["future_error"] / row["future_error_opt"] for _, row in rows)


def _concentrated(found: Mapping[str, Figures]) -> float:
    """The future error of the geometric distribution over that of the uniform one, at the smallest history."""
    rows = _rows_like(found, "partial", HISTORY)
    least = min(int(match["W"]) for match, _ in rows)
    errors = {match["distribution"]: row["future_error"] for match, row in rows if int(match["W"]) == least}
    return errors["geometric"] / errors["uniform"]


def _drifted(gamma: str) -> Here:
    """The future error at a drift over that without."""

    def here(found: Mapping[str, Figures]) -> float:
        errors = {match["gamma"]: row["future_error"] for match, row in _rows_like(found, "partial", DRIFT)}
        return errors[gamma] / errors["0"]

    return here


OUTLIERS = (
    "with few pairs (T, K) to choose from, some runs leave out a large count, err ten times as much as the others, and "
    "decide the fit; the paper takes the best of 16 pairs"
)

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "fig2": (
        more("the largest |W|: non-adaptive over adaptive", _over_rap("rap-nonadaptive")),
        more("the largest |W|: all-zero over adaptive", _over_rap("all-zero")),
        more("the largest |W|: the paper's Gaussian baseline over adaptive", _over_rap("gaussian-naive")),
    ),
    "fig4": (at_least("the best T K at the largest epsilon over that at the smallest", 1.05, _band, told="larger"),),
    "fig5": (
        at_most(
            "p-value of the filter, by |W|",
            0.05,
            of("rap/adult-filter", "workload size", "filter_p"),
            why=OUTLIERS,
            told="0.026",
        ),
    ),
    "fig6": (
        at_most(
            "p-value of the filter, by queries",
            1e-4,
            of("rap/adult-filter", "number of queries", "filter_p"),
            why=OUTLIERS,
        ),
    ),
    "fig7": (
        more("the better baseline of the paper over RAP, all settings", _over_baselines),
        at_most("r = 4 over the best of r < 4", 1.05, _easiest, told="least at r = 4"),
    ),
    "fig8": (at_least("r < 4: T over K of the best setting", 1, _rounds_over_picks, told="many rounds, few picks"),),
    "fig9": (between("the most n' over the fewest: present error", 0.7, 1.0, _more_rows, told="a mild reduction"),),
    "fig11": (number("total variation at drift .4", 0.5, of("rap/adult-drift", "gamma=0.4", "tv"), within=1.2),),
    "fig12": (
        at_most("the largest history over the smallest: future error", 1, _with_history, told="never rises"),
        at_most("T and K by present error over the best: future error", 1.15, _chosen_over_best, told="close"),
    ),
    "fig13": (at_most("the smallest history: geometric over uniform", 1, _concentrated, told="lowest"),),
    "fig15": (
        at_most("drift .2 over none: future error", 1.2, _drifted("0.2"), told="no significant increase up to .4"),
        more("drift 1 over none: future error", _drifted("1")),
    ),
}
"""What the text says of the figures; most of it without numbers."""


def _figures() -> tuple[PaperFigure, ...]:
    """Those without claims are described by the text and not judged: the pictures of the benchmark stand for them."""
    parts = {
        "fig1": ("runtime", "seconds by |W|"),
        "fig2": ("tables", "present error of all systems by |W| and epsilon"),
        "fig3": ("tables", "present error by T and K, epsilon .1"),
        "fig4": ("tables", "present error by T and K, by epsilon"),
        "fig5": ("filter", "filtered and unfiltered marginals against |W|"),
        "fig6": ("filter", "the same against the number of queries"),
        "fig7": ("thresholds", "r-of-4 thresholds: present error"),
        "fig8": ("thresholds", "r-of-4 thresholds by T and K"),
        "fig9": ("thresholds", "r-of-4 thresholds by n'"),
        "fig10": ("drift", "drifted distributions of features"),
        "fig11": ("drift", "total variation by drift"),
        "fig12": ("partial", "future error by |W_H|"),
        "fig13": ("partial", "future utility by distribution"),
        "fig14": ("training", "training curves"),
        "fig15": ("partial", "future error by drift"),
    }
    return tuple(
        PaperFigure(
            paper="rap",
            name=name,
            title=title,
            commands=(("rap", "--part", part),),
            claims=CLAIMS.get(name, ()),
        )
        for name, (part, title) in parts.items()
    )


RAP = (
    _table("table3", "tables", 5, 256, 3, 3, 1000),
    _table("table4", "thresholds", 5, 256, 2, 4, 2000),
    _table("table5", "partial", 6, 1024, 1, 3, 1000),
    *_figures(),
)
