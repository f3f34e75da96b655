"""Door 1, over a real process: what an analyst asks, sees, and is refused."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from bursar.answer import Answer
from bursar.service.people import Role
from harness.serving import Served, data_set, let_in, serving

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    config = data_set(tmp_path_factory.mktemp("served"))
    tokens = let_in(config, ana=Role.ANALYST, bob=Role.ANALYST, olga=Role.OWNER)
    with serving(config, tokens=tokens) as server:
        yield server


def test_a_question_over_http(served: Served) -> None:
    with served.client("ana") as ana:
        price = ana.post("/explain", json={"sql": BY_SEX, "within": 50}).json()
        first = ana.post("/query", json={"sql": BY_SEX, "within": 50}, headers={"Idempotency-Key": "one"})
        again = ana.post("/query", json={"sql": BY_SEX, "within": 50}, headers={"Idempotency-Key": "one"})
        assert first.status_code == 200, first.text
        assert first.content == again.content
        assert first.json()["charge"] == price["offers"][price["chosen"]]["price"] > 0
        assert [line["purpose"] for line in ana.get("/log").json()] == [BY_SEX]
        assert ana.get("/budget").json()["spent"] == first.json()["charge"]
        assert {column["name"] for column in ana.get("/columns").json()["columns"]} >= {"sex", "region"}
        stored = ana.post(
            "/query", json={"sql": BY_SEX, "within": 50}, headers={"Accept": "application/vnd.bursar.answer+json"}
        )
        assert Answer.from_bytes(stored.content).rows == first.json()["rows"]


def test_what_is_declared_is_described(served: Served) -> None:
    with served.client("ana") as ana:
        before = ana.get("/budget").json()["spent"]
        answer = ana.post("/query", json={"sql": "DESCRIBE people"})
        assert answer.status_code == 200, answer.text
        assert {line["column_name"]: line["column_type"] for line in answer.json()["rows"]}["sex"] == "VARCHAR"
        assert ana.get("/budget").json()["spent"] == before


def test_refusals_have_one_shape(served: Served) -> None:
    with served.client("ana") as ana:
        wrong = ana.post("/query", json={"sql": "SELECT COUNT(*) FROM people WHERE salary > 5", "within": 50})
        assert (wrong.status_code, wrong.json()["code"], wrong.json()["position"]) == (422, "question", 34)
        dear = ana.post("/query", json={"sql": BY_SEX, "within": 0.001})
        assert (dear.status_code, dear.json()["code"]) == (402, "budget")
        assert dear.json()["left"] < dear.json()["asked"]
        for field in ("cost", "scale", "seed", "analyst", "key"):
            assert ana.post("/query", json={"sql": BY_SEX, "within": 50, field: 1}).status_code == 422
        assert ana.get("/nowhere").status_code == 404
    assert httpx.get(f"{served.url}/v1/demo-people/budget").status_code == 401
    with served.client("ana", "other") as stranger:
        assert stranger.get("/budget").status_code == 404
