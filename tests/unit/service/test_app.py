"""What the routes do, over real data sets: answers in all forms, jobs, what an owner does, limits, faults."""

from __future__ import annotations

import asyncio
import io
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow.ipc
import pytest

from bursar.answer import Answer
from bursar.planner.batch import Batch
from bursar.service.answer_formats import ARROW, CSV, STORED, STORED_BATCH
from bursar.service.bodies import BatchBody
from bursar.service.people import Role
from bursar.service.request_limits import LimitSettings
from bursar.session import Bursar
from harness.inside import Inside, inside
from harness.patience import PATIENCE, until
from harness.serving import data_set, let_in

pytestmark = pytest.mark.thinned(3)

HERE = "/v1/demo-people"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
ALL = "SELECT COUNT(*) AS n FROM people"


class Person:
    """Somebody with a token."""

    def __init__(self, app: Inside, token: str) -> None:
        self.app, self.token = app, token

    def get(self, path: str, **what: object) -> httpx.Response:
        return self.app.ask("GET", HERE + path, self.token, **what)

    def post(self, path: str, body: object, **what: object) -> httpx.Response:
        return self.app.ask("POST", HERE + path, self.token, json=body, **what)

    def done(self, job: dict[str, object]) -> dict[str, object]:
        """A job when it has ended."""
        until(lambda: self.get(f"/jobs/{job['id']}").json()["state"] not in ("waiting", "running"))
        found: dict[str, object] = self.get(f"/jobs/{job['id']}").json()
        return found


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_set(tmp_path_factory.mktemp("app"))


@pytest.fixture(scope="module")
def people(config: Path) -> Iterator[dict[str, Person]]:
    tokens = let_in(config, ana=Role.ANALYST, bob=Role.ANALYST, olga=Role.OWNER)
    with inside(config) as app:
        yield {name: Person(app, token) for name, token in tokens.items()}


@pytest.fixture
def ana(people: dict[str, Person]) -> Person:
    return people["ana"]


@pytest.fixture
def olga(people: dict[str, Person]) -> Person:
    return people["olga"]


@pytest.mark.heavy
def test_an_answer_in_every_form(ana: Person) -> None:
    body = {"sql": BY_SEX, "within": 100}
    plain = ana.post("/query", body).json()
    stored = ana.post("/query", body, headers={"Accept": STORED})
    answer = Answer.from_bytes(stored.content)
    assert answer.to_json()["rows"] == plain["rows"]
    table = ana.post("/query", body, headers={"Accept": f"{CSV}, */*;q=0.1"})
    assert table.text == answer.to_csv()
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    arrow = ana.post("/query", body, headers={"Accept": ARROW})
    assert pyarrow.ipc.open_stream(io.BytesIO(arrow.content)).read_all().to_pylist() == answer.rows
    assert ana.post("/query", body, headers={"Accept": "text/html"}).json()["rows"] == plain["rows"]


def test_a_batch_and_thresholds(ana: Person) -> None:
    body = {"questions": [BY_SEX, ALL], "within": 150}
    price = ana.post("/batch/explain", body).json()
    batch = ana.post("/batch", body, headers={"Accept": STORED_BATCH})
    assert Batch.from_bytes(batch.content).charge == price["offers"][price["chosen"]]["price"]
    assert [len(answer["rows"]) for answer in ana.post("/batch", body).json()["answers"]] == [4, 1]
    wanted = {"k": 2, "r": 1, "features": ["sex", "marital"], "within": 700}
    price = ana.post("/thresholds/explain", wanted).json()
    answer = ana.post("/thresholds", wanted).json()
    assert answer["charge"] == price["offers"][price["chosen"]]["price"]
    assert len(answer["rows"]) > 10


def test_a_key_is_for_one_question_of_one_person(people: dict[str, Person]) -> None:
    key = {"Idempotency-Key": "k"}
    first = people["ana"].post("/query", {"sql": BY_SEX, "within": 90}, headers=key)
    assert people["ana"].post("/query", {"sql": BY_SEX, "within": 90}, headers=key).content == first.content
    other = people["ana"].post("/query", {"sql": ALL, "within": 90}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "key")
    assert people["bob"].post("/query", {"sql": ALL, "within": 90}, headers=key).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"sql": ALL, "within": 50, "cost": 0},
        {"sql": ALL, "within": 50, "analyst": "bob"},
        {"sql": ALL, "within": True},
        {"sql": ALL, "within": [50]},
        {"sql": 5, "within": 50},
        {"within": 50},
        {"sql": ALL, "rmse": "50"},
        {"sql": ALL, "within": 50, "ticket": 0},
        [],
        None,
    ],
    ids=json.dumps,
)
def test_a_body_holds_what_it_may_and_nothing_else(ana: Person, body: object) -> None:
    before = ana.get("/budget").json()["spent"]
    reply = ana.post("/query", body)
    assert (reply.status_code, reply.json()["code"]) == (422, "request")
    assert ana.get("/budget").json()["spent"] == before


