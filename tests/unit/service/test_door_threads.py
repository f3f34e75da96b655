"""Where questions are answered: what was asked before is not held up by what is new, nor by the walk of FastAPI."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bursar.service.answer_formats import CSV
from bursar.service.people import Role
from bursar.service.question_threads import MOST_KNOWN, QuestionThreads
from bursar.session import Bursar
from harness.inside import Inside, inside
from harness.patience import PATIENCE
from harness.serving import data_set, let_in

QUERY = "/v1/demo-people/query"
BY_SEX = {"sql": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "within": 150}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Inside, str]]:
    config: Path = data_set(tmp_path_factory.mktemp("threads"))
    [token] = let_in(config, ana=Role.ANALYST).values()
    with inside(config) as app:
        yield app, token


def test_new_questions_cannot_take_all_threads() -> None:
    """However many of them wait, what was asked before is answered; with one pool it would not be."""
    release, threads = threading.Event(), QuestionThreads(4)

    async def go() -> str:
        slow = [threads.run(lambda: release.wait(PATIENCE), again=False) for _ in range(8)]
        try:
            return await asyncio.wait_for(threads.run(lambda: "answered", again=True), PATIENCE / 2)
        finally:
            release.set()
            await asyncio.gather(*slow)

    assert asyncio.run(go()) == "answered"
    threads.close()


def test_the_oldest_questions_are_forgotten() -> None:
    threads = QuestionThreads(2)
    for number in range(MOST_KNOWN):
        threads.remember(number)
    assert threads.knows(0)
    threads.remember("one more")
    assert threads.knows(0)
    assert not threads.knows(1)
    threads.close()


def test_what_is_asked_again_is_answered_without_a_thread(
    served: tuple[Inside, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, token = served

    def ask(**headers: str) -> httpx.Response:
        return app.ask("POST", QUERY, token, json=BY_SEX, headers=headers)

    paid, free = ask(), ask()
    assert paid.json()["charge"] > 0
    assert free.json()["charge"] == 0
    with monkeypatch.context() as held:
        held.setattr(Bursar, "query", None)  # it would be called in a thread
        assert ask().json() == free.json()
        assert ask(**{"Idempotency-Key": "bursar-once-1"}).json() == free.json()
        assert ask(Accept=CSV).text.splitlines()[0] == "sex,n,n_low,n_high"
        assert ask(**{"Idempotency-Key": "for good"}).status_code == 500  # what has a name is looked up by it
    app.ask("POST", QUERY, token, json={"sql": "SELECT COUNT(*) AS n FROM people WHERE age >= 40", "within": 300})
    assert ask().json()["left"] < free.json()["left"]  # the log has grown: what is left is not what was left


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"[" * 100_000, 422),
        (b"\xff", 422),
        (b'{"sql": "SELECT COUNT(*) FROM people", "within": NaN}', 422),
        (b'{"sql": "SELECT COUNT(*) FROM people", "within": 50, "seed": 1}', 422),
        (b'{"sql": "SELECT COUNT(*) FROM people", "within": true}', 422),
    ],
)
def test_a_plain_request_is_refused_as_any_other(served: tuple[Inside, str], body: bytes, status: int) -> None:
    app, token = served
    plain = app.ask("POST", QUERY, token, content=body, headers={"Content-Type": "application/json"})
    declared = app.ask("POST", QUERY, token, content=body, headers={"Content-Type": "application/json; charset=utf-8"})
    assert plain.status_code == declared.status_code == status
    assert plain.json()["text"] == declared.json()["text"]


def test_a_plain_request_needs_its_own_data_set(served: tuple[Inside, str]) -> None:
    app, token = served
    assert app.ask("POST", "/v1/others/query", token, json=BY_SEX).status_code == 404
    assert app.ask("POST", QUERY, token, json=BY_SEX, headers={"Idempotency-Key": "k" * 201}).status_code == 422
