"""Logging in with an account at a provider, which is a process of its own: by a browser, and over HTTP."""

from __future__ import annotations

import base64
import hmac
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from playwright.sync_api import expect, sync_playwright

import bursar
from bursar.config import load
from bursar.errors import ConfigError
from bursar.service.datasets import people_of
from bursar.service.openid import OpenIdSettings
from bursar.service.people import Role
from harness.patience import PATIENCE
from harness.ports import kept_port
from harness.provider import PASSWORD, SECRET, ProviderProcess, providing
from harness.serving import Served, data_set, let_in, serving

COUNT = {"sql": "SELECT COUNT(*) AS n FROM people", "within": 300}


@dataclass(frozen=True)
class Site:
    """A server, a provider that it believes, and two data sets: ana's account is tied to both, as analyst and owner."""

    served: Served
    provider: ProviderProcess
    config: Path
    other: Path

    @property
    def back(self) -> str:
        return f"{self.served.url}/-/openid/callback"

    def browser(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.served.url, timeout=PATIENCE, limits=httpx.Limits(max_keepalive_connections=0)
        )

    def ask(self, token: str, data: str = "demo-people") -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.post(f"{self.served.url}/v1/{data}/query", json=COUNT, headers=headers, timeout=PATIENCE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("openid")
    config, other = data_set(folder / "people"), data_set(folder / "other", name="other")
    let_in(config, ana=Role.ANALYST)
    let_in(other, anna=Role.OWNER)
    for place, name in ((config, "ana"), (other, "anna")):
        people = people_of(load(place))
        people.tie(name, "ana@example.org")
        people.close()
    with kept_port() as port:
        told = ProviderProcess(f"http://127.0.0.1:{port}/o", "").settings(folder / "openid.toml")
        options = ("--openid", told, "--failures", 0, "--log", folder / "log")
        with serving(config, other, *options, tokens={}) as served:
            # The server starts without its provider, and says so to nobody but who needs it.
            with httpx.Client(timeout=PATIENCE) as early:
                assert early.get(f"{served.url}/-/openid/login").status_code == 503
            with providing(port, f"{served.url}/-/openid/callback") as provider:
                yield Site(served, provider, config, other)


def begun(browser: httpx.Client, next: str = "") -> str:
    """Where a browser is sent that wants to log in."""
    give_up = time.monotonic() + PATIENCE
    while (away := browser.get("/-/openid/login", params={"next": next})).status_code == 503:  # it is looked for again
        assert time.monotonic() < give_up
        time.sleep(0.5)
    assert away.status_code == 303
    return away.headers["location"]


def test_a_browser_logs_in_with_an_account_elsewhere(site: Site) -> None:
    with site.browser() as browser:
        assert "Log in with Example" in browser.get("/").text
        away = begun(browser, "/demo-people/ask?sql=SELECT+1")
        asked = parse_qs(urlsplit(away).query)
        assert asked["code_challenge_method"] == ["S256"]
        assert {"state", "nonce", "code_challenge"} <= asked.keys()
        back = site.provider.log_in("ana", away)
        reply = browser.get(back)
        assert reply.headers["location"] == "/demo-people/ask?sql=SELECT+1"
        visits = [cookie for cookie in reply.headers.get_list("set-cookie") if "bursar-openid" not in cookie]
        assert len(visits) == 2  # one for each data set that lets the account in
        assert all("HttpOnly" in cookie and "SameSite=strict" in cookie for cookie in visits)
        assert "SELECT 1</textarea>" in browser.get("/demo-people/ask?sql=SELECT+1").text
        assert browser.get("/other/people").status_code == 200  # an owner there
        assert browser.get("/demo-people/people").status_code == 403
        code = parse_qs(urlsplit(back).query)["code"][0]
        for text in ((site.config.parents[1] / "log").read_text(), site.served.err.read_text()):
            assert code not in text
            assert SECRET not in text
        assert browser.get(back).status_code == 401  # once is enough, for the browser and for the code


def test_what_comes_back_must_be_what_was_sent_away(site: Site) -> None:
    with site.browser() as browser, site.browser() as other:
        back = site.provider.log_in("ana", begun(browser))
        begun(other)
        wrong = [
            other.get(back),  # of another browser: its own state is another one
            site.browser().get(back),  # nothing was begun there
            browser.get(back.replace("code=", "code=x")),
        ]
        tampered = site.provider.log_in("ana", begun(browser)).replace("state=", "state=x")
        wrong.append(browser.get(tampered))
        away = begun(browser)
        state = parse_qs(urlsplit(away).query)["state"][0]
        code = parse_qs(urlsplit(back).query)["code"][0]
        wrong.append(browser.get(f"/-/openid/callback?code={code}&state={state}"))  # of another log-in: wrong verifier
        begun(browser)
        wrong.append(browser.get(f"{back}&iss=https://elsewhere.example"))
        for reply in wrong:
            assert reply.status_code == 401
            assert "did not work" in reply.text
            assert all("Max-Age=0" in cookie for cookie in reply.headers.get_list("set-cookie"))  # no visit begins


@pytest.mark.parametrize(("name", "told"), [("eve", "no data set here has let it in"), ("mallory", "did not work")])
def test_an_account_that_nobody_has_tied_or_verified_opens_nothing(site: Site, name: str, told: str) -> None:
    with site.browser() as browser:
        reply = browser.get(site.provider.log_in(name, begun(browser)))
        assert reply.status_code == 401
        assert told in reply.text
        assert browser.get("/demo-people/ask").status_code == 303
    assert site.ask(site.provider.signed(name, site.back)).status_code == 401


def test_a_signed_token_asks_over_http_under_the_name_of_its_account(site: Site) -> None:
    token = site.provider.signed("ana", site.back)
    assert site.ask(token).status_code == 200
    assert site.ask(token, "other").status_code == 200
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{site.served.url}/v1/other/owner/people", headers=headers).status_code == 200
    assert httpx.get(f"{site.served.url}/v1/demo-people/owner/people", headers=headers).status_code == 403
    assert httpx.get(f"{site.served.url}/v1/nothing/budget", headers=headers).status_code == 404
    assert httpx.get(f"{site.served.url}/metrics", headers=headers).status_code == 200
    with bursar.connect(f"{site.served.url}/demo-people", token=token) as db:
        assert db.query(COUNT["sql"], within=300).free
        assert {line.analyst for line in db.log()} == {"ana"}


Claims = dict[str, object]

FORGERIES: dict[str, Callable[[Claims], Claims]] = {
    "too old": lambda claims: {**claims, "exp": int(time.time()) - 60},
    "from tomorrow": lambda claims: {**claims, "nbf": int(time.time()) + 86_400},
    "for another program": lambda claims: {**claims, "aud": "wiki"},
    "by us, for another": lambda claims: {**claims, "aud": "wiki", "azp": "bursar"},
    "for two, and not by us": lambda claims: {**claims, "aud": ["bursar", "wiki"], "azp": "wiki"},
    "of another provider": lambda claims: {**claims, "iss": "https://elsewhere.example"},
    "of nobody": lambda claims: {key: value for key, value in claims.items() if key != "email"},
    "without an end": lambda claims: {key: value for key, value in claims.items() if key != "exp"},
}


def by_hand(header: Claims, claims: Claims, secret: bytes | None) -> str:
    """What no library agrees to sign: with a secret that is none, or not at all."""
    signed = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims))
    seal = b"" if secret is None else base64.urlsafe_b64encode(hmac.digest(signed, secret, "sha256")).rstrip(b"=")
    return f"{signed.decode()}.{seal.decode()}"


