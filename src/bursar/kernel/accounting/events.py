"""Events: what happened, without what it cost. Accountants price them; an event they do not know is refused."""

from __future__ import annotations

from dataclasses import dataclass

from bursar.kernel.accounting.noise import Noise
from bursar.queries import LinearMap


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """All rows of a strategy were answered on one version of the data, each with independent noise of one law."""

    strategy: LinearMap
    noise: Noise
    version: int


@dataclass(frozen=True, kw_only=True)
class Versioned:
    """The data owner declared a version of the data.

    `same_rows` says that rows were only added since the version before: no row changed its cell or went away,
    so the losses of both versions fall on the same people and count once.
    """

    version: int
    same_rows: bool = False


Event = Measured | Versioned
