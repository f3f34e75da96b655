"""Database servers that tests start by themselves: one of each kind per process, ended with it, and more if they must.

Binaries come from Debian's packages (`postgresql`, `mariadb-server`). A test that needs one and does not find it is
skipped with the reason; CI installs all of them and allows no skips.
"""

from __future__ import annotations

import atexit
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness.patience import PATIENCE, until

T = TypeVar("T")
PASSWORD = "only-for-tests"
"""Of every role and user but the superusers, who need none."""


def _as(user: str, folder: Path) -> list[str]:
    """How to run a command that refuses to run as root; the folder is then that user's."""
    if os.geteuid() != 0:
        return []
    found = pwd.getpwnam(user)
    os.chown(folder, found.pw_uid, found.pw_gid)
    return ["runuser", "-u", user, "--"]


def _folder(name: str) -> Path:
    """With a short name: that of a socket has at most 107 bytes."""
    return Path(tempfile.mkdtemp(prefix=name, dir="/tmp"))


def _until_the_end(block: AbstractContextManager[T]) -> T:
    """Enter the block, and leave it when this process ends; one that was forked off leaves nothing."""
    stack, owner = ExitStack(), os.getpid()
    atexit.register(lambda: stack.close() if os.getpid() == owner else None)
    return stack.enter_context(block)


# --- Spark -----------------------------------------------------------------------------------------------------


