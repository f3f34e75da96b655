"""A data set behind a server: `bursar.connect("https://host/people")`, and everything that can be asked of it.

The methods are those of `session.py`, with the same arguments, answers and errors. What may cost something is sent
under a key, so that a request whose connection was lost can be sent again, and is charged once.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from functools import cache
from http.client import HTTPException
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypedDict, TypeVar, Unpack, overload
from urllib.parse import urlencode

import numpy as np

from bursar.analysts.queue import QueueStatus
from bursar.analysts.queue_state import QueueState, Ticket
from bursar.answer import Answer
from bursar.arrays import Reals
from bursar.batch import OpenBatch, Progress, silent
from bursar.compile.threshold_rows import Features
from bursar.compile.values import Decimals, ListedKeys
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.errors import AnalystError, GoalError, QueryError, ServerError, Unsupported, Waiting
from bursar.goal import Horizon
from bursar.link import PAUSES, Link, error_of
from bursar.planner.batch import Batch
from bursar.planner.explain import Explanation, OfferLine
from bursar.planner.goals import Wanted
from bursar.planner.request import ONCE
from bursar.report.spending import Portion, Spending, Used
from bursar.report.status import AccountStatus, BudgetStatus, LogLine, LogPage, PartitionStatus, TableFacts
from bursar.sql.parameters import Parameters, bind, resolve_day
from bursar.sql.parse import read_syntax
from bursar.views.baseline import Comparison

if TYPE_CHECKING:
    from bursar.synthetic.plan.offers import TableExplanation
    from bursar.synthetic.report import Report
    from bursar.synthetic.table.synthetic_data import SyntheticData

TOKEN = "BURSAR_TOKEN"
"""Names the variable that has the token where no argument does."""

TIMEOUT_SECONDS = 300.0
"""How long a reply may take."""

TURN_SECONDS = 1.0
"""How often somebody who waits for a turn looks whether it has come."""

MOST_AT_ONCE = 50
"""Questions that a server answers in one reply; more of them are a job."""

LOG_PAGE = 1000
"""Lines of the log in one reply."""

STORED = "application/vnd.bursar.answer+json"
STORED_BATCH = "application/vnd.bursar.batch+json"

Amount = float | str | None
Body = Mapping[str, object]


class GoalOptions(TypedDict, total=False):
    """A goal as all methods take it; `Bursar` says what each part means."""

    within: Amount
    confidence: Amount
    relative: Amount
    floor: float | None
    rmse: float | None
    epsilon: float | None
    rho: float | None
    max_cost: float | None
    horizon: str | int | None
    synthetic: bool
    strategy: str | None


class TableOptions(TypedDict, total=False):
    """A synthetic table as `Bursar.prepare_synthesis` takes it."""

    rows: int | None
    ways: int | None
    marginals: str | None
    workload: Sequence[str] | None
    history: bool
    augment: float
    spend: float | None
    method: str
    rounds: int | None
    picks: int | None
    relaxed: int | None
    agree: int | None
    search: bool


def connect(
    url: str,
    *,
    token: str | None = None,
    timeout: float = TIMEOUT_SECONDS,
    tls: ssl.SSLContext | None = None,
    insecure: bool = False,
) -> Remote:
    """A data set of a server, under its address and its name: https://HOST/DATA.

    The token is the one that the data owner has given you; without the argument it is taken from BURSAR_TOKEN. A server
    whose certificate is not known to this machine needs a `tls` context that knows it. `insecure` sends the token to
    another machine without TLS, for whoever has a tunnel.
    """
    given = os.environ.get(TOKEN, "") if token is None else token
    if not given:
        raise AnalystError(
            f"a server wants a token\ntry: export {TOKEN}=..., with the one that the data owner gave you"
        )
    return Remote(Link(url, given, timeout=timeout, insecure=insecure, tls=tls))


class Remote:
    """A data set behind a server, with the methods of `Bursar` that are for analysts. The token says who asks.

    Guarantees: a request that may cost something is charged once, however often it has to be sent. Where questions wait
    for their turn, so does whoever asks here, unless told not to.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._table: str | None = None
        self.tell: Callable[[str], None] = lambda situation: None
        """Hears what a question waits for, whenever that changes."""

    def __repr__(self) -> str:
        return f"Remote({self._link.url!r})"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the private tables that have rows of their own."""
        return self.columns().tables

    def table(self, name: str) -> Remote:
        """The same data set about one of its private tables, for what names none: `thresholds`, `synthesize`,
        `columns`; see `Bursar.table`."""
        other = copy(self)
        other._table = name
        return other

    # -- asking --------------------------------------------------------------------------------------------------

    def query(
        self,
        sql: str,
        params: Parameters | None = None,
        *,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        **goal: Unpack[GoalOptions],
    ) -> Answer:
        """The answer to a question, within the error that was asked for; see `Bursar.query`."""
        return self._query(bind(sql, params), Wanted(**goal), key=key, wait=wait, ticket=ticket)

    def run(
        self, sql: str, options: Wanted, *, key: str | None = None, wait: bool = True, ticket: int | None = None
    ) -> Answer | Explanation:
        """What a text asks for: an Answer, or an Explanation where it begins with EXPLAIN."""
        try:
            explains = read_syntax(resolve_day(sql).text).explain
        except QueryError:
            explains = False  # the server refuses it, with a question that works
        return self._explain(sql, options) if explains else self._query(sql, options, key=key, wait=wait, ticket=ticket)

    def explain(self, sql: str, params: Parameters | None = None, **goal: Unpack[GoalOptions]) -> Explanation:
        """Every way to answer, with its price and error. Free."""
        return self._explain(bind(sql, params), Wanted(**goal))

    @overload
    def batch(
        self,
        questions: Sequence[str],
        *,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        progress: Progress = silent,
        **goal: Unpack[GoalOptions],
    ) -> Batch: ...

    @overload
    def batch(
        self,
        questions: None = None,
        *,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        progress: Progress = silent,
        **goal: Unpack[GoalOptions],
    ) -> RemoteBatch: ...

    def batch(
        self,
        questions: Sequence[str] | None = None,
        *,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        progress: Progress = silent,
        **goal: Unpack[GoalOptions],
    ) -> Batch | RemoteBatch:
        """Many questions planned together for one price, with one goal, in one turn; see `Bursar.batch`."""

        def pay(texts: Sequence[str], at_most: float | None) -> Batch:
            body = {"questions": list(texts), "at_most": at_most, **options}
            if wait and ticket is None and len(texts) > MOST_AT_ONCE:
                begun = self._link.send("POST", "/release", body, key=once() if key is None else key)
                _follow(self._link, name := json.loads(begun)["id"], progress)
                return Batch.from_bytes(self._link.send("GET", f"/jobs/{name}/result", accept=STORED_BATCH))
            reply = self._ask("/batch", body, STORED_BATCH, key=key, wait=wait, ticket=ticket)
            progress(len(texts), len(texts))
            return Batch.from_bytes(reply)

        options = _goal(Wanted(**goal))
        if questions is not None:
            return pay(questions, None)
        return RemoteBatch(
            lambda texts: self._link.send("POST", "/batch/explain", {"questions": list(texts), **options}, key=key), pay
        )

    @overload
    def thresholds(
        self, k: int = 3, r: int = 2, features: Features | None = None, *, explain: Literal[True],
        **goal: Unpack[GoalOptions],
    ) -> Explanation: ...  # fmt: skip

    @overload
    def thresholds(
        self, k: int = 3, r: int = 2, features: Features | None = None, *, explain: Literal[False] = False,
        key: str | None = None, wait: bool = True, ticket: int | None = None, **goal: Unpack[GoalOptions],
    ) -> Answer: ...  # fmt: skip

    def thresholds(
        self,
        k: int = 3,
        r: int = 2,
        features: Features | None = None,
        *,
        explain: bool = False,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        **goal: Unpack[GoalOptions],
    ) -> Answer | Explanation:
        """How many rows have at least r of k values, for every choice of values of every set of k columns."""
        body = {"k": k, "r": r, "features": features, **_named(self._table), **_goal(Wanted(**goal))}
        if explain:
            return _explanation(self._link.send("POST", "/thresholds/explain", body))
        return Answer.from_bytes(self._ask("/thresholds", body, STORED, key=key, wait=wait, ticket=ticket))

    # -- synthetic tables ----------------------------------------------------------------------------------------

    def synthesize(
        self,
        *,
        out: str | Path | None = None,
        report: str | Path | None = None,
        seconds: float | None = None,
        progress: Progress = silent,
        wait: bool = True,
        ticket: int | None = None,
        **options: Unpack[TableOptions],
    ) -> SyntheticData:
        """A synthetic table; also writes the files that are named. The server makes it, as a job."""
        from bursar.synthetic.report import check_pictures
        from bursar.synthetic.table.synthetic_data import check_file

        if out is not None:
            check_file(Path(out))
        if report is not None:
            check_pictures()
        table = self.prepare_synthesis(wait=wait, ticket=ticket, **options).make(progress=progress, seconds=seconds)
        if out is not None:
            table.write(out)
        if report is not None:
            table.report.write(Path(report))
        return table

    def prepare_synthesis(
        self, *, wait: bool = True, ticket: int | None = None, **options: Unpack[TableOptions]
    ) -> RemotePrepared:
        """What a table would cost and how exact it would be; nothing is spent. See `Bursar.prepare_synthesis`."""
        if not (wait and ticket is None) and self.queue().scheduler != "none":
            raise Unsupported("a table that a server makes waits for its turn by itself\ntry: without --no-wait")
        body = {**options, **_named(self._table)}
        return RemotePrepared(self, self._link, {k: v for k, v in body.items() if v is not None})

    # -- looking back --------------------------------------------------------------------------------------------

    def budget(self) -> BudgetStatus:
        """What may be spent, what is spent, what is left: of the data set, and of the own share."""
        plain = json.loads(self._link.send("GET", "/budget"))
        accounts = tuple(_made(AccountStatus, account) for account in plain["accounts"])
        partitions = tuple(_made(PartitionStatus, partition) for partition in plain["partitions"])
        tables = tuple((name, spent) for name, spent in plain["tables"])
        return _made(BudgetStatus, plain, accounts=accounts, partitions=partitions, tables=tables)

    def spending(self, *, saved: bool = False) -> Spending:
        """What it was spent on and whose budget is used most, as far as it is the own part; see `Bursar.spending`."""
        plain = json.loads(self._link.send("GET", f"/budget?saved={str(saved).lower()}"))["spending"]
        portions = {
            name: tuple(_made(Portion, portion) for portion in plain[name])
            for name in ("by_columns", "by_way", "by_proposer", "by_question", "by_analyst")
        }
        people = tuple(_made(Used, used, top=tuple(map(tuple, used["top"]))) for used in plain["people"])
        comparison = None if plain["saved"] is None else _made(Comparison, plain["saved"])
        return _made(Spending, plain, **portions, people=people, saved=comparison)

    def log(
        self,
        last: int | None = None,
        *,
        before: int | None = None,
        of: str | None = None,
        proposer: str | None = None,
    ) -> LogPage:
        """The own questions and what each cost, oldest first; as in `Bursar.log`, a long log is read in pages."""
        lines: list[LogLine] = []
        filters = {name: text for name, text in (("of", of), ("proposer", proposer)) if text is not None}
        while last is None or len(lines) <= last:  # one more than is wanted tells whether there are older ones
            size = LOG_PAGE if last is None else min(LOG_PAGE, last + 1 - len(lines))
            parameters = {"last": size} | filters | ({} if before is None else {"before": before})
            sent = [
                _made(LogLine, line) for line in json.loads(self._link.send("GET", f"/log?{urlencode(parameters)}"))
            ]
            page = [line for line in sent if before is None or line.position < before]  # an older server sends others
            lines = [*page, *lines]
            if len(page) < size:
                return LogPage(lines, older=0)
            before = page[0].position
        return LogPage(lines[1:], older=None)

    def columns(self) -> TableFacts:
        """The table, its columns and their values, as the data owner has declared them."""
        selection = "" if self._table is None else f"?{urlencode({'table': self._table})}"
        plain = json.loads(self._link.send("GET", f"/columns{selection}"))
        columns = Domain(tuple(_column(column) for column in plain["columns"]))
        return _made(TableFacts, plain, columns=columns, tables=tuple(plain.get("tables", [plain["table"]])))

    def queue(self) -> QueueStatus:
        """Whose turn it is, the own tickets, and how many others wait."""
        return _queue(self._link.send("GET", "/queue"))

    def let_go(self, *, away: bool = False) -> QueueStatus:
        """Let the present or the next turn go; all turns until the next question if `away`."""
        return _queue(self._link.send("POST", "/queue/pass", {"away": away}, again=False))

    def close(self) -> None:
        """Close the connections."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _query(self, sql: str, options: Wanted, *, key: str | None, wait: bool, ticket: int | None) -> Answer:
        body = {"sql": sql, **_goal(options)}
        return Answer.from_bytes(self._ask("/query", body, STORED, key=key, wait=wait, ticket=ticket))

    def _explain(self, sql: str, options: Wanted) -> Explanation:
        return _explanation(self._link.send("POST", "/explain", {"sql": sql, **_goal(options)}))

    def _ask(self, path: str, body: Body, accept: str, *, key: str | None, wait: bool, ticket: int | None) -> bytes:
        """The reply to what may cost something. The server lets nobody wait for a turn, so it is done here."""
        key, said = once() if key is None else key, ""
        while True:
            try:
                return self._link.send("POST", path, {**body, "ticket": ticket}, accept=accept, key=key)
            except Waiting as waiting:
                if not wait:
                    raise
                ticket = waiting.ticket
                if waiting.situation != said:
                    self.tell(said := waiting.situation)
                time.sleep(TURN_SECONDS)


