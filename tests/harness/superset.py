"""Apache Superset in an environment of its own, as people install it: its web server, asked by its own API."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from harness.patience import PATIENCE, until

ENVIRONMENT = "BURSAR_SUPERSET"
"""Names a virtual environment that has Superset already; one is made for the test otherwise (a gigabyte)."""

PACKAGES = ["apache-superset==6.1.0", "rich", "cachetools", "Flask-Caching==2.1.0", "psycopg2-binary"]
"""The three in the middle are what this release lacks or does not work with otherwise."""

SETTINGS = """
SECRET_KEY = "of a test, and long enough to be taken for one"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db?check_same_thread=false"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
"""

ADMIN = "admin"


class Superset:
    """A Superset that runs, with somebody logged in."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=PATIENCE)
        body = {"username": ADMIN, "password": ADMIN, "provider": "db", "refresh": True}
        token = self.post("security/login", body)["access_token"]
        self._client.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> dict[str, object]:
        """What a route of its API says."""
        return self._told(self._client.get(f"/api/v1/{path}"))

    def post(self, path: str, body: Mapping[str, object], *, fails: bool = False) -> dict[str, object]:
        """What a route of its API says to a body; `fails`: that it must fail."""
        reply = self._client.post(f"/api/v1/{path}", json=body)
        assert reply.is_error is fails, reply.text
        return self._told(reply)

    def chart(self, dataset: object, **query: object) -> list[dict[str, object]]:
        """The rows behind a chart."""
        body = {"datasource": {"id": dataset, "type": "table"}, "queries": [query], "result_type": "full"}
        [result] = self.post("chart/data", body)["result"]  # type: ignore[misc]
        return result["data"]  # type: ignore[no-any-return, index]

    def close(self) -> None:
        self._client.close()

    @staticmethod
    def _told(reply: httpx.Response) -> dict[str, object]:
        told: dict[str, object] = json.loads(reply.text)
        return told


@contextmanager
def superset(folder: Path) -> Iterator[Superset]:
    """Superset for the block, with all it keeps in a folder."""
    home = os.environ.get(ENVIRONMENT)
    place = Path(home) if home else _installed(folder / "environment")
    config = folder / "superset_config.py"
    config.write_text(SETTINGS.format(folder=folder))
    environment = {**os.environ, "SUPERSET_CONFIG_PATH": str(config), "SUPERSET_HOME": str(folder)}
    environment |= {"FLASK_APP": "superset"}
    command = str(place / "bin" / "superset")
    named = [f"--{what}={ADMIN}" for what in ("username", "password", "firstname", "lastname")]
    person = ["fab", "create-admin", *named, "--email=admin@example.org"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "said").open("w") as said:
        for words in (["db", "upgrade"], person, ["init"]):
            subprocess.run([command, *words], env=environment, stdout=said, stderr=said, check=True)
        process = subprocess.Popen([command, "run", "-p", str(port)], env=environment, stdout=said, stderr=said)
        try:
            url = f"http://127.0.0.1:{port}"
            until(lambda: _answers(url), pause=0.5)
            started = Superset(url)
            yield started
            started.close()
        finally:
            process.terminate()
            process.wait()


def _installed(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", *PACKAGES], check=True)
    return folder


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False
