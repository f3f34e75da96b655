"""The array types of the whole tree, each under one name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Singles = NDArray[np.float32]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]
