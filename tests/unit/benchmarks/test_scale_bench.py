"""The arithmetic of docs/deploy.md is what a real engine and ledger take."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.scale import measured


@pytest.mark.heavy
def test_formulas_and_measurements_agree(tmp_path: Path) -> None:
    figures = measured(tmp_path, 1_000, 40, None)
    ratios = [row["ratio"] for row in figures.values() if "ratio" in row]
    assert len(ratios) == 3
    assert all(0.6 < ratio < 1.7 for ratio in ratios), figures
    assert figures["records"]["measured"] == 43
