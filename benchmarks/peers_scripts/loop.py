"""Asks one system a list of questions, and then the same list again: `python loop.py SYSTEM JOB RESULTS`.

Runs in the environment of the system, in the folder of the table. Only the call that asks is timed: the processor time
of all threads.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    system, job_file, results = sys.argv[1:]
    job = json.loads(Path(job_file).read_text())
    ask, spent = importlib.import_module(f"ask_{system}").open_table(job)

    def timed(question: dict[str, Any]) -> dict[str, Any]:
        before = spent()
        start = time.process_time()
        counts = ask(question)
        cpu_ms = 1000 * (time.process_time() - start)
        return {"cpu_ms": cpu_ms, "charge": spent() - before, "counts": counts}

    fresh, repeated = ([timed(question) for question in job["questions"]] for _ in range(2))
    Path(results).write_text(json.dumps({"fresh": fresh, "repeated": repeated, "epsilon": spent()}, default=float))


if __name__ == "__main__":
    main()
