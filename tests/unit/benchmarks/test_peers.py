"""The comparison with other libraries: everything about it that needs none of them."""

from __future__ import annotations

import ast
import math
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from benchmarks import peers_run
from benchmarks.peers import figures_of, ratios
from benchmarks.peers_plots import bars
from benchmarks.peers_run import SCRIPTS, SYSTEMS, Installed, System, charged, install
from benchmarks.peers_setting import (
    CONFIDENCE,
    ROWS,
    SPANS,
    VALUES,
    WITHIN,
    Question,
    config,
    epsilon_for,
    lines_of,
    questions,
    stand_in,
    truth,
    worst_error,
)

from bursar.config import load

SMALL = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["Male", "Female", "Male", "Male"]})
YOUNG = Question(by="sex", where="age", low=20, high=40)


def chance_of_keeping(within: int, groups: int, epsilon: float) -> float:
    """By adding up the law of discrete Laplace noise, not by the formula that is tested."""
    a = math.exp(-epsilon)
    inside = sum((1 - a) / (1 + a) * a ** abs(x) for x in range(-within, within + 1))
    return inside**groups


@pytest.mark.parametrize("groups", [1, 2, 16, 100])
@pytest.mark.parametrize("within", [0, 5, 50])
def test_the_least_epsilon_reaches_the_goal_and_a_little_less_does_not(within: int, groups: int) -> None:
    epsilon = epsilon_for(within, groups=groups, confidence=0.95)
    assert chance_of_keeping(within, groups, epsilon) >= 0.95 - 1e-9
    assert chance_of_keeping(within, groups, 0.999 * epsilon) < 0.95


@pytest.mark.parametrize("groups", sorted({len(values) for values in VALUES.values()}))
def test_noise_cut_to_a_whole_number_is_too_large_about_as_often(groups: int) -> None:
    a = math.exp(-epsilon_for(WITHIN, groups=groups, confidence=CONFIDENCE))
    cut = (a ** (WITHIN + 1) + a**WITHIN) / 2
    discrete = 2 * a ** (WITHIN + 1) / (1 + a)
    assert discrete < cut < 1.005 * discrete


@pytest.mark.parametrize("system", [system for system in SYSTEMS if system.wants], ids=lambda system: system.name)
def test_the_scripts_of_the_others_use_the_least_epsilon(system: System) -> None:
    tree = ast.parse(system.shown[0].read_text())
    found = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("EPSILON", "EDUCATION")
    }
    least = epsilon_for(WITHIN, groups=len(VALUES["education"]), confidence=CONFIDENCE)
    assert least <= found["EPSILON"] < least * 1.0001
    assert tuple(found.get("EDUCATION", VALUES["education"])) == VALUES["education"]


def test_bursars_script_asks_for_the_same_goal_of_the_same_groups() -> None:
    script, toml = next(system for system in SYSTEMS if system.name == "bursar").shown
    assert f"within={WITHIN}, confidence={CONFIDENCE}" in script.read_text()
    assert load(toml).domain["education"].size == len(VALUES["education"])


def test_every_system_has_a_script_for_the_first_answer_and_one_that_asks() -> None:
    for system in SYSTEMS:
        assert system.shown
        assert (SCRIPTS / f"ask_{system.name}.py").is_file()


def test_questions_are_different_and_come_again_with_their_seed() -> None:
    asked = questions(40, 7)
    assert len(set(asked)) == 40
    assert asked == questions(40, 7) != questions(40, 8)
    assert {question.equals is None for question in asked} == {True, False}
    assert all(question.by != question.where for question in asked)


def test_a_question_in_sql_and_as_a_job() -> None:
    job = YOUNG.as_job()
    assert job["sql"] == "SELECT sex, COUNT(*) AS n FROM people WHERE age >= 20 AND age <= 40 GROUP BY sex"
    assert job["keys"] == VALUES["sex"]
    assert job["epsilon"] == epsilon_for(WITHIN, groups=2, confidence=CONFIDENCE)
    assert Question(by="sex", where="race", equals="Black").sql.endswith("WHERE race = 'Black' GROUP BY sex")


def test_truth_counts_every_group_and_the_worst_error_is_over_all_of_them() -> None:
    assert truth(SMALL, YOUNG) == {"Female": 1, "Male": 2}
    assert truth(SMALL, Question(by="sex", where="sex", equals="Male")) == {"Female": 0, "Male": 3}
    assert worst_error({"Female": 1, "Male": 2}, {"Female": 4.0, "Male": 1.0}) == 3
    assert worst_error({"Female": 7, "Male": 2}, {"Male": 2.0}) == 7


