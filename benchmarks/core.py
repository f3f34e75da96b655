"""How fast questions are, and that they stay fast as the log grows: `python -m benchmarks.core [--quick]`.

100 pairs of 15 ten-valued columns have been measured before, with 1,000 or with 100,000 rows in the log altogether.
Then fresh, repeated and EXPLAIN questions on these pairs are timed through the memory ledger, so SQL, planning and the
kernel count and the disk does not; the first fresh question also opens the data, so the median of them says more than
how many there are in a second. The figure to watch is `growth`: the time per question with the long log over the
time with the short one. Of each pair of columns the long log tells all 100 cells apart, of 1,000 rows; the short one
tells 20 apart, of 10 rows: a question is the same text, and there is more that could answer it. `elsewhere` is the long
log with all that the short one does not have about five other pairs, so that both know the same about what is asked:
`growth elsewhere` is due to the length alone. `cold` is CPU in a new process: `cold_s` of a free `bursar query`,
`open_s` of opening a log of 10,000 records, `cold_long_s` of the query there. Without --quick, `core_growth.py` adds
how time grows with the log, with groups, columns, questions of a batch and partitions, as ratios to the smallest.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.core_growth import cold_figures, everything
from benchmarks.harness import Figures, options, peak_mb, per_second, report
from bursar.config import Config
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Unit
from bursar.core.ledger import Purpose, Transaction
from bursar.core.queries import Mask, Product, Steps
from bursar.core.source.duckdb import DuckDBSource
from bursar.session import Bursar
from bursar.testing import stage

COLUMNS = [f"c{i:02}" for i in range(15)]
ALL_PAIRS = list(itertools.combinations(COLUMNS, 2))
PAIRS, OTHER_PAIRS = ALL_PAIRS[:100], ALL_PAIRS[100:]
SHORT, LONG = 1_000, 100_000
COARSE = Noise(kind=NoiseKind.LAPLACE, scale=2.0**20)


def engine(people: int, seed: int) -> Bursar:
    import duckdb

    columns = ", ".join(f"(hash(i, {seed}, {n}) % 10)::INT AS {name}" for n, name in enumerate(COLUMNS))
    frame = duckdb.sql(f"SELECT {columns} FROM range({people}) t(i)").df()
    domain = Domain(tuple(IntegerRange(name=name, lower=0, upper=9, null=0) for name in COLUMNS))
    config = Config(
        path=Path("core.toml"),
        dataset="core",
        location=Path("core"),
        table="people",
        domain=domain,
        unit=Unit(),
        budget=Budget.of(epsilon=1000.0),
        max_rows=10 * people,
    )

    def open_source(key: bytes) -> DuckDBSource:
        return DuckDBSource(frame, domain, Unit(), key=key, max_rows=config.max_rows)

    return stage(config, open_source)


def fill(db: Bursar, rows: int, pairs: Sequence[tuple[str, str]] = PAIRS) -> None:
    """Put rows into the log as if they had been bought: full histograms of pairs, or of single columns."""
    each = rows // len(pairs)

    def work(transaction: Transaction) -> None:
        for a, b in pairs:
            mask_a, mask_b = (Mask((name,), (10,), Steps.identity(10)) for name in (a, b))
            one = Mask((b,), (10,), Steps.ranges([0], [5], 10))
            strategy = Product((mask_a, mask_b if each >= 100 else one))
            for _ in range(each // strategy.rows):
                event = Measured(strategy=strategy, noise=COARSE, version=1)
                values = np.zeros(strategy.rows, np.int64)
                transaction.append(analyst="past", purpose=Purpose("fill", "test"), event=event, values=values)

    db.ledger.commit(work)


def question(i: int) -> str:
    a, b = PAIRS[i % len(PAIRS)]
    low, high = sorted((i // 100 % 10, i // 1000 % 10))
    return f"SELECT {a}, COUNT(*) FROM people WHERE {b} BETWEEN {low} AND {high} GROUP BY {a}"


def with_log_of(rows: int, *, elsewhere: int = 0, people: int, fresh: int, free: int, seed: int) -> dict[str, float]:
    """Questions per second with so many rows in the log about what is asked, and so many about other columns."""
    db = engine(people, seed)
    fill(db, rows)
    if elsewhere:
        fill(db, elsewhere, OTHER_PAIRS)
    asked = [question(17 * i) for i in range(fresh)]
    for text in asked:
        db.explain(text, within=900)  # reads the log and warms every pair: that is opening, not asking
    rows_before = float(sum(len(record.values) for record in db.ledger.records()))
    seconds = [1 / per_second(lambda i: db.query(asked[i], within=60), [i]) for i in range(fresh)]
    return {
        "rows": rows_before,
        "fresh_per_s": fresh / sum(seconds),
        "fresh_p50_ms": 1000 * statistics.median(seconds),
        "repeated_per_s": per_second(lambda i: db.query(asked[i % fresh], within=60), range(free)),
        "explain_per_s": per_second(lambda i: db.explain(asked[i % fresh], within=30), range(fresh)),
        "peak_mb": peak_mb(),
    }


def main() -> None:
    args = options(__doc__ or "")
    people, fresh, free = (100_000, 60, 200) if args.quick else (1_000_000, 300, 1000)
    figures: Figures = {}
    logs = {f"{SHORT} rows": (SHORT, 0), f"{LONG} rows": (LONG, 0), f"{LONG} rows elsewhere": (SHORT, LONG - SHORT)}
    for name, (rows, elsewhere) in logs.items():
        figures[name] = with_log_of(
            rows, elsewhere=elsewhere, people=people, fresh=fresh, free=free, seed=args.seeds[0]
        )
    short, long, beside = figures.values()
    kinds = ("fresh_per_s", "repeated_per_s", "explain_per_s")
    figures["growth"] = {kind: short[kind] / long[kind] for kind in kinds}
    figures["growth elsewhere"] = {kind: short[kind] / beside[kind] for kind in kinds}
    figures["cold"] = cold_figures()
    if not args.quick:
        figures |= everything()
    report("core", args, figures)


if __name__ == "__main__":
    main()
