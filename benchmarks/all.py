"""Runs every benchmark and rewrites RESULTS.md, the command beside each table: `make bench`.

    python -m benchmarks.all --quick [--only cachedp "boost single"]
    python -m benchmarks.all --list

The page is written after every command, so a run that is stopped loses nothing, and the sections that were not run stay
as they are. A command that fails leaves its section as it was, and the others go on.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

CITIBIKE = ("laplace", "exact-cache", "pmw", "boost", "boost-printed", "default")
"""Those that answer all 70,000 questions within minutes."""

IN_FULL = (("boost", "--workload", "citibike", "--systems", *CITIBIKE),)
"""Commands that are run in full, whatever is asked for."""

COMMANDS = (
    ("core",),
    ("ledger",),
    ("scale",),
    ("sources",),
    ("strategies",),
    ("cachedp", "--task", "bfs"),
    ("cachedp", "--task", "dfs"),
    ("cachedp", "--task", "rrq"),
    ("cachedp", "--task", "taxi"),
    ("cachedp", "--task", "taxi-pairs"),
    ("cachedp", "--task", "idebench"),
    ("cachedp", "--task", "idebench-summed"),
    ("analysts",),
    ("analysts", "--rows", "4884", "--epsilons", ".2", ".3", ".4"),
    ("boost", "--setting", "single"),
    ("boost", "--setting", "static"),
    ("boost", "--setting", "stream"),
    ("boost", "--workload", "citibike"),
    *IN_FULL,
    ("rap",),
    ("peers",),
    ("sessions",),
    ("serve",),
    ("sql",),
    ("texts",),
)
NOTES = {
    "boost static": "3,000 questions about two blocks, where the paper asks 300,000 of 50 (`python -m benchmarks.paper "
    "boost fig9a`). Boost is below both exact caches, as there; but there the better one spends 4.4 times what Boost "
    "does, here 1.2 times, since histograms have seen little, and over two blocks, where every window is a node, the "
    "tree of caches is the same as one cache. What lies between `package-boost` and `package-boost-profile` is "
    "accounting alone, what lies between that and `default` is planning.",
    "boost stream": "As above, with blocks that come while questions are asked; in the full run (`boost fig10a`) the "
    "best exact cache spends 4.8 times what Boost does, and 3.4 times without warm starts.",
    "boost citibike": "The quick run asks 700 questions, in which histograms of 604,800 cells learn next to nothing: "
    "PMW, whose tests the uniform histogram passes for most questions, is then below Boost, which buys until a "
    "histogram is ready. In the full run, the next table, it is the other way round, as in the paper. `package-boost` "
    "takes part here only: 70,000 questions would take it about a quarter of an hour.",
    "cachedp taxi-pairs": "Latitude and longitude asked about together, where `cachedp-quads` has a quad-tree. It is "
    "the cheapest on these workloads. What is asked depends on the noise, so single runs of one system differ by "
    "half: in six of them `default` spends .046 on average and `cachedp` .058.",
    "cachedp idebench": "Ten clients ask the same 27 workloads (three clients and eight workloads in the quick run), "
    "each selected bin a row, as section 7 of the paper defines a query; cachedp is below apex-cache, as in the paper. "
    "Each row is a run of its own: cachedp simulates before it buys, so `cachedp-profile` may buy a little more. "
    "`idebench-summed` reads the same workflows as their SQL has them, with the sum over selected bins.",
    "cachedp idebench-summed": "The same workflows with the sum over selected bins, for which cachedp answers every "
    "bin: it is above apex-cache, which measures the sums.",
    "analysts": "Expected and realised errors are two yardsticks, and every system is measured by both. At the size of "
    "the paper some systems answer everything; the next table has a size where none does.",
}
"""What must be known to read a table."""

PROGRESS = "\N{RIGHT ONE EIGHTH BLOCK}"
"""Begins the bar that DuckDB draws of a load that takes long."""

RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = """# Results

