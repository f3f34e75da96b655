"""Who may ask a server about a data set: people, their roles, and their tokens, in a file beside the ledger.

A token is 256 random bits behind a public id. It is shown once, when it is made; what is kept is its SHA-256 (a slow
hash is for passwords, which can be guessed), and what SCRAM-SHA-256 needs to take it for a PostgreSQL password. All
tokens of a person have one salt, because SCRAM sends the salt before it can know which of them is meant.

An account at a provider of log-ins (OpenID Connect) can be tied to a person. Who logs in with it gets a token that
nobody sees, for the browser alone.

Every look goes to the file: whoever is revoked is out with the next request, in every process.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import sqlite3
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bursar.analysts.shares import EVERYONE, check_analyst
from bursar.errors import AnalystError
from bursar.report.status import OWNER

PREFIX = "bursar"
DAYS = 90
"""How long a token is good for, unless told."""

ITERATIONS = 4096
"""Of SCRAM. More would only slow clients down: nobody can try 2^256 tokens."""

DAY_SECONDS = 86_400

ELSEWHERE = "openid-"
"""How ids begin of tokens for browsers whose holders logged in elsewhere."""

LONGEST_ACCOUNT = 500

VISIT_SECONDS = 12 * 3600
"""How long a browser stays logged in: a working day, so that the token is typed once in it."""

_TABLES = """
CREATE TABLE IF NOT EXISTS people (name TEXT PRIMARY KEY, role TEXT NOT NULL, salt BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL REFERENCES people, digest BLOB NOT NULL,
    stored_key BLOB NOT NULL, server_key BLOB NOT NULL, made REAL NOT NULL, expires REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS accounts (account TEXT PRIMARY KEY, name TEXT NOT NULL REFERENCES people ON DELETE CASCADE);
CREATE TABLE IF NOT EXISTS visits (
    digest BLOB PRIMARY KEY, token TEXT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE, expires REAL NOT NULL
);
"""


class Role(StrEnum):
    """What a person may do: ask, or look after the data set as well."""

    ANALYST = "analyst"
    OWNER = "owner"


@dataclass(frozen=True)
class Person:
    """Somebody who may ask about a data set, under this name."""

    name: str
    role: Role


@dataclass(frozen=True)
class Token:
    """What may be known of a token: its public id, whose it is, and for how long."""

    id: str
    name: str
    made: float  # seconds since 1970, as `expires`
    expires: float


@dataclass(frozen=True)
class Verifier:
    """What proves to a server that a client knows a token, and the other way round (RFC 5802)."""

    token: str  # its id
    stored_key: bytes
    server_key: bytes


class People:
    """The people of one data set. Safe to use from several threads and processes."""

    def __init__(self, path: Path) -> None:
        """The file is made if there is none; nobody but its owner can read it."""
        path.touch(mode=0o600)
        self.path = path
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        self._database.row_factory = sqlite3.Row
        for pragma in ("journal_mode = WAL", "secure_delete = ON", "foreign_keys = ON"):
            self._database.execute(f"PRAGMA {pragma}")
        self._database.executescript(_TABLES)

    def add(self, name: str, role: Role) -> Person:
        """Let somebody in; a person who is there already gets the role."""
        check_analyst(name)
        if name == EVERYONE or (name == OWNER and role is not Role.OWNER):
            raise AnalystError(f'"{name}" cannot be the name of an analyst: the log uses it for something else')
        self._run(
            "INSERT INTO people VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET role = excluded.role",
            (name, role.value, secrets.token_bytes(16)),
        )
        return Person(name, role)

    def remove(self, name: str) -> None:
        """Let somebody in no more; all tokens of theirs are gone. What they asked stays in the log."""
        self._known(name)
        for table in ("tokens", "accounts"):
            self._run(f"DELETE FROM {table} WHERE name = ?", (name,))
        self._run("DELETE FROM people WHERE name = ?", (name,))

    def everybody(self) -> list[Person]:
        """All people, by name."""
        return [Person(name, Role(role)) for name, role in self._run("SELECT name, role FROM people ORDER BY name")]

    def make_token(self, name: str, *, days: float = DAYS) -> str:
        """A new token, which nobody can see again."""
        if not 0 < days <= 3650:
            raise AnalystError(f"a token is good for some days, at most 3650, not for {days:g}")
        return self._new_token(name, days)[1]

    def _new_token(self, name: str, days: float, kind: str = "") -> tuple[str, str]:
        """Its id, and the token."""
        salt, now = self._known(name), time.time()
        token_id = kind + secrets.token_hex(6)
        token = f"{PREFIX}_{token_id}_{base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip('=')}"
        salted = hashlib.pbkdf2_hmac("sha256", token.encode(), salt, ITERATIONS)
        stored_key = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        row = (token_id, name, _digest(token), stored_key, server_key, now, now + days * DAY_SECONDS)
        self._run("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return token_id, token

    def tie(self, name: str, account: str) -> None:
        """Let somebody in who logs in elsewhere with this account; one account is one person."""
        self._known(name)
        if not account.strip() or len(account) > LONGEST_ACCOUNT or not account.isprintable():
            raise AnalystError("an account is what the provider of log-ins calls somebody, such as ana@example.org")
        taken = self._run("SELECT name FROM accounts WHERE account = ? AND name <> ?", (account, name))
        if taken:
            raise AnalystError(f'the account is tied to "{taken[0][0]}" already\ntry: bursar user revoke {taken[0][0]}')
        self._run("INSERT OR IGNORE INTO accounts VALUES (?, ?)", (account, name))

    def accounts(self) -> dict[str, list[str]]:
        """All accounts elsewhere, by the name of whom they are tied to."""
        accounts: dict[str, list[str]] = {}
        for account, name in self._run("SELECT account, name FROM accounts ORDER BY account"):
            accounts.setdefault(name, []).append(account)
        return accounts

    def of_account(self, account: str) -> Person | None:
        """Who an account elsewhere is tied to."""
        rows = self._run("SELECT name, role FROM accounts NATURAL JOIN people WHERE account = ?", (account,))
        return Person(rows[0][0], Role(rows[0][1])) if rows else None

    def log_in(self, name: str) -> str:
        """The id of a token for a browser whose holder was believed elsewhere; expired ones are forgotten."""
        self._run("DELETE FROM tokens WHERE id LIKE ? AND expires <= ?", (f"{ELSEWHERE}%", time.time()))
        return self._new_token(name, VISIT_SECONDS / DAY_SECONDS, ELSEWHERE)[0]

    def tokens(self) -> list[Token]:
        """All tokens that were not revoked, those that have expired included."""
        return [Token(*row) for row in self._run("SELECT id, name, made, expires FROM tokens ORDER BY name, made")]

    def revoke(self, whose: str) -> int:
        """Take back one token, by its id, or all of a person with their accounts elsewhere; says how many."""
        gone = self._run("DELETE FROM tokens WHERE id = ? OR name = ? RETURNING id", (whose, whose))
        gone += self._run("DELETE FROM accounts WHERE name = ? RETURNING account", (whose,))
        if not gone:
            raise AnalystError(f'no token has the id "{whose}", and nobody of that name has one')
        return len(gone)

    def holder(self, token: str) -> tuple[Person, str] | None:
        """Whose token it is, and its id; None where it is nobody's, or has expired."""
        prefix, _, id_and_secret = token.partition("_")
        token_id, _, secret = id_and_secret.partition("_")
        if prefix != PREFIX or not secret:
            return None
        rows = self._run(
            "SELECT digest, name, role FROM tokens NATURAL JOIN people WHERE id = ? AND expires > ?",
            (token_id, time.time()),
        )
        if not rows or not hmac.compare_digest(rows[0][0], _digest(token)):
            return None
        return Person(rows[0][1], Role(rows[0][2])), token_id

    def good(self, token_id: str) -> bool:
        """Whether a token, by its id, is somebody's now."""
        return bool(self._run("SELECT 1 FROM tokens WHERE id = ? AND expires > ?", (token_id, time.time())))

    def lets_in(self, name: str) -> bool:
        """Whether anybody can come in under a name: with a token that is good, or with an account elsewhere.

        What was begun as the data owner, who need not be one of the people, is everybody's who looks after the data.
        """
        return bool(
            self._run(
                "SELECT 1 FROM people WHERE (name = ?1 OR (?1 = ?2 AND role = ?3)) AND name IN "
                "(SELECT name FROM tokens WHERE expires > ?4 UNION SELECT name FROM accounts)",
                (name, OWNER, Role.OWNER.value, time.time()),
            )
        )

    def begin_visit(self, token_id: str) -> str:
        """A secret for the cookie of a browser, in place of the token; it is over with the token, or after hours."""
        secret, now = secrets.token_urlsafe(32), time.time()
        self._run("DELETE FROM visits WHERE expires <= ?", (now,))
        self._run("INSERT INTO visits VALUES (?, ?, ?)", (_digest(secret), token_id, now + VISIT_SECONDS))
        return secret

    def visitor(self, secret: str) -> tuple[Person, str] | None:
        """Who logged in with a browser, and the id of their token; None where the visit or the token is over."""
        rows = self._run(
            "SELECT name, role, id FROM visits JOIN tokens ON token = id NATURAL JOIN people "
            "WHERE visits.digest = ? AND visits.expires > ? AND tokens.expires > ?",
            (_digest(secret), time.time(), time.time()),
        )
        return (Person(rows[0][0], Role(rows[0][1])), rows[0][2]) if rows else None

    def end_visit(self, secret: str) -> None:
        """Log a browser out."""
        self._run("DELETE FROM visits WHERE digest = ?", (_digest(secret),))

    def verifiers(self, name: str) -> tuple[bytes, list[Verifier]] | None:
        """The salt of a person, and what verifies each of the tokens that are good now."""
        salts = self._run("SELECT salt FROM people WHERE name = ?", (name,))
        rows = self._run(
            "SELECT id, stored_key, server_key FROM tokens WHERE name = ? AND expires > ?", (name, time.time())
        )
        return (salts[0][0], [Verifier(*row) for row in rows]) if salts else None

    def person(self, name: str) -> Person | None:
        """Somebody by name."""
        rows = self._run("SELECT role FROM people WHERE name = ?", (name,))
        return Person(name, Role(rows[0][0])) if rows else None

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _known(self, name: str) -> bytes:
        rows = self._run("SELECT salt FROM people WHERE name = ?", (name,))
        if not rows:
            raise AnalystError(f'nobody of the name "{name}" was let in\ntry: bursar user add {name}')
        salt: bytes = rows[0][0]
        return salt

    def _run(self, sql: str, values: tuple[object, ...] = ()) -> list[sqlite3.Row]:
        with self._lock:
            return self._database.execute(sql, values).fetchall()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