def test_a_body_without_its_type_is_told_the_header(ana: Person) -> None:
    content = json.dumps({"sql": ALL, "within": 50}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d sends it
    reply = ana.app.ask("POST", f"{HERE}/query", ana.token, content=content, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (422, "request")
    assert "Content-Type: application/json" in reply.json()["text"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"sql": NaN}', b'{"sql": "x", "within": 1e999}'])
def test_what_is_no_body_at_all(ana: Person, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    reply = ana.app.ask("POST", f"{HERE}/query", ana.token, content=content, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (422, "request")


@pytest.mark.heavy
def test_a_release_can_be_left_and_found_again(people: dict[str, Person]) -> None:
    ana, key = people["ana"], {"Idempotency-Key": "monday"}
    body = {"questions": [BY_SEX, ALL], "within": 80}
    begun = ana.post("/release", body, headers=key)
    assert begun.status_code == 202
    done = ana.done(begun.json())
    assert done["state"] == "done"
    assert ana.post("/release", body, headers=key).json() == done
    result = Batch.from_bytes(ana.get(f"/jobs/{done['id']}/result", headers={"Accept": STORED_BATCH}).content)
    assert result.charge > 0
    again = ana.post("/batch", body, headers={"Accept": STORED_BATCH})
    assert Batch.from_bytes(again.content).charge == 0
    labels = [[answer.labels for answer in made.answers] for made in (result, Batch.from_bytes(again.content))]
    assert labels[0] == labels[1]
    assert ana.post("/release", {**body, "within": 81}, headers=key).status_code == 409
    assert people["bob"].get(f"/jobs/{done['id']}").status_code == 404
    assert people["bob"].get(f"/jobs/{done['id']}/result").status_code == 404
    assert done["id"] in [job["id"] for job in ana.get("/jobs").json()]
    assert ana.get(f"/jobs/{done['id']}/report").status_code == 404
    events = ana.get(f"/jobs/{done['id']}/events")
    assert events.text == f"event: done\ndata: {json.dumps(done)}\n\n"
    refused = ana.post("/release", {"questions": ["SELECT nothing"], "within": 80})
    assert (refused.status_code, refused.json()["code"]) == (422, "question")


def test_a_synthetic_table(people: dict[str, Person]) -> None:
    body = {"rows": 50, "spend": 0.05, "marginals": "sex,marital", "method": "marginals"}
    price = people["olga"].post("/synth/explain", body).json()
    assert 0 < price["price"] <= 0.05
    done = people["olga"].done(people["olga"].post("/synth", body).json())
    assert done["state"] == "done", done
    rows = people["olga"].get(f"/jobs/{done['id']}/result")
    assert rows.headers["content-type"] == "text/csv; charset=utf-8"
    assert len(rows.text.splitlines()) == 51
    report = people["olga"].get(f"/jobs/{done['id']}/report").json()
    assert (report["rows"], report["method"]) == (50, "marginals")
    free = people["ana"].done(people["ana"].post("/synth", {"rows": 10, "format": "parquet"}).json())
    assert free["state"] == "done", free
    assert people["ana"].get(f"/jobs/{free['id']}/result").content[:4] == b"PAR1"
    assert people["ana"].post("/synth", body).json()["code"] == "analyst"
    wrong = people["olga"].post("/synth", {"ways": 2, "history": True})
    assert wrong.status_code == 422


def test_an_owner_looks_after_people(people: dict[str, Person]) -> None:
    olga, app = people["olga"], people["olga"].app

    def owner(method: str, path: str, body: object = None) -> httpx.Response:
        return app.ask(method, f"{HERE}/owner{path}", olga.token, **({} if body is None else {"json": body}))

    zoe = {"name": "zoe", "role": "analyst", "accounts": [], "tokens": []}
    assert owner("PUT", "/people/zoe", {"role": "analyst"}).json() == zoe
    tied = {"role": "analyst", "account": "zoe@example.org"}
    assert owner("PUT", "/people/zoe", tied).json() == {**zoe, "accounts": ["zoe@example.org"]}
    taken = owner("PUT", "/people/zac", tied)
    assert (taken.status_code, taken.json()["code"]) == (409, "account")
    made = owner("POST", "/people/zoe/tokens", {"days": 2})
    assert made.status_code == 201
    token = made.json()["token"]
    assert app.ask("GET", f"{HERE}/budget", token).status_code == 200
    [known] = [person for person in owner("GET", "/people").json() if person["name"] == "zoe"]
    assert [each["id"] for each in known["tokens"]] == [token.split("_")[1]]
    assert token not in owner("GET", "/people").text
    assert owner("DELETE", f"/tokens/{token.split('_')[1]}").json() == {"revoked": 1}
    assert app.ask("GET", f"{HERE}/budget", token).status_code == 401
    assert owner("DELETE", "/people/zoe").json() == {"removed": "zoe"}
    for method, path in (("DELETE", "/people/zoe"), ("POST", "/people/zoe/tokens"), ("DELETE", "/tokens/zoe")):
        gone = owner(method, path, {} if method == "POST" else None)
        assert (gone.status_code, gone.json()["code"]) == (404, "person")
    assert owner("PUT", "/people/everyone", {"role": "owner"}).status_code == 404
    assert owner("PUT", "/people/%20x", {"role": "owner"}).status_code == 422
    for method, body in (("DELETE", None), ("PUT", {"role": "analyst"})):
        assert owner(method, "/people/olga", body).json()["code"] == "yourself"


def test_an_owner_looks_after_the_ledger(olga: Person, config: Path) -> None:
    health = olga.get("/owner/verify").json()
    assert health["records"] == len(olga.get("/owner/log").json())
    assert olga.post("/owner/seal", {}).json()["code"] == "config"
    rows = config.with_name("people.csv")
    rows.write_text(rows.read_text() + rows.read_text().splitlines()[-1] + "\n")
    assert olga.post("/owner/version", {"same_rows": True}).json() == {"version": 2}
    again = olga.post("/query", {"sql": "SELECT COUNT(*) AS n FROM people WHERE age = 30", "within": 200})
    assert again.status_code == 200, again.text
    lines = olga.get("/owner/log").json()
    assert olga.get("/owner/log?last=2").json() == lines[-2:]
    assert lines[-2]["kind"] == "version 2 (rows added)"
    assert olga.get(f"/owner/log?last=2&before={lines[-1]['position']}").json() == lines[-3:-1]
    assert olga.get("/owner/log?of=nobody").json() == []
    assert olga.get("/owner/log?proposer=owner").json() == [line for line in lines if line["proposer"] == "owner"]
    assert olga.get("/owner/log?last=100000").status_code == 422


def test_shares_of_a_config_that_was_changed(tmp_path: Path) -> None:
    """The config is edited beside the server, and given out through it; everybody sees it at once."""
    config = data_set(tmp_path)
    tokens = let_in(config, ana=Role.ANALYST, bob=Role.ANALYST, olga=Role.OWNER)
    with inside(config) as app:
        ana, bob, olga = (Person(app, tokens[name]) for name in ("ana", "bob", "olga"))
        config.write_text(
            config.read_text()
            + '\n[analysts]\npolicy = "shared"\nscheduler = "round-robin"\nshares = {ana = 0.5, bob = 0.5}\n'
        )
        assert ana.get("/budget").json()["accounts"] == []
        given = olga.post("/owner/shares", {}).json()
        assert [account["analyst"] for account in given] == ["ana", "bob"]
        assert [account["analyst"] for account in ana.get("/budget").json()["accounts"]] == ["ana"]
        assert olga.post("/query", {"sql": ALL, "within": 300}).json()["code"] == "analyst"
        first = ana.post("/query", {"sql": ALL, "within": 300})
        waits = ana.post("/query", {"sql": BY_SEX, "within": 300})
        if first.status_code == 409:  # it was bob's turn first
            first, waits = bob.post("/query", {"sql": ALL, "within": 300}), first
        assert first.status_code == 200
        ticket = waits.json()["ticket"]
        assert (waits.status_code, waits.json()["code"], waits.headers["Retry-After"]) == (409, "waiting", "1")
        assert [own["number"] for own in ana.get("/queue").json()["own"]] == [ticket]
        assert bob.post("/queue/pass", {}).status_code == 200
        redeemed = ana.post("/query", {"sql": BY_SEX, "within": 300, "ticket": ticket})
        assert redeemed.status_code == 200, redeemed.text


def test_limits(config: Path) -> None:
    tokens = let_in(config, ana=Role.ANALYST, olga=Role.OWNER)
    settings = LimitSettings(requests=5, failures=2, concurrent=1, longest_sql=100, largest_body=1000, body_seconds=0.2)
    with inside(config, settings=settings) as app:
        ana, olga = Person(app, tokens["ana"]), Person(app, tokens["olga"])
        long = ana.post("/query", {"sql": ALL + " " * 100, "within": 50})
        assert (long.status_code, long.json()["position"]) == (422, 100)
        assert ana.post("/query", {"sql": "x" * 2_000}).status_code == 413
        replies = [ana.get("/columns") for _ in range(5)]
        assert [reply.status_code for reply in replies] == [200] * 3 + [429] * 2
        assert int(replies[-1].headers["Retry-After"]) in range(1, 13)
        guesses = [app.ask("GET", f"{HERE}/columns", "bursar_a_b").status_code for _ in range(4)]
        assert guesses == [401, 401, 429, 429]
        assert olga.get("/columns").status_code == 200  # a good token is not kept out by others

        async def slowly() -> Iterator[bytes]:  # type: ignore[misc]
            yield b"{"
            await asyncio.sleep(1)
            yield b"}"

        async def send(client: httpx.AsyncClient) -> httpx.Response:
            headers = {"Authorization": f"Bearer {olga.token}"}
            return await client.post(f"{HERE}/query", content=slowly(), headers=headers)

        slow = app.run(send)
        assert isinstance(slow, httpx.Response)
        assert slow.status_code == 408


def test_what_goes_wrong_inside_stays_inside(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [token] = let_in(config, ana=Role.ANALYST).values()

    def broken(self: Bursar, *words: object, **named: object) -> Answer:
        raise ValueError("31 people live in Northmark")

    monkeypatch.setattr(Bursar, "query", broken)
    with inside(config) as app:
        reply = app.ask("POST", f"{HERE}/query", token, json={"sql": ALL, "within": 50})
        assert (reply.status_code, reply.json()["code"]) == (500, "internal")
        assert reply.headers["X-Request-Id"] == reply.json()["request_id"]
        assert "Northmark" not in reply.text + "\n".join(app.journal)
        [fault] = [json.loads(line) for line in app.journal if '"fault"' in line]
        assert (fault["request"], fault["kind"]) == (reply.json()["request_id"], "ValueError")


def test_health(people: dict[str, Person]) -> None:
    app = people["ana"].app
    assert app.ask("GET", "/healthz").text == "ok\n"
    assert app.ask("GET", "/readyz").text == "ok\n"
    page = app.ask("GET", "/docs")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
    assert app.ask("GET", "/docs.css").status_code == 200
    wrong = app.ask("DELETE", f"{HERE}/query", people["ana"].token)
    assert (wrong.status_code, wrong.headers["Allow"], wrong.json()["code"]) == (405, "POST", "http")


def test_a_batch_of_a_body_is_what_the_session_has() -> None:
    assert set(BatchBody.model_fields) - {"questions", "ticket", "horizon", "at_most"} == set(
        BatchBody(questions=[ALL]).goal
    )  # nothing that a session takes as a goal is left out


def test_a_stream_ends_with_the_token_that_began_it(config: Path) -> None:
    tokens, held = let_in(config, ana=Role.ANALYST), threading.Event()
    with inside(config) as app:
        jobs, people = app.app.state.jobs["demo-people"], app.app.state.datasets["demo-people"].people
        job = jobs.begin("ana", "release", "{}", None, lambda step: held.wait(PATIENCE) and None, allowed=lambda: True)

        async def watch(client: httpx.AsyncClient) -> str:
            headers = {"Authorization": f"Bearer {tokens['ana']}"}
            stream = asyncio.create_task(client.get(f"/v1/demo-people/jobs/{job.id}/events", headers=headers))
            await asyncio.sleep(0.5)
            assert not stream.done()
            people.revoke(tokens["ana"].split("_")[1])
            return (await asyncio.wait_for(stream, PATIENCE)).text

        told = app.run(watch)
        held.set()
    assert isinstance(told, str)
    assert "done" not in re.findall(r"^event: (\w+)", told, re.MULTILINE)
