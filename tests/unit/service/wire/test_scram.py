"""The server's side of SCRAM-SHA-256, held to the example of RFC 7677 and to what clients really send."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from bursar.service.people import ITERATIONS, People, Role, Verifier
from bursar.service.wire.protocol import ProtocolError
from bursar.service.wire.scram import Exchange, mock_salt

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def verifier(password: str, salt: bytes = SALT, token: str = "id") -> Verifier:
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    return Verifier(token, stored, hmac.digest(salted, b"Server Key", "sha256"))


def test_the_example_of_the_rfc() -> None:
    exchange = Exchange(SALT, [verifier("other", token="x"), verifier("pencil")], nonce=NONCE)
    first = exchange.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == f"r=rOprNGfwEbeRWgbNEkqO{NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    final = f"c=biws,r=rOprNGfwEbeRWgbNEkqO{NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.final(final.encode()) == (b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "id")


def login(exchange: Exchange, password: str, *, header: str = "n,,", user: str = "") -> tuple[bytes, str] | None:
    """What a client does."""
    bare = f"n={user},r=abcdefghijkl"
    first = exchange.first(f"{header}{bare}".encode()).decode()
    said = dict(part.split("=", 1) for part in first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(said["s"]), int(said["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    without = f"c={base64.b64encode(header.encode()).decode()},r={said['r']}"
    message = f"{bare},{first},{without}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    return exchange.final(f"{without},p={proof}".encode())


@pytest.mark.parametrize(("header", "user"), [("n,,", ""), ("y,,", ""), ("n,,", "ana"), ("y,,", "anä")])
def test_every_token_of_a_person_opens(tmp_path: Path, header: str, user: str) -> None:
    people = People(tmp_path / "people.sqlite")
    people.add("ana", Role.ANALYST)
    tokens = [people.make_token("ana") for _ in range(2)]
    found = people.verifiers("ana")
    assert found is not None
    for token in tokens:
        proven = login(Exchange(*found), token, header=header, user=user)
        assert proven is not None
        assert proven[1] == token.split("_")[1]
    assert login(Exchange(*found), tokens[0] + "x", header=header, user=user) is None
    people.close()


def test_nobody_gets_a_salt_that_stays_the_same_and_no_way_in() -> None:
    assert mock_salt("demo", "eve") == mock_salt("demo", "eve")
    assert mock_salt("demo", "eve") != mock_salt("demo", "mal")
    assert login(Exchange(mock_salt("demo", "eve"), []), "anything") is None


@pytest.mark.parametrize(
    "first",
    [b"p=tls-server-end-point,,n=,r=abcdefgh", b"n,a=bob,n=,r=abcdefgh", b"n,,r=abcdefgh", b"n,,n=,r=a", b"\xff"],
)
def test_what_is_not_offered_is_refused(first: bytes) -> None:
    with pytest.raises(ProtocolError):
        Exchange(SALT, []).first(first)


@pytest.mark.parametrize(
    "change", [lambda t: t.replace("biws", "eSws"), lambda t: t.replace("r=a", "r=b"), lambda t: t[:-4]]
)
def test_a_last_message_of_another_exchange_is_refused(change: object) -> None:
    exchange = Exchange(SALT, [verifier("pencil")])
    exchange.first(b"n,,n=,r=abcdefgh")
    message = f"c=biws,r=abcdefgh{exchange._nonce.removeprefix('abcdefgh')},p={base64.b64encode(bytes(32)).decode()}"
    assert exchange.final(message.encode()) is None
    assert callable(change)
    with pytest.raises(ProtocolError):
        exchange.final(change(message).encode())
