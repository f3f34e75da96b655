"""What only an owner of a data set does over HTTP: under /v1/{data}/owner/."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from bursar.errors import AnalystError
from bursar.service.access import Owner, described
from bursar.service.answer_formats import json_of
from bursar.service.bodies import PersonBody, SealBody, TokenBody, VersionBody
from bursar.service.datasets import DataSets, Guest
from bursar.service.errors import refused
from bursar.service.people import People, Role
from bursar.service.replies import (
    A_BUDGET,
    A_HEALTH,
    A_LOG,
    A_PERSON,
    A_SEAL,
    A_TOKEN,
    A_VERSION,
    PEOPLE,
    REMOVED,
    REVOKED,
    SHARES,
)
from bursar.service.routes import MOST_LINES, Before, Last, LinesOf, ProposerNamed, Saved, budget_reply, log_reply
from bursar.session import share

owner = APIRouter(prefix="/v1/{data}/owner", dependencies=[Depends(described)], tags=["owner"])

Name = Annotated[str, Path(description="Who.", examples=["ana"], min_length=1, max_length=200)]


@owner.get("/log", responses=A_LOG)
def whole_log(
    guest: Owner, last: Last = MOST_LINES, before: Before = None, of: LinesOf = None, proposer: ProposerNamed = None
) -> Response:
    """Who asked what, when, and what it cost: the newest lines, oldest of them first."""
    return log_reply(guest.data.bursar, last, before, of, proposer)


@owner.get("/budget", responses=A_BUDGET)
def whole_budget(guest: Owner, saved: Saved = False) -> Response:
    """The budget with everybody's shares, and what everybody spent it on."""
    return budget_reply(guest.data.bursar, saved=saved)


@owner.post("/seal", responses=A_SEAL)
def seal(guest: Owner, body: SealBody) -> Response:
    """Declare that partitions are complete: they can be asked about, and take no more rows. Cannot be undone."""
    return json_of({"through": guest.data.bursar.owner.seal(body.through)})


@owner.post("/version", responses=A_VERSION)
def version(guest: Owner, body: VersionBody) -> Response:
    """Declare that the data have changed, and are what they are now."""
    return json_of({"version": guest.data.bursar.owner.declare_version(same_rows=body.same_rows)})


@owner.post("/shares", responses=SHARES)
def shares(guest: Owner, request: Request) -> Response:
    """Give out the shares of the budget that the config declares now."""
    share(guest.data.config.path).close()
    datasets: DataSets = request.app.state.datasets
    datasets.refresh()
    return json_of([asdict(account) for account in datasets[guest.data.name].bursar.budget().accounts])


@owner.get("/verify", responses=A_HEALTH)
def verify(guest: Owner) -> Response:
    """Check the ledger from its first record to its last."""
    return json_of(asdict(guest.data.bursar.owner.verify()))


@owner.get("/people", responses=PEOPLE)
def everybody(guest: Owner) -> Response:
    """Everybody who was let in, and what may be known of their tokens."""
    return json_of(list(_told(guest.data.people).values()))


def _told(people: People) -> dict[str, dict[str, object]]:
    """What an owner may know of everybody, by name."""
    tokens, accounts = people.tokens(), people.accounts()
    return {
        person.name: {
            **asdict(person),
            "accounts": accounts.get(person.name, []),
            "tokens": [asdict(token) for token in tokens if token.name == person.name],
        }
        for person in people.everybody()
    }


@owner.put("/people/{name}", responses=A_PERSON)
def let_in(guest: Owner, name: Name, body: PersonBody) -> Response:
    """Let somebody in, or give them another role; tie an account elsewhere to them."""
    holder = None if body.account is None else guest.data.people.of_account(body.account)
    if holder is not None and holder.name != name:
        raise refused(409, "account", f'the account is tied to "{holder.name}" already')
    with _about_people(guest, name if body.role is not Role.OWNER else None):
        person = guest.data.people.add(name, body.role)
        if body.account is not None:
            guest.data.people.tie(name, body.account)
    return json_of(_told(guest.data.people)[person.name])


@owner.delete("/people/{name}", responses=REMOVED)
def remove(guest: Owner, name: Name) -> Response:
    """Let somebody in no more. What they asked stays in the log, and what they spent stays spent."""
    with _about_people(guest, name):
        guest.data.people.remove(name)
    return json_of({"removed": name})


@owner.post("/people/{name}/tokens", status_code=201, responses=A_TOKEN)
def make_token(guest: Owner, name: Name, body: TokenBody) -> Response:
    """A new token for somebody who was let in. This is the only time that it is shown."""
    with _about_people(guest):
        return json_of({"token": guest.data.people.make_token(name, days=body.days), "days": body.days}, 201)


@owner.delete("/tokens/{whose}", responses=REVOKED)
def revoke(
    guest: Owner, whose: Annotated[str, Path(description="The id of a token, or a name for all of theirs.")]
) -> Response:
    """Take back a token by its id, or all of a person: they are refused from now on."""
    with _about_people(guest):
        return json_of({"revoked": guest.data.people.revoke(whose)})


@contextmanager
def _about_people(guest: Guest, loses: str | None = None) -> Iterator[None]:
    """Here it is not about who asks, so nobody is forbidden anything: somebody is not there.

    Nobody takes the own rights away: whoever is the last owner would leave a data set behind that nobody looks after.
    """
    if loses == guest.person.name:
        raise refused(409, "yourself", "another owner has to do this, or: bursar user, beside the data")
    try:
        yield
    except AnalystError as error:
        raise refused(404, "person", str(error).partition("\n")[0]) from None
