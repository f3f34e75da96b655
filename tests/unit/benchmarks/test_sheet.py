"""The sheet of benchmark figures."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.analysts import SYSTEMS as ANALYSTS
from benchmarks.boost_run import SETTINGS, systems
from benchmarks.cachedp_run import SYSTEMS as CACHEDP
from benchmarks.rap_grids import SYSTEMS as RAP
from benchmarks.sheet import COLOURS, FEWEST, MOST, looks, places, sheet


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


@pytest.mark.parametrize(
    "names",
    [[name for name in CACHEDP if "-no-" not in name], RAP, ANALYSTS, *(systems(setting) for setting in SETTINGS)],
    ids=["cachedp", "rap", "analysts", *SETTINGS],
)
def test_systems_that_meet_in_a_figure_have_colours_of_their_own(names: list[str]) -> None:
    assert len({COLOURS[name] for name in names}) == len(names)
    assert all(looks(name)["color"] == COLOURS[name] for name in names)
    assert looks("r = 1") == {"linestyle": "-"}


@pytest.mark.parametrize(
    "ends", [(0.001, 5e5), (1.7, 5.3), (0.9, 1.6), (0.98, 1.15), (3e-5, 1.2), (0.05, 0.8), (2e3, 2e11)]
)
def test_a_logarithmic_axis_has_a_few_round_numbers(ends: tuple[float, float]) -> None:
    found = places(*ends)
    assert FEWEST - 1 <= len(found) <= MOST + 1
    assert found == sorted(set(found))
    assert all(ends[0] <= place <= ends[1] and len(f"{place:g}") <= 6 for place in found)


@pytest.mark.heavy
def test_numbers_on_logarithmic_axes_are_plain_and_apart(tmp_path: Path) -> None:
    """Without it, 2 x 10^0 and 3 x 10^0 are written upon each other."""
    with sheet(tmp_path / "a.png", title="Title") as (panel,):
        panel.plot([1, 2, 4, 8], [0.02, 0.05, 0.03, 0.06])
        panel.set(xscale="log", yscale="log")
    panel.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in panel.get_xticklabels(which="both") if label.get_text()]
    assert len(boxes) >= FEWEST - 1
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert "2" in [label.get_text() for label in panel.get_xticklabels()]