class RemoteBatch(OpenBatch):
    """A batch that a server is asked."""

    def __init__(
        self, explain: Callable[[Sequence[str]], bytes], pay: Callable[[Sequence[str], float | None], Batch]
    ) -> None:
        super().__init__()
        self._explain, self._paid = explain, pay

    @property
    def one_by_one(self) -> float:
        return _infinite(json.loads(self._explain(self._texts))["one_by_one"])

    def explain(self) -> Explanation:
        return _explanation(self._explain(self._texts))

    @property
    def _texts(self) -> list[str]:
        return [question.question for question in self._questions]

    def _add(self, sql: str) -> None:
        self._explain([sql])

    def _price(self) -> float:
        return _infinite(json.loads(self._explain(self._texts))["price"])

    def _pay(self, at_most: float) -> Batch:
        return self._paid(self._texts, at_most if at_most < math.inf else None)


class RemotePrepared:
    """A synthetic table to be made by a server: what it would cost, and how exact it would be; nothing is paid yet."""

    def __init__(self, remote: Remote, link: Link, body: Body) -> None:
        self._remote, self._link, self._body = remote, link, body
        reply = link.send("POST", "/synth/explain", body)
        plain = json.loads(reply)
        self._reply = reply
        self.price: float = plain["price"]
        self.method: str = plain["method"]
        self.why: str = plain["why"]
        self.unit: str = plain["unit"]
        self.left: float = plain["left"]
        self.text: str = plain["question"]

    def explain(self) -> TableExplanation:
        """Every way to make the table, with its price and the error to expect. Costs nothing."""
        from bursar.synthetic.plan.offers import TableExplanation

        return _explanation(self._reply, TableExplanation, why="")

    def check(self) -> None:
        """Nothing: the server refuses what cannot be paid when the table is made, before anything is."""

    def make(self, *, progress: Progress = silent, seconds: float | None = None) -> SyntheticData:
        """Have the table made, as a job, and fetch it."""
        limit = {} if seconds is None else {"seconds": seconds}
        name = json.loads(self._link.send("POST", "/synth", {**self._body, **limit}, key=once()))["id"]
        _follow(self._link, name, progress)
        report = self._link.send("GET", f"/jobs/{name}/report")
        return _table(self._remote.columns().columns, self._link.send("GET", f"/jobs/{name}/result"), report)