def test_a_token_that_is_not_for_us_or_not_signed_is_nobodys(site: Site) -> None:
    genuine = site.provider.signed("ana", site.back)
    key = RSAKey.import_key(site.provider.key)
    named = jwt.decode(genuine, key, algorithms=["RS256"])
    header, claims = dict(named.header), dict(named.claims)
    assert site.ask(jwt.encode(header, claims, key)).status_code == 200  # forgeries fail by what is wrong with them
    for why, forge in FORGERIES.items():
        assert site.ask(jwt.encode(header, forge(claims), key)).status_code == 401, why
    stranger = RSAKey.generate_key(2048)
    forged = [
        jwt.encode(header, claims, stranger),
        by_hand({**header, "alg": "HS256"}, claims, key.as_pem(private=False)),
        by_hand({**header, "alg": "HS256"}, claims, SECRET.encode()),
        by_hand({**header, "alg": "none"}, claims, None),
        genuine[:-4] + "AAAA",
        "a.b.c",
        "..",
    ]
    for token in forged:
        reply = site.ask(token)
        assert reply.status_code == 401
        assert token not in reply.text
    assert site.ask(genuine).status_code == 200


@pytest.mark.heavy
def test_a_real_browser_goes_there_and_comes_back(site: Site) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium")
    with site.browser() as early:
        begun(early)  # by now the server has found its provider
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=1000 * PATIENCE)
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        expect.set_options(timeout=1000 * PATIENCE)
        page.goto(f"{site.served.url}/demo-people/budget")
        page.get_by_role("link", name="Log in with Example").click()
        page.get_by_label("Username").fill("ana")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_role("heading", name="Budget")).to_be_visible()
        page.goto(site.served.url)
        expect(page.get_by_role("link", name="other")).to_be_visible()
        browser.close()


def test_an_account_that_is_untied_is_out_at_once(site: Site) -> None:
    """The last one: it changes who may come in."""
    token = site.provider.signed("ana", site.back)
    with site.browser() as browser:
        browser.get(site.provider.log_in("ana", begun(browser)))
        assert browser.get("/demo-people/ask").status_code == 200
        people = people_of(load(site.config))
        people.revoke("ana")
        people.close()
        assert browser.get("/demo-people/ask").status_code == 303
        assert browser.get("/other/ask").status_code == 200
    assert site.ask(token).status_code == 404  # as if there were no such data set: it is still let in to the other one
    assert site.ask(token, "other").status_code == 200


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('issuer = "https://a.example"', "client_id is missing"),
        ('issuer = "http://a.example"\nclient_id = "b"', "https://"),
        ('issuer = "https://a.example"\nclient_id = "b"\nsecret = "c"', '"secret" is not known'),
        ('issuer = "https://a.example"\nclient_id = 1', "client_id is a text"),
        ("issuer", "not TOML"),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "openid.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=told):
        OpenIdSettings.load(path)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "openid.toml"
    path.write_text('issuer = "https://a.example"\nclient_id = "b"\nclient_secret = "c"')
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        OpenIdSettings.load(path)
    path.chmod(0o600)
    assert OpenIdSettings.load(path).client_secret == "c"
