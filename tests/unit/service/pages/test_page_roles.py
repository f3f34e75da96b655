"""Page x role x data set: whoever may not is sent away, and learns nothing. A new page without a visitor fails here."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from bursar.service.pages import add_pages
from bursar.service.pages.visits import PageRoute, owners_visit, visit
from bursar.service.people import Role
from harness.inside import Inside, inside
from harness.serving import data_set, let_in

HERE, OTHER = "demo-people", "second"
FRONT = {"/", "/-/login", "/-/openid/login", "/-/openid/callback"}
"""What anybody may see."""

FROM_HERE = {"Sec-Fetch-Site": "same-origin", "Content-Length": "0"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Inside, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("page-roles")
    here, other = data_set(folder / "here"), data_set(folder / "other", name=OTHER)
    tokens = let_in(here, ana=Role.ANALYST, olga=Role.OWNER) | let_in(other, zara=Role.OWNER)
    with inside(here, other) as app:
        add_pages(app.app)
        cookies = {}
        for name, token in tokens.items():
            reply = app.ask("POST", "/-/login", headers={"Sec-Fetch-Site": "same-origin"}, data={"token": token})
            cookies[name] = reply.headers["set-cookie"].partition(";")[0]
        yield app, cookies


def pages(router: FastAPI | APIRouter) -> Iterator[APIRoute]:
    for route in router.routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from pages(included)
        elif isinstance(route, PageRoute):
            yield route


def visitor_of(route: APIRoute) -> Role | None:
    """The role that a page declares; None where it declares none."""
    asked, found = list(route.dependant.dependencies), None
    while asked:
        dependency = asked.pop()
        if dependency.call is owners_visit:
            return Role.OWNER
        if dependency.call is visit:
            found = Role.ANALYST
        asked += dependency.dependencies
    return found


def test_every_page_declares_whom_it_is_for(served: tuple[Inside, dict[str, str]]) -> None:
    found = list(pages(served[0].app))
    assert {route.path for route in found if visitor_of(route) is None} == FRONT
    assert all("{data}" in route.path for route in found if route.path not in FRONT)
    assert len(found) > 35


def test_who_may_not_is_sent_away_from_every_page(served: tuple[Inside, dict[str, str]]) -> None:
    app, cookies = served
    refused, seen = set(), 0
    for route in pages(app.app):
        if route.path in FRONT:
            continue
        [method] = route.methods
        path = re.sub(r"\{\w+\}", "x", route.path.replace("{data}", HERE))
        for who, cookie in (("nobody", ""), ("zara", cookies["zara"]), ("zara", cookies["zara"].replace(OTHER, HERE))):
            reply = app.ask(method, path, headers={**FROM_HERE, "Cookie": cookie})
            assert reply.status_code == 303, (route.path, who, reply.status_code)
            assert reply.headers["location"].startswith("/")
            assert reply.text == ""
            seen += 1
        if visitor_of(route) is Role.OWNER:
            reply = app.ask(method, path, headers={**FROM_HERE, "Cookie": cookies["ana"]})
            assert reply.status_code == 403, (route.path, reply.status_code)
            refused.add(re.sub(r"[0-9a-f]{16}", "", reply.text.replace(path, "")))
        if method == "POST":
            for site in ("cross-site", "same-site", "none"):
                headers = {**FROM_HERE, "Sec-Fetch-Site": site, "Cookie": cookies["olga"]}
                assert app.ask(method, path, headers=headers).status_code == 403, route.path
    assert seen > 100
    assert len(refused) == 1, "all of them in the same words"


def test_nobody_takes_the_own_rights_away(served: tuple[Inside, dict[str, str]]) -> None:
    app, cookies = served
    headers = {"Sec-Fetch-Site": "same-origin", "Cookie": cookies["olga"]}
    for deed, form in (("add", {"name": " olga ", "role": "analyst"}), ("remove", {"name": "olga"})):
        reply = app.ask("POST", f"/{HERE}/people/{deed}", headers=headers, data=form)
        assert reply.status_code == 403
        assert "another owner" in reply.text or "yourself" in reply.text or "your own rights" in reply.text
    assert app.ask("GET", f"/{HERE}/people", headers=headers).status_code == 200