def _follow(link: Link, name: str, progress: Progress) -> None:
    """Listen until a job is done. A stream that breaks off is taken up again: the job goes on without it.

    Leaving by Ctrl-C stops the job; what it has paid for is kept.
    """
    state, pauses = "", iter(PAUSES)
    try:
        while state != "done":
            with suppress(OSError, HTTPException):
                for line in link.lines(f"/jobs/{name}/events"):
                    if not line.startswith("data: "):
                        continue
                    job, pauses = json.loads(line.removeprefix("data: ")), iter(PAUSES)
                    state = job["state"]
                    if job["of"]:
                        progress(job["done"], job["of"])
                    if state == "failed":
                        raise error_of(job["fault"])
                    if state == "stopped":
                        raise ServerError("the job was stopped\ntry: the same again; what it has paid for is kept")
            if state != "done":
                if (pause := next(pauses, None)) is None:
                    raise ServerError(f"the connection to {link.server} was lost\ntry: the same again later")
                time.sleep(pause)
    except KeyboardInterrupt:
        link.send("POST", f"/jobs/{name}/stop")
        raise


def _named(table: str | None) -> Body:
    """The table that is meant, for a body; an older server knows no such field, so it is there only where named."""
    return {} if table is None else {"table": table}


def once() -> str:
    """A key for one request."""
    return ONCE + secrets.token_hex(16)


