"""Shares of the budget written into a config: nothing else in it changes."""

from __future__ import annotations

import tomllib

import pytest

from bursar.curate.edit import share
from bursar.errors import ConfigError

PLAIN = 'dataset = "people"  # a comment\n\n[budget]\nepsilon = 1.0\n'


def test_shares_are_added_changed_and_taken_out_again() -> None:
    given = share(PLAIN, {"ana": 0.5, "bob smith": 0.25})
    assert tomllib.loads(given)["analysts"] == {"shares": {"ana": 0.5, "bob smith": 0.25}}
    assert given.startswith(PLAIN)
    other = share(given, {"ana": 0.75})
    assert tomllib.loads(other)["analysts"]["shares"] == {"ana": 0.75}
    assert "shares" not in tomllib.loads(share(other, {}))["analysts"]
    policy = PLAIN + '\n[analysts]\npolicy = "shared"\n\n[goal]\nerror = 5\n'
    settled = tomllib.loads(share(policy, {"ana": 1.0}))
    assert settled["analysts"] == {"policy": "shared", "shares": {"ana": 1.0}}
    assert settled["goal"] == {"error": 5}


@pytest.mark.parametrize(
    "text", [PLAIN + "\n[analysts.shares]\nana = 0.5\n", "analysts = { shares = { ana = 0.5 } }\n" + PLAIN]
)
def test_what_is_written_in_another_way_is_left_to_the_owner(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be changed here"):
        share(text, {"bob": 0.5})
