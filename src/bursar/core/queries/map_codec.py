"""Maps as bytes: how a strategy is stored, once, under its digest; one byte string per map, one map per byte string.

Layout: the length of a JSON header as eight bytes, the header, then every array as little-endian int64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bursar.arrays import Integers
from bursar.core.extensions.predicate import Predicate, Quorum, Within
from bursar.core.extensions.thresholds import Thresholds
from bursar.core.extensions.transform import Transform
from bursar.core.queries.linear_map import LinearMap
from bursar.core.queries.mask import Mask, Steps
from bursar.core.queries.product import Product, Stack
from bursar.errors import LedgerError, QueryError

TRANSFORM = ("column", "size", "first", "start", "period", "shift", "max_rows")


def encode(linear_map: LinearMap) -> bytes:
    """The one byte string of a map; equal maps give equal bytes."""
    if isinstance(linear_map, Transform):
        numbers = {name: getattr(linear_map, name) for name in TRANSFORM}
        header = {"kind": "transform", "cells": len(linear_map.cell_weights), **numbers}
        return _packed(header, [linear_map.row_weights, linear_map.cell_weights])
    if isinstance(linear_map, Predicate):
        facts = {"attrs": linear_map.attrs, "sizes": linear_map.sizes, "condition": _written(linear_map.condition)}
        return _packed({"kind": "predicate", **facts}, [])
    arrays: list[Integers] = []
    if isinstance(linear_map, Stack):
        return _packed({"kind": "stack", "products": [_shape(part, arrays) for part in linear_map.parts]}, arrays)
    kind = "thresholds" if isinstance(linear_map, Thresholds) else "product"
    return _packed({"kind": kind, "products": [_shape(linear_map, arrays)]}, arrays)


def _shape(part: LinearMap, arrays: list[Integers]) -> list[dict[str, Any]] | dict[str, Any]:
    """What the header says about a product, or about thresholds; their arrays are put behind those already there."""
    if isinstance(part, Thresholds):
        arrays += [] if part.chosen is None else [part.chosen]
        chosen = None if part.chosen is None else len(part.chosen)
        return {"attrs": part.attrs, "sizes": part.sizes, "least": part.least, "chosen": chosen}
    if not isinstance(part, Product):
        raise LedgerError(f"a map of kind {type(part).__name__} cannot be stored")
    shapes = []
    for mask in part.masks:
        steps = mask.steps
        arrays += [steps.starts, steps.at, steps.jump]
        lengths = [len(steps.starts), len(steps.at)]
        shapes.append({"attrs": mask.attrs, "sizes": mask.sizes, "lengths": lengths})
    return shapes


def _packed(header: dict[str, Any], arrays: list[Integers]) -> bytes:
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    body = b"".join(np.ascontiguousarray(a, "<i8").tobytes() for a in arrays)
    return len(text).to_bytes(8, "little") + text + body


def decode(data: bytes) -> LinearMap:
    """The map that `encode` was given; bytes that are not one raise LedgerError."""
    try:
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        numbers = np.frombuffer(data, "<i8", offset=8 + length).astype(np.int64)
        found = READERS.get(header["kind"], _products)(header, numbers)
        canonical = encode(found) == data
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, QueryError) as fault:
        raise LedgerError("a stored strategy cannot be read") from fault
    if not canonical:
        raise LedgerError("a stored strategy cannot be read")
    return found


def _products(header: dict[str, Any], numbers: Integers) -> LinearMap:
    products: list[Product | Thresholds] = []
    used = 0
    for shapes in header["products"]:
        if isinstance(shapes, dict):
            length = shapes["chosen"]
            chosen = None if length is None else numbers[used : used + length]
            used += length or 0
            products.append(Thresholds(tuple(shapes["attrs"]), tuple(shapes["sizes"]), shapes["least"], chosen))
            continue
        masks = []
        for shape in shapes:
            pointers, jumps = shape["lengths"]
            starts, at, jump = np.split(numbers[used : used + pointers + 2 * jumps], [pointers, pointers + jumps])
            used += pointers + 2 * jumps
            sizes = tuple(shape["sizes"])
            masks.append(Mask(tuple(shape["attrs"]), sizes, Steps(math.prod(sizes), starts, at, jump)))
        products.append(Product(tuple(masks)))
    return Stack(tuple(products)) if header["kind"] == "stack" else products[0]


def _transform(header: dict[str, Any], numbers: Integers) -> Transform:
    rows, cells = np.split(numbers, [header["period"] - 1])
    if len(cells) != header["cells"]:
        raise ValueError("a transform has another number of cells than it says")
    return Transform(**{name: header[name] for name in TRANSFORM}, row_weights=rows, cell_weights=cells)


def _predicate(header: dict[str, Any], numbers: Integers) -> Predicate:
    return Predicate(tuple(header["attrs"]), tuple(header["sizes"]), _read(header["condition"]))


def _written(part: Within | Quorum) -> list[Any]:
    """A set as its column and ranges, anything else as its number and parts."""
    if isinstance(part, Within):
        return [part.column, part.ranges]
    return [part.least, [_written(each) for each in part.parts]]


def _read(written: list[Any]) -> Within | Quorum:
    what, inner = written
    if isinstance(what, str):
        return Within(what, tuple((low, high) for low, high in inner))
    return Quorum(what, tuple(_read(each) for each in inner))


READERS: dict[str, Callable[[dict[str, Any], Integers], LinearMap]] = {"transform": _transform, "predicate": _predicate}
"""Who reads what is no product and no stack."""