def _goal(options: Wanted) -> Body:
    """The parts of a goal that are given, as a server takes them."""
    if options.strategy is not None:
        raise Unsupported("a strategy is named where the ledger is\ntry: the same there, or without a strategy")
    if any(isinstance(value, float) and not math.isfinite(value) for value in asdict(options).values()):
        raise GoalError("the parts of a goal are finite numbers")
    if options.horizon is not None:
        Horizon.of(options.horizon)  # refused here in the same words
    return {name: value for name, value in asdict(options).items() if value is not None and value is not False}


# -- what a server has said, as what it was made of --------------------------------------------------------------------


Made = TypeVar("Made")
Explained = TypeVar("Explained", bound=Explanation)


def _made(kind: Callable[..., Made], plain: Body, **parts: object) -> Made:
    """A dataclass of plain values; `parts` are those that are not plain. What a later server adds is left out."""
    return kind(**{name: value for name, value in {**plain, **parts}.items() if name in _names(kind)})


@cache
def _names(kind: Callable[..., object]) -> frozenset[str]:
    return frozenset(signature(kind).parameters)


def _infinite(number: float | None) -> float:
    """JSON has no word for what no money can buy."""
    return math.inf if number is None else number


@overload
def _explanation(reply: bytes) -> Explanation: ...


