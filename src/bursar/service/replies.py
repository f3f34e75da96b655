"""What the OpenAPI says about replies: their shapes, an example of each, and every refusal that a route can give."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from bursar.analysts.queue import QueueStatus
from bursar.core.ledger import Health
from bursar.report.spending import Spending
from bursar.report.status import AccountStatus, BudgetStatus, LogLine
from bursar.service.answer_formats import ARROW, CSV, PARQUET, STORED, STORED_BATCH
from bursar.service.errors import Fault

Replies = dict[int | str, dict[str, object]]
"""By status, as FastAPI takes it."""

Cell = str | int | float | bool | None


class Reply(BaseModel):
    """A reply in JSON."""

    model_config = ConfigDict(extra="forbid")


class AnswerReply(Reply):
    """Noisy numbers: each lies within its `_low` and `_high`, all of them together, with the stated confidence."""

    question: str
    rows: list[dict[str, Cell]]
    outputs: list[str]
    goal: str
    confidence: float
    error: float | None = None
    contract: str
    source: str
    note: str
    reused: int
    bought: int
    unit: str
    charge: float
    left: float
    total: float
    payer: str | None = None
    whole_charge: float | None = None
    whole_left: float | None = None
    remarks: list[str]
    charging: str = ""
    mixed: bool
    free: bool


class BatchReply(Reply):
    """Answers in the order of the questions, for one charge."""

    charge: float
    unit: str
    one_by_one: float | None = None
    answers: list[AnswerReply]


class OfferReply(Reply):
    """One way to answer."""

    proposer: str
    price: float
    error: float | None = None
    reuses: int
    buys: int
    note: str
    bid: float
    total: float | None = None
    meets_goal: bool
    taken: bool


class ExplanationReply(Reply):
    """Every way to answer; nothing was spent."""

    question: str
    goal: str
    contract: str
    unit: str
    offers: list[OfferReply]
    chosen: int | None = None
    left: float
    analyst: str | None = None
    total_left: float | None = None
    why: str
    sharing: str
    in_people: list[str]
    search_price: float = 0.0
    searches: list[str] = []


class BatchExplanationReply(ExplanationReply):
    """Every way to answer several questions at once; nothing was spent."""

    price: float | None
    one_by_one: float | None


class SynthExplanationReply(ExplanationReply):
    """Every way to make a synthetic table; nothing was spent. `why` is about the method that is taken."""

    method: str
    price: float


class ColumnsReply(Reply):
    """The table as it was declared."""

    table: str
    rows: int | None = None
    goal: str | None = None
    tables: list[str]
    columns: list[dict[str, object]]


class JobReply(Reply):
    """Something that goes on."""

    id: str
    kind: str
    state: str
    at: float
    done: int
    of: int
    fault: Fault | None = None


class TokenFacts(Reply):
    """What may be known of a token."""

    id: str
    name: str
    made: float
    expires: float


class PersonReply(Reply):
    """Somebody who was let in."""

    name: str
    role: str
    accounts: list[str]
    tokens: list[TokenFacts]


class NewToken(Reply):
    """A token, shown once."""

    token: str
    days: float


class Removed(Reply):
    """Who is not let in any more."""

    removed: str


class Revoked(Reply):
    """How many tokens are good no more."""

    revoked: int


class SealReply(Reply):
    """The last partition that is sealed."""

    through: Cell


class VersionReply(Reply):
    """Which version the data are now."""

    version: int


@dataclass(frozen=True, kw_only=True)
class BudgetReply(BudgetStatus):
    """What may be spent, what is spent and on what, and what is left."""

    spending: Spending


def _refusals(**told: str) -> Replies:
    """Refusals by status, s402 for 402."""
    return {int(status[1:]): {"model": Fault, "description": text} for status, text in told.items()}


REFUSALS = _refusals(
    s401="No token, or none that is good",
    s403="Not for the role of the token, or for somebody without a share",
    s404="No such thing, or not yours",
    s408="The request was not sent in time",
    s413="The request is too large",
    s422="The question, the goal or the request is wrong; `position` and `rewrite` say where, and what would work",
    s429="More requests than allowed; `Retry-After` says when to come again",
    s500="Something went wrong inside",
    s503="The data or the ledger cannot be used now",
)
"""What any route of a data set may say."""

PAYING = _refusals(
    s402="More than is left, or than `max_cost`; nothing was spent. `left` and `asked` say how much",
    s409="The key was used for another question, or it is not your turn: `ticket` keeps your place",
)
"""What a route that spends may say as well."""


def _ok(model: object, example: object, *kinds: tuple[str, str], status: int = 200) -> Replies:
    """A reply with an example, and other media types that `Accept` may name."""
    shown: dict[str, object] = {"application/json": {"example": example}}
    shown |= {kind: {"schema": {"description": what}} for kind, what in kinds}
    return {status: {"model": model, "description": "Done", "content": shown}}


_ANSWER = {
    "question": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "rows": [
        {"sex": "F", "n": 25088.0, "n_low": 24990.0, "n_high": 25186.0},
        {"sex": "M", "n": 24871.0, "n_low": 24773.0, "n_high": 24969.0},
    ],
    "outputs": ["n"], "goal": "WITH ERROR 100 CONFIDENCE 95%", "confidence": 0.95, "error": 98.0,
    "contract": "per-query", "source": "direct", "note": "laplace noise of scale 22.9", "reused": 0, "bought": 2,
    "unit": "epsilon", "charge": 0.0437, "left": 0.9563, "total": 1.0, "payer": None, "whole_charge": None,
    "whole_left": None, "remarks": [], "charging": "", "mixed": False, "free": False,
}  # fmt: skip

_EXPLANATION = {
    "question": _ANSWER["question"], "goal": _ANSWER["goal"], "contract": "per-query", "unit": "epsilon",
    "offers": [
        {"proposer": "direct", "price": 0.0437, "error": 98.0, "reuses": 0, "buys": 2,
         "note": "laplace noise of scale 22.9", "bid": 0.0437, "total": None, "meets_goal": True, "taken": True}
    ],
    "chosen": 0, "left": 1.0, "analyst": None, "total_left": 1.0, "why": "", "sharing": "",
    "in_people": [], "search_price": 0.0, "searches": [],
}  # fmt: skip

_SPENDING = {
    "unit": "epsilon", "analyst": "ana", "paid": 0.0437,
    "by_columns": [{"name": "sex", "charge": 0.0437, "purchases": 1}],
    "by_way": [], "by_proposer": [], "by_question": [], "by_analyst": [], "people": [], "saved": None,
}  # fmt: skip

_BUDGET = {
    "unit": "epsilon", "total": 1.0, "spent": 0.0437, "left": 0.9563, "held": 0.0, "description": "epsilon 1",
    "statement": "whatever is asked, nobody's presence is revealed beyond epsilon 1", "accounts": [], "sharing": "",
    "sealed": "", "keys": "", "partitions": [], "spending": _SPENDING,
}  # fmt: skip

_LINE = {
    "position": 2, "at": 1794880000.0, "analyst": "ana", "purpose": _ANSWER["question"], "question": "5f2c...",
    "proposer": "direct", "run": 1, "kind": "measured", "rows": 2, "noise": "laplace 22.9", "charge": 0.0437,
    "paid": 0.0437,
}  # fmt: skip

_COLUMN = {"name": "sex", "kind": "values", "values": ["F", "M"], "outside": "other", "null": "cell"}

_QUEUE: dict[str, object] = {
    "scheduler": "round-robin", "idle": 600.0, "yours": True, "stalled": False, "had": 3, "given": 6, "away": False,
    "own": [], "others": 0,
}  # fmt: skip

_JOB = {"id": "9c1e5a70c2", "kind": "synth", "state": "running", "at": 1794880000.0, "done": 3, "of": 20, "fault": None}
_TOKEN = {"id": "1f", "name": "ana", "made": 1.0, "expires": 2.0}
_PERSON = {"name": "ana", "role": "analyst", "accounts": ["ana@example.org"], "tokens": [_TOKEN]}
_TABLES = ((CSV, "One line per group"), (ARROW, "A stream of Arrow"), (STORED, "What `Answer.from_bytes` reads"))
_TOGETHER = (STORED_BATCH, "With answers that `Answer.from_bytes` reads")
_BATCH = {"charge": 0.0437, "unit": "epsilon", "one_by_one": 0.0874, "answers": [_ANSWER]}

AN_ANSWER = PAYING | _ok(AnswerReply, _ANSWER, *_TABLES)
A_BATCH = PAYING | _ok(BatchReply, _BATCH, _TOGETHER)
AN_EXPLANATION = _ok(ExplanationReply, _EXPLANATION)
A_BATCH_EXPLANATION = _ok(BatchExplanationReply, {**_EXPLANATION, "price": 0.0437, "one_by_one": 0.0874})
A_SYNTH_EXPLANATION = PAYING | _ok(SynthExplanationReply, {**_EXPLANATION, "method": "marginals", "price": 0.1})
A_BUDGET = _ok(BudgetReply, _BUDGET)
A_LOG = _ok(list[LogLine], [_LINE])
COLUMNS = _ok(
    ColumnsReply, {"table": "people", "rows": 50_000, "goal": None, "tables": ["people"], "columns": [_COLUMN]}
)
A_QUEUE = _ok(QueueStatus, _QUEUE)
A_JOB = _ok(JobReply, _JOB)
A_NEW_JOB = PAYING | _ok(JobReply, _JOB, status=202)
JOBS = _ok(list[JobReply], [_JOB])
A_SEAL = _ok(SealReply, {"through": "2026-03"}) | PAYING
A_VERSION = _ok(VersionReply, {"version": 2})
SHARES = _ok(
    list[AccountStatus], [{"analyst": "ana", "share": 0.5, "total": 0.5, "spent": 0.1, "left": 0.4, "held": 0.0}]
)
A_HEALTH = _ok(Health, {"records": 12, "answers": 3, "holds": 0, "head": "5f2c...", "notes": []})
PEOPLE = _ok(list[PersonReply], [_PERSON])
_YOURSELF = _refusals(s409="Nobody takes the own rights away")
A_PERSON = _ok(PersonReply, {**_PERSON, "tokens": []}) | _refusals(s409="Your own rights, or an account of another")
A_TOKEN = _ok(NewToken, {"token": "bursar_...", "days": 90.0}, status=201)
REMOVED = _ok(Removed, {"removed": "ana"}) | _YOURSELF
REVOKED = _ok(Revoked, {"revoked": 1})
EVENTS: Replies = {200: {"description": "A stream", "content": {"text/event-stream": {}}}}
A_REPORT = _ok(dict[str, object], {"charge": 0.1, "method": "marginals", "rows": 1000}) | _refusals(s409="Not done yet")
A_RESULT = _ok(BatchReply, _BATCH, _TOGETHER, (CSV, "Rows"), (PARQUET, "Rows")) | _refusals(s409="Not done yet")
