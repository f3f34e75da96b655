"""Looking for texts of an open column: which noise and threshold a price buys, and how rare a text it finds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from bursar.compile.open_columns import Rarity
from bursar.core.accounting import Found, Mode, Noise, NoiseKind, from_units
from bursar.core.accounts import FREE, Charge
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.discovery import FINDER
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose
from bursar.core.noise.law import DELTA_BITS
from bursar.core.queries import Predicate
from bursar.errors import ConfigError, QueryError, Unsupported

PROPOSER = "discovery"
"""What the log says that a search came from, whoever asked for it."""

WEIGHT = 2**10
"""What a person weighs: so large that rounding down what each of several texts gets loses next to nothing."""

SHARE_OF_LEFT = 0.5
"""The part of what is left of `delta_keys` that one discovery takes: as much is left for all later ones together."""

SHARE_OF_BUDGET = 0.02
"""The part of the whole budget that a search spends for which no price was named."""


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """A search for texts of a column: what it costs, whom it finds, and after `run` the texts."""

    column: str
    where: str | None  # among which rows, as in a question; None for all
    rho: float
    delta: float
    even: int  # people who have no other text without a cell: found every other time
    likely: int  # the same: found 19 times of 20
    run: Callable[[], Discovery]
    texts: tuple[str, ...] | None = None  # None where nothing was looked for yet
    charge: Charge = FREE  # what was charged for it

    @property
    def cost(self) -> str:
        """What it costs, in both accounts."""
        return f"rho {self.rho:.6g}, and a chance of {self.delta:.3g} that a text is found which one person alone has"

    @property
    def rarity(self) -> str:
        """How rare the texts are that it finds."""
        return (
            f"a text that {self.even:,} people have is found every other time, one that {self.likely:,} have 19 times "
            "of 20"
        )

    @property
    def offer(self) -> str:
        """What is said where it could go before a question and does not."""
        return (
            f"WITH DISCOVERY, or DISCOVERY behind the accuracy, looks for texts of {self.column} first, for "
            f"{self.cost}: {self.rarity}"
        )

    @property
    def ahead(self) -> str:
        """What EXPLAIN says of a search that goes before a question."""
        return f"texts of {self.column} are looked for first, for {self.cost}; {self.rarity}"

    @property
    def done(self) -> str:
        """What an answer says of a search that went before it."""
        outcome = "none was found" if not self.texts else f"{len(self.texts)} more are told apart"
        told = f"texts of {self.column} were looked for first, for {self.cost}, which is part of what was charged"
        return f"{told}: {outcome}"

    def __str__(self) -> str:
        rare = f"{self.rarity}; people who have several such texts count less for each"
        if self.texts is None:
            among = "" if self.where is None else f" among rows where {self.where}"
            return f"looking for texts of {self.column}{among} costs {self.cost}\n{rare}"
        texts = "\n".join(self.texts) if self.texts else "no text was found"
        number = f"{len(self.texts)} text" + ("s" if len(self.texts) != 1 else "")
        told = f"{number} of {self.column} more can be told apart from now on; rarer ones are in other"
        return f"{texts}\n\n{told}\ncost   {self.cost}\n{rare}"


def plan(
    kernel: Kernel,
    unit: Unit,
    column: str,
    *,
    spend: float | None = None,
    delta: float | None = None,
    where: str | None = None,
    scope: Predicate | None = None,
    searches: int = 1,
    analyst: str = FINDER,
) -> Discovery:
    """The search that costs this rho and delta, with the lowest threshold that it allows.

    `scope` is what the condition `where` says: only rows for which it holds count. Without `spend` it takes a fixed
    part of the budget, without `delta` half of what is left, divided by the number of `searches` that are planned at
    once. `analyst` is who asked for it; what is found is for everybody.
    """
    if kernel.budget.mode is Mode.PURE:
        raise Unsupported(
            "a budget of epsilon alone rules out that a text is found which one person alone has: none is looked for\n"
            "try: name texts that are public, in WHERE or with bursar keys"
        )
    if kernel.shares():
        raise Unsupported(
            "where the budget is divided into shares no texts are looked for: what one analyst had found would change "
            "what the others are told about other\ntry: name texts, in WHERE or with bursar keys"
        )
    if kernel.domain.partition is not None:
        raise Unsupported("texts are looked for in data without partitions\ntry: name texts, in WHERE")
    if column not in kernel.known_keys():
        raise QueryError(f"{column} is no open column")
    left = max(kernel.budget.key_units - kernel.delta_spent(), 0)
    if not kernel.budget.delta_keys:
        raise ConfigError(
            "the budget keeps no delta_keys, so texts cannot be looked for; they can be named: bursar keys"
        )
    spend = usual(kernel) if spend is None else spend
    units = math.floor(left * SHARE_OF_LEFT / searches) if delta is None else math.floor(math.ldexp(delta, DELTA_BITS))
    if not (math.isfinite(spend) and spend > 0 and units > 0):
        raise QueryError("what is spent on looking for texts, in rho and in delta, lies above 0")
    # rho is weight^2 / (2 scale^2), twice that where somebody is replaced; a little more noise, so that it is no more.
    twice = 2 if unit.neighbours is Neighbours.REPLACE_ONE else 1
    scale = WEIGHT * math.sqrt(twice / (2 * spend)) * (1 + 1e-12)
    event = Found(
        column=column,
        most=unit.max_contributions,
        weight=WEIGHT,
        noise=Noise(kind=NoiseKind.GAUSSIAN, scale=scale),
        threshold=WEIGHT + 1,
        version=kernel.version(),
        scope=scope,
    )
    event = replace(event, threshold=_lowest(event, units))
    price, rarity = kernel.price([event]), Rarity.of(event)

    def run() -> Discovery:
        among = "" if where is None else f" where {where}"
        purpose = Purpose(f"looked for texts of {column}{among}", PROPOSER)
        texts, charge = kernel.discover(event, analyst=analyst, purpose=purpose, at_most=price)
        return replace(planned, texts=tuple(texts), rho=from_units(charge.total), charge=charge)

    planned = Discovery(
        column=column,
        where=where,
        rho=from_units(price),
        delta=event.delta / 2**DELTA_BITS,
        even=rarity.even,
        likely=rarity.likely,
        run=run,
    )
    return planned


def usual(kernel: Kernel) -> float:
    """What a search spends for which no price was named, in rho."""
    return SHARE_OF_BUDGET * kernel.budget.amount


def _lowest(event: Found, units: int) -> int:
    """The lowest threshold whose delta is at most `units`; there is one far below the largest possible."""
    low, high = event.weight, 2 * event.weight
    while replace(event, threshold=high).delta > units:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if replace(event, threshold=middle).delta > units else (low, middle)
    return high
