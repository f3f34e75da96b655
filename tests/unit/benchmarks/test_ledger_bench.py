"""The ledger benchmark asks a real engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.ledger import DOMAIN, WITHIN, from_processes, opened


def test_its_engine_answers_and_charges(tmp_path: Path) -> None:
    column = DOMAIN.names[0]
    with opened(tmp_path / "ledger.sqlite") as bursar:
        answer = bursar.query(f"SELECT {column}, COUNT(*) FROM people GROUP BY {column}", within=WITHIN)
    assert answer.charge > 0
    with opened(tmp_path / "ledger.sqlite") as again:
        assert again.budget().spent > 0


@pytest.mark.heavy
def test_processes_are_timed_with_and_without_the_line(tmp_path: Path) -> None:
    opened(tmp_path / "ledger.sqlite").close()
    figures = from_processes(tmp_path / "ledger.sqlite", 2, 0.1, 1.0)
    assert set(figures) == {"kernel, 2 processes", "kernel, 2 processes, in no order"}
    for row in figures.values():
        assert row["p99_over_p50"] >= 1 >= row["least_over_most"] > 0
