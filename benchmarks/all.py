"""Runs every benchmark and rewrites RESULTS.md, the command beside each table: `make bench`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    ("core",),
    ("ledger",),
    ("strategies",),
    ("cachedp", "--task", "bfs"),
    ("cachedp", "--task", "dfs"),
    ("cachedp", "--task", "rrq"),
    ("cachedp", "--task", "taxi"),
    ("cachedp", "--task", "idebench"),
    ("analysts",),
    ("boost", "--setting", "single"),
    ("boost", "--setting", "static"),
    ("boost", "--setting", "stream"),
    ("boost", "--workload", "citibike"),
    ("rap",),
    ("peers",),
    ("sessions",),
    ("serve",),
)
RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = """# Results

Every table was printed by the command above it, on one machine with two cores; seconds differ elsewhere, ratios less
so. `make bench` writes this page anew.
"""


def main() -> None:
    quick = ["--quick"] if "--quick" in sys.argv[1:] else []
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    sections = [HEAD]
    for name, *options in COMMANDS:
        words = ["python", "-m", f"benchmarks.{name}", *options, *quick]
        print(f"$ {' '.join(words)}", flush=True)
        ran = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=True, env=environment)
        table, _, line = ran.stdout.rstrip().rpartition("\n")
        print(table, flush=True)
        title = " ".join([name, *options[1:]])
        sections.append(f"## {title}\n\n`{' '.join(words)}`\n\n```\n{table}\n```\n\n`{line}`\n")
    RESULTS.write_text("\n".join(sections))


if __name__ == "__main__":
    main()
