"""What code hosts and tools read beside the package: one version everywhere, files that parse, one decider in CI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import bursar

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path: str) -> object:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_there_is_one_version() -> None:
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    citation = read("CITATION.cff")
    assert isinstance(citation, dict)
    assert {bursar.__version__, PROJECT["version"], newest[1], citation["version"]} == {bursar.__version__}
    assert citation["license"] == PROJECT["license"]


def test_the_stability_page_is_about_this_version() -> None:
    minor = bursar.__version__.rpartition(".")[0]
    assert f"version {minor}:" in (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")


def test_the_changelog_is_by_area() -> None:
    """Every line of a version is under an area, except what waits under Unreleased."""
    for part in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        loose, *areas = re.split(r"^### ", part, flags=re.MULTILINE)
        assert loose.startswith("Unreleased") or (areas and "\n- " not in loose)


def test_the_workflow_leaves_the_decision_to_one_script() -> None:
    workflow = read(".github/workflows/ci.yml")
    assert isinstance(workflow, dict)
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert commands == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def test_hooks_are_what_make_lint_runs() -> None:
    """Nothing is fetched: every hook is a tool of the project's own environment."""
    config = read(".pre-commit-config.yaml")
    assert isinstance(config, dict)
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    entries = [hook["entry"] for repository in config["repos"] for hook in repository["hooks"]]
    linted = re.findall(r"\$\(BIN\)/((?:ruff|mypy)[ \w-]*?)(?: src.*)?$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert linted
    assert {f".venv/bin/{command}" for command in linted} <= set(entries)
    for entry in entries:
        named = [word for word in entry.split() if word.startswith("tools/")]
        assert all((ROOT / word).is_file() for word in named)


def test_issue_templates_send_privacy_bugs_elsewhere() -> None:
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert len(templates) >= 3
    for template in templates:
        _, head, body = template.read_text(encoding="utf-8").split("---\n", 2)
        assert {"name", "about"} <= set(yaml.safe_load(head))
        assert body.strip()
    bug = (ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.md").read_text(encoding="utf-8")
    assert "SECURITY.md" in bug


def test_the_readme_fits_on_a_screen() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 50
    assert max(len(line) for line in lines) <= 125
