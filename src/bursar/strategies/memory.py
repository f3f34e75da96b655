"""Dense strategies in whole numbers, remembered by a hash of the Gram matrix they were made for."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from bursar.errors import QueryError
from bursar.strategies.integers import spans, to_integers
from bursar.strategies.measure import Reals, pure_error, rms_error, svd_bound
from bursar.strategies.optimal import optimum
from bursar.strategies.p_identity import for_laplace

KEPT = 64
"""Most strategies that are remembered."""

MOST_BYTES = 256 * 2**20
"""Most memory that they may take up together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Remembered:
    """Whole-number rows over merged cells, and the error that no strategy of sensitivity one is below."""

    rows: NDArray[np.int64]
    bits: int  # of the grid they were rounded to; 0 for a strategy of whole numbers
    loss: float  # relative growth of the error by rounding
    bound: float


class Memory:
    """The strategies used last, by key; safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Remembered] = OrderedDict()
        self._lock = Lock()

    def recall(self, key: str, make: Callable[[], Remembered]) -> Remembered:
        """What was made under this key, or what `make` makes now."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > KEPT or (len(self._kept) > 1 and self._bytes() > MOST_BYTES):
                self._kept.popitem(last=False)
        return made

    def _bytes(self) -> int:
        return sum(made.rows.nbytes for made in self._kept.values())


MEMORY = Memory()


def integer_optimum(V: Reals, *, gap: float, bits: int | None = None, loss: float = 1e-4) -> Remembered:
    """The optimum for Gaussian noise, with its certified bound; on a grid of at most 2^bits where `bits` is given."""

    def make() -> Remembered:
        found = optimum(V, gap=gap)
        return _rounded(found.strategy, V, 2, bits, loss, found.bound)

    return MEMORY.recall(_key(V, 2, gap, bits, loss), make)


def integer_laplace(V: Reals, *, gap: float, bits: int | None = None, loss: float = 1e-4) -> Remembered:
    """The best strategy known for Laplace noise; the bound is that for Gaussian noise, which holds a fortiori.

    An L1 norm is at least the L2 norm, so the error at L1 sensitivity one is at least that at L2 sensitivity one.
    """
    key = _key(V, 1, gap, bits, loss)
    return MEMORY.recall(key, lambda: _rounded(for_laplace(V), V, 1, bits, loss, svd_bound(V)))


def _rounded(strategy: Reals, V: Reals, power: int, bits: int | None, loss: float, bound: float) -> Remembered:
    whole = to_integers(strategy, V, power=power, loss=loss)
    if bits is None or whole.bits <= bits:
        return Remembered(rows=whole.rows, bits=whole.bits, loss=whole.loss, bound=bound)
    rows = np.rint(whole.rows * 2.0 ** (bits - whole.bits)).astype(np.int64)
    rows = rows[rows.any(axis=1)]
    error = rms_error if power == 2 else pure_error
    lost = error(V, rows) / error(V, whole.rows) * (1 + whole.loss) - 1
    if not (np.isfinite(lost) and spans(rows, V)):
        raise QueryError("this workload looks at too many columns together to find a strategy in whole numbers")
    return Remembered(rows=rows, bits=bits, loss=float(lost), bound=bound)


def _key(V: Reals, *settings: object) -> str:
    hashed = hashlib.blake2b(repr((V.shape, settings)).encode(), digest_size=16)
    hashed.update(np.ascontiguousarray(V).tobytes())
    return hashed.hexdigest()
