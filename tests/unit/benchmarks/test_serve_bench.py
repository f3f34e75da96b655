"""The benchmark of the server accounts for every charge."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.serve import Load, data_set, in_process


@pytest.mark.heavy
def test_what_clients_are_charged_is_what_the_ledger_gains(tmp_path: Path) -> None:
    load, gained = in_process(data_set(tmp_path / "people"), clients=3, seconds=0.5, seed=0)
    assert load.errors == []
    told = load.figures(gained, load)
    assert (told["ratio"], told["unaccounted"]) == (1, 0)
    assert len(load.free) > 0


def test_a_charge_that_is_missing_would_be_seen() -> None:
    load = Load(1.0, free=[0.1], paid=[0.2], charges=[0.0, 0.5])
    assert load.figures(0.5, load)["unaccounted"] == 0
    assert load.figures(0.25, load)["unaccounted"] == 0.25
