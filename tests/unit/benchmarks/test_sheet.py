"""The sheet of benchmark figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.sheet import sheet


@pytest.mark.heavy
def test_legends_stand_beside_the_panels_and_are_not_repeated(tmp_path: Path) -> None:
    with sheet(tmp_path / "a.png", title="Title", columns=3) as axes:
        for panel, name in zip(axes, ("same", "same", "other"), strict=True):
            panel.plot([1, 2], [1, 2], label=name)
        figure = axes[0].figure
    assert figure.get_suptitle() == "Title"
    assert [panel.get_legend() is not None for panel in axes] == [False, True, True]
    for panel in axes[1:]:
        assert panel.get_legend().get_window_extent().x0 >= panel.get_window_extent().x1
    assert (tmp_path / "a.png").stat().st_size > 0
