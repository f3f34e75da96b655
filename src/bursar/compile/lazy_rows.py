"""Lines of an answer that are made when somebody looks at them: millions of numbers, and no object for each."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.domain import Value

Label = tuple[Value, ...]


@dataclass(frozen=True)
class Labels(Sequence[Label]):
    """For each set of columns all joint values, the last column fastest; of several sets, with the columns in front."""

    sets: tuple[tuple[str, ...], ...]
    values: tuple[tuple[str, tuple[Value, ...]], ...]  # for each column its values, in the order of its cells

    @cached_property
    def _of(self) -> dict[str, tuple[Value, ...]]:
        return dict(self.values)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([math.prod(self._sizes(names)) for names in self.sets])

    def _sizes(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(len(self._of[name]) for name in names)

    def __len__(self) -> int:
        return int(self._ends[-1])

    @overload
    def __getitem__(self, line: int) -> Label: ...

    @overload
    def __getitem__(self, line: slice) -> tuple[Label, ...]: ...

    def __getitem__(self, line: int | slice) -> Label | tuple[Label, ...]:
        if isinstance(line, slice):
            return tuple(self[each] for each in range(*line.indices(len(self))))
        number = range(len(self))[line]
        place = int(np.searchsorted(self._ends, number, side="right"))
        names = self.sets[place]
        sizes = self._sizes(names)
        cells = np.unravel_index(number - int(self._ends[place]) + math.prod(sizes), sizes)
        own = tuple(self._of[name][int(cell)] for name, cell in zip(names, cells, strict=True))
        return own if len(self.sets) == 1 else (", ".join(names), *own)

    def __iter__(self) -> Iterator[Label]:
        return (self[line] for line in range(len(self)))

    def facts(self) -> dict[str, Any]:
        """What makes the labels, as plain JSON values but for dates."""
        return {"label_sets": self.sets, "label_values": self.values}


@dataclass(frozen=True, eq=False)
class Numbers(Sequence[tuple[float, ...]]):
    """One tuple of numbers for each line: the rows of an array."""

    array: Reals

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, line: int) -> tuple[float, ...]: ...

    @overload
    def __getitem__(self, line: slice) -> tuple[tuple[float, ...], ...]: ...

    def __getitem__(self, line: int | slice) -> tuple[Any, ...]:
        found = self.array[line].tolist()
        return tuple(found) if isinstance(line, int) else tuple(map(tuple, found))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Reals:
        return np.asarray(self.array, dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbers) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash(self.array.tobytes())

    def facts(self) -> dict[str, Any]:
        """The array as text."""
        text = base64.b64encode(np.ascontiguousarray(self.array, "<f8").tobytes()).decode()
        return {"number_shape": self.array.shape, "numbers": text}


def read(plain: dict[str, Any]) -> Labels | Numbers | None:
    """What `facts` were made from; None for the facts of anything else."""
    if plain.keys() == {"label_sets", "label_values"}:
        values = tuple((name, tuple(own)) for name, own in plain["label_values"])
        return Labels(tuple(map(tuple, plain["label_sets"])), values)
    if plain.keys() == {"number_shape", "numbers"}:
        numbers = np.frombuffer(base64.b64decode(plain["numbers"]), "<f8").astype(np.float64)
        return Numbers(numbers.reshape(plain["number_shape"]))
    return None
