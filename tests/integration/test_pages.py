"""The pages without a browser: who gets in, what each page says, and that nothing in it is ever obeyed."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import bursar
from bursar.service.people import Role
from harness.patience import PATIENCE
from harness.serving import Served, data_set, let_in, serving

pytestmark = pytest.mark.thinned(3)

EVIL = "<script>alert(1)</script>"
OPEN = ["ask", "budget", "log", "columns", "queue", "synthetic", "statement"]
OWNERS = ["people", "care", "setup"]
BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region WITH ERROR 100"


class Visitor:
    """A browser without scripts: it keeps cookies, and says where its requests come from."""

    def __init__(self, site: Site, name: str | None) -> None:
        self.site = site
        self.client = httpx.Client(
            base_url=site.served.url, timeout=PATIENCE, limits=httpx.Limits(max_keepalive_connections=0)
        )
        if name is not None:
            assert self.post("/-/login", token=site.served.tokens[name]).status_code == 303

    def get(self, path: str) -> str:
        reply = self.client.get(path)
        assert reply.status_code == 200, reply.text
        return reply.text

    def post(self, path: str, headers: Mapping[str, str] | None = None, **form: str) -> httpx.Response:
        origin = {"Origin": self.site.served.url} if headers is None else headers
        return self.client.post(path, data=form, headers=origin)


@dataclass(frozen=True)
class Site:
    """A server with two data sets, in the second of which a column has a value that looks like a script."""

    served: Served
    config: Path

    def spent(self) -> float:
        with self.served.client("olga") as olga:
            spent: float = olga.get("/budget").json()["spent"]
            return spent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("pages")
    config = data_set(folder)
    evil = folder / "evil"
    evil.mkdir()
    text = config.read_text().replace('"Northmark"', f"'{EVIL}'").replace("demo-people", "evil")
    (evil / "bursar.toml").write_text(text)
    (evil / "people.csv").write_bytes((folder / "people.csv").read_bytes())
    bursar.create(evil / "bursar.toml").close()
    tokens = let_in(config, ana=Role.ANALYST, bob=Role.ANALYST, olga=Role.OWNER)
    tokens |= let_in(evil / "bursar.toml", eve=Role.OWNER)
    (folder / "room").mkdir()
    options = ("--behind-proxy", "--setup", folder / "room", "--log", folder / "log")
    with serving(config, evil, *options, tokens=tokens) as served:
        yield Site(served, config)


@pytest.mark.heavy
def test_a_token_is_typed_once_and_is_in_no_cookie_and_on_no_page(site: Site) -> None:
    ana, token = Visitor(site, None), site.served.tokens["ana"]
    reply = ana.post("/-/login", token=token)
    assert reply.headers["location"] == "/demo-people/ask"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    secret = token.split("_", 2)[2]  # which may have more of them
    assert secret not in cookie
    assert all(secret not in ana.get(f"/demo-people/{place}") for place in OPEN)
    safe = Visitor(site, None).post("/-/login", {"Origin": site.served.url, "X-Forwarded-Proto": "https"}, token=token)
    assert "Secure" in safe.headers["set-cookie"]


def test_a_wrong_token_opens_nothing_and_is_not_repeated(site: Site) -> None:
    nobody = Visitor(site, None)
    wrong = site.served.tokens["ana"][:-2] + "xx"
    reply = nobody.post("/-/login", token=wrong)
    assert reply.status_code == 401
    assert wrong not in reply.text
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "body", [b"", b"--x\r\nno form", b"--x\r\nContent-Disposition: form-data; name=token\r\n\r\nx"]
)
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "multipart/form-data", "application/json"])
def test_what_is_no_form_is_refused_as_one(site: Site, body: bytes, kind: str) -> None:
    headers = {"Content-Type": kind, "Origin": site.served.url}
    reply = Visitor(site, None).client.post("/-/login", content=body, headers=headers)
    assert (reply.status_code, "is missing" in reply.text) == (422, True)


@pytest.mark.parametrize("there", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere", "/evil/ask"])
def test_nobody_is_led_elsewhere_after_logging_in(site: Site, there: str) -> None:
    reply = Visitor(site, None).post("/-/login", token=site.served.tokens["ana"], next=there)
    assert reply.headers["location"] == "/demo-people/ask"


def test_a_link_to_a_question_is_found_again_after_logging_in(site: Site) -> None:
    ana = Visitor(site, None)
    away = ana.client.get("/demo-people/ask?sql=SELECT+1")
    assert away.headers["location"] == "/?next=/demo-people/ask%3Fsql%3DSELECT%2B1"
    reply = ana.post("/-/login", token=site.served.tokens["ana"], next="/demo-people/ask?sql=SELECT+1")
    assert reply.headers["location"] == "/demo-people/ask?sql=SELECT+1"
    assert "SELECT 1</textarea>" in ana.get("/demo-people/ask?sql=SELECT+1")
    # A strict cookie is not sent along a link on another site: the page asks again by itself, and has it then.
    followed = Visitor(site, None).client.get("/demo-people/ask", headers={"Sec-Fetch-Site": "cross-site"})
    assert 'http-equiv="refresh"' in followed.text


def test_strangers_and_analysts_see_what_is_theirs(site: Site) -> None:
    ana, olga, stranger = Visitor(site, "ana"), Visitor(site, "olga"), Visitor(site, None)
    for place in OPEN:
        ana.get(f"/demo-people/{place}")
        assert stranger.client.get(f"/demo-people/{place}").status_code == 303
        missing, foreign = ana.client.get(f"/nothing/{place}"), ana.client.get(f"/evil/{place}")
        assert missing.status_code == foreign.status_code == 303
    for place in OWNERS:
        olga.get(f"/demo-people/{place}")
        assert ana.client.get(f"/demo-people/{place}").status_code == 403
    for deed in ("people/add", "people/token", "people/revoke", "people/remove", "people/shares", "care/seal",
                 "care/version", "care/verify", "care/erase"):  # fmt: skip
        assert ana.post(f"/demo-people/{deed}", name="bob", whose="bob", role="owner").status_code == 403
    with site.served.client("olga") as api:
        assert {person["name"]: len(person["tokens"]) for person in api.get("/owner/people").json()}["bob"] == 1


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "http://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}],
)
def test_other_sites_can_change_nothing(site: Site, headers: Mapping[str, str]) -> None:
    ana = Visitor(site, "ana")
    for path in ("ask/answer", "queue/pass", "synthetic", "logout"):
        assert ana.post(f"/demo-people/{path}", headers, sql=BY_REGION).status_code == 403
    assert ana.post("/-/login", headers, token=site.served.tokens["ana"]).status_code == 403


def test_every_page_runs_nothing_but_the_scripts_of_this_server(site: Site) -> None:
    olga = Visitor(site, "olga")
    for path in ("/", *(f"/demo-people/{place}" for place in (*OPEN, *OWNERS))):
        reply = olga.client.get(path, follow_redirects=True)
        policy = reply.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert reply.headers["cache-control"] == "no-store"
        assert re.findall(r"<script(?![^>]*( src=\"/-/static/|type=\"application/json\"))", reply.text) == []
        assert re.findall(r"\son\w+=|\sstyle=|https?://", reply.text) == []


def test_what_people_and_columns_are_called_is_never_obeyed(site: Site) -> None:
    eve = Visitor(site, "eve")
    sql = f"SELECT region, COUNT(*) AS \"{EVIL}\" FROM people WHERE region <> '{EVIL}' GROUP BY region WITH ERROR 150"
    pages = [
        eve.post("/evil/ask/answer", sql=sql).text,
        eve.post("/evil/ask/explain", sql=f"SELECT {EVIL}").text,
        eve.post("/evil/ask/explain", sql=sql).text,
        eve.post("/evil/ask/answer", sql=f"SELECT {EVIL}").text,
        eve.post("/evil/people/add", name=EVIL, role="analyst", days="1").text,
        eve.get(f"/evil/ask?sql={EVIL}"),
        eve.get(f"/evil/log?contains={EVIL}"),
        *(eve.get(f"/evil/{place}") for place in (*OPEN, *OWNERS)),
    ]
    assert any("&lt;script&gt;" in text for text in pages)
    assert all(EVIL not in text for text in pages)


def test_what_a_question_would_cost_is_free_and_its_answer_is_kept_for_files(site: Site) -> None:
    bob = Visitor(site, "bob")
    before = site.spent()
    told = bob.post("/demo-people/ask/explain", sql=BY_REGION).text
    assert "Would cost" in told
    assert "trade" in bob.post("/demo-people/ask/curve", sql=BY_REGION).text
    assert site.spent() == before
    answer = bob.post("/demo-people/ask/answer", sql=BY_REGION).text
    spent = site.spent()
    assert spent > before
    assert answer.count('class="bar-row"') == 10
    [link] = re.findall(r'href="(/demo-people/ask/page-\w+\.csv\?[^"]*)"', answer)
    rows = bob.get(link.replace("&amp;", "&"))
    assert rows.splitlines()[0] == "region,n,n_low,n_high"
    assert len(rows.splitlines()) == 11
    assert bob.client.get(link.replace("csv", "arrow", 1)).status_code == 200
    ana = Visitor(site, "ana")
    assert ana.client.get(link).status_code == 404  # nobody else's
    assert "Free." in bob.post("/demo-people/ask/explain", sql=BY_REGION).text
    assert site.spent() == spent
    assert BY_REGION in bob.get("/demo-people/log")
    assert BY_REGION not in ana.get("/demo-people/log")
    assert BY_REGION in Visitor(site, "olga").get("/demo-people/log")


@pytest.mark.heavy
def test_the_question_can_be_copied_to_python_and_asked_there(site: Site) -> None:
    sql = "SELECT sex, COUNT(*) AS n\nFROM people\nWHERE region <> 'Old Harbour'\nGROUP BY sex\nWITH ERROR 150"
    shown = Visitor(site, "ana").post("/demo-people/ask/answer", sql=sql).text
    texts = [html.unescape(text) for text in re.findall(r'data-copy="([^"]*)">Copy</button>', shown)]
    [python] = [text for text in texts if text.startswith("import os")]
    assert {"psql", "curl"} <= {word for text in texts for word in text.split()}
    token = site.served.tokens["ana"]
    assert all(token not in text for text in texts)
    told = subprocess.run(
        [sys.executable, "-c", python], env={**os.environ, "BURSAR_TOKEN": token}, capture_output=True, text=True
    )
    assert "cost   free" in told.stdout, told.stderr


def test_a_refusal_says_where_and_what_would_work(site: Site) -> None:
    ana = Visitor(site, "ana")
    scripted = {"Origin": site.served.url, "HX-Request": "true"}
    wrong = ana.post(
        "/demo-people/ask/answer", scripted, sql="SELECT COUNT(*) FROM people WHERE rejion = 'x' WITH ERROR 50"
    )
    assert wrong.status_code == 422
    assert "<mark>rejion</mark>" in wrong.text
    assert "Take it" in wrong.text
    dear = ana.post("/demo-people/ask/answer", scripted, sql="SELECT COUNT(*) FROM people WITH ERROR 0.01")
    assert dear.status_code == 402
    assert "is left" in dear.text
    assert str(site.config.parent) not in wrong.text + dear.text


def test_an_owner_makes_a_token_and_taking_it_back_ends_the_visit(site: Site) -> None:
    olga = Visitor(site, "olga")
    made = olga.post("/demo-people/people/add", name="carl", role="analyst", days="2").text
    [token] = re.findall(r"bursar_\w{12}_[\w-]{43}", made)[:1]
    assert token not in olga.get("/demo-people/people")
    carl = Visitor(site, None)
    carl.post("/-/login", token=token)
    carl.get("/demo-people/ask")
    olga.post("/demo-people/people/revoke", whose=token.split("_")[1])
    assert carl.client.get("/demo-people/ask").status_code == 303
    olga.post("/demo-people/people/remove", name="carl")
    assert olga.post("/demo-people/people/remove", name="olga").status_code == 403
    olga.get("/demo-people/people")


def test_logging_out_is_for_good(site: Site) -> None:
    ana = Visitor(site, "ana")
    [(name, secret)] = ana.client.cookies.items()
    ana.post("/demo-people/logout")
    ana.client.cookies.set(name, secret)  # whoever kept a copy
    assert ana.client.get("/demo-people/ask").status_code == 303


def test_a_statement_has_the_head_of_the_log_and_names_nobody_to_analysts(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    from bursar.cli.statement import statement

    statement(site.config)
    text = capsys.readouterr().out
    with site.served.client("olga") as api:
        health = api.get("/owner/verify").json()
    head = f"{health['records']}:{health['head']}"
    assert text.splitlines()[-1] == head
    assert "bob, analyst" in text
    owners, analysts = (Visitor(site, name).get("/demo-people/statement") for name in ("olga", "ana"))
    assert head in owners
    assert head in analysts
    assert "Who may ask" in owners
    assert "Who may ask" not in analysts
    file = site.config.with_name("statement.html")
    statement(site.config, out=file)
    assert head in file.read_text()
    assert "/-/static" not in file.read_text()  # it needs no server
    asked = "SELECT COUNT(*) AS n FROM people WHERE age >= 77"
    with site.served.client("ana") as api:
        api.post("/query", json={"sql": asked, "within": 400})
    statement(site.config, questions=True)
    assert f": {asked}" in capsys.readouterr().out
    told = {
        name: html.unescape(Visitor(site, name).get("/demo-people/statement?questions=true"))
        for name in ("olga", "ana", "bob")
    }
    assert [asked in text for text in told.values()] == [True, True, False]
    assert asked not in html.unescape(Visitor(site, "olga").get("/demo-people/statement"))


SCHOOL = "pupil,mark,town\n" + "".join(f"p{n % 400},{n % 6 + 1},{'Oslo' if n % 3 else 'Bergen'}\n" for n in range(600))


def test_an_owner_sets_up_a_table_without_writing_a_config(site: Site) -> None:
    olga, room = Visitor(site, "olga"), site.config.parent / "room"
    origin = {"Origin": site.served.url}

    def upload(name: str, file: str = "school.csv", **form: str) -> httpx.Response:
        files = {"file": (file, SCHOOL.encode(), "text/csv")} if file else None
        return olga.client.post(
            "/demo-people/setup", data={"name": name, "epsilon": "2", **form}, files=files, headers=origin
        )

    for name, file, form in (
        ("../out", "a.csv", {}),
        ("school", "a.exe", {}),
        ("school", "", {"there": "../people.csv"}),
    ):
        assert upload(name, file, **form).status_code == 422
    assert upload("school").headers["location"] == "/demo-people/setup/school"
    assert upload("school").status_code == 422
    draft = olga.get("/demo-people/setup/school")
    assert "Oslo" in draft
    for other in ("ana", "eve"):
        home = "evil" if other == "eve" else "demo-people"
        assert Visitor(site, other).client.get(f"/{home}/setup/school").status_code in (403, 404)
    assert (room / "school" / "data.csv").stat().st_mode & 0o077 == 0

    olga.post("/demo-people/setup/school/change", place="privacy", unit="pupil")
    assert "Protected is each pupil" in olga.get("/demo-people/setup/school")
    olga.post("/demo-people/setup/school/change", place="privacy", unit="pupil", max_contributions="2")
    olga.post("/demo-people/setup/school/change", place="columns.mark", lower="1", upper="6")
    wrong = olga.post("/demo-people/setup/school/change", place="columns.mark", lower="one", upper="6")
    assert wrong.status_code == 422
    assert olga.post("/demo-people/setup/school/create").status_code == 422  # not all is confirmed
    for place in ("source", "columns.town"):
        olga.post("/demo-people/setup/school/confirm", place=place)
    assert "at most 2 rows of each are counted" in olga.get("/demo-people/setup/school")
    made = olga.post("/demo-people/setup/school/create").text
    [token] = re.findall(r"bursar_\w{12}_[\w-]{43}", made)[:1]
    assert "SELECT" in olga.get("/school/ask")  # logged in already
    again = Visitor(site, None)
    assert again.post("/-/login", token=token).headers["location"] == "/school/ask"
    answer = again.post("/school/ask/answer", sql="SELECT town, COUNT(*) AS n FROM school GROUP BY town WITH ERROR 200")
    assert "Bergen" in answer.text
    again.get("/school/synthetic")
    assert olga.client.get("/demo-people/setup/school").status_code == 404
