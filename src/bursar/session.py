"""What a person holds: `bursar.open("bursar.toml", analyst="ana")`, and everything that can be asked of it.

```python
db.query("SELECT COUNT(*) FROM people", within=50)
db.thresholds(k=3, r=2, features=["sex", "region", "work", "age"], within=200)  # rows are made when looked at
db.owner.seal()  # the data owner's side
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
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
from bursar.compile.open_columns import open_columns
from bursar.compile.threshold_rows import Features, thresholds, written
from bursar.config import Config, load, with_preset
from bursar.core.accounting import Carried, from_units
from bursar.core.extensions.curator import KEY_BYTES, declare_version
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.extensions.shares import share_of
from bursar.core.ledger import Ledger
from bursar.core.noise.system import Randomness, SystemRandomness
from bursar.core.source.source import Source
from bursar.engine import Engine, PrivateTables
from bursar.errors import AnalystError, BursarError, ConfigError, LedgerError, QueryError
from bursar.ledgers import create_ledger, nothing_there, open_ledger
from bursar.owner import Owner
from bursar.pace import paced
from bursar.planner.batch import Batch
from bursar.planner.choose import Preset
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted
from bursar.report.status import OWNER, BudgetStatus, LogPage, TableFacts, budget_of, log_of
from bursar.sources import OpenSource, filling, source_of
from bursar.sql.parameters import Clock, Parameters, ResolvedQuestion, bind, utc_clock
from bursar.views.baseline import Comparison
from bursar.views.question_notes import QuestionNotes, SqliteNotes

if TYPE_CHECKING:
    from bursar.papers.rap.drift import DriftReport
    from bursar.report.noisy_rows import NoisyLog
    from bursar.report.spending import Spending
    from bursar.synthetic.session import Prepared
    from bursar.synthetic.table.synthetic_data import SyntheticData

Amount = float | str | None
"""A number, or a text such as "2%"; None where it is not given."""

NOBODY = f'nobody can ask as "{EVERYONE}": it is the account that all analysts have in common'


class Bursar:
    """A data set behind a budget. Ask with `query` and `batch`, look ahead with `explain` and back with `log`.

    A goal is given by one of `within` (the largest error, 50 or "2%", with a `confidence`), `relative` (the same as a
    share of each true count, 0.05 or "5%", with a `floor` that smaller counts are taken for), `rmse`, `epsilon` and
    `rho` (what may be spent), or in the SQL itself. `max_cost` refuses what would cost more. `horizon` says how many
    more such questions are expected, "one-off", "some", "many" or a number: rows that later ones can use are bought
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
        preset: Preset | None = None,
        notes: QuestionNotes | None = None,
        clock: Clock = utc_clock,
        further: Mapping[str, OpenSource] | None = None,
    ) -> None:
        """`notes` are of the questions that were asked; without them, those of this session count.

        `preset` stands in for the one that the config names; `further` for what it names as the sources of private
        tables beside the first. The `clock` says what NOW() is.
        """
        relations = config.relations if config.further else ()
        engines = [
            Engine(
                config,
                ledger,
                open_source=open_source,
                randomness=randomness,
                analyst=analyst,
                preset=preset,
                notes=notes,
                clock=clock,
                relations=relations,
            )
        ]
        for other in config.further:
            engine = Engine(
                other,
                ledger,
                open_source=(further or {}).get(other.table) or source_of(other),
                randomness=randomness,
                analyst=analyst,
                notes=None if notes is None else SqliteNotes(other.notes_path),
                clock=clock,
                relations=relations,
            )
            engine.queue = engines[0].queue
            engines.append(engine)
        for engine in engines:
            engine.tables = PrivateTables(tuple(engines))
        self.engine = engines[0]
        self.config, self.ledger, self.kernel, self.analyst = config, ledger, self.engine.kernel, analyst
        self.owner = Owner(self.engine)

    def as_analyst(self, analyst: str) -> Bursar:
        """The same open data set for another analyst; data and ledger are opened once, however many people ask.

        It is for servers: who an analyst is has to be known by other means. Closing one closes the data set for all.
        """
        if analyst == EVERYONE:
            raise AnalystError(NOBODY)
        other = copy(self)
        other.engine, other.analyst = self.engine.as_analyst(analyst), analyst
        other.owner = Owner(other.engine)
        return other

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the private tables that have rows of their own."""
        return tuple(engine.config.table for engine in self.engine.tables)

    def table(self, name: str) -> Bursar:
        """The same open data set, about one of its private tables.

        `query`, `explain` and `batch` find the table behind FROM by themselves. This is for what names none:
        `thresholds`, `synthesize`, `columns`, `spending`.
        """
        other = copy(self)
        other.engine = self.engine.tables.named(name)
        other.config, other.kernel = other.engine.config, other.engine.kernel
        other.owner = Owner(other.engine)
        return other

    # -- asking --------------------------------------------------------------------------------------------------

    def query(
        self,
        sql: str,
        params: Parameters | None = None,
        *,
        within: Amount = None,
        confidence: Amount = None,
        relative: Amount = None,
        floor: float | None = None,
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

        `params` has the values of `?` or `$1` as a list, or of `:name` as a dict; a list of values stands behind IN.
        `synthetic` takes the answer of the synthetic table, whatever is known about its error. Where questions wait for
        their turn, `wait=False` raises Waiting with a `ticket`, with which the place in line is kept.
        """
        goal = Wanted(
            within=within, confidence=confidence, relative=relative, floor=floor, rmse=rmse, epsilon=epsilon, rho=rho,
            max_cost=max_cost,
            horizon=horizon, synthetic=synthetic,
        )  # fmt: skip
        sql = bind(sql, params)
        answer = self.run(sql, goal, key=key, wait=wait, ticket=ticket)
        if isinstance(answer, Explanation):
            raise QueryError(
                "a text that begins with EXPLAIN is for `explain`", text=sql, position=0, rewrite=without_explain(sql)
            )
        return answer

    def run(
        self, sql: str, options: Wanted, *, key: str | None = None, wait: bool = True, ticket: int | None = None
    ) -> Answer | Explanation:
        """What a text asks for: an Answer, or an Explanation where it begins with EXPLAIN; for shells and servers."""
        with paced(self.config.pace):
            return self.engine.ask(sql, options, key=key, wait=wait, ticket=ticket)

    def repeated(self, sql: str, options: Wanted) -> Answer | None:
        """The answer of `run` where it can be given without any work or wait: for servers, in their event loop."""
        return self.engine.repeated(sql, options)

    def explain(
        self,
        sql: str,
        params: Parameters | None = None,
        *,
        within: Amount = None,
        confidence: Amount = None,
        relative: Amount = None,
        floor: float | None = None,
        rmse: float | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        max_cost: float | None = None,
        horizon: str | int | None = None,
        synthetic: bool = False,
    ) -> Explanation:
        """Every way to answer, with its price and error. Free."""
        goal = Wanted(
            within=within, confidence=confidence, relative=relative, floor=floor, rmse=rmse, epsilon=epsilon, rho=rho,
            max_cost=max_cost,
            horizon=horizon, synthetic=synthetic,
        )  # fmt: skip
        question = bind(sql, params)
        engine = self.engine.tables.asked(question, self.engine)
        return engine.explain(engine.prepare(question, goal))

    @overload
    def batch(
        self, questions: Sequence[str], *, within: Amount = None, confidence: Amount = None,
        relative: Amount = None, floor: float | None = None, rmse: float | None = None, epsilon: float | None = None,
        rho: float | None = None, max_cost: float | None = None,
        horizon: str | int | None = None, synthetic: bool = False, strategy: str | None = None,
        key: str | None = None, wait: bool = True, ticket: int | None = None, progress: Progress = silent,
    ) -> Batch: ...  # fmt: skip

    @overload
    def batch(
        self, questions: None = None, *, within: Amount = None, confidence: Amount = None,
        relative: Amount = None, floor: float | None = None, rmse: float | None = None, epsilon: float | None = None,
        rho: float | None = None, max_cost: float | None = None,
        horizon: str | int | None = None, synthetic: bool = False, strategy: str | None = None,
        key: str | None = None, wait: bool = True, ticket: int | None = None, progress: Progress = silent,
    ) -> EngineBatch: ...  # fmt: skip

    def batch(
        self,
        questions: Sequence[str] | None = None,
        *,
        within: Amount = None,
        confidence: Amount = None,
        relative: Amount = None,
        floor: float | None = None,
        rmse: float | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        max_cost: float | None = None,
        horizon: str | int | None = None,
        synthetic: bool = False,
        strategy: str | None = None,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        progress: Progress = silent,
    ) -> Batch | EngineBatch:
        """Many questions planned together for one price, with one goal, in one turn.

        With questions: a `Batch` of their answers. Without: an `OpenBatch` for a with block, to collect them, look at
        the price, and pay when the block is left. `progress` hears how many questions have been priced.
        `strategy` names what is measured, for comparison with what would be best: "eigen" and others of Eigen-Design.
        """
        goal = Wanted(
            within=within, confidence=confidence, relative=relative, floor=floor, rmse=rmse, epsilon=epsilon, rho=rho,
            max_cost=max_cost,
            horizon=horizon, synthetic=synthetic, strategy=strategy,
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
        within: Amount = None, confidence: Amount = None, relative: Amount = None, floor: float | None = None,
        rmse: float | None = None, epsilon: float | None = None,
        rho: float | None = None, max_cost: float | None = None, synthetic: bool = False,
    ) -> Explanation: ...  # fmt: skip

    @overload
    def thresholds(
        self, k: int = 3, r: int = 2, features: Features | None = None, *, explain: Literal[False] = False,
        within: Amount = None, confidence: Amount = None, relative: Amount = None, floor: float | None = None,
        rmse: float | None = None, epsilon: float | None = None,
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
        relative: Amount = None,
        floor: float | None = None,
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
            within=within, confidence=confidence, relative=relative, floor=floor, rmse=rmse, epsilon=epsilon, rho=rho,
            max_cost=max_cost,
            synthetic=synthetic,
        )  # fmt: skip
        with paced(self.config.pace):
            workload = thresholds(self.config.domain, k=k, r=r, features=features, sealed=self.kernel.sealed())
            question = ResolvedQuestion(written(k, r, features))
            request = self.engine.request(question, workload, goal, key=key, wait=wait, ticket=ticket, explain=explain)
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
        rounds: int | None = None,
        picks: int | None = None,
        relaxed: int | None = None,
        agree: int | None = None,
        search: bool = False,
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
            rounds=rounds,
            picks=picks,
            relaxed=relaxed,
            agree=agree,
            search=search,
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
        rounds: int | None = None,
        picks: int | None = None,
        relaxed: int | None = None,
        agree: int | None = None,
        search: bool = False,
        wait: bool = True,
        ticket: int | None = None,
    ) -> Prepared:
        """What a table would cost and how exact it would be; nothing is spent.

        `rows`: how many, as many as the data have unless named. The table is right about all sets of `ways` columns,
        or of `marginals` ("age,sex; age,region"), or of the questions of a `workload`, or of those in the log
        (`history`, with a share `augment` for others). Without `spend` it is free, made of what is in the log; with it,
        up to that much is spent. `method`: "marginals", "rap", "both", or "auto" for the least error to expect. With
        "rap" also its T and K (`rounds`, `picks`), or a `search` for them, and n' (`relaxed` rows); and thresholds: for
        every set of columns and all values of them, how many rows agree in at least `agree` of the columns.
        """
        from bursar.synthetic.session import Synthesis

        return Synthesis(self.engine).prepare(
            rows=rows,
            ways=ways,
            marginals=marginals,
            workload=workload,
            history=history,
            augment=augment,
            spend=spend,
            method=method,
            rounds=rounds,
            picks=picks,
            relaxed=relaxed,
            agree=agree,
            search=search,
            wait=wait,
            ticket=ticket,
        )

    def drift(
        self,
        *,
        spend: float,
        ways: int | None = None,
        marginals: str | None = None,
        workload: Sequence[str] | None = None,
        history: bool = False,
        agree: int | None = None,
    ) -> DriftReport:
        """How the last synthetic table does on questions that drifted away from those that it was made for.

        These are named as for `prepare_synthesis`; pairs of columns unless named. Up to `spend` is paid; the same again
        is free.
        """
        from bursar.synthetic.session import Synthesis

        return Synthesis(self.engine).drift(
            spend=spend, ways=ways, marginals=marginals, workload=workload, history=history, agree=agree
        )

    # -- looking back --------------------------------------------------------------------------------------------

    def budget(self) -> BudgetStatus:
        """What may be spent, what is spent, what is left: of the data set, and of the own share."""
        status = budget_of(self.kernel, self.analyst, promised=self.engine.promised, charging=self.engine.charging)
        spent = self.kernel.spent_by_table() if len(self.tables) > 1 else {}
        named = {engine.config.relation: engine.config.table for engine in self.engine.tables}
        return replace(status, tables=tuple((named[table], from_units(units)) for table, units in spent.items()))

    def spending(self, *, saved: bool = False) -> Spending:
        """What it was spent on and whose budget is used most; an analyst sees the own part.

        With `saved`, also what plain noise would have spent on the same questions.
        """
        from bursar.report.spending import spending_of

        spending = spending_of(self.kernel, self.analyst, domain=self.engine.tables.first.cells)
        whose = None if self.analyst == OWNER else self.analyst
        return replace(spending, saved=self._compared(whose)) if saved else spending

    def _compared(self, whose: str | None) -> Comparison:
        """With plain noise, over the questions about all tables; a share pays for all of them."""
        each = [engine.planner.comparison(whose) for engine in self.engine.tables]
        has_share = whose is not None and bool(self.kernel.shares())
        return Comparison(
            questions=sum(compared.questions for compared in each),
            spent=each[0].spent if has_share else sum(compared.spent for compared in each),
            plain=sum(compared.plain for compared in each),
            cached=sum(compared.cached for compared in each),
        )

    def log(
        self,
        last: int | None = None,
        *,
        before: int | None = None,
        of: str | None = None,
        proposer: str | None = None,
    ) -> LogPage:
        """Who paid how much for what, oldest first; an analyst sees the own lines, the data owner all.

        `last` are so many, the newest; `before` is a position that they stand before, so that a long log can be read in
        pages, and `older` of what comes back says how many lines are left. `of` and `proposer` say whose lines they
        are. Where the config says `log = "all"` under [analysts], everybody sees all.
        """
        whose = OWNER if self.config.analysts.log == "all" else self.analyst
        return log_of(self.kernel, whose, last=last, before=before, of=of, proposer=proposer)

    def measurements(self) -> NoisyLog:
        """The noisy numbers behind the answers, with what was measured and its noise, to take away. Free.

        An analyst sees those that the own questions have paid for, the data owner all; as with `log`.
        """
        from bursar.report.noisy_rows import noisy_log

        everything = self.analyst == OWNER or self.config.analysts.log == "all"
        return noisy_log(
            self.engine.cells,
            self.engine.records(0),
            lambda record: everything or record.analyst == self.analyst,
        )

    def columns(self) -> TableFacts:
        """The table, its columns and their values, as declared; of open ones, the keys so far."""
        config = self.config
        goal = None if config.goal is None else config.goal.describe()
        return TableFacts(
            table=config.table, columns=self.engine.columns, rows=config.public_size, goal=goal, tables=self.tables
        )

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
    preset: str | None = None,
) -> Bursar:
    """The data set that a config describes. Its ledger must exist: a new ledger would be a new budget.

    `data` is a data frame (pandas, polars, Arrow) to use instead of the file that the config names. `expect` is the
    number of records and the head that `verify` printed once: an older ledger is then refused.
    `preset` is the one that the ledger was created with, where the config does not name it.
    """
    bursar = _opened(with_preset(load(path), preset), analyst, data, expect)
    declared, configured = Shares(bursar.kernel.shares()), bursar.config.analysts.accounts
    if declared != configured:
        bursar.close()
        raise LedgerError(
            f"the shares in {path} ({configured}) are not those that the ledger keeps ({declared})\n"
            "try: if you own the data and the config is right, bursar shares"
        )
    if missing := bursar.owner.not_added():
        bursar.close()
        raise LedgerError(
            f"{path} has the private table {missing[0]}, and the ledger does not know it yet\n"
            f"try: if you own the data, bursar add-table {missing[0]}"
        )
    bursar.owner.seal_due()
    bursar.engine.checkpoint_if_due()
    return bursar


