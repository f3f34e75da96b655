"""A provider of log-ins in a process of its own: Django with django-oauth-toolkit, as organisations run it.

`python -m harness.provider FOLDER PORT BACK` serves until it is killed; BACK is where browsers may be sent back to.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from joserfc.jwk import RSAKey

from harness.patience import PATIENCE, until

CLIENT, SECRET = "bursar", "a secret of the provider and the server"
PEOPLE = {"ana": "ana@example.org", "eve": "eve@example.org", "mallory": "ana@example.org"}
"""Accounts and their addresses; mallory has typed somebody else's, which nobody has verified."""

PASSWORD = "correct horse battery staple"

FORM = """<!doctype html><title>Log in</title>
<form method="post">{% csrf_token %}{{ form }}<button>Go on</button></form>"""


@dataclass(frozen=True)
class ProviderProcess:
    """A provider that runs."""

    issuer: str
    key: str  # that it signs with, as PEM

    def settings(self, path: Path, **more: str) -> Path:
        """A file for `bursar serve --openid`."""
        facts = {"issuer": self.issuer, "client_id": CLIENT, "client_secret": SECRET, "name": "Example", **more}
        path.touch(mode=0o600)
        path.write_text("".join(f'{key} = "{value}"\n' for key, value in facts.items()))
        return path

    def log_in(self, name: str, url: str) -> str:
        """Where a browser is sent back to which was sent to `url`, after `name` has typed the password."""
        with httpx.Client(timeout=PATIENCE, follow_redirects=True) as browser:
            form = browser.get(url)
            token = form.text.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
            typed = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token}
            reply = browser.post(str(form.url), data=typed, follow_redirects=False)
            while urlsplit(there := reply.headers["location"]).path != urlsplit(_back(url)).path:
                reply = browser.get(
                    f"{urlsplit(self.issuer)._replace(path='').geturl()}{there}", follow_redirects=False
                )
            return there

    def signed(self, name: str, back: str) -> str:
        """A token of somebody, as a program of theirs has it."""
        asked = {"response_type": "code", "client_id": CLIENT, "scope": "openid email", "redirect_uri": back}
        verifier = "v" * 64
        url = f"{self.issuer}/authorize/?{urlencode({**asked, 'code_challenge': verifier})}"
        code = parse_qs(urlsplit(self.log_in(name, url)).query)["code"][0]
        body = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
        reply = httpx.post(f"{self.issuer}/token/", data=body, auth=(CLIENT, SECRET), timeout=PATIENCE)
        token: str = reply.raise_for_status().json()["id_token"]
        return token


def _new_key() -> str:
    pem: bytes = RSAKey.generate_key(2048).as_pem(private=True)
    return pem.decode()


def _back(url: str) -> str:
    return parse_qs(urlsplit(url).query)["redirect_uri"][0]


def _there(browser: httpx.Client, issuer: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the provider has ended"
    try:
        browser.get(f"{issuer}/.well-known/openid-configuration").raise_for_status()
    except httpx.TransportError:
        return False
    return True


@contextmanager
def providing(port: int, back: str) -> Iterator[ProviderProcess]:
    """A provider for the block, at a port that is free."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        key = _new_key()
        Path(folder, "key.pem").write_text(key)
        command = [sys.executable, "-m", "harness.provider", folder, str(port), back]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        issuer = f"http://127.0.0.1:{port}/o"
        try:
            with httpx.Client(timeout=PATIENCE) as browser:
                until(lambda: _there(browser, issuer, process), pause=0.1)
            yield ProviderProcess(issuer, key)
        finally:
            process.kill()
            process.wait()


def main(folder: str, port: int, back: str) -> None:
    """The provider itself."""
    import django
    from django.conf import settings

    template = {"BACKEND": "django.template.backends.django.DjangoTemplates"}
    loaders = [("django.template.loaders.locmem.Loader", {"registration/login.html": FORM})]
    settings.configure(
        SECRET_KEY="of a test",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {
                **template,
                "OPTIONS": {"loaders": loaders, "context_processors": ["django.template.context_processors.csrf"]},
            }
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{folder}/provider.sqlite"}},
        USE_TZ=True,
        LOGIN_URL="/login/",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],  # at once: nobody's password is in there
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{port}/o",
            "OIDC_RSA_PRIVATE_KEY": Path(folder, "key.pem").read_text(),
            "SCOPES": {"openid": "who you are", "profile": "your name", "email": "your address"},
            "OAUTH2_VALIDATOR_CLASS": f"{__name__}.Claims",
            "PKCE_REQUIRED": True,
        },
    )
    django.setup()
    from django.contrib.auth.models import User
    from django.contrib.auth.views import LoginView
    from django.core.management import call_command
    from django.core.servers.basehttp import WSGIRequestHandler, run
    from django.core.wsgi import get_wsgi_application
    from django.urls import include, path
    from oauth2_provider.models import get_application_model
    from oauth2_provider.oauth2_validators import OAuth2Validator

    class Claims(OAuth2Validator):
        """What it says about people."""

        def get_additional_claims(self) -> dict[str, object]:
            return {
                "email": lambda request: request.user.email,
                "email_verified": lambda request: request.user.username != "mallory",
                "preferred_username": lambda request: request.user.username,
            }

    own = sys.modules[__name__]
    own.Claims = Claims  # type: ignore[attr-defined]
    own.urlpatterns = [  # type: ignore[attr-defined]
        path("login/", LoginView.as_view()),
        path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    ]
    call_command("migrate", verbosity=0)
    for name, address in PEOPLE.items():
        User.objects.create_user(name, address, PASSWORD)
    get_application_model().objects.create(
        client_id=CLIENT,
        client_secret=SECRET,
        client_type="confidential",
        authorization_grant_type="authorization-code",
        redirect_uris=back,
        algorithm="RS256",
        skip_authorization=True,
    )
    WSGIRequestHandler.log_message = lambda *_: None  # type: ignore[method-assign]
    run("127.0.0.1", port, get_wsgi_application(), threading=True)


if __name__ == "__main__":
    sys.modules["harness.provider"] = sys.modules["__main__"]
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
