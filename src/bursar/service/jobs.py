"""What takes longer than a request: a job goes on when its client leaves, and can be found again by its id.

A job is a folder beside the ledger, so that every process of a server knows it, and it outlives all of them. A lock in
it is held by whoever works on it; if nobody does, the job was stopped. Sent again under the same key it goes on: what
it has paid for is in the log.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from bursar.errors import BursarError, KeyConflict, Waiting
from bursar.service.errors import internal, refusal_of, without_paths
from bursar.service.journal import Journal
from bursar.service.request_limits import TooMuch

MOST_JOBS = 4
"""That one person may have under way."""

KEPT_SECONDS = 7 * 86_400
"""How long a job that has ended can be found."""

STEP_SECONDS = 0.2
"""Progress is written down this often at most."""


_ID = re.compile(r"[0-9a-f]{24}")


class JobState(StrEnum):
    """Where a job is."""

    WAITING = "waiting"  # for a thread, or for the analyst's turn
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # by the end of its server, or by its owner

    @property
    def over(self) -> bool:
        """Whether nothing will happen any more."""
        return self not in (JobState.WAITING, JobState.RUNNING)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as its owner sees it."""

    id: str
    kind: str  # "release" or "synth"
    person: str
    asked: str  # a digest of the request
    at: float  # seconds since 1970
    state: JobState
    done: int = 0  # of `of` steps
    of: int = 0
    fault: dict[str, object] | None = None  # why it failed, in the shape of all refusals


class JobStopped(Exception):
    """Whoever works on the job shall stop."""


@dataclass(frozen=True)
class Step:
    """What the work of a job is given."""

    folder: Path  # for its results
    ticket: int | None  # where it had to wait for its turn
    progress: Callable[[int, int], None]


Work = Callable[[Step], None]


class Jobs:
    """The jobs of one data set. Safe to use from several threads and processes."""

    def __init__(self, folder: Path, journal: Journal, *, threads: int = 2) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder, self._journal = folder, journal
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="job")
        self._closed = threading.Event()
        self.sweep()

    def begin(
        self, person: str, kind: str, body: str, key: str | None, work: Work, *, allowed: Callable[[], bool]
    ) -> Job:
        """Begin a job, or find the one that the same person has begun under the same key.

        One that was stopped or refused under that key begins again. It is stopped when it is no more `allowed`.
        """
        name = secrets.token_hex(12) if key is None else _digest(f"{person}\n{kind}\n{key}")[:24]
        job = Job(id=name, kind=kind, person=person, asked=_digest(body), at=time.time(), state=JobState.WAITING)
        here = self._folder / name
        here.mkdir(mode=0o700, exist_ok=True)
        lock = FileLock(here / "lock", thread_local=False)
        earlier = self._read(name)
        with suppress(Timeout):  # one that has ended may hold its lock for another moment
            lock.acquire(timeout=5 if earlier is not None and earlier.state.over else 0)
        try:
            earlier = self._read(name)
            if earlier is not None and earlier.asked != job.asked:
                raise KeyConflict("the key was used before, for a different request\ntry: another key")
            if not lock.is_locked or (earlier is not None and earlier.state is JobState.DONE):
                return earlier or job  # somebody works on it, or has done it
            if sum(not other.state.over for other in self.of(person)) >= MOST_JOBS:
                raise TooMuch(f"at most {MOST_JOBS} jobs at a time", 10)
            self._write(job)
            self._pool.submit(self._run, job, lock, work, allowed)
            lock = FileLock(here / "lock", thread_local=False)  # the other one is released when the work has ended
            return job
        finally:
            lock.release()

    def find(self, person: str, name: str) -> Job | None:
        """A job of a person; nobody finds those of others."""
        job = self._read(name) if _ID.fullmatch(name) else None
        if job is None or job.person != person:
            return None
        return self._judged(job)

    def of(self, person: str) -> list[Job]:
        """All jobs of a person, the newest first."""
        jobs = [job for path in self._folder.iterdir() if (job := self.find(person, path.name)) is not None]
        return sorted(jobs, key=lambda job: -job.at)

    def result(self, job: Job, name: str) -> Path:
        """Where a file is that the work has left."""
        return self._folder / job.id / name

    def stop(self, job: Job) -> None:
        """Stop a job at its next step, in whichever process it is; what it has paid for is kept."""
        (self._folder / job.id / "stop").touch()

    def close(self) -> None:
        """Stop all jobs of this process at their next steps, and wait until they have."""
        self._closed.set()
        self._pool.shutdown(cancel_futures=True)

    def sweep(self) -> None:
        """Forget jobs that have ended long ago."""
        for path in self._folder.iterdir():
            job = self._read(path.name)
            if job is not None and self._judged(job).state.over and job.at < time.time() - KEPT_SECONDS:
                shutil.rmtree(path, ignore_errors=True)

    def _run(self, job: Job, lock: FileLock, work: Work, allowed: Callable[[], bool]) -> None:
        here, ticket, job = self._folder / job.id, None, replace(job, state=JobState.RUNNING)
        (here / "stop").unlink(missing_ok=True)
        told = 0.0

        def progress(done: int, of: int) -> None:
            nonlocal job, told
            if self._closed.is_set() or (here / "stop").exists():
                raise JobStopped
            if time.monotonic() >= told or done == of:
                if not allowed():
                    raise JobStopped
                told = time.monotonic() + STEP_SECONDS
                job = replace(job, state=JobState.RUNNING, done=done, of=of)
                self._write(job)

        try:
            while True:
                try:
                    progress(0, 0)
                    work(Step(here, ticket, progress))
                    break
                except Waiting as waiting:
                    ticket, job = waiting.ticket, replace(job, state=JobState.WAITING)
                    self._write(job)
                    time.sleep(1)
            job = replace(job, state=JobState.DONE)
        except JobStopped:
            job = replace(job, state=JobState.STOPPED)
        except BursarError as error:
            refusal = without_paths(refusal_of(error), (str(self._folder.parent.parent),))
            job = replace(job, state=JobState.FAILED, fault=refusal.fault.model_dump())
        except Exception as error:
            self._journal.fault(error, job.id)
            job = replace(job, state=JobState.FAILED, fault=internal().fault.model_dump())
        finally:
            self._write(job)
            lock.release()

    def _judged(self, job: Job) -> Job:
        """A job that nobody works on any more was stopped, however its process has ended."""
        if job.state.over:
            return job
        lock = FileLock(self._folder / job.id / "lock", thread_local=False)
        try:
            with lock.acquire(timeout=0):
                now = self._read(job.id) or job
                return now if now.state.over else replace(now, state=JobState.STOPPED)
        except Timeout:
            return job

    def _read(self, name: str) -> Job | None:
        try:
            stored = json.loads((self._folder / name / "job.json").read_text())
        except FileNotFoundError:
            return None
        return Job(**{**stored, "state": JobState(stored["state"])})

    def _write(self, job: Job) -> None:
        draft = self._folder / job.id / f"{threading.get_ident()}.new"
        draft.write_text(json.dumps(asdict(job)))
        draft.replace(self._folder / job.id / "job.json")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
