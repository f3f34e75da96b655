"""Checks what `python -m build` made.

    python tools/dist.py dist          with each Python that the machine has, of those that Bursar is for
    python tools/dist.py dist --own    with the Python that runs this

Both archives have every file of the package. The wheel is installed into an empty environment of a Python, and the demo
runs there, away from the checkout. The first environment is as people have it, and is weighed; in the others nothing is
compiled that the demo does not load.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "bursar"
VERSIONS = ("3.11", "3.12", "3.13")
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
MOST_MB = 450
"""What an environment with the core alone may weigh on disk."""


def files_of_the_package() -> set[str]:
    """Every file under `src/bursar` that is somebody's work."""
    source = ROOT / "src"
    found = (path for path in (source / PACKAGE).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source).as_posix() for path in found}


def missing(wanted: Iterable[str], archive: Path) -> list[str]:
    """The files of the package that an archive lacks."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            held = set(wheel.namelist())
    else:
        with tarfile.open(archive) as source:
            held = {name.partition("/src/")[2] for name in source.getnames()}
    return sorted(set(wanted) - held)


def python(version: str) -> Path | None:
    """An interpreter of this version that runs: on the path, or among those that pyenv keeps."""
    found = shutil.which(f"python{version}")
    candidates = [Path(found)] if found else []
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False).stdout.strip()
        candidates += sorted(Path(root).glob(f"versions/{version}.*/bin/python{version}"))
    says = "import ensurepip, sys, venv; print(*sys.version_info[:2], sep='.')"
    for candidate in candidates:  # pyenv puts names on the path that do not run
        told = subprocess.run([candidate, "-c", says], capture_output=True, text=True, check=False).stdout
        if told.strip() == version:
            return candidate
    return None


def weight(folder: Path) -> int:
    """MB on disk, in whole blocks as `du -m` counts."""
    blocks = sum(path.lstat().st_blocks for path in folder.rglob("*"))
    return -(-blocks * 512 // 2**20)


def tried(interpreter: Path, wheel: Path, *options: str) -> int:
    """Install the wheel into an empty environment and run the demo there; what the environment weighs in MB."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "env"
        subprocess.run([interpreter, "-m", "venv", home], check=True)
        pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *options, wheel], check=True)
        told = subprocess.run(
            [home / "bin" / PACKAGE, "demo"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if told.returncode != 0:
            raise SystemExit(f"the demo failed:\n{told.stdout}\n{told.stderr}")
        return weight(home)


def lines(folder: Path, versions: Iterable[str] = VERSIONS) -> Iterator[str]:
    """What was found, a line each; SystemExit at the first fault."""
    wheel, source = (only(folder, pattern) for pattern in ("*.whl", "*.tar.gz"))
    wanted = files_of_the_package()
    for archive in (wheel, source):
        if lacks := missing(wanted, archive):
            raise SystemExit(f"{archive.name} lacks {', '.join(lacks)}")
        yield f"{archive.name} has all {len(wanted)} files of the package"
    weighed = False
    for version in versions:
        interpreter = Path(sys.executable) if version == OWN else python(version)
        if interpreter is None:
            yield f"Python {version}: not on this machine, so not tried"
        elif weighed:
            tried(interpreter, wheel, "--no-compile")
            yield f"Python {version}: installed into an empty environment, and the demo runs"
        else:
            megabytes, weighed = tried(interpreter, wheel), True
            if megabytes > MOST_MB:
                raise SystemExit(f"Python {version}: the environment weighs {megabytes} MB, more than {MOST_MB}")
            yield f"Python {version}: installed into an empty environment, {megabytes} MB, and the demo runs"


def only(folder: Path, pattern: str) -> Path:
    """The one file of this kind."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{folder} has {len(found)} files {pattern}, not one")
    return found[0].resolve()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Whether the packages are whole, and work in empty environments.")
    parser.add_argument("folder", type=Path, help="where the packages are")
    parser.add_argument("--own", action="store_true", help="only with the Python that runs this")
    given = parser.parse_args()
    for line in lines(given.folder, (OWN,) if given.own else VERSIONS):
        print(line, flush=True)
