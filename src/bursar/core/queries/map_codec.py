"""Maps as bytes: how a strategy is stored, once, under its digest; one byte string per map, one map per byte string.

Layout: the length of a JSON header as eight bytes, the header, then every array as little-endian int64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from bursar.arrays import Integers
from bursar.core.extensions.distinct import Distinct
from bursar.core.extensions.per_person import PerPerson
from bursar.core.extensions.predicate import Predicate
from bursar.core.extensions.thresholds import Thresholds
from bursar.core.extensions.transform import Transform
from bursar.core.queries.linear_map import Header, LinearMap
from bursar.core.queries.mask import Mask, Steps
from bursar.core.queries.product import Product, Stack
from bursar.errors import LedgerError, QueryError


def encode(linear_map: LinearMap) -> bytes:
    """The one byte string of a map; equal maps give equal bytes."""
    if isinstance(linear_map, Transform | Predicate | Distinct | PerPerson):
        return _packed(*linear_map.packed())
    arrays: list[Integers] = []
    if isinstance(linear_map, Stack):
        return _packed({"kind": "stack", "products": [shape_of(part, arrays) for part in linear_map.parts]}, arrays)
    kind = "thresholds" if isinstance(linear_map, Thresholds) else "product"
    return _packed({"kind": kind, "products": [shape_of(linear_map, arrays)]}, arrays)


def shape_of(part: LinearMap, arrays: list[Integers]) -> list[Header] | Header:
    """What the header says about a product, or about thresholds; their arrays are put behind those already there."""
    if isinstance(part, Thresholds):
        shape, chosen = part.packed()
        arrays += chosen
        return shape
    if not isinstance(part, Product):
        raise LedgerError(f"a map of kind {type(part).__name__} cannot be stored")
    shapes = []
    for mask in part.masks:
        steps = mask.steps
        arrays += [steps.starts, steps.at, steps.jump]
        lengths = [len(steps.starts), len(steps.at)]
        shapes.append({"attrs": mask.attrs, "sizes": mask.sizes, "lengths": lengths})
    return shapes


def _packed(header: Header, arrays: list[Integers]) -> bytes:
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    body = b"".join(np.ascontiguousarray(a, "<i8").tobytes() for a in arrays)
    return len(text).to_bytes(8, "little") + text + body


def decode(data: bytes) -> LinearMap:
    """The map that `encode` was given; bytes that are not one raise LedgerError."""
    try:
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        numbers = np.frombuffer(data, "<i8", offset=8 + length).astype(np.int64)
        linear_map = READERS.get(header["kind"], products_of)(header, numbers)
        canonical = encode(linear_map) == data
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, QueryError) as fault:
        raise LedgerError("a stored strategy cannot be read") from fault
    if not canonical:
        raise LedgerError("a stored strategy cannot be read")
    return linear_map


SHORT = 2**12
"""Bytes of steps that are kept when they were read: the strategies of a log are made of the same few over and over."""


@lru_cache(maxsize=2**12)
def _steps(size: int, pointers: int, body: bytes) -> Steps:
    numbers = np.frombuffer(body, np.int64)
    return Steps(size, *np.split(numbers, [pointers, (len(numbers) + pointers) // 2]))


def products_of(header: Header, numbers: Integers) -> LinearMap:
    products: list[Product | Thresholds] = []
    used = 0
    for shapes in header["products"]:
        if isinstance(shapes, dict):
            used += shapes["chosen"] or 0
            products.append(Thresholds.unpacked(shapes, numbers[:used]))
            continue
        masks = []
        for shape in shapes:
            pointers, jumps = shape["lengths"]
            body = numbers[used : used + pointers + 2 * jumps].tobytes()
            used += pointers + 2 * jumps
            sizes, read = tuple(shape["sizes"]), _steps if len(body) <= SHORT else _steps.__wrapped__
            masks.append(Mask(tuple(shape["attrs"]), sizes, read(math.prod(sizes), pointers, body)))
        products.append(Product(tuple(masks)))
    return Stack(tuple(products)) if header["kind"] == "stack" else products[0]


READERS: dict[str, Callable[[Header, Integers], LinearMap]] = {
    "transform": Transform.unpacked,
    "predicate": Predicate.unpacked,
    "distinct": Distinct.unpacked,
    "per-person": PerPerson.unpacked,
}
"""What reads the bytes of maps that are no products: a closed list."""