@contextmanager
def spark_connect() -> Iterator[str]:
    """The url of a server with a cluster of two workers, each a process of its own."""
    pyspark = pytest.importorskip("pyspark")
    pytest.importorskip("grpc_status", reason="needs pip install 'pyspark[connect]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (Debian: default-jdk-headless)")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.ui.enabled": "false",
    }
    words = [home / "bin" / "spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    words += ["--master", "local-cluster[2,1,600]"]
    words += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    folder = _folder("spark-")
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder)}
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    process = subprocess.Popen([*words, "spark-internal"], env=environment, cwd=folder, **quiet)

    def ready() -> bool:
        assert process.poll() is None, "Spark does not start"
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        return False

    try:
        until(ready, pause=0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def stop_spark() -> None:
    """End what Spark runs in this process, its threads included."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        gateway.shutdown()
        gateway.proc.stdin.close()  # at which Java ends
        gateway.proc.wait()


# --- PostgreSQL ------------------------------------------------------------------------------------------------

SUPERUSER = "postgres"
SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "200",
    "shared_buffers": "'16MB'",
    "max_wal_senders": "4",
    "wal_level": "replica",
    "hot_standby": "on",
    "autovacuum": "off",
    "logging_collector": "off",
    "track_activity_query_size": "65536",
}
DOORS = f"""
local all {SUPERUSER} trust
local replication {SUPERUSER} trust
local all all scram-sha-256
"""


@dataclass
class PostgreSQL:
    """One server; `folder` is its own, with the socket by which alone it is reached. Commits are durable."""

    folder: Path
    port: int = 5432  # the name of its socket
    running: bool = field(default=False, init=False)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres", user: str = SUPERUSER, **parameters: str) -> str:
        """As a config has it: without a password."""
        facts = {"host": str(self.folder), "port": str(self.port), **parameters}
        return f"postgresql://{user}@/{database}?" + "&".join(f"{name}={value}" for name, value in facts.items())

    def run(self, program: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [*_as(SUPERUSER, self.folder), f"{_postgresql_binaries()}/{program}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=check, cwd=self.folder)

    def make(self, settings: Mapping[str, str] = {}) -> None:
        copy = [*_as(SUPERUSER, self.folder), "cp", "-a", str(_new_cluster()), str(self.data)]
        subprocess.run(copy, check=True, cwd=self.folder)
        (self.data / "pg_hba.conf").write_text(DOORS)
        self.configure({**SETTINGS, "unix_socket_directories": f"'{self.folder}'", "port": str(self.port), **settings})

    def configure(self, settings: Mapping[str, str]) -> None:
        """Add settings; they count from the next start or reload on."""
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def start(self, environment: Mapping[str, str] = {}) -> None:
        log = str(self.folder / "log")
        command = [*_as(SUPERUSER, self.folder), "env", *(f"{name}={value}" for name, value in environment.items())]
        command += [f"{_postgresql_binaries()}/pg_ctl", "-D", str(self.data), "-l", log, "-w", "-t", str(PATIENCE)]
        command.append("start")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self.running = True

    def stop(self, how: str = "fast") -> None:
        """`immediate` is a crash: nothing is written any more, and the next start recovers from the log of writes."""
        if self.running:
            self.run("pg_ctl", "-D", str(self.data), "-m", how, "-w", "-t", str(PATIENCE), "stop", check=False)
            self.running = False

    def reload(self) -> None:
        self.run("pg_ctl", "-D", str(self.data), "reload")

    def promote(self) -> None:
        self.run("pg_ctl", "-D", str(self.data), "-w", "-t", str(PATIENCE), "promote")


def _postgresql_binaries() -> str:
    found = [*sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb")), shutil.which("initdb") or ""]
    if not found[0]:
        pytest.skip("the PostgreSQL server is not installed (Debian: postgresql)")
    return os.path.dirname(found[0])


@cache
def _new_cluster() -> Path:
    """What initdb makes, which takes it a second; every server begins with a copy."""
    first = PostgreSQL(Path(_until_the_end(tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp"))))
    words = ["-A", "trust", "--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C.UTF-8"]
    first.run("initdb", "-D", str(first.data), "-U", SUPERUSER, *words)
    return first.data


@contextmanager
def postgresql(settings: Mapping[str, str] = {}, *, start: bool = True) -> Iterator[PostgreSQL]:
    """A new server that runs until the end of the block; the block may have to start it."""
    with _removed(PostgreSQL(_folder("pg-"))) as server:
        server.make(settings)
        if start:
            server.start()
        yield server


@contextmanager
def standby(primary: PostgreSQL, name: str = "standby") -> Iterator[PostgreSQL]:
    """A streaming replica of a server, which runs until the end of the block."""
    with _removed(PostgreSQL(_folder("pg-"), port=primary.port + 1)) as server:
        words = ["-D", str(server.data), "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        server.run("pg_basebackup", *words, "-d", primary.url(application_name=name))
        server.configure({"unix_socket_directories": f"'{server.folder}'", "port": str(server.port)})
        server.start()
        yield server


@contextmanager
def _removed(server: PostgreSQL) -> Iterator[PostgreSQL]:
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(server.folder, ignore_errors=True)


@cache
def shared_postgresql() -> PostgreSQL:
    """The server for all tests of this process that do it no harm."""
    return _until_the_end(postgresql())


def administer(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """What the database's administrator does behind Bursar's back; the rows of the last statement."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


# --- MariaDB ---------------------------------------------------------------------------------------------------


@dataclass
class MariaDB:
    """One server; `folder` is its own, with the socket by which alone it is reached. A crash may lose commits."""

    folder: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def url(self, database: str, user: str) -> str:
        """As a config has it: without a password."""
        return f"mysql://{user}@localhost/{database}?unix_socket={self.folder}/socket"

    def make(self) -> None:
        install = shutil.which("mariadb-install-db")
        if install is None or not os.path.exists(_mariadb_binary()):
            pytest.skip("the MariaDB server is not installed (Debian: mariadb-server)")
        words = [f"--datadir={self.folder}/data", "--auth-root-authentication-method=normal", "--skip-test-db"]
        command = [*_as("mysql", self.folder), install, "--no-defaults", *words]
        subprocess.run(command, check=True, capture_output=True, cwd="/")

    def start(self) -> None:
        options = [f"--{name}={self.folder}/{name}" for name in ("socket", "pid-file")]
        options += [f"--datadir={self.folder}/data", f"--tmpdir={self.folder}", "--skip-networking", "--skip-log-bin"]
        options += ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"]
        command = [*_as("mysql", self.folder), _mariadb_binary(), "--no-defaults", *options]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        until(self._ready, pause=0.05)

    def _ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-2000:]
        words = ["--no-defaults", f"--socket={self.folder}/socket", "--user=root", "ping"]
        return subprocess.run(["mariadb-admin", *words], check=False, capture_output=True).returncode == 0

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, how)
            self.process.wait(PATIENCE)
            self.process = None

    def owner(self):  # type: ignore[no-untyped-def]
        """A connection of the superuser, every statement its own transaction."""
        pymysql = pytest.importorskip("pymysql")
        socket = f"{self.folder}/socket"
        return pymysql.connect(unix_socket=socket, user="root", autocommit=True, charset="utf8mb4")

    def administer(self, *statements: str) -> list[Any]:
        """What the database's administrator does behind Bursar's back; the rows of the last statement."""
        with closing(self.owner()) as owner, owner.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())


def _mariadb_binary() -> str:
    return shutil.which("mariadbd") or "/usr/sbin/mariadbd"


@contextmanager
def mariadb() -> Iterator[MariaDB]:
    """A new server that runs until the end of the block."""
    server = MariaDB(_folder("maria-"))
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop(signal.SIGKILL)
        shutil.rmtree(server.folder, ignore_errors=True)


@cache
def shared_mariadb() -> MariaDB:
    """The server for all tests of this process that do it no harm."""
    return _until_the_end(mariadb())
