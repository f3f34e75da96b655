"""Shares: exact fractions, and what they refuse."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bursar.analysts.shares import EVERYONE, AnalystSettings, Seed, Shares
from bursar.errors import ConfigError


def test_decimal_numbers_are_the_fractions_they_name() -> None:
    shares = Shares.of({f"analyst {n}": 0.1 for n in range(10)})
    assert shares.total == 1
    assert Shares.of({"bob": 0.3, "ann": 0.5}).total == Fraction(4, 5)


def test_order_does_not_matter() -> None:
    one, other = Shares.of({"ann": 0.5, "bob": 0.25}), Shares.of({"bob": 0.25, "ann": 0.5})
    assert one == other
    assert hash(one) == hash(other)
    assert list(other) == ["ann", "bob"]
    assert str(other) == "ann 0.5, bob 0.25"
    assert (str(Shares()), len(Shares()), dict(one)) == ("none", 0, {"ann": Fraction(1, 2), "bob": Fraction(1, 4)})


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ({"ann": 0.0}, "the share of ann must lie above 0"),
        ({"ann": 1.5}, "at most 1, not 1.5"),
        ({"ann": -0.5}, "above 0"),
        ({"ann": 0.6, "bob": 0.6}, "the shares are 1.2 together"),
        ({" ann": 0.5}, "name of an analyst"),
        ({"": 0.5}, "name of an analyst"),
        ({"a\nb": 0.5}, "name of an analyst"),
    ],
)
def test_refusals(numbers: dict[str, float], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Shares.of(numbers)


def test_a_seed_is_the_account_of_everyone() -> None:
    shares = Shares.of({"ann": 0.5, "bob": 0.5})
    seed = Seed(fraction=Fraction(1, 4), columns=("age",))
    accounts = AnalystSettings(policy="seeded-cache", shares=shares, seed=seed).accounts
    assert dict(accounts) == {"ann": Fraction(3, 8), "bob": Fraction(3, 8), EVERYONE: Fraction(1, 4)}
    assert accounts.total == 1
    assert AnalystSettings(shares=shares).accounts == shares
