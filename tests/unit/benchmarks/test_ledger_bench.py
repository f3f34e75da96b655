"""The ledger benchmark asks a real engine."""

from __future__ import annotations

from pathlib import Path

from benchmarks.ledger import DOMAIN, WITHIN, opened


def test_its_engine_answers_and_charges(tmp_path: Path) -> None:
    column = DOMAIN.names[0]
    with opened(tmp_path / "ledger.sqlite") as bursar:
        answer = bursar.query(f"SELECT {column}, COUNT(*) FROM people GROUP BY {column}", within=WITHIN)
    assert answer.charge > 0
    with opened(tmp_path / "ledger.sqlite") as again:
        assert again.budget().spent > 0
