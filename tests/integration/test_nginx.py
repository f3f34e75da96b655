"""The block for nginx of docs/server.md, in front of a real server, with TLS."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from bursar.service.people import Role
from harness.patience import PATIENCE, until
from harness.ports import kept_port
from harness.serving import data_set, let_in, serving

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
NGINX = Path("/usr/sbin/nginx")
BY_SEX = {"sql": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "within": 200}

MAIN = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {block}
}}
"""


@contextmanager
def behind_nginx(folder: Path, port: int, upstream: str) -> Iterator[str]:
    """The block of the page with other ports and files; where it is to be found."""
    folder.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "bursar.key", "-out", folder / "bursar.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    [block] = re.findall(r"^```\n(server \{\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "bursar.example.org": "localhost",
        "/etc/ssl/": f"{folder}/",
        "http://127.0.0.1:8000": upstream,
    }
    for old, new in changes.items():
        assert old in block
        block = block.replace(old, new)
    config = folder / "nginx.conf"
    config.write_text(MAIN.format(folder=folder, block=block))
    process = subprocess.Popen([NGINX, "-p", folder, "-c", config, "-e", folder / "error.log"])
    try:
        until(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, (folder / "error.log").read_text()
        yield f"https://localhost:{port}"
    finally:
        process.terminate()
        process.wait()


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


def _listens(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.heavy  # a proxy, a server, a synthetic table
def test_the_block_of_the_page_carries_everything(tmp_path: Path) -> None:
    if not NGINX.exists():
        pytest.skip("needs nginx")
    config = data_set(tmp_path / "data")
    tokens = let_in(config, ana=Role.ANALYST, olga=Role.OWNER)
    with (
        serving(config, "--behind-proxy", tokens=tokens) as server,
        kept_port() as port,
        behind_nginx(tmp_path / "proxy", port, server.url) as url,
        httpx.Client(base_url=url, verify=trusting(tmp_path / "proxy" / "bursar.pem"), timeout=PATIENCE) as client,
    ):
        bearer = {"Authorization": f"Bearer {tokens['olga']}"}
        here = "/v1/demo-people"
        answer = client.post(f"{here}/query", json=BY_SEX, headers=bearer)
        assert answer.status_code == 200
        assert answer.json()["charge"] > 0

        # Whose log-ins fail is told by the proxy alone: what a client says of its address is not believed.
        refusals = [client.get(f"{here}/budget", headers={"X-Forwarded-For": f"10.0.0.{n}"}) for n in range(12)]
        assert {reply.status_code for reply in refusals} == {401, 429}

        # Events come as they happen, to their end.
        job = client.post(f"{here}/synth", json={"rows": 50, "spend": 0.1, "seconds": 5}, headers=bearer).json()
        with client.stream("GET", f"{here}/jobs/{job['id']}/events", headers=bearer) as events:
            assert events.headers["content-type"].startswith("text/event-stream")
            assert "done" in "".join(events.iter_text())

        # The page: the cookie is for TLS alone, and what it shows to copy has the address of the proxy.
        asked_by = {"Origin": url}
        entered = client.post("/-/login", data={"token": tokens["ana"]}, headers=asked_by)
        assert entered.status_code == 303, entered.text
        assert "secure" in entered.headers["set-cookie"].lower()
        sql = f"{BY_SEX['sql']} WITH ERROR 200"
        shown = client.post("/demo-people/ask/answer", data={"sql": sql}, headers=asked_by)
        assert shown.status_code == 200
        assert url in shown.text
        assert server.url not in shown.text
