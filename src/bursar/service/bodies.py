"""What requests may hold. What is not listed is refused: no body can say who asks, or what noise or price is."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict, cast

from pydantic import BaseModel, ConfigDict, Field

from bursar.service.people import DAYS, LONGEST_ACCOUNT, Role
from bursar.sql.parameters import Parameters, bind

Number = Annotated[float, Field(allow_inf_nan=False)]
Amount = Number | Annotated[str, Field(max_length=64)] | None


class Body(BaseModel):
    """Fields have their types, and there are no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class GoalArguments(TypedDict):
    """A goal as the methods of a session take it."""

    within: float | str | None
    confidence: float | str | None
    relative: float | str | None
    floor: float | None
    rmse: float | None
    epsilon: float | None
    rho: float | None
    max_cost: float | None
    synthetic: bool


class WithGoal(Body):
    """How exact an answer must be, or what it may cost."""

    within: Amount = Field(None, description='The largest error of any number: in rows, or "2%".', examples=[50, "2%"])
    confidence: Amount = Field(None, description="How sure the error must be.", examples=[0.95, "95%"])
    relative: Amount = Field(
        None, description="Instead: the largest error as a share of each true count.", examples=[0.05, "5%"]
    )
    floor: Number | None = Field(None, description="Beside a relative error: what smaller counts are taken for.")
    rmse: Number | None = Field(None, description="Instead: the root mean square error.")
    epsilon: Number | None = Field(None, description="Instead: the best answer for at most this cost.")
    rho: Number | None = Field(None, description="The same, where the budget is counted in rho.")
    max_cost: Number | None = Field(None, description="Refuse what would cost more.")
    synthetic: bool = Field(False, description="The answer of the synthetic table, whatever is known about its error.")

    @property
    def goal(self) -> GoalArguments:
        """The same as arguments."""
        return {
            "within": self.within,
            "confidence": self.confidence,
            "relative": self.relative,
            "floor": self.floor,
            "rmse": self.rmse,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "max_cost": self.max_cost,
            "synthetic": self.synthetic,
        }


BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"

Sql = Annotated[str, Field(description="A SELECT; how exact the answer must be may stand in it.", examples=[BY_REGION])]
Horizon = Annotated[
    Annotated[int, Field(ge=0, le=10**9)] | Annotated[str, Field(max_length=32)] | None,
    Field(description="How many more such questions you expect.", examples=["some", 10]),
]
Parameter = Annotated[str, Field(max_length=10_000)] | bool | int | Number | None
Values = Parameter | Annotated[list[Parameter], Field(min_length=1, max_length=1_000)]
Params = Annotated[
    Annotated[list[Values], Field(max_length=1_000)] | dict[str, Values] | None,
    Field(
        description="Values of the parameters in `sql`: of ? and $1 a list, of :name an object. A list behind IN.",
        examples=[["North"], {"region": ["North", "East"]}],
    ),
]
Table = Annotated[
    str | None, Field(max_length=200, description="Of several private tables, the one that is meant; else the first.")
]
Ticket = Annotated[
    int | None, Field(ge=1, le=2**53, description="What an earlier refusal gave you to keep your place with.")
]


class QuestionBody(WithGoal):
    """A question to explain."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sql": BY_REGION, "within": 100}]})

    sql: Sql
    params: Params = None
    horizon: Horizon = None

    @property
    def question(self) -> str:
        """The text with its values; QueryError where they do not fit."""
        return bind(self.sql, cast("Parameters | None", self.params))


class AskBody(QuestionBody):
    """A question to answer."""

    ticket: Ticket = None


class BatchBody(WithGoal):
    """Questions to answer together, with one goal, for one price."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"questions": [BY_REGION, "SELECT COUNT(*) AS n FROM people"], "within": 100}]}
    )

    questions: Annotated[list[Sql], Field(min_length=1, max_length=50)]
    at_most: Number | None = Field(None, description="The price that you were told: refuse if it has risen since.")
    horizon: Horizon = None
    ticket: Ticket = None


class ReleaseBody(BatchBody):
    """The same, as a job: there may be more of them."""

    questions: Annotated[list[Sql], Field(min_length=1, max_length=1000)]


class ThresholdsBody(WithGoal):
    """How many rows have at least r of k values, for every choice of values of every set of k columns."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"k": 2, "r": 1, "features": ["sex", "region"], "within": 500}]}
    )

    k: int = Field(3, ge=1, le=64, description="How many columns make a set.")
    r: int = Field(2, ge=1, le=64, description="How many of their values a row has at least; r = k gives marginals.")
    features: list[str] | list[list[str]] | None = Field(
        None, description="The columns to choose from, all unless named; or the sets of k columns themselves."
    )
    table: Table = None
    ticket: Ticket = None


class SynthBody(Body):
    """A synthetic table to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rows": 1000, "spend": 0.1, "seconds": 20}]})

    rows: int | None = Field(None, ge=1, le=10**8, description="How many; as many as the data have unless named.")
    ways: int | None = Field(None, ge=1, le=16, description="Be right about all sets of this many columns.")
    marginals: str | None = Field(
        None, max_length=20_000, description="Instead: about these sets.", examples=["age,sex; age,region"]
    )
    workload: list[Sql] | None = Field(None, max_length=500, description="Instead: about what these SELECTs ask for.")
    history: bool = Field(False, description="Instead: about what was asked before.")
    augment: Number = Field(0.0, ge=0, le=0.9, description="With `history`, a share for what was never asked.")
    spend: Number | None = Field(None, description="What may be spent. Without it nothing is, and the table is free.")
    method: Literal["auto", "marginals", "rap", "both"] = "auto"
    rounds: Annotated[int, Field(ge=1, le=100_000)] | None = None
    picks: Annotated[int, Field(ge=1, le=100_000)] | None = None
    relaxed: Annotated[int, Field(ge=1, le=100_000)] | None = None
    agree: int | None = Field(None, ge=1, le=5, description="With `rap`: thresholds; this many columns of a set agree.")
    search: bool = Field(False, description="With `rap`: search for rounds and picks, every trial paid.")
    seconds: Number | None = Field(None, ge=0, le=86_400, description="Stop after so long, with what there is then.")
    format: Literal["csv", "parquet"] = Field("csv", description="Of the rows.")
    table: Table = None


class PassBody(Body):
    """A turn to let go."""

    away: bool = Field(False, description="Let every turn go until you ask again.")


class SealBody(Body):
    """Partitions that are complete."""

    through: str | None = Field(None, max_length=200, description="The last one; unless named, those that are over.")


class VersionBody(Body):
    """Data that have changed."""

    same_rows: bool = Field(False, description="Rows were only added: none was changed or removed.")


class PersonBody(Body):
    """Somebody to let in."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "analyst"}]})

    role: Annotated[Role, Field(strict=False)]
    account: str | None = Field(
        None, min_length=1, max_length=LONGEST_ACCOUNT, description="What their provider of log-ins calls them."
    )


class TokenBody(Body):
    """A token to make."""

    days: Number = Field(DAYS, gt=0, le=3650, description="How long it is good for.")
