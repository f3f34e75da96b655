"""A copy of a profile goes its own way: what is tried on it leaves no trace on the original."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import AddRemove, Footprint, Profile, ReplaceOne
from bursar.core.queries import Norm
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=4, x=3000)


def footprint(name: str, matrix: object, units: int) -> Footprint:
    return Footprint(norm=Norm((mask_of(DOMAIN, (name,), matrix),), 1), units=units, version=1)


SMALL = footprint("a", np.eye(4, dtype=int), 5)
LARGE = footprint("x", [[1] * 10 + [0] * 2990], 3)


@pytest.mark.parametrize(
    "profile", [AddRemove(DOMAIN), ReplaceOne(DOMAIN, AddRemove(DOMAIN))], ids=lambda p: type(p).__name__
)
@pytest.mark.parametrize("more", [SMALL, LARGE], ids=["few cells", "many cells"])
def test_a_copy_goes_its_own_way(profile: Profile, more: Footprint) -> None:
    original = profile.copy()
    original.add([SMALL])
    before = original.spent()
    copy = original.copy()
    assert copy.spent() == before
    copy.add([more])
    assert copy.spent() == original.spent([more]) > before
    assert original.spent() == before
    original.add([more, more])
    assert copy.spent() < original.spent()
    assert profile.spent() == 0
