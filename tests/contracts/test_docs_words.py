"""The glossary has the words that the pages use and no others, and the index leads to every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cases import every

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^\*\*(.+?)\*\*: (.+?)(?:\n\n|\Z)", GLOSSARY, re.MULTILINE | re.DOTALL))
PAGES = {page.name: page.read_text(encoding="utf-8") for page in [*DOCS.glob("*.md"), *ROOT.glob("*.md")]}
OTHERS = "\n".join(text for name, text in PAGES.items() if name not in ("glossary.md", "CHANGELOG.md"))

JARGON = {
    r"adjacen": "neighbours",
    r"differential(ly)? privat|differential privacy|\bDP\b": "differential privacy",
    r"zCDP|zero-concentrated": "zero-concentrated",
    r"\bRMSE\b|mean square": "root mean square error",
    r"max_contributions|contribution": "contribution",
    r"strateg": "strategy",
    r"eigen": "Eigen-Design",
    r"least[- ]squares": "least squares",
    r"\bmarginals?\b": "marginal",
    r"\bpure\b": "pure",
    r"refine": "refine",
    r"reconstruct": "reconstruct",
    r"sensitivity": "sensitivity",
    r"composition": "composition",
    r"singular value": "singular value bound",
    r"hash chain": "hash chain",
    r"\bslack\b": "slack",
    r"seeded": "seed",
    r"\btickets?\b": "ticket",
    r"monotonic": "monotonicity",
    r"interference": "interference",
    r"simultaneous": "simultaneous",
    r"multiplicative weights": "multiplicative weights",
    r"neighbours": "neighbours",
    r"precisions?\b": "precision",
}
"""Words of the trade, as pages may spell them, and where the glossary explains them."""


@every("word", lambda: ENTRIES)
def test_an_entry_is_used_and_short(word: str) -> None:
    assert re.search(rf"\b{re.escape(word)}", OTHERS, re.IGNORECASE)
    meaning = " ".join(ENTRIES[word].split())
    assert meaning.endswith(".")
    assert len(re.findall(r"\.(?= |$)", meaning)) <= 2
    assert len(meaning.split()) <= 40


def test_entries_stand_in_the_order_of_the_alphabet() -> None:
    assert list(ENTRIES) == sorted(ENTRIES, key=str.casefold)
    assert len(ENTRIES) == GLOSSARY.count("\n**")


@pytest.mark.parametrize("pattern", JARGON)
def test_a_word_of_the_trade_that_is_used_is_explained(pattern: str) -> None:
    assert re.search(pattern, OTHERS) is None or JARGON[pattern] in ENTRIES


def test_values_of_the_config_are_explained() -> None:
    values = set(re.findall(r'`"([a-z]+-[a-z]+)"`', PAGES["config.md"]))
    assert {"add-remove", "replace-one", "per-query"} <= values
    assert values - {"seeded-cache", "round-robin"} <= set(ENTRIES)
    assert {"policy", "scheduler", "seed", "share", "epsilon", "delta", "rho", "pace", "partition"} <= set(ENTRIES)


def test_the_index_leads_everywhere() -> None:
    linked = set(re.findall(r"\]\(([^)#]+)", PAGES["index.md"]))
    assert linked >= {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert linked >= {f"../examples/{book.name}" for book in (ROOT / "examples").glob("*.ipynb")}
