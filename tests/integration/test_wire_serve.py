"""`bursar serve` takes PostgreSQL clients beside HTTP, and finishes what they ask before it ends."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from bursar.config import load
from bursar.core.ledger import SqliteLedger
from bursar.service.people import Role
from harness.patience import until
from harness.serving import data_set, let_in, serving

psycopg = pytest.importorskip("psycopg")


def records(config: Path) -> int:
    known = load(config)
    ledger = SqliteLedger.open(known.ledger_path, known.charter)
    try:
        return len(ledger.records())
    finally:
        ledger.close()


def test_one_token_opens_both_doors(tmp_path: Path) -> None:
    config = data_set(tmp_path)
    config.write_text(config.read_text().replace("[privacy]", "[privacy]\npace = 1.0"))
    tokens = let_in(config, ana=Role.ANALYST)
    with serving(config, tokens=tokens) as server:
        lines = [server.out.readline().strip() for _ in range(3)]
        url = next(line for line in lines if line.startswith("postgresql:")).replace("//", f"//ana:{tokens['ana']}@")
        question = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
        with server.client("ana") as client:
            asked = client.post("/query", json={"sql": question, "within": 60}).json()
        with psycopg.connect(url, autocommit=True) as link:
            rows = link.execute(f"{question} WITH ERROR 60").fetchall()
            assert [n for _, n in rows] == [round(row["n"]) for row in asked["rows"]]
            ended: list[int] = []
            before = records(config)

            def end() -> None:
                until(lambda: records(config) > before)  # it was paid for, and waits for its second to be over
                ended.append(server.end(signal.SIGTERM))

            ending = threading.Thread(target=end)
            ending.start()
            assert link.execute("SELECT COUNT(*) FROM people WHERE age > 50").fetchone()
            ending.join()
            assert ended == [0]
            with pytest.raises(psycopg.OperationalError):
                link.execute("SELECT 1")
    journal = server.err.read_text()
    assert '"route": "question"' in journal
    assert tokens["ana"] not in journal
    assert "SELECT" not in journal
