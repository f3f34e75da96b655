"""Route x role x data set: whoever may not is told so, and nothing else. A new route without a role fails here."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from bursar.service.access import GUARDED, OPEN, role_of
from bursar.service.people import Role
from harness.inside import Inside, inside
from harness.serving import data_set, let_in

HERE, OTHER = "demo-people", "second"
PUBLIC = {"code", "text", "position", "sql", "rewrite", "differs", "left", "asked", "unit", "limit", "spent", "ticket"}
PUBLIC |= {"situation", "request_id"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Inside, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("roles")
    here, other = data_set(folder / "here"), data_set(folder / "other", name=OTHER)
    tokens = let_in(here, ana=Role.ANALYST, olga=Role.OWNER)
    tokens |= {f"{name} elsewhere": token for name, token in let_in(other, zoe=Role.ANALYST, zara=Role.OWNER).items()}
    with inside(here, other) as app:
        yield app, tokens


def everything(router: FastAPI | APIRouter) -> Iterator[BaseRoute]:
    """All routes; FastAPI keeps those of routers that were included behind one entry each."""
    for route in router.routes:
        included = getattr(route, "original_router", None)
        yield from [route] if included is None else everything(included)


def routes(app: FastAPI) -> list[APIRoute]:
    return [route for route in everything(app) if isinstance(route, APIRoute)]


def undeclared(app: FastAPI) -> list[str]:
    """Routes that anybody could use without anybody having said so."""
    bad = [route.path for route in routes(app) if role_of(route) is None and route.path not in OPEN]
    bad += [route.path for route in routes(app) if role_of(route) is not None and not route.path.startswith(GUARDED)]
    plain = [getattr(route, "path", "?") for route in everything(app) if not isinstance(route, APIRoute)]
    return bad + [path for path in plain if path not in OPEN]


def address(route: APIRoute, data: str) -> str:
    return re.sub(r"\{\w+\}", "x", route.path.replace("{data}", data))


def test_every_route_declares_its_role(served: tuple[Inside, dict[str, str]]) -> None:
    app = served[0].app
    assert undeclared(app) == []
    assert {role_of(route) for route in routes(app)} == {None, *Role}
    assert len(routes(app)) > 30
    wrong = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    wrong.add_api_route("/v1/{data}/new", lambda: "")
    assert undeclared(wrong) == ["/v1/{data}/new"]


def test_who_may_not_is_refused_everywhere(served: tuple[Inside, dict[str, str]]) -> None:
    """All pairs; bodies are left out, since a refusal comes before anybody looks at them."""
    app, tokens = served
    seen = 0
    for route in routes(app.app):
        needed = role_of(route)
        if needed is None:
            continue
        [method] = route.methods
        strangers: dict[str, tuple[str | None, int]] = {"nobody": (None, 401), "a guess": ("bursar_x_y", 401)}
        if "{data}" in route.path:
            strangers |= {name: (token, 404) for name, token in tokens.items() if "elsewhere" in name}
        if needed is Role.OWNER:
            strangers["ana"] = tokens["ana"], 403
        for who, (token, status) in strangers.items():
            reply = app.ask(method, address(route, HERE), token)
            assert reply.status_code == status, (route.path, who, reply.text)
            assert set(reply.json()) == PUBLIC
            assert reply.json()["position"] is reply.json()["rewrite"] is reply.json()["left"] is None
            told = reply.text.replace(reply.json()["request_id"], "")
            assert not any(word in told for word in (HERE, OTHER, "ana", "olga", "zoe", "zara", "people"))
            assert token is None or token not in reply.text
            seen += 1
    assert seen > 100


def test_what_is_not_there_and_what_is_not_yours_look_the_same(served: tuple[Inside, dict[str, str]]) -> None:
    app, tokens = served
    replies = [app.ask("GET", f"/v1/{data}/budget", tokens["ana"]).json() for data in (OTHER, "nowhere", "a%20b")]
    assert len({(reply["code"], reply["text"]) for reply in replies}) == 1


def test_who_may_is_let_in_everywhere(served: tuple[Inside, dict[str, str]]) -> None:
    """The other half of the table: the refusals above are for the role, not for all."""
    app, tokens = served
    for route in routes(app.app):
        needed, (method, *_) = role_of(route), sorted(route.methods)
        if needed is not None and method == "GET":
            for who in ("ana", "olga") if needed is Role.ANALYST else ("olga",):
                reply = app.ask(method, address(route, HERE), tokens[who])
                missing = reply.status_code == 404 and reply.json()["code"] == "job"
                assert reply.status_code == 200 or missing, (route.path, who, reply.text)


def test_everybody_sees_the_own_log_and_budget_alone(served: tuple[Inside, dict[str, str]]) -> None:
    app, tokens = served
    question = {"sql": "SELECT COUNT(*) AS n FROM people WHERE age >= 80", "within": 300}
    assert app.ask("POST", f"/v1/{HERE}/query", tokens["olga"], json=question).status_code == 200
    assert app.ask("GET", f"/v1/{HERE}/log", tokens["ana"]).json() == []
    assert app.ask("GET", f"/v1/{HERE}/budget", tokens["ana"]).json()["spending"]["by_question"] == []
    whole = app.ask("GET", f"/v1/{HERE}/owner/log", tokens["olga"]).json()
    assert [line["analyst"] for line in whole] == ["owner", "olga"]


def test_tokens_reach_neither_the_journal_nor_the_metrics(served: tuple[Inside, dict[str, str]]) -> None:
    app, tokens = served
    app.ask("GET", f"/v1/{HERE}/budget?token={tokens['ana']}", tokens["ana"])
    app.ask("GET", f"/v1/{tokens['ana']}/budget", tokens["ana"])
    metrics = app.ask("GET", "/metrics", tokens["olga"]).text
    told = "\n".join([*app.journal, metrics])
    assert 'route="/v1/{data}/budget"' in metrics
    assert not any(token.split("_", 2)[2] in told for token in tokens.values())
    assert "SELECT" not in told
