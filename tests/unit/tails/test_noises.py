"""Noises that are counted are the noises that were listed."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Noise, NoiseKind
from bursar.tails import Noises
from bursar.tails.characteristic import Sums

noise = st.builds(Noise, kind=st.sampled_from(NoiseKind), scale=st.sampled_from((0.25, 2.0, 9.0)))
quick = settings(max_examples=60, deadline=None)


@quick
@given(st.lists(noise, max_size=12), st.data())
def test_a_sequence_like_the_list(listed: list[Noise], data: st.DataObject) -> None:
    found = Noises.of(listed)
    assert list(found) == listed
    assert [found[place] for place in range(-len(listed), len(listed))] == listed + listed
    assert list(found[1:-1]) == listed[1:-1]
    assert len(found.kinds.noises) == len(set(listed))
    assert Noises.of(found) is found
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(listed), max_size=len(listed))), np.bool_)
    assert list(found.take(keep)) == [one for one, kept in zip(listed, keep, strict=True) if kept]


@quick
@given(st.lists(noise, max_size=12))
def test_numbers_are_those_of_each_row(listed: list[Noise]) -> None:
    found = Noises.of(listed)
    assert found.scales.tolist() == [one.scale for one in listed]
    assert found.variances.tolist() == [one.variance() for one in listed]
    assert found.laplace.tolist() == [one.kind is NoiseKind.LAPLACE for one in listed]


@quick
@given(st.lists(noise, min_size=1, max_size=12), noise, st.integers(0, 3), st.data())
def test_what_is_added_and_changed(listed: list[Noise], other: Noise, rows: int, data: st.DataObject) -> None:
    found = Noises.of(listed)
    longer = found.plus([(other, rows), (listed[0], 1), (other, 1)])
    assert list(longer) == [*listed, *[other] * rows, listed[0], other]
    assert longer.scales.tolist() == [one.scale for one in longer]
    assert longer.variances.tolist() == [one.variance() for one in longer]
    assert longer.laplace.tolist() == [one.kind is NoiseKind.LAPLACE for one in longer]
    places = data.draw(st.lists(st.integers(0, len(listed) - 1), unique=True))
    changed = [other if place in places else one for place, one in enumerate(listed)]
    assert list(found.changed(np.array(places, np.int64), other)) == changed
    assert list(found) == listed


def test_counted_draws_are_draws_written_out() -> None:
    three = [Noise(kind=NoiseKind.LAPLACE, scale=3.0), Noise(kind=NoiseKind.GAUSSIAN, scale=0.5)]
    weights, counts, s = np.array([[1.0, -2.0]]), np.array([3.0, 2.0]), np.array([0.1])
    counted = Sums.of(weights, three, counts)
    written = Sums.of(np.repeat(weights, [3, 2], axis=1), [three[0]] * 3 + [three[1]] * 2)
    assert counted.terms() == written.terms() == 5
    assert np.allclose(counted.log_mgf(s), written.log_mgf(s))
    assert not np.allclose(counted.log_mgf(s), Sums.of(weights, three).log_mgf(s))
