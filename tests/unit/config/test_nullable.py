"""`nullable = false`: no group NULL is listed, no cell moves, and no ledger is bound to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bursar.config import Config, load
from bursar.errors import ConfigError
from bursar.session import create
from bursar.session import open as open_session

CONFIG = """
dataset = "small"
[source]
path = "small.csv"
table = "people"
max_rows = 1000
[privacy]
unit = "row"
[budget]
epsilon = 500
[columns.sex]
values = ["F", "M"]
{sex}
[columns.sex.levels]
kind = {{ "one" = ["F"], "two" = ["M"] }}
[columns.age]
lower = 0
upper = 5
"""


CERTAIN = {"within": 0.9, "confidence": 1 - 1e-9}
"""So exact that noise fails no test: whole numbers are at most a fraction away."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pd.DataFrame({"sex": ["F"] * 40 + ["M"] * 30 + [None] * 3, "age": [1, 2] * 36 + [None]}).to_csv(
        tmp_path / "small.csv", index=False
    )
    return tmp_path / "small.toml"


def declared(place: Path, sex: str) -> Config:
    place.write_text(CONFIG.format(sex=sex))
    return load(place)


def test_it_lists_no_null_and_can_be_changed_at_any_time(place: Path) -> None:
    before = declared(place, "")
    with create(place) as db:
        assert [label for (label,) in db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", **CERTAIN).labels] == [
            "F", "M", "other", None,
        ]  # fmt: skip
    after = declared(place, "nullable = false")
    assert after.charter == before.charter
    with open_session(place) as db:
        answer = db.query("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", **CERTAIN)
        assert answer.labels == (("F",), ("M",), ("other",))
        assert answer.free  # what was bought before answers it
        assert np.allclose([n for (n,) in answer.values], [40, 30, 0], atol=2)
        assert db.query("SELECT kind, COUNT(*) FROM people GROUP BY kind", **CERTAIN).labels[-1] == ("other",)
        totals = db.query("SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)", **CERTAIN)
        assert totals.labels == (("F",), ("M",), ("other",), ("(all)",))
        assert abs((totals.values[-1][0] or 0) - 73) < 3  # a row without a value is in no line but that of all rows
        assert abs((db.query("SELECT COUNT(*) FROM people WHERE sex IS NULL", **CERTAIN).value or 0) - 3) < 3
        described = dict(zip(["sex", "age"], db.query("DESCRIBE people").labels, strict=False))
        assert (described["sex"][2], described["age"][2]) == (False, True)


@pytest.mark.parametrize(
    ("sex", "words"),
    [('nullable = false\nnull = "other"', "nullable = false that there is none"), ("nullable = 0", "true or false")],
)
def test_what_contradicts_itself_is_refused(place: Path, sex: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        declared(place, sex)
