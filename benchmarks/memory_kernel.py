"""A kernel on a new ledger in memory, over a table whose first version is declared: what benchmarks ask."""

from __future__ import annotations

from collections.abc import Callable

from bursar.core.budget import Budget, charter_of
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger
from bursar.core.noise.system import SystemRandomness
from bursar.core.source.source import Source


def memory_kernel(
    *,
    dataset: str,
    domain: Domain,
    unit: Unit,
    budget: Budget,
    max_rows: int,
    open_source: Callable[[bytes], Source],
    sequential: bool,
    axis: PartitionAxis | None = None,
    through: int = -1,
) -> tuple[MemoryLedger, Kernel]:
    """The ledger and the kernel; where there is an axis, partitions are sealed through the given one."""
    randomness = SystemRandomness()
    ledger = MemoryLedger(charter_of(dataset=dataset, domain=domain, unit=unit, budget=budget, max_rows=max_rows))
    declare_version(ledger, open_source, randomness, axis=axis, through=through)
    kernel = Kernel(
        domain=domain,
        unit=unit,
        budget=budget,
        max_rows=max_rows,
        ledger=ledger,
        open_source=open_source,
        randomness=randomness,
        sequential=sequential,
    )
    return ledger, kernel