def add_table(name: str, path: str | Path = "bursar.toml", *, data: object | None = None) -> Bursar:
    """For the data owner, after a private table was added to the config: let it be asked about, for the same budget.

    `data` is a data frame to use instead of the file that the config names for the table.
    """
    bursar = _opened(load(path), OWNER, None if data is None else {name: data}, None)
    try:
        bursar.owner.add_table(name)
    except BursarError:
        bursar.close()
        raise
    return bursar


def share(path: str | Path = "bursar.toml", *, preset: str | None = None) -> Bursar:
    """For the data owner, after the shares in the config were changed: give them out."""
    bursar = _opened(with_preset(load(path), preset), OWNER, None, None)
    try:
        bursar.owner.declare_shares()
    except BursarError:
        bursar.close()
        raise
    return bursar


def create(
    path: str | Path = "bursar.toml",
    *,
    data: object | None = None,
    preset: str | None = None,
    carry: str | Path | None = None,
) -> Bursar:
    """For the data owner, once: begin a ledger with a full budget, and declare the data as they are now.

    `preset` names a published system to answer, for the life of the ledger, where the config names none. `carry` is an
    earlier config about the same people: what was spent under it counts here, and it can spend no more.
    """
    config = with_preset(load(path), preset)
    from bursar.curate.ingest import create_table  # as only the data owner does, once

    if data is None:
        create_table(config)
    sources, randomness = _sources(config, data), SystemRandomness()
    axis = PartitionAxis.of(config.domain, config.unit)
    last = -1 if config.sealing.growing else config.domain.partitions - 1
    key, source = randomness.secret(KEY_BYTES), sources[config.table]
    for further in config.private[1:]:  # data that cannot be read must not leave a ledger behind
        with filling(sources[further.table], None), closing(sources[further.table](key)) as data_now:
            data_now.table(())
    with filling(source, None if axis is None else last + 1), closing(source(key)) as data_now:
        data_now.table(())
        carried, texts = (None, {}) if carry is None else _handed_over(load(carry), config)
        ledger = create_ledger(config, carried)
        declare_version(ledger, lambda _: data_now, randomness, axis=axis, through=last, key=key)
    notes = SqliteNotes(config.notes_path)
    bursar = Bursar(config, ledger, open_source=source, randomness=randomness, notes=notes, further=sources)
    bursar.engine.tables.save_checkpoints()
    for name in bursar.owner.not_added():
        bursar.owner.add_table(name)
    bursar.owner.declare_shares()
    bursar.owner.seal_due()
    for column, keys in texts.items():
        bursar.owner.name_keys(column, keys)
    return bursar


