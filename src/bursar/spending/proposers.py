"""Which way of answering each purchase was, read off its records: the log keeps what was bought, not who offered it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bursar.domain import Domain
from bursar.inference.views import products_of
from bursar.kernel.accounting import Failed, Measured, Mode, Opened, Refined, Selected
from bursar.kernel.ledger import Record
from bursar.proposers.direct import parts_of
from bursar.proposers.tree import all_nodes
from bursar.queries import LinearMap, Product
from bursar.spending.purchases import Purchase

MOST_ROWS = 2048
"""Questions and purchases of more rows are not compared row by row."""

ALL_ROWS = Product(())
"""The number of rows, which a histogram is told before it learns anything."""

FOR_EVERYONE = "for everyone"
"""What was bought for no question: seeds, and data that are given out."""


def proposers_of(
    purchases: Sequence[Purchase], records: Iterable[Record], *, domain: Domain, mode: Mode
) -> dict[int, str]:
    """The name of the proposer by the position of each record that was paid for; names are those of EXPLAIN.

    Edge cases: where two proposers buy the same rows for a question, the simpler one is named.
    """
    failed = [(r.position, r.analyst, r.purpose) for r in records if isinstance(r.event, Failed)]
    found: dict[int, str] = {}
    before = 0
    for purchase in purchases:
        first, last = purchase.records[0].position, purchase.records[-1].position
        own = {(who, why) for position, who, why in failed if before < position <= last}
        tested = (purchase.analyst, purchase.purpose) in own
        found |= dict.fromkeys(range(first, last + 1), _proposer(purchase, domain, mode, tested=tested))
        before = last
    return found


def _proposer(purchase: Purchase, domain: Domain, mode: Mode, *, tested: bool) -> str:
    events = [record.event for record in purchase.records]
    if purchase.request is None or any(isinstance(event, Selected) for event in events):
        return FOR_EVERYONE
    if tested or any(isinstance(event, Opened) for event in events):
        return "pmw" if domain.partition is None else "pmw-windows"
    wanted = purchase.request.workload.map
    refined = [event for event in events if isinstance(event, Refined)]
    measured = [event.strategy for event in events if isinstance(event, Measured)]
    own, digests = {part.digest for part in parts_of(wanted)}, {strategy.digest for strategy in measured}
    if not refined and digests <= own:
        return "direct" if digests == own else "one-by-one"
    if not refined and digests == {*own, ALL_ROWS.digest}:
        return "pmw" if domain.partition is None else "pmw-windows"
    if domain.partition is not None:
        return "partitions"
    if any(_answers_all(strategy, domain, mode) for strategy in measured):
        return "invest"
    bought = [*measured, *(event.strategy for event in refined)]
    if refined and _rows(bought) <= _rows([wanted]):
        return "refine"
    by_row = mode is not Mode.PURE and all(strategy.rows == 1 for strategy in measured)
    if refined or (all(map(all_nodes, measured)) and not by_row):
        return "tree"
    return "incremental" if by_row else "strategy"


def _answers_all(strategy: LinearMap, domain: Domain, mode: Mode) -> bool:
    """Whether it is the strategy for all questions about its columns."""
    from bursar.strategy.universal import universal  # linear algebra takes a while to load

    made = universal(domain, domain.ordered(strategy.attrs), mode)
    return made is not None and made.product.digest == strategy.digest


def _rows(strategies: Iterable[LinearMap]) -> set[str]:
    """The rows of products, each by itself."""
    parts = [part for strategy in strategies for part in products_of(strategy)]
    if sum(part.rows for part in parts) > MOST_ROWS:
        return set()
    return {part.row(row).digest for part in parts for row in range(part.rows)}
