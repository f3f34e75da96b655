"""Figures of the papers beside what came out here: claims can be looked up, and a wrong number does not agree."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import paper
from benchmarks.claims import FIGURES
from benchmarks.claims.claim import Found, PaperFigure, at_least, at_most, between, computed, number
from benchmarks.claims.eigen_design import equal_weights
from benchmarks.strategies_systems import SYSTEMS, Case, error

from bursar.papers.eigen_design import workloads
from bursar.strategies.measure import svd_bound

pytestmark = pytest.mark.thinned(3)

DOCS = Path(__file__).resolve().parents[3] / "docs" / "papers.md"


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["paper", *words])
    paper.main()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("claim", "agreed", "refused"),
    [
        (number("a number", 2.0, computed("a", "b"), within=1.1), (2.0, 2.15, 1.85), (2.3, 1.7, math.inf)),
        (between("a range", 1.0, 2.0, computed("a", "b"), slack=1.0), (1.0, 1.5, 2.0), (0.9, 2.1)),
        (at_least("a bound", 3.0, computed("a", "b")), (3.0, 100.0), (2.99,)),
        (at_most("a bound", 3.0, computed("a", "b")), (3.0, 0.0), (3.01,)),
    ],
)
def test_what_the_paper_says_agrees_and_another_number_does_not(claim, agreed, refused) -> None:  # type: ignore[no-untyped-def]
    for here in agreed:
        assert paper.verdict(claim, here, quick=False) == "agrees"
    for here in refused:
        assert paper.verdict(claim, here, quick=False) == "differs: not explained"
        assert paper.verdict(claim, here, quick=True) == "differs: this is a smaller run"
    assert paper.verdict(claim, None, quick=False) == "not in this run"


def test_a_part_of_the_grid_is_stated_above_the_table_and_beside_what_it_may_explain(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of two benchmarks behind a figure one ran on a part of its grid: only claims that look at that one say so."""
    figure = FIGURES["cachedp", "fig8"]
    spent = {"cachedp": {"epsilon": 1.0}, **{f"cachedp-no-{module}": {"epsilon": 0.1} for module in ("pq", "rp", "se")}}
    ran = {
        paper.apart(words)[0]: {"bench": f"cachedp/{words[2]}", "data": "real", "figures": spent}
        | ({"grid": "small: 10,000 questions"} if words[2] == "rrq" else {})
        for words in figure.commands
    }
    paper.tell(figure, ran, argparse.Namespace(quick=False, seeds=[0], out=None))
    above, table = capsys.readouterr().out.split("\n  ", 1)
    assert above.splitlines()[-1] == "grid of cachedp/rrq: small: 10,000 questions"
    lines = table.splitlines()[1:-1]
    assert all("differs" in line for line in lines)
    assert {line.split(":")[0] for line in lines if line.endswith("a part of the grid")} == {"RRQ"}


@pytest.mark.parametrize("bench", paper.GRIDS)
def test_every_benchmark_with_grids_is_told_which(bench: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def played(words: list[str], **options: object) -> argparse.Namespace:
        ran.append(words)
        return argparse.Namespace(stdout='table\n{"bench": ""}')

    monkeypatch.setattr(paper.subprocess, "run", played)
    for grid in ("usual", "small"):
        paper.run_benchmark((bench,), (), argparse.Namespace(quick=False, seeds=[0], out=None, grid=grid))
    usual, small = (words[words.index("--grid") + 1] for words in ran)
    assert (usual, small) == ({"cachedp": "full", "rap": "stated"}[bench], "small")


def test_every_figure_is_listed_and_stands_on_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = run(monkeypatch, capsys, "--list").splitlines()
    assert [tuple(line.split()[:2]) for line in lines] == list(FIGURES)
    page = DOCS.read_text(encoding="utf-8")
    assert [key for key in FIGURES if f"| `{key[0]} {key[1]}` |" not in page] == []


def test_every_figure_has_something_behind_it_and_claims_have_names_of_their_own() -> None:
    for figure in FIGURES.values():
        assert figure.commands or figure.compute is not None
        names = [claim.what for claim in figure.claims]
        assert len(names) == len(set(names))
        assert all(claim.bounds[0] < claim.bounds[1] for claim in figure.claims)


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "figure"), [("eigen-design", "fig1"), ("rap", "table3"), ("rap", "table5")])
def test_a_figure_that_takes_no_time_is_drawn_and_agrees(
    name: str, figure: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = run(monkeypatch, capsys, name, figure, "--out", str(tmp_path))
    assert "differs" not in out
    assert out.count("agrees") == len(FIGURES[name, figure].claims)
    assert (tmp_path / f"{name}-{figure}.png").stat().st_size > 0
    assert json.loads(out.splitlines()[-1])["bench"] == f"paper/{name}-{figure}"


DFS_ALONE = replace(FIGURES["cachedp", "table4"], commands=FIGURES["cachedp", "table4"].commands[1:2])
"""Table 4 of CacheDP without the tasks that take longer."""


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("figure", "claims"),
    [
        (DFS_ALONE, 2),
        (FIGURES["boost", "question5"], 2),
        (FIGURES["eigen-design", "fig5"], 5),
        (FIGURES["multi-analyst", "fig1"], 6),
        (FIGURES["rap", "fig11"], 1),
    ],
    ids=lambda value: f"{value.paper}-{value.name}" if isinstance(value, PaperFigure) else None,
)
def test_a_quick_figure_of_every_paper_is_run_and_drawn(
    figure: PaperFigure,
    claims: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """With as many claims, at least, as have a number in the quick setting."""
    monkeypatch.setitem(paper.FIGURES, (figure.paper, figure.name), figure)
    out = run(monkeypatch, capsys, figure.paper, figure.name, "--quick", "--out", str(tmp_path))
    told = out.splitlines()
    assert json.loads(told[-1])["quick"] is True
    assert sum("agrees" in line or "differs" in line for line in told) >= claims
    assert (tmp_path / f"{figure.paper}-{figure.name}.png").stat().st_size > 0


@pytest.mark.heavy
def test_a_benchmark_is_run_and_its_json_read(monkeypatch: pytest.MonkeyPatch) -> None:
    args = argparse.Namespace(quick=True, seeds=[0], out=None)
    figure = FIGURES["boost", "fig3"]
    found, _ = paper.found_for(figure, paper.run([figure], args), quick=True)
    lines = paper.compared(figure, found, quick=True)
    assert [claim.what for claim, here, _ in lines if here is not None] == ["pmw-bypass over pmw"]
    assert set(found) == {"boost/demo"}


def test_benchmarks_that_figures_share_run_once_with_the_systems_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run_benchmark(command: paper.Command, systems: paper.Command, args: argparse.Namespace) -> paper.Printed:
        ran.append((" ".join(command), systems))
        return {"bench": command[-1], "data": "real", "figures": {system: {} for system in systems}}

    monkeypatch.setattr(paper, "run_benchmark", run_benchmark)
    figures = [FIGURES["cachedp", "table4"], FIGURES["cachedp", "fig8"]]
    told = paper.run(figures, argparse.Namespace())
    tasks = ["cachedp --task bfs", "cachedp --task dfs", "cachedp --task rrq", "cachedp --task idebench"]
    assert [command for command, _ in ran] == tasks
    assert dict(ran)["cachedp --task rrq"] == ("cachedp", "cachedp-no-pq", "cachedp-no-rp", "cachedp-no-se")
    assert dict(ran)["cachedp --task idebench"] == ("cachedp",)
    found, data = paper.found_for(FIGURES["cachedp", "fig8"], told, quick=True)
    assert (set(found), data) == ({"bfs", "dfs", "rrq"}, ["real"])


def test_a_figure_that_is_not_there_names_those_that_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="fig1, fig3"):
        run(monkeypatch, capsys, "multi-analyst", "fig2")


