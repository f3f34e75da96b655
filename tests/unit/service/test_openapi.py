"""The OpenAPI is complete: examples that fit, closed bodies, every refusal; and a page that needs no network."""

from __future__ import annotations

import re

import jsonschema
import pytest

from bursar.errors import BursarError, ConfigError, GoalError, LedgerError, ServerError, SourceError
from bursar.service.access import OPEN
from bursar.service.app import make_app
from bursar.service.datasets import DataSets
from bursar.service.errors import STATUS, Fault, refusal_of
from bursar.service.manual import page
from bursar.service.wire.failures import refusal


@pytest.fixture(scope="module")
def openapi() -> dict:
    return make_app(DataSets([])).openapi()


def operations(openapi: dict) -> list[tuple[str, dict]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]


def fits(openapi: dict, value: object, shape: dict) -> None:
    jsonschema.validate(value, {**shape, "components": openapi["components"]})


def test_examples_are_what_they_are_examples_of(openapi: dict) -> None:
    seen = 0
    for name, operation in operations(openapi):
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body is not None:
            shape = openapi["components"]["schemas"][body["schema"]["$ref"].rsplit("/", 1)[1]]
            assert shape["additionalProperties"] is False, name
            for example in shape.get("examples", []):
                fits(openapi, example, body["schema"])
                seen += 1
        for status, reply in operation["responses"].items():
            shown = reply.get("content", {}).get("application/json", {})
            if status.startswith("2") and shown:
                fits(openapi, shown["example"], shown["schema"])
                seen += 1
    assert seen > 30


def test_every_route_says_what_it_is_and_what_it_may_refuse(openapi: dict) -> None:
    for name, operation in operations(openapi):
        assert operation["description"].endswith("."), name
        assert operation["tags"]
        if "/v1/" in name:
            assert operation["security"] == [{"HTTPBearer": []}], name
            assert {"401", "403", "404", "422", "429", "500", "503"} <= set(operation["responses"]), name
            refusal = operation["responses"]["401"]["content"]["application/json"]["schema"]
            assert refusal == {"$ref": "#/components/schemas/Fault"}


def test_every_error_of_the_engine_has_a_status() -> None:
    kinds, found = [BursarError], []
    while kinds:
        found += (below := kinds.pop().__subclasses__())
        kinds += below
    found = [kind for kind in found if kind.__module__ == "bursar.errors" and kind is not ServerError]  # of clients
    assert len(found) > 10
    assert all(any(kind in STATUS for kind in error.__mro__) for error in found)
    assert {status for status, _ in STATUS.values()} == {402, 403, 409, 422, 503}


def test_a_refusal_has_all_that_the_error_had() -> None:
    from bursar.errors import BudgetError, ConfigError, QueryError, Waiting

    wrong = refusal_of(QueryError("no such column", text="SELECT x", position=7, rewrite="SELECT y")).fault
    assert (wrong.text, wrong.position, wrong.rewrite) == ("no such column", 7, "SELECT y")
    dear = refusal_of(BudgetError(2.0, 1.0, "epsilon", fits="WITH ERROR 70", limit="is left to ana")).fault
    assert (dear.asked, dear.left, dear.unit, dear.limit) == (2.0, 1.0, "epsilon", "is left to ana")
    assert dear.rewrite == "WITH ERROR 70"
    waits = refusal_of(Waiting(3, "it is another analyst's turn"))
    assert (waits.status, waits.fault.ticket) == (409, 3)
    assert "--ticket" not in waits.fault.text
    private = refusal_of(ConfigError("no partitions\ntry: some", "/srv/secret/bursar.toml", 3)).fault
    assert (private.text, private.rewrite) == ("no partitions", "some")
    assert "/srv" not in Fault.model_validate(private).model_dump_json()


def test_the_page_is_made_of_the_openapi_and_of_nothing_else(openapi: dict) -> None:
    shown = page(openapi)
    assert all(path.replace("{", "{") in shown for path in openapi["paths"])
    assert set(re.findall(r'(?:src|href|action)="([^"]+)"', shown)) == {"/docs.css", "/openapi.json"}
    assert set(OPEN) >= {"/docs.css", "/openapi.json"}
    assert "<script" not in shown
    assert "style=" not in shown
    info = {"title": "<script>", "version": "", "description": ""}
    assert "<script>" not in page({"info": info, "paths": {}})


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (LedgerError("the anchor /srv/people/bursar.bursar/anchor cannot be read"), "the anchor anchor cannot be read"),
        (SourceError("cannot open '/data/2024/people.csv': it is gone"), "cannot open 'people.csv': it is gone"),
        (ConfigError("a share is too large", "/srv/people/bursar.toml", 12), "a share is too large"),
        (SourceError("no answer from postgresql://db:5432/people"), "no answer from postgresql://db:5432/people"),
        (GoalError("1/2/3 is no number"), "1/2/3 is no number"),
    ],
)
def test_where_files_lie_is_told_through_no_door(error: BursarError, text: str) -> None:
    assert refusal_of(error).fault.text == refusal(error).text == text