@pytest.mark.heavy
def test_the_stand_in_has_the_size_and_the_values_of_the_real_table() -> None:
    frame = stand_in()
    assert len(frame) == ROWS
    assert all(set(frame[name]) == set(values) for name, values in VALUES.items())
    assert all(low <= frame[name].min() and frame[name].max() <= high for name, (low, high) in SPANS.items())


def test_the_config_declares_exactly_the_groups_that_the_others_are_given(tmp_path: Path) -> None:
    file = tmp_path / "bursar.toml"
    file.write_text(config(1000.0))
    domain = load(file).domain
    assert {name: domain[name].size for name in VALUES} == {name: len(values) for name, values in VALUES.items()}
    assert {name: domain[name].size for name in SPANS} == {name: high - low + 1 for name, (low, high) in SPANS.items()}


def test_lines_that_are_not_blank_are_counted(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.toml"
    one.write_text("import this\n\n   \n# a remark\nthis\n")
    two.write_text("a = 1")
    assert lines_of([one, two]) == 4


@pytest.mark.parametrize(
    ("printed", "epsilon"),
    [
        ("10th 1389\nepsilon 0.11372\n", 0.11372),
        ("epsilon 1e-05", 1e-5),
        ("error  ±49\ncost   epsilon 0.116014; 0.88399 of 1 is left\nfrom   direct", 0.116014),
    ],
)
def test_the_charge_is_read_from_what_a_script_prints(printed: str, epsilon: float) -> None:
    assert charged(printed) == epsilon


def test_a_script_that_prints_no_charge_is_an_error() -> None:
    with pytest.raises(ValueError, match="no epsilon"):
        charged("10th 1389")


def test_a_library_that_cannot_be_installed_is_missing_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*command: str) -> str:
        raise subprocess.CalledProcessError(1, command, stderr="looking\nERROR: No matching distribution\n")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(peers_run, "_quiet", refuse)
    assert install(System(name="x", package="x", module="x", wants=("x",))) == "ERROR: No matching distribution"
    assert not list(tmp_path.rglob("installed.txt"))


def test_an_environment_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[tuple[str, ...]] = []

    def note(*command: str) -> str:
        ran.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
        return "1.2\n"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(peers_run, "_quiet", note)
    found = [install(System(name="x", package="x", module="x", wants=wants)) for wants in (("x",), ("x",), ("x", "y"))]
    assert all(isinstance(one, Installed) and one.version == "1.2" for one in found)
    assert [command[3:] for command in ran if "pip" in command] == [
        ("install", "--quiet", "x"),
        ("install", "--quiet", "x", "y"),
    ]


def run_of(times: list[float], charges: list[float], men: list[float]) -> dict[str, object]:
    fresh = [
        {"cpu_ms": t, "charge": c, "counts": {"Female": 1, "Male": m}}
        for t, c, m in zip(times, charges, men, strict=True)
    ]
    return {"fresh": fresh, "repeated": [{"cpu_ms": 1.0, "charge": 0.0} for _ in fresh]}


def test_figures_of_a_system() -> None:
    run = run_of([10.0, 2.0, 30.0], [0.1, 0.0, 0.2], [2, 2, 3 + WITHIN])
    found = figures_of([run], [[YOUNG] * 3], SMALL)
    assert found["fresh_ms"] == 10.0
    assert found["paid_ms"] == 20.0
    assert found["repeated_ms"] == 1.0
    assert found["epsilon_fresh"] == pytest.approx(0.3)
    assert found["epsilon_again"] == 0
    assert found["failure_rate"] == pytest.approx(1 / 3)
    assert found["free"] == pytest.approx(1 / 3)


def test_ratios_are_taken_wherever_there_is_something_to_divide_by() -> None:
    figures = {
        "bursar": {"lines": 10.0, "fresh_ms": 3.0, "epsilon_again": 0.0},
        "other": {"lines": 20.0, "fresh_ms": 6.0, "epsilon_again": 0.0},
    }
    assert ratios(figures) == {"bursar / other": {"lines": 0.5, "fresh_ms": 0.5}}


@pytest.mark.heavy
def test_the_picture_is_drawn(tmp_path: Path) -> None:
    keys = ("fresh_ms", "repeated_ms", "first_s", "first_wall_s", "epsilon_fresh", "epsilon_again", "lines")
    bars(tmp_path / "peers.png", {name: dict.fromkeys(keys, 1.0) for name in ("bursar", "other")})
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")
