"""What requests may hold. What is not listed is refused: no body can say who asks, or what noise or price is."""

from __future__ import annotations

from typing import Annotated, TypedDict

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[float, Field(allow_inf_nan=False)]
Amount = Number | Annotated[str, Field(max_length=64)] | None


class Body(BaseModel):
    """Fields have their types, and there are no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Goal(TypedDict):
    """A goal as the methods of a session take it."""

    within: float | str | None
    confidence: float | str | None
    rmse: float | None
    epsilon: float | None
    rho: float | None
    max_cost: float | None
    synthetic: bool


class Wish(Body):
    """How exact an answer must be, or what it may cost."""

    within: Amount = Field(None, description='The largest error of any number: in rows, or "2%".', examples=[50, "2%"])
    confidence: Amount = Field(None, description="How sure the error must be.", examples=[0.95, "95%"])
    rmse: Number | None = Field(None, description="Instead: the root mean square error.")
    epsilon: Number | None = Field(None, description="Instead: the best answer for at most this cost.")
    rho: Number | None = Field(None, description="The same, where the budget is counted in rho.")
    max_cost: Number | None = Field(None, description="Refuse what would cost more.")
    synthetic: bool = Field(False, description="The answer of the synthetic table, whatever is known about its error.")

    @property
    def goal(self) -> Goal:
        """The same as arguments."""
        return {
            "within": self.within,
            "confidence": self.confidence,
            "rmse": self.rmse,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "max_cost": self.max_cost,
            "synthetic": self.synthetic,
        }


Sql = Annotated[
    str,
    Field(
        description="A SELECT; how exact the answer must be may stand in it.",
        examples=["SELECT region, COUNT(*) AS n FROM people GROUP BY region WITH ERROR 50 CONFIDENCE 95%"],
    ),
]
Horizon = Annotated[
    int | str | None, Field(description="How many more such questions you expect.", examples=["some", 10])
]
Ticket = Annotated[
    int | None, Field(ge=1, le=2**53, description="What an earlier refusal gave you to keep your place with.")
]


class Question(Wish):
    """A question to explain."""

    sql: Sql
    horizon: Horizon = None


class Asked(Question):
    """A question to answer."""

    ticket: Ticket = None