@pytest.mark.parametrize(("sizes", "ways"), [((4, 3, 2), 2), ((2, 2, 2, 2), 2), ((3, 2, 2), 1)])
def test_the_closed_form_for_equal_weights_is_that_of_the_strategies(sizes: tuple[int, ...], ways: int) -> None:
    sets = workloads.ways(len(sizes), ways)
    case = Case(gram=workloads.marginals(sizes, sets), sizes=sizes, sets=tuple(sets))
    for information in (SYSTEMS["fourier"](case), case.gram):  # the latter measures all marginals alike
        assert error(case.gram, information) / svd_bound(case.gram) == pytest.approx(equal_weights(sizes, ways))
    eigen = error(case.gram, SYSTEMS["eigen"](case)) / svd_bound(case.gram)
    assert eigen == pytest.approx(1, abs=1e-3)


def rap_found(adaptive: float, fourth: float, drifted: float) -> Found:
    """What the parts of RAP's benchmark would have found."""
    systems = {"all-zero": 0.5, "gaussian-naive": 0.4, "gaussian": 0.01, "rap-nonadaptive": 0.4, "rap": adaptive}
    tables = {
        f"W={size} eps={epsilon} {system}": {"max_error": value, "T": 4, "K": 16 if epsilon == "1" else 4}
        for size in (1, 64)
        for epsilon in ("0.1", "1")
        for system, value in systems.items()
    }
    thresholds = {
        f"r={r} W=4 eps=0.1 {system}": {"max_error": fourth if (r, system) == (4, "rap") else value, "T": 16, "K": 4}
        for r in (1, 2, 3, 4)
        for system, value in systems.items()
    }
    partial = {
        f"geometric W_H=4 gamma={gamma}": {"future_error": value} for gamma, value in (("0", 0.1), ("1", drifted))
    }
    return {"rap/adult-tables": tables, "rap/adult-thresholds": thresholds, "rap/adult-partial": partial}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("figure", "claim", "right", "wrong"),
    [
        ("fig2", 0, (0.1, 0.1, 0.2), (0.39, 0.1, 0.2)),
        ("fig2", 1, (0.1, 0.1, 0.2), (0.6, 0.1, 0.2)),
        ("fig7", 0, (0.1, 0.1, 0.2), (0.45, 0.1, 0.2)),
        ("fig7", 1, (0.1, 0.1, 0.2), (0.1, 0.2, 0.2)),
        ("fig15", 1, (0.1, 0.1, 0.2), (0.1, 0.1, 0.1)),
    ],
)
def test_claims_of_rap_hold_where_they_should(
    figure: str, claim: int, right: tuple[float, ...], wrong: tuple[float, ...]
) -> None:
    stated = FIGURES["rap", figure].claims[claim]
    assert paper.verdict(stated, stated.here(rap_found(*right)), quick=False) == "agrees"
    assert paper.verdict(stated, stated.here(rap_found(*wrong)), quick=False).startswith("differs")


def test_what_a_run_does_not_have_is_not_judged() -> None:
    lines = paper.compared(FIGURES["rap", "fig9"], rap_found(0.1, 0.1, 0.2), quick=True)
    assert [said for _, _, said in lines] == ["not in this run"]
