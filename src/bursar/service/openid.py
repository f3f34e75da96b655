"""Logging in with an account that people have already: OpenID Connect, for the page and for HTTP.

Who an account belongs to is said by its provider; who may ask is still said by the data owner, who ties accounts to
people (`bursar user login`). The page sends a browser to the provider (authorization code with PKCE, state and nonce)
and believes the signed token that comes back. Over HTTP such a token, made for this server, takes the place of ours.

Nothing that a provider says reaches a client or the journal: whatever is wrong is one `LoginRefused`.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from bursar.errors import ConfigError
from bursar.link import loopback

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key. Never `none`, and none that is made with a secret that two parties know."""

KEEP_SECONDS = 3600.0
"""For how long what a provider says about itself is good."""

AGAIN_SECONDS = 10.0
"""Between two looks at it, however many tokens come whose keys are not known, and while it does not answer."""

CALL_SECONDS = 10.0
LEEWAY_SECONDS = 30
"""By which the clocks of two machines may differ."""


class LoginRefused(Exception):
    """A log-in that cannot be believed, or a provider that cannot be reached; it is never said which."""


@dataclass(frozen=True, kw_only=True)
class OpenIdSettings:
    """A provider, and what we are called there."""

    issuer: str
    client_id: str
    client_secret: str | None = None  # a client without one has PKCE alone
    claim: str = "email"  # which says whose account it is
    name: str = "your organisation"  # on the button
    audience: str | None = None  # of tokens over HTTP; the client id unless named

    @classmethod
    def load(cls, path: Path) -> Self:
        """From a file in TOML, which holds a secret, and which nobody else may read."""
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as fault:
            raise ConfigError(f"cannot read {path}: {fault.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
            raise ConfigError(f"not TOML: {fault}", str(path)) from None
        names = {field.name for field in fields(cls)}
        for key, value in given.items():
            if key not in names:
                raise ConfigError(f'"{key}" is not known here; there are {", ".join(sorted(names))}', str(path))
            if not isinstance(value, str) or not value:
                raise ConfigError(f"{key} is a text", str(path))
        for key in ("issuer", "client_id"):
            if key not in given:
                raise ConfigError(f"{key} is missing", str(path))
        settings = cls(**given)
        if not _safe(settings.issuer):
            raise ConfigError("the issuer is an https:// address: log-ins would pass in the clear", str(path))
        if settings.client_secret is not None and path.stat().st_mode & 0o077:
            raise ConfigError(f"others on this machine can read {path}\ntry: chmod 600 {path}")
        return settings


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A log-in on its way: where the browser goes, and what must come back with it."""

    url: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True)
class _About:
    """What a provider says about itself."""

    authorization: str
    token: str
    keys: KeySet
    at: float


class Provider:
    """A provider of log-ins. It is looked up when it is needed: a server starts without it."""

    def __init__(self, settings: OpenIdSettings) -> None:
        self.settings = settings
        self._about: _About | None = None
        self._looking, self._next_look = asyncio.Lock(), 0.0

    async def begin(self, redirect: str) -> Begun:
        """Where to send a browser, which comes back to `redirect`. Raises LoginRefused."""
        about = await self._known()
        nonce, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        async with self._client(redirect) as client:
            url, state = client.create_authorization_url(about.authorization, nonce=nonce, code_verifier=verifier)
        return Begun(url=url, state=state, nonce=nonce, verifier=verifier)

    async def finish(self, begun: Begun, *, state: str, code: str, redirect: str) -> str:
        """Whose account it is that came back with a code. Raises LoginRefused."""
        if not hmac.compare_digest(begun.state.encode(), state.encode()):
            raise LoginRefused
        about = await self._known()
        try:
            async with self._client(redirect) as client:
                given = await client.fetch_token(about.token, code=code, code_verifier=begun.verifier)
        except (httpx2.HTTPError, AuthlibBaseError, ValueError):
            raise LoginRefused from None
        token = given.get("id_token")
        if not isinstance(token, str):
            raise LoginRefused
        return await self._account(token, audience=self.settings.client_id, nonce=begun.nonce)

    async def holder(self, token: str) -> str | None:
        """The account of whom a token is that came over HTTP; None unless the provider signed it for this server."""
        with suppress(LoginRefused):
            return await self._account(token, audience=self.settings.audience or self.settings.client_id)
        return None

    async def _account(self, token: str, *, audience: str, nonce: str | None = None) -> str:
        about = await self._known()
        claims = _signed(token, about.keys)
        if claims is None:  # by a key that is new, maybe
            claims = _signed(token, (await self._known(after=about.at)).keys)
        if claims is None:
            raise LoginRefused
        options = {
            "iss": {"essential": True, "value": self.settings.issuer},
            "aud": {"essential": True, "value": audience},
        }
        about_us: dict[str, str | None] = {"nonce": nonce}
        if audience == self.settings.client_id:  # else it is another program that got it, for us
            about_us["client_id"] = audience
        try:
            CodeIDToken(claims, {}, options, about_us).validate(leeway=LEEWAY_SECONDS)
        except (JoseError, AuthlibBaseError):
            raise LoginRefused from None
        account = claims.get(self.settings.claim)
        if not isinstance(account, str) or not account:
            raise LoginRefused
        if self.settings.claim == "email" and claims.get("email_verified") is not True:
            raise LoginRefused  # anybody may have typed it
        return account

    async def _known(self, *, after: float | None = None) -> _About:
        """What the provider says about itself; looked up anew where it was said at `after`, but not too often."""
        async with self._looking:
            about, now = self._about, time.monotonic()
            old = about is None or now - about.at > KEEP_SECONDS or about.at == after
            if old and now >= self._next_look:
                self._next_look = now + AGAIN_SECONDS
                with suppress(LoginRefused):  # what it said before is good as long as it cannot be reached
                    self._about = await self._looked(now)
            if self._about is None:
                raise LoginRefused
            return self._about

    async def _looked(self, now: float) -> _About:
        place = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            async with httpx2.AsyncClient(timeout=CALL_SECONDS, follow_redirects=False) as client:
                told = (await client.get(place)).raise_for_status().json()
                ends = [told["authorization_endpoint"], told["token_endpoint"], told["jwks_uri"]]
                if told["issuer"] != self.settings.issuer or not all(
                    isinstance(end, str) and _safe(end) for end in ends
                ):
                    raise LoginRefused
                keys = (await client.get(ends[2])).raise_for_status().json()
                return _About(ends[0], ends[1], KeySet.import_key_set(keys), now)
        except (httpx2.HTTPError, JoseError, ValueError, KeyError, TypeError):
            raise LoginRefused from None

    def _client(self, redirect: str) -> AsyncOAuth2Client:
        ours = self.settings
        return AsyncOAuth2Client(
            client_id=ours.client_id,
            client_secret=ours.client_secret,
            token_endpoint_auth_method="none" if ours.client_secret is None else "client_secret_basic",
            scope="openid profile email",
            redirect_uri=redirect,
            code_challenge_method="S256",
            timeout=CALL_SECONDS,
            follow_redirects=False,
        )


def _signed(token: str, keys: KeySet) -> Mapping[str, object] | None:
    """What a token claims; None where its signature is of none of the keys."""
    try:
        return jwt.decode(token, keys, algorithms=list(ALGORITHMS)).claims
    except (JoseError, ValueError, TypeError):
        return None


def _safe(url: str) -> bool:
    """Whether nobody on the way can read or change what is sent there."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return (parts.scheme == "https" and host != "") or (parts.scheme == "http" and loopback(host))
