"""`bursar user`: who may ask a server about a data set."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.cli.opened import CONFIG, Data, Json

if TYPE_CHECKING:
    from bursar.service.people import People, Role

user = typer.Typer(
    no_args_is_help=True,
    help="For the data owner: who may ask a server about the data, and as whom.\n\n"
    "A token is a password that bursar makes; it is shown once. Whoever has it may ask under the name it was made for.",
)

Name = Annotated[str, typer.Argument(help="The name that the log and the shares know.", show_default=False)]
Days = Annotated[float, typer.Option(metavar="90", help="How long the token is good for.")]


def _people(data: Path) -> People:
    from bursar.config import load
    from bursar.service.datasets import config_at, people_of

    return people_of(load(config_at(data)))


def _role(role: str) -> Role:
    from bursar.errors import AnalystError
    from bursar.service.people import Role

    if role not in set(Role):
        raise AnalystError(f'a person is an "analyst" or an "owner", not "{role}"')
    return Role(role)


@user.command()
def add(
    name: Name,
    data: Data = CONFIG,
    role: Annotated[
        str, typer.Option(metavar="analyst|owner", help="An analyst asks; an owner also looks after the data set.")
    ] = "analyst",
    days: Days = 90,
) -> None:
    """Let somebody in, and print a token for them."""
    people = _people(data)
    people.add(name, _role(role))
    _show(people.make_token(name, days=days), days)


@user.command()
def token(name: Name, data: Data = CONFIG, days: Days = 90) -> None:
    """Print a further token for somebody who was let in; those that they have stay good."""
    _show(_people(data).make_token(name, days=days), days)


@user.command()
def login(
    name: Name,
    account: Annotated[str, typer.Argument(help="What the provider calls them, such as ana@example.org.")],
    data: Data = CONFIG,
    role: Annotated[
        str, typer.Option(metavar="analyst|owner", help="For somebody who was not let in yet.")
    ] = "analyst",
) -> None:
    """Let somebody in who logs in elsewhere: an account at the provider of `bursar serve --openid`.

    It is taken back as tokens are: bursar user revoke NAME.
    """
    people = _people(data)
    if people.person(name) is None:
        people.add(name, _role(role))
    people.tie(name, account)
    print(f"{account} logs in as {name}")


@user.command("list")
def everybody(data: Data = CONFIG, as_json: Json = False) -> None:
    """Everybody who was let in, with the ids of their tokens; the tokens themselves are kept nowhere."""
    people = _people(data)
    tokens, accounts = people.tokens(), people.accounts()
    if as_json:
        rows = [
            {
                "name": person.name,
                "role": person.role.value,
                "accounts": accounts.get(person.name, []),
                "tokens": [{"id": t.id, "expires": _day(t.expires)} for t in tokens if t.name == person.name],
            }
            for person in people.everybody()
        ]
        print(json.dumps(rows, indent=2))
        return
    for person in people.everybody():
        print(f"{person.name}, {person.role.value}")
        for account in accounts.get(person.name, []):
            print(f"  logs in as {account}")
        for t in tokens:
            if t.name == person.name:
                print(f"  token {t.id}, good until {_day(t.expires)}")
    if not people.everybody():
        print("nobody was let in yet\ntry: bursar user add NAME")


@user.command()
def revoke(
    whose: Annotated[str, typer.Argument(metavar="NAME|ID", help="A person, for all their tokens, or a token's id.")],
    data: Data = CONFIG,
) -> None:
    """Take back tokens, and by name also accounts elsewhere: a running server refuses them from its next request on."""
    people = _people(data)
    tied = len(people.accounts().get(whose, []))
    tokens = people.revoke(whose) - tied
    print(
        f"{tokens} token{'' if tokens == 1 else 's'} taken back"
        + (f", {tied} account{'s' * (tied > 1)} untied" * (tied > 0))
    )


@user.command()
def remove(name: Name, data: Data = CONFIG) -> None:
    """Let somebody in no more. What they asked stays in the log, and what they spent stays spent."""
    _people(data).remove(name)
    print(f"{name} is not let in any more")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _show(token: str, days: float) -> None:
    print(token)
    typer.echo(f"good for {days:g} days; this is the only time that it is shown", err=True)
