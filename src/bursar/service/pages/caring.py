"""What only an owner of a data set does: people and tokens, shares, sealing, versions, and the health of the ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse

from bursar.core.accounting import Versioned
from bursar.core.ledger import Health
from bursar.curate import edit
from bursar.curate.confirm import change
from bursar.errors import AnalystError
from bursar.report.status import OWNER, log_of
from bursar.service.pages.render import page
from bursar.service.pages.visits import OwnersVisit, PageRoute, Visit, datasets_of
from bursar.service.people import DAYS, LONGEST_ACCOUNT, Role
from bursar.session import share

router = APIRouter(route_class=PageRoute, include_in_schema=False)

Name = Annotated[str, Form(max_length=200)]


@router.get("/{data}/people")
def people(visit: OwnersVisit) -> HTMLResponse:
    """Everybody who was let in, with the ids of their tokens."""
    return _people(visit)


def _people(visit: Visit, *, made: tuple[str, str] | None = None, done: str = "") -> HTMLResponse:
    people, tokens = visit.data.people, visit.data.people.tokens()
    budget = visit.data.bursar.budget()
    spent = {portion.name: portion.charge for portion in visit.data.bursar.spending().by_analyst}
    return page(
        visit.request,
        "people.html",
        visit=visit,
        everybody=[
            (person, [token for token in tokens if token.name == person.name], spent.get(person.name, 0.0))
            for person in people.everybody()
        ],
        accounts=people.accounts(),
        days=DAYS,
        shares={account.analyst: account.share for account in budget.accounts},
        unit=budget.unit,
        made=made,
        done=done,
    )


@router.post("/{data}/people/add")
def let_in(
    visit: OwnersVisit,
    name: Name,
    role: Annotated[Role, Form()],
    days: Annotated[float, Form()] = DAYS,
    account: Annotated[str, Form(max_length=LONGEST_ACCOUNT)] = "",
) -> HTMLResponse:
    """Let somebody in, by an account elsewhere or by a token, which is shown in the reply and nowhere ever again."""
    name, account = name.strip(), account.strip()
    if name == visit.name and role is not Role.OWNER:
        raise AnalystError("you cannot take your own rights away\ntry: let another owner do it")
    visit.data.people.add(name, role)
    if account:
        visit.data.people.tie(name, account)
        return _people(visit, done=f"{account} logs in as {name}.")
    return _people(visit, made=(name, visit.data.people.make_token(name, days=days)))


@router.post("/{data}/people/token")
def make_token(visit: OwnersVisit, name: Name, days: Annotated[float, Form()] = DAYS) -> HTMLResponse:
    """A further token for somebody."""
    return _people(visit, made=(name, visit.data.people.make_token(name, days=days)))


@router.post("/{data}/people/revoke")
def revoke(visit: OwnersVisit, whose: Name) -> HTMLResponse:
    """Take back a token; whoever is logged in with it is out."""
    if whose == visit.guest.token:
        raise AnalystError(
            "you are logged in with this token\ntry: make yourself another one first, and log in with it"
        )
    visit.data.people.revoke(whose)
    return _people(visit, done=f"Token {whose} is taken back: whoever used it is out from now on.")


@router.post("/{data}/people/remove")
def remove(visit: OwnersVisit, name: Name) -> HTMLResponse:
    """Let somebody in no more."""
    if name == visit.name:
        raise AnalystError("you cannot remove yourself\ntry: let another owner do it")
    visit.data.people.remove(name)
    return _people(visit, done=f"{name} is let in no more. What they asked stays in the log.")


@router.post("/{data}/people/shares")
def shares(
    visit: OwnersVisit,
    name: Annotated[list[str] | None, Form()] = None,
    percent: Annotated[list[str] | None, Form()] = None,
) -> HTMLResponse:
    """Give out shares of the budget; where nobody has one, all have it in common."""
    given: dict[str, float] = {}
    for who, part in zip(name or [], percent or [], strict=False):
        if who.strip() and part.strip():
            try:
                given[who.strip()] = float(part) / 100
            except ValueError:
                raise AnalystError(f"the share of {who.strip()} is a number of percent, not {part!r}") from None
    path = visit.data.config.path
    before = path.read_text(encoding="utf-8")
    change(path, lambda text: edit.share(text, given))
    try:
        share(path).close()
    except BaseException:
        edit.save(path, before)  # the shares that the ledger keeps and those of the config must stay the same
        raise
    datasets_of(visit.request).refresh()
    fresh = Visit(replace(visit.guest, data=datasets_of(visit.request)[visit.data.name]), visit.request)
    return _people(fresh, done="The shares are given out." if given else "Everybody has the budget in common now.")


@router.get("/{data}/care")
def care(visit: OwnersVisit) -> HTMLResponse:
    """Versions, sealing, the ledger."""
    return _care(visit)


def _care(visit: Visit, *, done: str = "", health: Health | None = None) -> HTMLResponse:
    data = visit.data
    config, sealed = data.config, data.bursar.kernel.sealed()
    column = None if config.domain.partition is None else config.domain[config.domain.partition]
    declared = [] if column is None else [column.label(cell) for cell in range(column.declared)]
    return page(
        visit.request,
        "care.html",
        visit=visit,
        config=config,
        versions=log_of(data.bursar.kernel, OWNER, kinds={Versioned.kind}),
        column=column,
        sealed=sealed,
        partitions=declared,
        status=data.bursar.budget(),
        done=done,
        health=health,
    )


@router.post("/{data}/care/seal")
def seal(visit: OwnersVisit, through: Annotated[str, Form(max_length=200)] = "") -> HTMLResponse:
    """Declare that partitions are complete."""
    last = visit.data.bursar.owner.seal(through or None)
    return _care(visit, done=f"Sealed through {last}.")


@router.post("/{data}/care/version")
def version(visit: OwnersVisit, same_rows: Annotated[bool, Form()] = False) -> HTMLResponse:
    """Declare that the data have changed."""
    number = visit.data.bursar.owner.declare_version(same_rows=same_rows)
    return _care(visit, done=f"The data are now version {number}.")


@router.post("/{data}/care/verify")
def verify(visit: OwnersVisit) -> HTMLResponse:
    """Check the ledger from its first record to its last."""
    return _care(visit, health=visit.data.bursar.owner.verify())


@router.post("/{data}/care/erase")
def erase(visit: OwnersVisit) -> Response:
    """Erase the texts of all questions so far."""
    return _care(
        visit, done=f"{visit.data.bursar.owner.erase_texts()} texts are erased. What each cost stays in the log."
    )
