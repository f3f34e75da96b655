"""The comparison of synthesizers: what a classifier is worth, and peers that are left out with a word."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import rap_synthesizers
from benchmarks.rap_aim import aim
from benchmarks.rap_bench import Bench
from benchmarks.rap_data import ADULT, Coded, stand_in
from benchmarks.rap_grids import Grid
from benchmarks.rap_measures import of_table
from benchmarks.rap_store import Runs
from benchmarks.rap_synthesizers import auc, six_columns, synthesizers

ROWS = 3_000


def adult_stand_in() -> Coded:
    codes = stand_in(ADULT.values(), ROWS)
    return Coded(name="adult", names=tuple(ADULT), sizes=tuple(ADULT.values()), codes=codes, real=False)


def test_auc_of_a_label_that_follows_a_column_and_of_one_that_does_not() -> None:
    data = six_columns(adult_stand_in())
    codes = data.codes.copy()
    codes[:, -1] = codes[:, -2]
    told = Coded(name="adult", names=data.names, sizes=data.sizes, codes=codes, real=False)
    assert auc(told, codes) == 1.0
    rng = np.random.default_rng(3)
    random = codes.copy()
    random[:, -1] = rng.permutation(random[:, -1])
    blind = Coded(name="adult", names=data.names, sizes=data.sizes, codes=random, real=False)
    assert auc(blind, random) == pytest.approx(0.5, abs=0.1)


@pytest.mark.heavy
@pytest.mark.parametrize(("seconds", "word"), [(10.0, "seconds of CPU"), (math.inf, "no network")])
def test_peers_are_left_out_with_a_word(
    seconds: float, word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rap_synthesizers, "DATA", {"adult": adult_stand_in})
    monkeypatch.setattr(rap_synthesizers, "install", lambda system: "no network")
    monkeypatch.setattr(rap_synthesizers, "EPSILONS", (1.0,))
    monkeypatch.setattr(rap_synthesizers, "MARGINALS", 2)
    bench = Bench(data="adult", grid=Grid(sizes=(1,)), seeds=(0,), out=None, runs=Runs(None, "adult"), seconds=seconds)
    figures = synthesizers(bench)
    made = {f"six columns eps=1 {system}" for system in ("default", "aim")}
    assert set(figures) == made | {"six columns real"}
    assert all(0 < figures[name]["tv"] < 0.5 for name in made)
    assert next(line for line in capsys.readouterr().out.splitlines() if word in line).startswith("mst is left out")


@pytest.mark.heavy
def test_aim_comes_near_the_marginals_that_it_may_look_at() -> None:
    """With so much budget that noise is no excuse; a twin that cannot afford to look stays far away."""
    data = six_columns(adult_stand_in())
    codes = data.codes.copy()
    codes[:, 4] = codes[:, 3] % 2  # something to find
    told = Coded(name="adult", names=data.names, sizes=data.sizes, codes=codes, real=False)
    sets = ((0, 3, 4), (3, 4, 5))
    close, far = (aim(told, sets, rho, np.random.default_rng(1)) for rho in (100.0, 1e-6))
    assert of_table(told, sets, 3, close).tv < 0.03 < 0.2 < of_table(told, sets, 3, far).tv
