"""Tokens: shown once, kept as digests, good until they expire or are taken back."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from pathlib import Path

import pytest

from bursar.errors import AnalystError, ConfigError
from bursar.service.people import ITERATIONS, VISIT_SECONDS, People, Person, Role


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(tmp_path / "people.sqlite")


def test_a_token_opens_the_door_to_its_holder_and_is_kept_nowhere(people: People) -> None:
    people.add("ana", Role.ANALYST)
    token = people.make_token("ana")
    [kept] = people.tokens()
    assert people.holder(token) == (Person("ana", Role.ANALYST), kept.id)
    secret = token.split("_", 2)[2]
    raw = base64.urlsafe_b64decode(secret + "=")
    files = b"".join(file.read_bytes() for file in people.path.parent.iterdir())
    assert len(raw) == 32
    assert raw not in files
    assert secret.encode() not in files
    assert people.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: t + "A", str.upper, lambda t: "", lambda t: "bursar__"])
def test_what_is_nearly_a_token_is_none(people: People, change: object) -> None:
    people.add("ana", Role.ANALYST)
    token = people.make_token("ana")
    assert callable(change)
    assert people.holder(change(token)) is None
    other = people.make_token("ana")
    crossed = "_".join([*token.split("_", 2)[:2], other.split("_", 2)[2]])
    assert people.holder(crossed) is None


def test_revoked_and_expired_tokens_are_nobodys(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    people.add("ana", Role.ANALYST)
    first, second = people.make_token("ana"), people.make_token("ana", days=2)
    elsewhere = People(people.path)  # another process
    assert elsewhere.revoke(first.split("_")[1]) == 1
    assert people.holder(first) is None
    assert people.holder(second) is not None
    now = time.time()
    monkeypatch.setattr("bursar.service.people.time.time", lambda: now + 2 * 86_400)
    assert people.holder(second) is None
    assert people.verifiers("ana") is not None
    assert people.verifiers("ana")[1] == []  # type: ignore[index]
    with pytest.raises(AnalystError, match="no token has the id"):
        people.revoke("bob")


def test_a_person_without_access_has_no_token(people: People) -> None:
    with pytest.raises(AnalystError, match="bursar user add bob"):
        people.make_token("bob")
    people.add("bob", Role.OWNER)
    token = people.make_token("bob")
    people.remove("bob")
    assert people.holder(token) is None
    assert people.person("bob") is None
    for name, role in (("everyone", Role.OWNER), ("owner", Role.ANALYST)):
        with pytest.raises(AnalystError, match="cannot be the name"):
            people.add(name, role)
    with pytest.raises(ConfigError):
        people.add(" ana", Role.ANALYST)
    people.add("ana", Role.ANALYST)
    with pytest.raises(AnalystError, match="3650"):
        people.make_token("ana", days=1e9)


def test_scram_verifies_each_token_of_a_person(people: People) -> None:
    """RFC 5802, from the client's side, with the one salt that the server can send."""
    people.add("ana", Role.ANALYST)
    tokens = [people.make_token("ana") for _ in range(2)]
    found = people.verifiers("ana")
    assert found is not None
    salt, verifiers = found
    for token, verifier in zip(tokens, verifiers, strict=True):
        salted = hashlib.pbkdf2_hmac("sha256", token.encode(), salt, ITERATIONS)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        assert hashlib.sha256(client_key).digest() == verifier.stored_key
        assert verifier.token == token.split("_")[1]
        assert re.fullmatch(r"[ -~]+", token), "SASLprep leaves printable ASCII as it is"
    assert people.verifiers("bob") is None


def test_a_visit_of_a_browser_ends_with_its_token(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    people.add("ana", Role.ANALYST)
    token = people.make_token("ana").split("_")[1]
    first, second = people.begin_visit(token), people.begin_visit(token)
    assert people.visitor(first) == people.visitor(second) == (Person("ana", Role.ANALYST), token)
    assert people.visitor(first[:-1]) is None
    assert first.encode() not in b"".join(file.read_bytes() for file in people.path.parent.iterdir())
    people.end_visit(first)
    assert people.visitor(first) is None
    people.add("ana", Role.OWNER)
    assert people.visitor(second) == (Person("ana", Role.OWNER), token)  # a role that was changed is changed at once
    People(people.path).revoke(token)  # by another process
    assert people.visitor(second) is None
    third = people.begin_visit(people.make_token("ana").split("_")[1])
    now = time.time()
    monkeypatch.setattr("bursar.service.people.time.time", lambda: now + VISIT_SECONDS)
    assert people.visitor(third) is None


def test_an_account_elsewhere_is_one_person_until_it_is_taken_back(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AnalystError, match="bursar user add ana"):
        people.tie("ana", "ana@example.org")
    people.add("ana", Role.ANALYST)
    people.add("bob", Role.OWNER)
    for _ in range(2):
        people.tie("ana", "ana@example.org")
    people.tie("ana", "ana@home.example")
    with pytest.raises(AnalystError, match='tied to "ana"'):
        people.tie("bob", "ana@example.org")
    for wrong in ("", "  ", "a\nb", "x" * 501):
        with pytest.raises(AnalystError, match="an account is"):
            people.tie("bob", wrong)
    assert people.accounts() == {"ana": ["ana@example.org", "ana@home.example"]}
    assert people.of_account("ana@example.org") == Person("ana", Role.ANALYST)
    assert people.of_account("Ana@example.org") is None
    visit = people.begin_visit(people.log_in("ana"))
    assert people.visitor(visit) is not None
    now = time.time()
    with monkeypatch.context() as later:
        later.setattr("time.time", lambda: now + 13 * 3600)
        assert people.visitor(visit) is None
        people.log_in("ana")
        assert len(people.tokens()) == 1, "those that have expired are forgotten"
    visit = people.begin_visit(people.log_in("ana"))
    assert people.revoke("ana") == 4
    assert people.visitor(visit) is None
    assert people.of_account("ana@example.org") is None
    people.tie("bob", "ana@example.org")
    people.remove("bob")
    assert people.accounts() == {}


def test_who_is_let_in_at_all(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    people.add("ana", Role.ANALYST)
    people.add("olga", Role.OWNER)
    assert not people.lets_in("ana")  # there is no token yet
    first, second = (people.make_token("ana", days=days).split("_")[1] for days in (1, 2))
    assert people.lets_in("ana")
    people.revoke(first)
    assert people.lets_in("ana")
    assert (people.good(first), people.good(second)) == (False, True)
    assert not people.lets_in("owner")  # an analyst does not look after the data
    people.tie("olga", "olga@example.org")
    assert people.lets_in("owner")
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 3 * 86_400)
    assert not people.lets_in("ana")
    assert not people.good(second)
    assert people.lets_in("olga")
