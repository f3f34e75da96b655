"""The commands and the Python of docs/server.md work as they stand there, but for the port."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from bursar.service.people import Role
from harness.serving import data_set, let_in, serving

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    blocks = re.findall(r"^```\n(curl .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [command for block in blocks for command in block.replace("\\\n", "").splitlines()]


@pytest.mark.heavy  # the questions of the page again; what they show is tested elsewhere
def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    config = data_set(tmp_path, rows=20_000)
    tokens = let_in(config, you=Role.OWNER)
    assert len(commands()) >= 9
    with serving(config, tokens=tokens) as server:
        for command in commands():
            here = command.replace("http://127.0.0.1:8000", server.url)
            own = {"TOKEN": tokens["you"], "PATH": "/usr/bin:/bin"}
            done = subprocess.run(["sh", "-c", here], env=own, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            if "text/csv" not in command:
                assert "code" not in json.loads(done.stdout)


@pytest.mark.heavy
def test_the_python_of_the_page_works(tmp_path: Path) -> None:
    config = data_set(tmp_path, rows=20_000)
    tokens = let_in(config, you=Role.ANALYST)
    [block] = re.findall(r"^```\n(import bursar\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    with serving(config, tokens=tokens) as server:
        exec(block.replace("http://127.0.0.1:8000", server.url), {"token": tokens["you"]})


def test_the_page_lists_every_code() -> None:
    source = Path(__file__).parents[2] / "src" / "bursar" / "service"
    texts = "\n".join(path.read_text(encoding="utf-8") for path in source.glob("*.py"))
    codes = set(re.findall(r'refused\(\s*\d+, "(\w+)"', texts)) | set(re.findall(r'\(\d{3}, "(\w+)"\)', texts))
    told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| [\d, ]+ \|(.*?)\|", PAGE, re.MULTILINE))))
    assert codes - {"http"} == told
