"""What the OpenAPI promises holds, whatever is sent: schemathesis makes up requests and looks at the replies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bursar.service.people import Role
from harness.serving import data_set, let_in, serving

CONFIG = """
request-timeout = 60
[parameters]
"path.data" = "demo-people"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 402, 403, 404, 409, 422]  # no schema can say which SQL is a question
[generation]
database = "none"
"""

QUICK = ["--phases", "examples,fuzzing", "-n", "2", "--exclude-path-regex", "thresholds|synth"]
LONG = ["-n", "10"]


@pytest.mark.parametrize(
    "options",
    [pytest.param(QUICK, marks=pytest.mark.heavy, id="quick"), pytest.param(LONG, marks=pytest.mark.soak, id="long")],
)
def test_replies_are_what_the_openapi_says(options: list[str], tmp_path: Path) -> None:
    config, log = data_set(tmp_path / "data", rows=1_000), tmp_path / "journal"
    tokens = let_in(config, olga=Role.OWNER)
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    limits = ["--requests", 0, "--concurrent", 0, "--failures", 0]
    with serving(config, *limits, "--log", log, tokens=tokens) as server:
        program = Path(sys.executable).with_name("schemathesis")
        command = [program, "run", f"{server.url}/openapi.json", "-H", f"Authorization: Bearer {tokens['olga']}"]
        done = subprocess.run(
            [*map(str, command), "--no-color", *options], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert done.returncode == 0, done.stdout[-10_000:]
    assert [line for line in lines if line["what"] == "fault"] == []
    assert {line["status"] for line in lines if line["what"] == "request"} >= {200, 422}
