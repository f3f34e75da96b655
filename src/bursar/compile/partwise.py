"""Maps that one question needs and that are measured one by one: counts that tie many columns together, and others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.arrays import Integers
from bursar.core.queries import Counts, LinearMap, Norm, Predicate, Product, Stack
from bursar.errors import QueryError

MOST_GROUPS = 64
"""Most counts of one question that tie too many columns together for a mask: groups times counts.

Each is counted by the source, and committed, by itself.
"""


@dataclass(frozen=True, eq=False)
class PartwiseMap:
    """The rows of all parts in order. No verb takes it: what is measured are its parts.

    Where `times` are given, the rows are multiples of those of the parts. A part is measured as it is even so, with so
    many times less noise, and the norms are those of the parts.

    Guarantees: no accountant has a price for it, so that the kernel refuses it as a whole.
    """

    parts: tuple[LinearMap, ...]
    times: tuple[int, ...] = ()  # one per part; () where all are 1

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.attrs))

    @property
    def measured(self) -> list[tuple[LinearMap, int]]:
        """Each part, and what its rows are taken times."""
        return list(zip(self.parts, self.times or (1,) * len(self.parts), strict=True))

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @cached_property
    def digest(self) -> str:
        known = f"apart {self.times} " + " ".join(part.digest for part in self.parts)
        return hashlib.blake2b(known.encode(), digest_size=16).hexdigest()

    def apply(self, counts: Counts) -> Integers:
        return np.concatenate([times * part.apply(counts) for part, times in self.measured])

    def norms(self, power: int) -> tuple[Norm, ...]:
        return tuple(norm for part in self.parts for norm in part.norms(power))

    def largest(self) -> int:
        return max(times * part.largest() for part, times in self.measured)

    def take(self, rows: Sequence[int]) -> LinearMap:
        ends = np.cumsum([part.rows for part in self.parts])
        picked: list[tuple[LinearMap, int]] = []
        for row in rows:
            place = min(int(np.searchsorted(ends, row, side="right")), len(self.parts) - 1)
            part, times = self.measured[place]
            picked.append((part.take([row - int(ends[place]) + part.rows]), times))
        if len(picked) == 1 and picked[0][1] == 1:
            return picked[0][0]
        return PartwiseMap(tuple(part for part, _ in picked), tuple(times for _, times in picked) if self.times else ())


def pieces_of(asked: LinearMap) -> tuple[LinearMap, ...]:
    """The products, predicates and others that a map is made of, in the order of its rows."""
    if isinstance(asked, PartwiseMap):
        return tuple(piece for part in asked.parts for piece in pieces_of(part))
    return asked.parts if isinstance(asked, Stack) else (asked,)


def put_together(pieces: Iterable[LinearMap]) -> LinearMap:
    """Pieces as one map, each once: products as a stack, in front, and what is measured by itself behind it.

    Edge cases: refused where more than MOST_GROUPS pieces are counted one by one.
    """
    every = {piece.digest: piece for piece in pieces}
    stacked = Stack(tuple(piece for piece in every.values() if isinstance(piece, Product)))
    alone = tuple(piece for piece in every.values() if not isinstance(piece, Product))
    if len(alone) > MOST_GROUPS:
        raise too_many_tied(alone[0].attrs, -1)
    if not alone:
        return stacked
    parts = (stacked, *alone) if stacked.parts else alone
    return parts[0] if len(parts) == 1 else PartwiseMap(parts)


def too_many_tied(attrs: Iterable[str], position: int) -> QueryError:
    """Edge cases: where groups are asked for, each is such a count."""
    return QueryError(
        f"counts that tie {' and '.join(attrs)} together are counted one by one, and this asks for more than "
        f"{MOST_GROUPS} of them: groups times counts",
        position=position,
    )


def check_batch(asked: LinearMap) -> None:
    """Refuse among questions that are one purchase, as those of a seed are, what has to be bought by itself."""
    if isinstance(asked, PartwiseMap | Predicate):
        tied = " and ".join(asked.attrs)
        raise QueryError(f"a count that ties {tied} together is asked by itself, not in a batch")
