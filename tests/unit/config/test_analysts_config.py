"""[analysts]: what is read, and what is refused where."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from bursar.analysts.shares import AnalystSettings, Seed, Shares
from bursar.errors import ConfigError
from harness.configs import head, read

TEXT = (
    head()
    + """\
[analysts]
policy = "seeded-cache"
scheduler = "round-robin"
shares = { alice = 0.5, bob = 0.3 }
seed = { fraction = 0.25, basis = "wavelet", columns = ["sex", "age"] }

[columns.age]
lower = 0
upper = 99

[columns.sex]
values = ["F", "M"]
"""
)


def test_everything_is_read(tmp_path: Path) -> None:
    settings = read(tmp_path, TEXT).analysts
    assert (settings.policy, settings.scheduler) == ("seeded-cache", "round-robin")
    assert settings.shares == Shares.of({"alice": 0.5, "bob": 0.3})
    assert settings.seed == Seed(fraction=Fraction(1, 4), basis="wavelet", columns=("age", "sex"))


def test_all_of_it_is_optional(tmp_path: Path) -> None:
    lines = TEXT.splitlines(keepends=True)
    assert read(tmp_path, "".join(lines[:13] + lines[19:])).analysts == AnalystSettings()
    assert read(tmp_path, "".join(lines[:14] + lines[18:])).analysts == AnalystSettings()
    shares = read(tmp_path, "".join([*lines[:14], "shares.alice = 1\n", *lines[18:]])).analysts
    assert shares == AnalystSettings(shares=Shares.of({"alice": 1}))
    seeded = read(tmp_path, TEXT.replace('basis = "wavelet", ', "")).analysts.seed
    assert seeded is not None
    assert seeded.basis == "histogram"


@pytest.mark.parametrize(
    ("before", "after", "line", "reason", "hint"),
    [
        ("seeded-cache", "seeded-cash", 15, 'analysts.policy cannot be "seeded-cash"', 'did you mean "seeded-cache"?'),
        ("round-robin", "fair", 16, 'analysts.scheduler cannot be "fair"', 'scheduler = "none"'),
        ("alice = 0.5", "alice = 0", 17, "analysts.shares.alice must lie above 0", "leave this analyst out"),
        ("alice = 0.5", "alice = 1.5", 17, "analysts.shares.alice must lie above 0 and at most 1", "fraction"),
        ("alice = 0.5", 'alice = "half"', 17, "analysts.shares.alice must be a number", "shares ="),
        ("alice = 0.5", "alice = nan", 17, "finite number", "shares ="),
        ("alice = 0.5", "alice = 0.8", 17, "the shares are 1.1 together", ""),
        ("alice = 0.5", '" alice" = 0.5', 17, "the name of an analyst is printable text", ""),
        ("alice = 0.5", "everyone = 0.5", 17, '"everyone" is the name of the account', "another name"),
        ("{ alice = 0.5, bob = 0.3 }", "{}", 17, "analysts.shares names nobody", "shares ="),
        ("{ alice = 0.5, bob = 0.3 }", "0.5", 17, "analysts.shares must be a section", "shares ="),
        ("shares =", "share =", 17, "analysts.share is not known", "did you mean shares?"),
        ("shares = { alice = 0.5, bob = 0.3 }\n", "", 15, "analysts.shares is missing", "shares ="),
        ("seeded-cache", "independent", 18, "the policy is another one", 'policy = "seeded-cache"'),
        ("seed = {", "# seed = {", 15, "needs analysts.seed", "seed ="),
        ("fraction = 0.25", "fraction = 1.0", 18, "leaves nothing for the analysts", "seed ="),
        ("fraction = 0.25", "fraction = 0", 18, "analysts.seed.fraction must lie above 0", "seed ="),
        ("fraction = 0.25", "share = 0.25", 18, "analysts.seed.share is not known", "fraction"),
        ('["sex", "age"]', "[]", 18, "names no column", "seed ="),
        ('["sex", "age"]', '["agee"]', 18, 'no declared column: "agee"', 'did you mean "age"?'),
        ('["sex", "age"]', "[3]", 18, "no declared column: 3", "name one of"),
        ('["sex", "age"]', '["age", "age"]', 18, "names a column twice", "seed ="),
        ("wavelet", "wave", 18, 'analysts.seed.basis cannot be "wave"', 'did you mean "wavelet"?'),
    ],
)
def test_mistakes_are_found_where_they_are(
    tmp_path: Path, before: str, after: str, line: int, reason: str, hint: str
) -> None:
    assert before in TEXT
    with pytest.raises(ConfigError) as met:
        read(tmp_path, TEXT.replace(before, after))
    assert (met.value.line, reason in met.value.reason, hint in met.value.reason) == (line, True, True), met.value


def test_a_scheduler_needs_to_know_the_analysts(tmp_path: Path) -> None:
    text = TEXT.replace('policy = "seeded-cache"\n', "").replace("shares = { alice = 0.5, bob = 0.3 }\n", "")
    with pytest.raises(ConfigError, match="needs to know who the analysts are") as met:
        read(tmp_path, text.replace("seed = {", "# seed = {"))
    assert met.value.line == 15


YOUNG, BY_SEX = "SELECT COUNT(*) FROM people WHERE age < 30", "SELECT sex, COUNT(*) FROM people GROUP BY sex"
ASKED = f'basis = "best", questions = ["{YOUNG}", "{BY_SEX}"]'


def test_a_seed_can_be_for_declared_questions(tmp_path: Path) -> None:
    seed = read(tmp_path, TEXT.replace('basis = "wavelet", columns = ["sex", "age"]', ASKED)).analysts.seed
    assert seed is not None
    assert seed.workload is not None
    assert (seed.basis, seed.columns, seed.workload.rows) == ("best", ("age", "sex"), 5)  # with NULL and other


@pytest.mark.parametrize(
    ("old", "new", "reason", "hint"),
    [
        ('basis = "best", ', "", 'go with basis = "best"', "seed ="),
        ("questions = [", 'columns = ["age"], questions = [', "name the columns themselves", "seed ="),
        ("WHERE age < 30", "WHERE height < 30", "analysts.seed.questions[0] cannot be asked", "height"),
        ("SELECT COUNT(*)", "SELECT name", "analysts.seed.questions[0] cannot be asked", "name"),
        ('"SELECT COUNT(*) FROM people WHERE age < 30"', "3", "[0] must be SQL in quotes", "seed ="),
    ],
)
def test_questions_that_cannot_be_a_seed(tmp_path: Path, old: str, new: str, reason: str, hint: str) -> None:
    text = TEXT.replace('basis = "wavelet", columns = ["sex", "age"]', ASKED)
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text.replace(old, new))
    assert reason in str(refused.value)
    assert hint in str(refused.value)


def test_a_seed_for_no_question_is_refused(tmp_path: Path) -> None:
    nothing = 'basis = "best", questions = []'
    with pytest.raises(ConfigError, match="ask nothing"):
        read(tmp_path, TEXT.replace('basis = "wavelet", columns = ["sex", "age"]', nothing))
