"""What a person holds: `bursar.open("bursar.toml", analyst="ana")`, and everything that can be asked of it.

```python
db.query("SELECT COUNT(*) FROM people", within=50)
db.thresholds(k=3, r=2, features=["sex", "region", "work", "age"], within=200)  # rows are made when looked at
db.owner.seal()  # the data owner's side
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, overload

from bursar import presets
from bursar.analysts.queue import QueueStatus
from bursar.analysts.shares import EVERYONE, Shares
from bursar.answer import Answer
from bursar.batch import EngineBatch, Progress, silent, without_explain
from bursar.compile.threshold_rows import Features, thresholds, written
from bursar.config import Config, load
from bursar.core.curator import declare_version
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.ledger import Ledger, SqliteLedger
from bursar.core.noise.system import Randomness, SystemRandomness
from bursar.core.source.duckdb import DuckDBSource
from bursar.core.source.source import Source
from bursar.curate.ingest import create_table
from bursar.engine import Engine
from bursar.errors import AnalystError, BursarError, LedgerError, QueryError
from bursar.owner import Owner
from bursar.pace import paced
from bursar.planner.batch import Batch
from bursar.planner.choose import Preset
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted
from bursar.report.spending import Spending, spending_of
from bursar.report.status import OWNER, BudgetStatus, LogLine, TableFacts, budget_of, log_of
from bursar.synthetic.session import Prepared, Synthesis
from bursar.views.baseline import QuestionNotes, SqliteNotes

if TYPE_CHECKING:
    from bursar.synthetic.table.synthetic_data import SyntheticData

Amount = float | str | None
"""A number, or a text such as "2%"; None where it is not given."""

NOBODY = f'nobody can ask as "{EVERYONE}": it is the account that all analysts have in common'


class Bursar:
    """A data set behind a budget. Ask with `query` and `batch`, look ahead with `explain` and back with `log`.

    A goal is given by one of `within` (the largest error, 50 or "2%", with a `confidence`), `rmse`, `epsilon` and `rho`
    (what may be spent), or in the SQL itself. `max_cost` refuses what would cost more. `horizon` says how many more
    such questions are expected, "one-off", "some", "many" or a number: rows that later ones can use are bought
    accordingly. A `key` names a question for good: asked again under it, the same bytes come back, and nothing is
    charged.

    `engine` has the parts behind it, for whoever extends or measures them.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        *,
        open_source: Callable[[bytes], Source],
        randomness: Randomness,
        analyst: str = OWNER,
        preset: Preset = presets.default,
        notes: QuestionNotes | None = None,
    ) -> None:
        """`notes` are of the questions that were asked; without them, those of this session count."""
        self.engine = Engine(
            config, ledger, open_source=open_source, randomness=randomness, analyst=analyst, preset=preset, notes=notes
        )
        self.config, self.ledger, self.kernel, self.analyst = config, ledger, self.engine.kernel, analyst
        self.owner = Owner(self.engine)
        self._synthesis = Synthesis(self.engine)

    def as_analyst(self, analyst: str) -> Bursar:
        """The same open data set for another analyst; data and ledger are opened once, however many people ask.

        It is for servers: who an analyst is has to be known by other means. Closing one closes the data set for all.
        """
        if analyst == EVERYONE:
            raise AnalystError(NOBODY)
        other = copy(self)
        other.engine, other.analyst = self.engine.as_analyst(analyst), analyst
        other.owner, other._synthesis = Owner(other.engine), Synthesis(other.engine)
        return other

    # -- asking --------------------------------------------------------------------------------------------------

    def query(
        self,
        sql: str,
        *,
        within: Amount = None,
        confidence: Amount = None,
        rmse: float | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        max_cost: float | None = None,
        horizon: str | int | None = None,
        synthetic: bool = False,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
    ) -> Answer:
        """The answer to a question, within the error that was asked for.

        `synthetic` takes the answer of the synthetic table, whatever is known about its error. Where questions wait for
        their turn, `wait=False` raises Waiting with a `ticket`, with which the place in line is kept.
        """
        goal = Wanted(
            within=within, confidence=confidence, rmse=rmse, epsilon=epsilon, rho=rho, max_cost=max_cost,
            horizon=horizon, synthetic=synthetic,
        )  # fmt: skip
        answer = self.run(sql, goal, key=key, wait=wait, ticket=ticket)
        if isinstance(answer, Explanation):
            raise QueryError(
                "a text that begins with EXPLAIN is for `explain`", text=sql, position=0, rewrite=without_explain(sql)
            )
        return answer

    def run(
        self, sql: str, wanted: Wanted, *, key: str | None = None, wait: bool = True, ticket: int | None = None
    ) -> Answer | Explanation:
        """What a text asks for: an Answer, or an Explanation where it begins with EXPLAIN; for shells and servers."""
        with paced(self.config.pace):
            return self.engine.ask(sql, wanted, key=key, wait=wait, ticket=ticket)

    def explain(
        self,
        sql: str,
        *,
        within: Amount = None,
        confidence: Amount = None,
        rmse: float | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        max_cost: float | None = None,
        horizon: str | int | None = None,
        synthetic: bool = False,
    ) -> Explanation:
        """Every way to answer, with its price and error. Free."""
        goal = Wanted(
            within=within, confidence=confidence, rmse=rmse, epsilon=epsilon, rho=rho, max_cost=max_cost,
            horizon=horizon, synthetic=synthetic,
        )  # fmt: skip
        return self.engine.planner.explain(self.engine.prepare(sql, goal))

    @overload
    def batch(
        self, questions: Sequence[str], *, within: Amount = None, confidence: Amount = None, rmse: float | None = None,
        epsilon: float | None = None, rho: float | None = None, max_cost: float | None = None,
        horizon: str | int | None = None, synthetic: bool = False,
        key: str | None = None, wait: bool = True, ticket: int | None = None, progress: Progress = silent,
    ) -> Batch: ...  # fmt: skip

    @overload
    def batch(
        self, questions: None = None, *, within: Amount = None, confidence: Amount = None, rmse: float | None = None,
        epsilon: float | None = None, rho: float | None = None, max_cost: float | None = None,
        horizon: str | int | None = None, synthetic: bool = False,
        key: str | None = None, wait: bool = True, ticket: int | None = None, progress: Progress = silent,
    ) -> EngineBatch: ...  # fmt: skip

    def batch(
        self,
        questions: Sequence[str] | None = None,
        *,
        within: Amount = None,
        confidence: Amount = None,
        rmse: float | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        max_cost: float | None = None,
        horizon: str | int | None = None,
        synthetic: bool = False,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        progress: Progress = silent,
    ) -> Batch | EngineBatch:
        """Many questions planned together for one price, with one goal, in one turn.

        With questions: a `Batch` of their answers. Without: an `OpenBatch` for a with block, to collect them, look at
        the price, and pay when the block is left. `progress` hears how many questions have been priced.
        """
        goal = Wanted(
            within=within, confidence=confidence, rmse=rmse, epsilon=epsilon, rho=rho, max_cost=max_cost,
            horizon=horizon, synthetic=synthetic,
        )  # fmt: skip
        collected = EngineBatch(self.engine, goal, key=key, wait=wait, ticket=ticket, progress=progress)
        if questions is None:
            return collected
        for sql in questions:
            collected.query(sql)
        return collected.pay()

    @overload
    def thresholds(
        self, k: int = 3, r: int = 2, features: Features | None = None, *, explain: Literal[True],
        within: Amount = None, confidence: Amount = None, rmse: float | None = None, epsilon: float | None = None,
        rho: float | None = None, max_cost: float | None = None, synthetic: bool = False,
    ) -> Explanation: ...  # fmt: skip

    @overload
    def thresholds(
        self, k: int = 3, r: int = 2, features: Features | None = None, *, explain: Literal[False] = False,
        within: Amount = None, confidence: Amount = None, rmse: float | None = None, epsilon: float | None = None,
        rho: float | None = None, max_cost: float | None = None, synthetic: bool = False, key: str | None = None,
        wait: bool = True, ticket: int | None = None,
    ) -> Answer: ...  # fmt: skip

    def thresholds(
        self,
        k: int = 3,
        r: int = 2,
        features: Features | None = None,
        *,
        explain: bool = False,
        within: Amount = None,
        confidence: Amount = None,
        rmse: float | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        max_cost: float | None = None,
        synthetic: bool = False,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
    ) -> Answer | Explanation:
        """How many rows have at least r of k values, for every choice of values of every set of k columns.

        `features` are the columns to choose from, all where none are given, or the sets of k columns themselves. r = k
        gives marginals. With `explain`, every way to answer, with its price and error, free; else an Answer whose lines
        are made when they are looked at.
        """
        goal = Wanted(
            within=within, confidence=confidence, rmse=rmse, epsilon=epsilon, rho=rho, max_cost=max_cost,
            synthetic=synthetic,
        )  # fmt: skip
        with paced(self.config.pace):
            workload = thresholds(self.config.domain, k=k, r=r, features=features, sealed=self.kernel.sealed())
            request = self.engine.request(
                written(k, r, features), workload, goal, key=key, wait=wait, ticket=ticket, explain=explain
            )
            return self.engine.ask(request)

    # -- synthetic tables ----------------------------------------------------------------------------------------

    def synthesize(
        self,
        *,
        out: str | Path | None = None,
        report: str | Path | None = None,
        seconds: float | None = None,
        progress: Progress = silent,
        rows: int | None = None,
        ways: int | None = None,
        marginals: str | None = None,
        workload: Sequence[str] | None = None,
        history: bool = False,
        augment: float = 0.0,
        spend: float | None = None,
        method: str = "auto",
        wait: bool = True,
        ticket: int | None = None,
    ) -> SyntheticData:
        """A synthetic table; also writes the files that are named. What to make: as for `prepare_synthesis`."""
        from bursar.synthetic.report import check_pictures
        from bursar.synthetic.table.synthetic_data import check_file

        if out is not None:
            check_file(Path(out))
        if report is not None:
            check_pictures()
        prepared = self.prepare_synthesis(
            rows=rows,
            ways=ways,
            marginals=marginals,
            workload=workload,
            history=history,
            augment=augment,
            spend=spend,
            method=method,
            wait=wait,
            ticket=ticket,
        )
        prepared.check()
        table = prepared.make(progress=progress, seconds=seconds)
        if out is not None:
            table.write(out)
        if report is not None:
            table.report.write(Path(report))
        return table

    def prepare_synthesis(
        self,
        *,
        rows: int | None = None,
        ways: int | None = None,
        marginals: str | None = None,
        workload: Sequence[str] | None = None,
        history: bool = False,
        augment: float = 0.0,
        spend: float | None = None,
        method: str = "auto",
        wait: bool = True,
        ticket: int | None = None,
    ) -> Prepared:
        """What a table would cost and how exact it would be; nothing is spent.

        `rows`: how many, as many as the data have unless named. The table is right about all sets of `ways` columns,
        or of `marginals` ("age,sex; age,region"), or of the questions of a `workload`, or of those in the log
        (`history`, with a share `augment` for others). Without `spend` it is free, made of what is in the log; with it,
        up to that much is spent. `method`: "marginals", "rap", "both", or "auto" for the least error to expect.
        """
        return self._synthesis.prepare(
            rows=rows,
            ways=ways,
            marginals=marginals,
            workload=workload,
            history=history,
            augment=augment,
            spend=spend,
            method=method,
            wait=wait,
            ticket=ticket,
        )

    # -- looking back --------------------------------------------------------------------------------------------

    def budget(self) -> BudgetStatus:
        """What may be spent, what is spent, what is left: of the data set, and of the own share."""
        return budget_of(self.kernel, self.analyst, promised=self.engine.planner.promised)

    def spending(self, *, saved: bool = False) -> Spending:
        """What it was spent on and whose budget is used most; an analyst sees the own part.

        With `saved`, also what plain noise would have spent on the same questions.
        """
        spending = spending_of(self.kernel, self.analyst, domain=self.config.domain)
        whose = None if self.analyst == OWNER else self.analyst
        return replace(spending, saved=self.engine.planner.comparison(whose)) if saved else spending

    def log(self, last: int | None = None) -> list[LogLine]:
        """Who paid how much for what, oldest first; an analyst sees the own lines, the data owner all.

        Where the config says `log = "all"` under [analysts], everybody sees all.
        """
        return log_of(self.kernel, OWNER if self.config.analysts.log == "all" else self.analyst, last)

    def columns(self) -> TableFacts:
        """The table, its columns and their values, as the data owner has declared them."""
        config = self.config
        goal = None if config.goal is None else config.goal.describe()
        return TableFacts(table=config.table, columns=config.columns, rows=config.public_size, goal=goal)

    def queue(self) -> QueueStatus:
        """Whose turn it is, the own tickets, and how many others wait."""
        return self.engine.queue.status(self.analyst)

    def let_go(self, *, away: bool = False) -> QueueStatus:
        """Let the present or the next turn go; all turns until the next question if `away`."""
        return self.engine.queue.let_go(self.analyst, away=away)

    def close(self) -> None:
        """Close the data and the ledger."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()


# -- opening -----------------------------------------------------------------------------------------------------------


def open(
    path: str | Path = "bursar.toml",
    *,
    analyst: str = OWNER,
    data: object | None = None,
    expect: tuple[int, str] | None = None,
) -> Bursar:
    """The data set that a config describes. Its ledger must exist: a new ledger would be a new budget.

    `data` is a data frame (pandas, polars, Arrow) to use instead of the file that the config names. `expect` is the
    number of records and the head that `verify` printed once: an older ledger is then refused.
    """
    bursar = _opened(load(path), analyst, data, expect)
    declared, configured = Shares(bursar.kernel.shares()), bursar.config.analysts.accounts
    if declared != configured:
        bursar.close()
        raise LedgerError(
            f"the shares in {path} ({configured}) are not those that the ledger keeps ({declared})\n"
            "try: if you own the data and the config is right, bursar shares"
        )
    bursar.owner.seal_due()
    return bursar


def share(path: str | Path = "bursar.toml") -> Bursar:
    """For the data owner, after the shares in the config were changed: give them out."""
    bursar = _opened(load(path), OWNER, None, None)
    try:
        bursar.owner.declare_shares()
    except BursarError:
        bursar.close()
        raise
    return bursar


def create(path: str | Path = "bursar.toml", *, data: object | None = None) -> Bursar:
    """For the data owner, once: begin a ledger with a full budget, and declare the data as they are now."""
    config = load(path)
    if data is None:
        create_table(config)
    source, randomness = _source(config, data), SystemRandomness()
    source(bytes(32)).close()  # data that cannot be read must not leave a ledger behind
    ledger = SqliteLedger.create(config.ledger_path, config.charter)
    last = -1 if config.sealing.growing else config.domain.partitions - 1
    declare_version(ledger, source, randomness, axis=PartitionAxis.of(config.domain, config.unit), through=last)
    notes = SqliteNotes(config.notes_path)
    bursar = Bursar(config, ledger, open_source=source, randomness=randomness, notes=notes)
    bursar.owner.declare_shares()
    bursar.owner.seal_due()
    return bursar


def _opened(config: Config, analyst: str, data: object | None, expect: tuple[int, str] | None) -> Bursar:
    if analyst == EVERYONE:
        raise AnalystError(NOBODY)
    ledger = SqliteLedger.open(config.ledger_path, config.charter, expect=expect)
    source, notes = _source(config, data), SqliteNotes(config.notes_path)
    return Bursar(config, ledger, open_source=source, randomness=SystemRandomness(), analyst=analyst, notes=notes)


def _source(config: Config, data: object | None) -> Callable[[bytes], Source]:
    location, table, view = (config.location, config.table, config.view) if data is None else (data, None, None)

    def open_source(key: bytes) -> Source:
        return DuckDBSource(
            location, config.domain, config.unit, key=key, max_rows=config.max_rows, table=table, view=view
        )

    return open_source