def _handed_over(old: Config, config: Config) -> tuple[Carried, dict[str, list[str]]]:
    """What the ledger of an old config has spent, which from now on keeps the rest for that of a new one; and the texts
    of columns open in both that everybody sees."""
    nothing_there(config)
    with _opened(old, OWNER, None, None) as before:
        promised = sum(share_of(config.budget, fraction) for fraction in config.analysts.accounts.values())
        carried = before.kernel.hand_over(config.charter, config.budget, promised=promised)
        listed = before.kernel.known_keys()
    opened = {each.name: each.capacity for each in open_columns(config.domain)}
    seen = {name: [key.text for key in keys if key.analyst == OWNER] for name, keys in listed.items() if name in opened}
    return carried, {name: texts[: opened[name]] for name, texts in seen.items()}


def _opened(config: Config, analyst: str, data: object | None, expect: tuple[int, str] | None) -> Bursar:
    if analyst == EVERYONE:
        raise AnalystError(NOBODY)
    ledger = _ledger(config, expect)
    sources, notes = _sources(config, data), SqliteNotes(config.notes_path)
    source, randomness = sources[config.table], SystemRandomness()
    bursar = Bursar(
        config, ledger, open_source=source, randomness=randomness, analyst=analyst, notes=notes, further=sources
    )
    bursar.engine.tables.save_checkpoints()
    return bursar


def _sources(config: Config, data: object | None) -> dict[str, OpenSource]:
    """How to open each private table; `data` is of the first one, or a dictionary by table."""
    given = data if isinstance(data, dict) else {config.table: data}
    if unknown := [name for name in given if name not in [each.table for each in config.private]]:
        raise ConfigError(f"there is no private table {unknown[0]} in the config", str(config.path))
    return {each.table: source_of(each, given.get(each.table)) for each in config.private}


def _ledger(config: Config, expect: tuple[int, str] | None) -> Ledger:
    """The ledger of a config. One with another preset is refused with the name of its own."""
    try:
        return open_ledger(config, expect)
    except LedgerError as fault:
        if not str(fault).endswith("what differs: preset"):
            raise
    for name in (None, *presets.LISTED):
        with suppress(LedgerError):
            open_ledger(replace(config, preset=name), expect).close()
            theirs, ours = (each or presets.DEFAULT for each in (name, config.preset))
            break
    else:
        raise LedgerError("this ledger has a preset that this release does not know\ntry: the release that made it")
    raise LedgerError(
        f'this ledger has the preset "{theirs}" for life, since presets count losses differently, and not "{ours}"\n'
        f'try: preset = "{theirs}" at the top of the config, or --preset {theirs}'
    )