Every table was printed by the command above it, at the commit beside it, on one machine with two cores; seconds differ
elsewhere, ratios less so. `make bench` writes this page anew, `python -m benchmarks.all --quick --only cachedp` some
sections of it.
"""

Sections = dict[str, str]
"""The text of each section, by its title."""


def title_of(command: Sequence[str]) -> str:
    """What the section of a command is called."""
    name, *options = command
    if tuple(command) in IN_FULL:
        return " ".join([name, *options[1 : options.index("--systems")], "in full"])
    return " ".join([name, *options[1:]])


def chosen(names: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The commands of the sections that are named by their titles or by the first words of them; all unless named."""
    if names is None:
        return list(COMMANDS)
    for name in names:
        if not any(_named(command, name) for command in COMMANDS):
            raise SystemExit(f"there is no section {name!r}; there are: {', '.join(map(title_of, COMMANDS))}")
    return [command for command in COMMANDS if any(_named(command, name) for name in names)]


def _named(command: Sequence[str], name: str) -> bool:
    return f"{title_of(command)} ".startswith(f"{name} ")


def sections_in(text: str) -> Sections:
    """The sections of a page, as they stand there."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return {title: body.strip("\n") for title, body in zip(parts[::2], parts[1::2], strict=True)}


def page(sections: Sections) -> str:
    """The page, in the order of the commands; what no command makes any more is left out."""
    titles = [title for title in map(title_of, COMMANDS) if title in sections]
    return "\n".join([HEAD, *(f"## {title}\n\n{sections[title]}\n" for title in titles)])


def section(command: Sequence[str], words: Sequence[str], printed: str, at: str) -> str:
    """A note where one is needed, the command with the commit, the table, and the JSON line."""
    # DuckDB takes a process that was spawned for a prompt, and draws how far it is.
    lines = [line for line in printed.rstrip().splitlines() if PROGRESS not in line]
    table, line = "\n".join(lines[:-1]).strip("\n"), lines[-1]
    note = NOTES.get(title_of(command))
    head = "" if note is None else f"{note}\n\n"
    return f"{head}`{' '.join(words)}`, at {at}\n\n```\n{table}\n```\n\n`{line}`"


def commit() -> str:
    """The commit that is checked out; with a plus where files were changed since."""
    ran = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"], capture_output=True, text=True, check=False
    )
    return ran.stdout.strip() or "an unknown commit"


def listed() -> None:
    """Every section, and where it stands: made at which commit, or missing, or by another command than today's."""
    sections = sections_in(RESULTS.read_text())
    for command in COMMANDS:
        body = sections.get(title_of(command))
        made = None if body is None else re.search(r"^`(python [^`]*)`(?:, at (\S+))?$", body, flags=re.MULTILINE)
        words = f"python -m benchmarks.{' '.join(command)}"
        if made is None:
            state = "missing"
        elif made[1] not in (words, f"{words} --quick"):
            state = "made by another command"
        else:
            state = "made before commits were noted" if made[2] is None else f"made at {made[2]}"
        print(f"{title_of(command):40}  {state}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller settings, which end within minutes")
    parser.add_argument("--only", nargs="+", metavar="SECTION", help="these sections; the others stay as they are")
    parser.add_argument("--list", action="store_true", help="every section, and at which commit it was made")
    args = parser.parse_args()
    if args.list:
        listed()
        return
    commands, at, failed = chosen(args.only), commit(), []
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for number, command in enumerate(commands, start=1):
        words = ["python", "-m", f"benchmarks.{command[0]}", *command[1:]]
        words += ["--quick"] if args.quick and command not in IN_FULL else []
        print(f"[{number}/{len(commands)}] $ {' '.join(words)}", flush=True)
        start = time.monotonic()
        ran = subprocess.run(
            [sys.executable, *words[1:]], stdout=subprocess.PIPE, text=True, check=False, env=environment
        )
        print(f"{ran.stdout.rstrip().rpartition(chr(10))[0]}\n{time.monotonic() - start:.0f} s", flush=True)
        if ran.returncode:
            failed.append(title_of(command))
            continue
        # After every command: whoever stops it keeps what is done. Read anew: another run may have written meanwhile.
        sections = sections_in(RESULTS.read_text())
        RESULTS.write_text(page({**sections, title_of(command): section(command, words, ran.stdout, at)}))
    if failed:
        raise SystemExit(f"failed, and left as before: {', '.join(failed)}")


if __name__ == "__main__":
    main()
