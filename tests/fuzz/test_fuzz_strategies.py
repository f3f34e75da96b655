"""Rows of a ledger with some bytes, or some of what their headers say, changed: read whole, or a LedgerError."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from bursar.core.queries import Product, decode, encode
from bursar.errors import LedgerError
from fuzz import seeds
from fuzz.doors import CODECS, reread

GOOD = {
    **{("strategy", name): encode(strategy) for name, strategy in seeds.STRATEGIES.items()},
    ("record", "measured"): seeds.RECORDS["good"],
    ("record", "versioned"): seeds.RECORDS["good version"],
    ("hold", "two events"): seeds.HOLDS["good"],
    ("claim", "plain"): seeds.CLAIMS["good"],
}
PIECES = [
    b"",
    b"\0",
    b"\xff",
    b"-",
    b"9" * 30,
    b"1e999",
    b"null",
    b"[",
    b"]",
    b"{",
    b'"',
    b",",
    b"\n",
    b"NaN",
    b"\\ud800",
]


@st.composite
def mutated(draw: st.DrawFn, body: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        length = draw(st.sampled_from([0, 1, 1, 2, 8, 40]))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=9), st.just(body[start : start + 24])))
        body = body[:start] + piece + body[start + length :]
    return body


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("kind", "name"), GOOD)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_changed_bytes(kind: str, name: str, data: st.DataObject) -> None:
    event("accepted" if reread(CODECS[kind], data.draw(mutated(GOOD[kind, name]))) else "refused")


plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 12),
        st.sampled_from([2**31, 2**63, 2**64, -(2**63), 10**100, 0.5, 1e300, float("nan"), float("inf")]),
        st.text(max_size=4),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
numbers = st.lists(st.one_of(st.integers(-3, 9), st.sampled_from([2**60, 2**61, -(2**62), -(2**63)])), max_size=12)
columns = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)
sizes = st.lists(st.one_of(st.integers(-1, 6), st.sampled_from([2**20, 2**40, 10**18, 10**100])), max_size=3)


@settings(max_examples=400, deadline=None)
@given(
    attrs=st.one_of(columns, plain),
    sizes=st.one_of(sizes, plain),
    lengths=st.one_of(st.lists(st.integers(-1, 5), min_size=2, max_size=2), plain),
    numbers=numbers,
)
@example(attrs=["a"], sizes=[4], lengths=[2, 1], numbers=[0, 1, 2, 7])
@example(attrs=["a", "b"], sizes=[2, 3], lengths=[3, 2], numbers=[0, 1, 2, 0, 5, 1, -(2**60)])
@example(attrs=["a"], sizes=[4], lengths=[2, 2], numbers=[0, 2, 2, 1, 7, 7])
def test_headers_that_say_anything(attrs: Any, sizes: Any, lengths: Any, numbers: list[int]) -> None:
    """What is accepted fits together: it can be applied to a table of the size that it names."""
    body = seeds.strategy_bytes(lengths, sizes, attrs=attrs, numbers=np.array(numbers, "<i8").tobytes())
    try:
        strategy = decode(body)
    except LedgerError:
        event("refused")
        return
    assert encode(strategy) == body
    assert isinstance(strategy, Product)
    (mask,) = strategy.masks
    event("accepted")
    if mask.steps.size <= 10_000:
        answers = strategy.apply(lambda names: np.ones(mask.sizes, np.int64))
        assert answers.tolist() == [sum(row) for row in mask.steps.at_cells(np.arange(mask.steps.size)).tolist()]