@overload
def _explanation(reply: bytes, kind: type[Explained], **parts: object) -> Explained: ...


def _explanation(reply: bytes, kind: type[Explanation] = Explanation, **parts: object) -> Explanation:
    plain = json.loads(reply)
    offers = tuple(
        _made(OfferLine, offer, meets=offer["meets_goal"], error=_infinite(offer["error"])) for offer in plain["offers"]
    )
    lines = {name: tuple(plain.get(name, ())) for name in ("in_people", "searches")}
    return _made(kind, plain, offers=offers, **lines, **parts)


def _queue(reply: bytes) -> QueueStatus:
    plain = json.loads(reply)
    tickets = tuple(
        _made(Ticket, ticket, state=QueueState(ticket["state"]), expires=_infinite(ticket["expires"]))
        for ticket in plain["own"]
    )
    return _made(QueueStatus, plain, own=tickets)


class _Column(TypedDict, total=False):
    """A column as it is declared."""

    name: str
    kind: str
    outside: str | int
    null: str | int
    values: list[str | int | bool]
    lower: int
    upper: int
    edges: list[float]
    rounded: list[str]
    first: str
    last: str
    by: str
    capacity: int
    cells: list[int]


def _column(plain: _Column) -> Attribute:
    name, outside, null = plain["name"], _stray(plain["outside"]), _stray(plain["null"])
    match plain["kind"]:
        case "values":
            return Categories(name=name, outside=outside, null=null, values=tuple(plain["values"]))
        case "integer":
            return IntegerRange(name=name, outside=outside, null=null, lower=plain["lower"], upper=plain["upper"])
        case "number" if "rounded" in plain:
            edges, (lower, step) = tuple(plain["edges"]), map(Decimal, plain["rounded"])
            return Decimals(name=name, outside=outside, null=null, edges=edges, lower=lower, step=step)
        case "number":
            return Bins(name=name, outside=outside, null=null, edges=tuple(plain["edges"]))
        case "date":
            first, last = date.fromisoformat(plain["first"]), date.fromisoformat(plain["last"])
            return Dates(name=name, outside=outside, null=null, first=first, last=last, by=Period(plain["by"]))
        case "open":
            keys, cells = tuple(map(str, plain["values"])), tuple(plain["cells"])
            return ListedKeys(
                name=name, outside=outside, null=null, values=keys, cells=cells, capacity=plain["capacity"]
            )
    raise ServerError("the server has columns of a kind that is not known here\ntry: a later version of Bursar")


def _stray(where: str | int) -> Stray | int:
    return where if isinstance(where, int) else Stray(where)


def _table(columns: Domain, rows: bytes, reply: bytes) -> SyntheticData:
    """The table that a job has made, from its rows and its report."""
    from bursar.synthetic.table.synthetic_data import SyntheticData, read_rows

    domain, codes = read_rows(columns, rows.decode())
    return SyntheticData(domain=domain, codes=codes, report=_report(reply), charge=json.loads(reply)["charge"])


def _report(reply: bytes) -> Report:
    from bursar.synthetic.plan.history import FutureError
    from bursar.synthetic.report import ColumnBars, MarginalLine, Report

    plain = json.loads(reply)
    bars = [
        _made(
            ColumnBars, each, labels=tuple(each["labels"]), table=np.array(each["table"]), noisy=_array(each["noisy"])
        )
        for each in plain["bars"]
    ]
    return _made(
        Report,
        plain,
        lines=tuple(_made(MarginalLine, line, columns=tuple(line["columns"])) for line in plain["marginals"]),
        apart=tuple(map(tuple, plain["apart"])),
        bars=tuple(bars),
        future=None if plain["future"] is None else _made(FutureError, plain["future"]),
    )


def _array(numbers: list[float] | None) -> Reals | None:
    return None if numbers is None else np.array(numbers)
