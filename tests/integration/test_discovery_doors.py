"""An analyst's search for texts of an open column, over HTTP and over PostgreSQL's wire."""

from __future__ import annotations

from pathlib import Path

import pytest

import bursar
from bursar.service.people import Role
from harness.serving import let_in, serving
from unit.test_asking_with_discovery import CONFIG, ROWS

psycopg = pytest.importorskip("psycopg")

ASKED = "SELECT {0}, COUNT(*) AS n FROM people GROUP BY {0} WITH ERROR 20 DISCOVERY"


def test_texts_are_looked_for_over_http_and_over_the_wire(tmp_path: Path) -> None:
    config = tmp_path / "bursar.toml"
    config.write_text(CONFIG)
    lines = ["city,job,age", *(",".join(map(str, row)) for row in ROWS)]
    (tmp_path / "towns.csv").write_text("\n".join(lines))
    bursar.create(config).close()
    tokens = let_in(config, ana=Role.ANALYST)
    with serving(config, tokens=tokens) as server, server.client("ana", "towns") as ana:
        first, again = (ana.post("/query", json={"sql": ASKED.format("city")}).json() for _ in range(2))
        assert {"Rome", "Oslo", "Bern"} <= {row["city"] for row in first["rows"]}
        assert first["charge"] > 0 == again["charge"]
        found = [line for line in ana.get("/log").json() if line["proposer"] == "discovery"]
        assert {line["analyst"] for line in found if line["charge"]} == {"ana"}
        printed = [server.out.readline().strip() for _ in range(3)]
        url = next(line for line in printed if line.startswith("postgresql:")).replace("//", f"//ana:{tokens['ana']}@")
        with psycopg.connect(url, autocommit=True) as link:
            rows = dict(link.execute(ASKED.format("job")).fetchall())
        assert set(rows) == {"cook", "nurse", "smith", "other", None}
