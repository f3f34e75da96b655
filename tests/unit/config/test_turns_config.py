"""[analysts]: how turns are given. Every refusal has its line and what would work."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from bursar.errors import ConfigError
from harness.configs import head, read

BASE = (
    head()
    + """\
[columns.sex]
values = ["F", "M"]
[analysts]
shares = { alice = 0.5, bob = 0.3 }
"""
)


def loaded(folder: Path, more: str) -> object:
    return read(folder, BASE + more).analysts


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("wait", None),
        ("skip-after 0s", 0.0),
        ("skip-after 10m", 600.0),
        ("skip-after 2 h", 7200.0),
        ("skip-after 1d", 86400.0),
    ],
)
def test_the_idle_rule(tmp_path: Path, text: str, seconds: float | None) -> None:
    assert loaded(tmp_path, f'scheduler = "round-robin"\nidle = "{text}"').idle == seconds


def test_turns_wait_for_their_owners_unless_the_config_says_otherwise(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'scheduler = "round-robin"').idle is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", None),
        ('probabilities = "shares"', None),
        ('probabilities = "uniform"', {"alice": Fraction(1, 2), "bob": Fraction(1, 2)}),
        ("probabilities = { bob = 0.1, alice = 3 }", {"alice": Fraction(3), "bob": Fraction(1, 10)}),
    ],
)
def test_probabilities(tmp_path: Path, text: str, wanted: dict[str, Fraction] | None) -> None:
    assert loaded(tmp_path, f'scheduler = "randomized"\n{text}').probabilities == wanted


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ('scheduler = "round-robin"\nidle = "skip"', "analysts.idle cannot be"),
        ('scheduler = "round-robin"\nidle = "skip-after 10"', "analysts.idle cannot be"),
        ('scheduler = "round-robin"\nidle = "skip-after 400d"', "at most a year"),
        ('scheduler = "round-robin"\nidle = 10', "must be text"),
        ('policy = "shared"\nidle = "wait"', "no scheduler"),
        ('scheduler = "round-robin"\nprobabilities = "uniform"', 'belong to scheduler = "randomized"'),
        ('scheduler = "randomized"\nprobabilities = "uniformly"', 'did you mean "uniform"'),
        ('scheduler = "randomized"\nprobabilities = 3', "must be a section"),
        ('scheduler = "randomized"\nprobabilities = { alice = 0.5 }', 'says nothing about "bob"'),
        ('scheduler = "randomized"\nprobabilities = { alice = 0.5, bob = 0 }', "must be above 0"),
        ('scheduler = "randomized"\nprobabilities = { alice = 0.5, bob = "x" }', "must be a number"),
        ('scheduler = "randomized"\nprobabilities = { alice = 0.5, bobby = 1 }', 'did you mean "bob"'),
        ('scheduler = "randomized"\nprobabilities = { alice = 0.5, zoe = 1 }', "name analysts who have a share"),
    ],
)
def test_a_refusal_has_its_line_and_a_way_out(tmp_path: Path, more: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, more)
    assert reason in str(refused.value)
    assert "try: " in str(refused.value)
    assert refused.value.line == BASE.count("\n") + 2
