"""Maps as bytes: every map comes back, and nothing else is taken for one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps, decode, encode
from bursar.errors import LedgerError
from harness.maps import Table, check_other_bytes, domain_of, maps, mask_of, tables

DOMAIN = domain_of(a=3, b=2, c=4)
EYE = Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=int)),))
quick = settings(max_examples=60, deadline=None)


@quick
@given(maps(DOMAIN), tables(DOMAIN))
def test_every_map_comes_back(linear_map: LinearMap, table: Table) -> None:
    body = encode(linear_map)
    again = decode(body)
    assert type(again) is type(linear_map)
    assert encode(again) == body
    assert again.digest == linear_map.digest
    assert again.apply(table).tolist() == linear_map.apply(table).tolist()


@pytest.mark.parametrize(
    ("numbers", "digest"),
    [
        ((), "1ac3a0048372a9a75c40d4f45757bcd1"),
        (([[2]],), "192e0713bba61f6314ee63cdc915ba44"),
        (([[2]], [[3], [0]], [[2]]), "9febd18fe72e82f47a6d4fd8cf5bcb23"),
    ],
    ids=["no number", "one number", "several numbers"],
)
def test_what_older_ledgers_hold_keeps_its_bytes(numbers: tuple[list[list[int]], ...], digest: str) -> None:
    """Numbers without columns stand where they stood: what was stored with several of them is read, and is the same."""
    ages = Mask(("age",), (3,), Steps.identity(3))
    found = [Mask((), (), Steps.dense(number)) for number in numbers]
    product = Product((*found[:1], ages, *found[1:]))
    assert product.digest == digest
    again = decode(encode(product))
    assert (again.digest, again.rows) == (digest, product.rows)


@settings(max_examples=150, deadline=None)
@given(maps(DOMAIN), st.data())
def test_any_other_bytes_are_refused_or_are_a_map_of_their_own(linear_map: LinearMap, data: st.DataObject) -> None:
    check_other_bytes(linear_map, data)


@quick
@given(st.binary(max_size=60))
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(LedgerError):
        decode(junk)


def framed(header: object, numbers: list[int] = [], text: bytes | None = None) -> bytes:  # noqa: B006
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode() if text is None else text
    return len(text).to_bytes(8, "little") + text + np.array(numbers, "<i8").tobytes()


def mask(**changes: object) -> dict[str, object]:
    return {"attrs": ["a"], "lengths": [2, 1], "sizes": [3], **changes}


GOOD = framed({"kind": "product", "products": [[mask()]]}, [0, 1, 0, 1])


@pytest.mark.parametrize(
    "body",
    [
        GOOD + bytes(8),  # more numbers than the header speaks of
        GOOD[:-8],
        GOOD[:-1],
        (2**63).to_bytes(8, "little") + GOOD[8:],
        framed({"kind": "other", "products": [[mask()]]}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask()]] * 2}, [0, 1, 0, 1] * 2),
        framed({"kind": "product", "products": []}),
        framed({"kind": "product", "products": [[mask()]], "more": 1}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask(attrs="a")]]}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask(attrs=[7])]]}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask(sizes=[3.0])]]}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask(sizes=[-3])]]}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask(sizes=[3, 1])]]}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask(lengths=[2, -1])]]}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask(lengths=[1, 1])]]}, [0, 1, 0, 1]),
        framed({"kind": "product", "products": [[mask(), mask()]]}, [0, 1, 0, 1] * 2),
        framed({"kind": "product", "products": [[mask()]]}, [0, 1, 5, 1]),
        framed({"kind": "product", "products": [[mask()]]}, [0, 1, 0, 0]),
        framed({"kind": "product", "products": [[mask(lengths=[2, 2])]]}, [0, 2, 1, 0, 1, 1]),
        framed(None, text=b"[" * 100_000),
        framed(None, text=b'{"kind": "product", "products": [[]]}'),  # spaces: not the one byte string
        framed([]),
        framed(None),
    ],
)
def test_bytes_that_no_map_has_are_refused(body: bytes) -> None:
    assert isinstance(decode(GOOD), Product)
    with pytest.raises(LedgerError, match="cannot be read"):
        decode(body)


def test_rows_that_jump_alike_over_other_columns_come_back_as_they_were() -> None:
    """What was read before is taken again for the same rows over as many cells, and for no others."""
    for size in (5, 9, 5):
        linear_map = Product((Mask(("age",), (size,), Steps.ranges([1], [3], size)),))
        known = decode(encode(linear_map))
        assert known.digest == linear_map.digest
        assert [len(vector) for norm in known.norms(1) for vector in norm.vectors] == [size]
    again = decode(encode(linear_map))
    assert isinstance(known, Product)
    assert isinstance(again, Product)
    assert known.masks[0].steps is again.masks[0].steps


def test_long_rows_are_not_kept() -> None:
    linear_map = Product((Mask(("age",), (1000,), Steps.identity(1000)),))
    known, again = decode(encode(linear_map)), decode(encode(linear_map))
    assert isinstance(known, Product)
    assert isinstance(again, Product)
    assert known.masks[0].steps is not again.masks[0].steps


def test_unknown_kinds_cannot_be_stored() -> None:
    class Foreign:
        pass

    with pytest.raises(LedgerError, match="Foreign"):
        encode(Foreign())
    with pytest.raises(LedgerError, match="Foreign"):
        encode(Stack((EYE, Foreign())))
