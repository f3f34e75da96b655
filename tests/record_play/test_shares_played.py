"""Record-play with shares: accounts look at no data, and neither do the refusals that they cause."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import pytest

from bursar.core.accounts import Account
from bursar.core.kernel import Kernel
from harness.questions import KINDS, scene
from harness.record_play import faults
from harness.stage import Under, play
from harness.steps import Allot, Overtake, Step

FEW, QUICK, MANY = 3, 8, 8
SHARES = tuple(
    tuple((name, Fraction(share, 8)) for name, share in (("ann", ann), ("bob", bob)) if share)
    for ann, bob in ((4, 4), (6, 2), (2, 6), (1, 7), (8, 0), (0, 8))
)

WHAT = ("shares", "asked")


def shared(steps: Sequence[Step], seed: str) -> tuple[Step, ...]:
    """The steps with shares given out before the first and changed now and then, also while a verb runs."""
    rng = Random(seed)
    played: list[Step] = [Allot(rng.choice(SHARES[:4]))]
    for step in steps:
        if rng.random() < 0.25:
            change = Allot(rng.choice(SHARES))
            played.append(Overtake(step=change) if rng.random() < 0.4 else change)
        played.append(step)
    return tuple(played)


def check(kind: str, numbers: range) -> None:
    for number in numbers:
        played = scene(kind, number)
        assert faults(played.pair, shared(played.steps, f"{kind} {number}")) == [], f"{kind} {number}"


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", ["group by", "overtaken", "tested"])
def test_neighbours_look_the_same_under_shares(kind: str) -> None:
    check(kind, range(FEW))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.soak if place % 4 else pytest.mark.heavy)
        for place, kind in enumerate(KINDS)
        if kind != "stored"
    ],
)
def test_more_neighbours_look_the_same_under_shares(kind: str) -> None:
    check(kind, range(QUICK))


@pytest.mark.soak
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "stored"])
def test_many_neighbours_look_the_same_under_shares(kind: str) -> None:
    check(kind, range(QUICK, QUICK + MANY))


@pytest.mark.heavy
def test_the_scenes_are_worth_playing() -> None:
    """Shares are given out, refused and changed; questions are answered, refused by the share, and not admitted."""
    endings: set[str] = set()
    said = ""
    for kind in KINDS:
        for number in range(2):
            played = scene(kind, number)
            run = play(played.pair, played.pair.left, shared(played.steps, f"{kind} {number}"))
            endings |= {f"{seen[0]} {seen[2] if seen[1] == 'refused' else ''}" for seen in run.seen if seen[0] in WHAT}
            said += str([seen for seen in run.seen if "BudgetError" in seen])
    assert endings >= {"shares ", "shares AnalystError", "asked ", "asked BudgetError", "asked AnalystError"}
    assert "of the share of ann" in said


class ShareFromTheData(Kernel):
    """What is left of a share depends on whether somebody is there."""

    def account(self, analyst: str) -> Account:
        found = super().account(analyst)
        crowded = self._data is not None and self._data[2].counts(("sex",)).sum() % 2
        return Account(cap=found.cap - bool(crowded), spent=found.spent)


def test_an_account_that_looked_at_the_data_would_be_found() -> None:
    played = [scene("count", number) for number in range(10)]
    under = Under(kernel=ShareFromTheData)
    assert any(faults(one.pair, shared(one.steps, "twin"), under) for one in played)
