"""What is installed and what is advised: the core needs no more than it declares, and every command given can work."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
ADVICE = re.compile(r"pip install (?:-e )?(?:'([^']+)'|([\w.-]+))")
TEXTS = [
    *(path for folder in ("docs", "examples", "src") for path in (ROOT / folder).rglob("*") if path.is_file()),
    *ROOT.glob("*.md"),
]
UNIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "readline", "syslog")
SERVING = ("fastapi", "uvicorn", "starlette", "pydantic", "jinja2")
NOT_CORE = ("psycopg", "cryptography", "opendp", "pandas", "polars", "pyarrow", "matplotlib", "numba", "yaml", *SERVING)

EVERY_MODULE = """
import importlib, os, pkgutil, sys
import {loaded}
for name in {blocked!r}:
    sys.modules[name] = None
for name in {unix!r}:
    delattr(os, name)
import bursar
failed, seen = [], 0
for module in pkgutil.walk_packages(bursar.__path__, "bursar."):
    try:
        importlib.import_module(module.name)
        seen += 1
    except Exception as error:
        failed.append((module.name, str(error)))
print(seen, failed)
"""


def imported(blocked: tuple[str, ...], *, loaded: str = "os", unix: tuple[str, ...] = ()) -> tuple[int, str]:
    """How many modules of the package are imported where some others are missing, and what fails."""
    code = EVERY_MODULE.format(blocked=blocked, loaded=loaded, unix=unix)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, _, failed = done.stdout.strip().partition(" ")
    return int(count), failed


@pytest.mark.heavy
def test_every_module_is_imported_without_what_only_unix_has() -> None:
    """Libraries are loaded first: what they do without these modules is their own affair."""
    libraries = "duckdb, filelock, numpy, rich.console, scipy.optimize, scipy.sparse.linalg, sqlglot, typer, subprocess"
    count, failed = imported(UNIX_ONLY, loaded=libraries, unix=("fork", "pwrite", "getuid", "register_at_fork"))
    assert failed == "[]"
    assert count > 200


@pytest.mark.heavy
def test_the_core_is_imported_without_any_extra() -> None:
    """RAP's loops are compiled where they are defined, so its modules name the compiler at once; the server's doors are
    made of what speaks HTTP."""
    count, failed = imported(NOT_CORE)
    assert count > 200
    faults = re.findall(r"\('bursar[^)]*\)", failed)
    assert all(any(name in fault for name in ("numba", "cryptography", *SERVING)) for fault in faults), failed
    assert "bursar.synthetic." in failed  # the check above can fail
    assert set(re.findall(r"'bursar\.(\w+)", failed)) == {"synthetic", "service"}
    assert not {"bursar.service.people", "bursar.service.datasets"} & set(re.findall(r"'(bursar[\w.]+)'", failed))


def advised() -> list[tuple[str, str]]:
    found = []
    for path in TEXTS:
        if path.suffix in (".md", ".py", ".ipynb"):
            text = path.read_text(encoding="utf-8")
            found += [(path.name, quoted or plain) for quoted, plain in ADVICE.findall(text)]
    return found


def works(wanted: str) -> bool:
    """Whether pip finds it: the checkout with extras that exist, or a library that an extra brings."""
    if wanted.startswith("."):
        return set(re.findall(r"\w+", wanted)) <= set(EXTRAS)
    names = {re.split(r"[<>=]", line)[0] for lines in EXTRAS.values() for line in lines}
    return wanted in names and not wanted.startswith(PROJECT["name"])


def test_every_advice_to_install_something_works_before_it_is_published() -> None:
    found = advised()
    assert len(found) > 10
    assert [advice for advice in found if not works(advice[1]) and "{" not in advice[1]] == []
    assert not works("bursar[plot]")
    assert not works(".[pictures]")


def test_the_page_tells_of_every_dependency() -> None:
    told = set(re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE))
    core = {re.split(r"[\[<>=]", line)[0] for line in PROJECT["dependencies"]}
    extra = {re.split(r"[\[<>=]", line)[0] for name, lines in EXTRAS.items() if name != "dev" for line in lines}
    assert told == core | extra


def test_what_parses_is_pinned_and_nothing_else() -> None:
    pinned = {line.partition("==")[0] for line in PROJECT["dependencies"] if "==" in line}
    assert pinned == {"sqlglot[c]"}


@pytest.fixture(scope="module")
def tool() -> object:
    spec = importlib.util.spec_from_file_location("dist", ROOT / "tools" / "dist.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.heavy
def test_a_package_that_lacks_a_file_is_seen(tool: object, tmp_path: Path) -> None:
    import tarfile
    import zipfile

    wanted = sorted(tool.files_of_the_package())  # type: ignore[attr-defined]
    assert "bursar/py.typed" in wanted
    assert "bursar/core/noise/exact_sampler.proof.md" in wanted
    wheel, source = tmp_path / "x.whl", tmp_path / "x.tar.gz"
    with zipfile.ZipFile(wheel, "w") as made, tarfile.open(source, "w:gz") as packed:
        for name in wanted[1:]:
            made.write(ROOT / "src" / name, name)
            packed.add(ROOT / "src" / name, f"bursar-0/src/{name}")
    for archive in (wheel, source):
        assert tool.missing(wanted, archive) == wanted[:1]  # type: ignore[attr-defined]
        assert tool.missing(wanted[1:], archive) == []  # type: ignore[attr-defined]


def test_a_python_that_is_not_there_is_not_found(tool: object) -> None:
    assert tool.python("2.4") is None  # type: ignore[attr-defined]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert tool.python(version) is not None or version not in tool.VERSIONS  # type: ignore[attr-defined]
