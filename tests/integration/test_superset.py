"""Apache Superset, unchanged: it connects, lists the table, draws a chart, and its filters cost nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import sync_playwright

from bursar.service.people import Role
from harness.serving import data_set, let_in, serving
from harness.superset import ADMIN, superset


@pytest.mark.soak
def test_superset_draws_a_chart(tmp_path: Path) -> None:
    config = data_set(tmp_path / "people", rows=10_000)
    tokens = let_in(config, ana=Role.ANALYST)
    with (
        serving(config, "--pg-port", 0, tokens=tokens) as served,
        served.client("ana") as ana,
        superset(tmp_path) as bi,
    ):
        wire = next(line for line in iter(served.out.readline, "") if line.startswith("postgresql://")).strip()
        place = wire.removeprefix("postgresql://")
        uri = f"postgresql+psycopg2://ana:{tokens['ana']}@{place}?options=-c%20bursar.error=300"

        def spent() -> float:
            told: float = ana.get("/budget").json()["spent"]
            return told

        bi.post("database/test_connection/", {"sqlalchemy_uri": uri, "database_name": "people", "extra": "{}"})
        database = bi.post("database/", {"sqlalchemy_uri": uri, "database_name": "people"})["id"]
        tables = bi.get(f"database/{database}/tables/?q=(schema_name:public)")["result"]
        assert [table["value"] for table in tables] == ["people"]  # type: ignore[attr-defined]
        dataset = bi.post("dataset/", {"database": database, "schema": "public", "table_name": "people"})["id"]
        values = bi.get(f"datasource/table/{dataset}/column/region/values/")["result"]
        assert "Northmark" in values  # type: ignore[operator]
        ends = [{"expressionType": "SIMPLE", "column": {"column_name": "age"}, "aggregate": a, "label": a}
                for a in ("MIN", "MAX")]  # fmt: skip
        assert bi.chart(dataset, metrics=ends, row_limit=1) == [{"MIN": 16, "MAX": 99}]
        refused = bi.post(
            "sqllab/execute/", {"database_id": database, "sql": "SELECT * FROM people", "schema": "public"}, fails=True
        )
        assert "single rows are never shown" in json.dumps(refused)
        assert spent() == 0.0  # all that came before a chart

        rows = bi.chart(dataset, columns=["region"], metrics=["count"], orderby=[["count", False]], row_limit=100)
        assert len(rows) == 10
        assert rows[0]["count"] > 1000  # type: ignore[operator]
        paid = spent()
        assert paid > 0
        months = {"columnType": "BASE_AXIS", "expressionType": "SQL", "label": "joined", "sqlExpression": "joined"}
        assert len(bi.chart(dataset, columns=[{**months, "timeGrain": "P1M"}], metrics=["count"], row_limit=100)) == 49
        drawn = spent()
        params = {"datasource": f"{dataset}__table", "viz_type": "pie", "groupby": ["region"], "metric": "count"}
        chart = {"slice_name": "by region", "viz_type": "pie", "params": json.dumps({**params, "row_limit": 100})}
        number = bi.post("chart/", {**chart, "datasource_id": dataset, "datasource_type": "table"})["id"]
        draw(f"{bi.url}/explore/?slice_id={number}&standalone=1", bi.url, tmp_path / "chart.png")
        assert spent() == drawn  # the same question in a chart: it was bought before


def draw(chart: str, url: str, picture: Path) -> None:
    """The chart as a browser shows it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium")
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{url}/login/")
        page.locator("#username").fill(ADMIN)
        page.locator("#password").fill(ADMIN)
        page.locator("#password").press("Enter")
        page.wait_for_url(lambda now: "login" not in now)
        page.goto(chart)
        page.locator("canvas").wait_for()
        page.wait_for_timeout(3_000)  # until it has moved into place
        page.screenshot(path=picture)
        browser.close()
    with Image.open(picture) as shown:
        areas = shown.convert("RGB").getcolors(shown.width * shown.height)
    assert sum(pixels > 500 for pixels, _ in areas) > 8  # one for each of the eight regions, and what is behind them
