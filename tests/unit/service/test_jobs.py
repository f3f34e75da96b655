"""Jobs: begun, left, found again; by their owner alone, and after the death of who worked on them."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from bursar.errors import GoalError, KeyConflict, Waiting
from bursar.service.jobs import KEPT_SECONDS, MOST_JOBS, Job, Jobs, JobState, Step, Work
from bursar.service.journal import Journal
from bursar.service.request_limits import TooMuch
from harness.patience import PATIENCE


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    (tmp_path / "bursar.bursar").mkdir()
    jobs = Jobs(tmp_path / "bursar.bursar" / "jobs", Journal(io.StringIO()))
    yield jobs
    jobs.close()


def begin(jobs: Jobs, person: str, kind: str, asked: str, key: str | None, work: Work) -> Job:
    return jobs.begin(person, kind, asked, key, work, allowed=lambda: True)


def ended(jobs: Jobs, job: Job) -> Job:
    while not (now := jobs.find(job.person, job.id) or job).state.over:
        time.sleep(0.01)
    return now


def write(step: Step) -> None:
    step.progress(1, 2)
    (step.folder / "result.json").write_text("42")
    step.progress(2, 2)


def never(step: Step) -> None:
    raise AssertionError


def test_a_job_is_done_once_under_its_key(jobs: Jobs) -> None:
    job = begin(jobs, "ana", "release", "{}", "monday", write)
    done = ended(jobs, job)
    assert (done.state, done.done, done.of) == (JobState.DONE, 2, 2)
    assert jobs.result(done, "result.json").read_text() == "42"
    assert begin(jobs, "ana", "release", "{}", "monday", never) == done
    with pytest.raises(KeyConflict):
        begin(jobs, "ana", "release", "{ }", "monday", never)
    assert ended(jobs, begin(jobs, "bob", "release", "{}", "monday", write)).id != job.id
    assert ended(jobs, begin(jobs, "ana", "release", "{}", None, write)).id != job.id


def test_nobody_finds_the_jobs_of_others(jobs: Jobs) -> None:
    job = ended(jobs, begin(jobs, "ana", "release", "{}", None, write))
    assert jobs.find("bob", job.id) is None
    assert jobs.of("bob") == []
    assert jobs.of("ana") == [job]
    for name in ("..", "../ana", "", "jobs", "x" * 500, "."):
        assert jobs.find("ana", name) is None


def test_what_is_refused_and_what_goes_wrong(jobs: Jobs) -> None:
    def refuse(step: Step) -> None:
        raise GoalError(f"{step.folder.parents[2]}/bursar.toml makes no sense\ntry: something else")

    def fail(step: Step) -> None:
        raise ValueError("31 people live in Northmark")

    refused = ended(jobs, begin(jobs, "ana", "synth", "{}", "key", refuse))
    assert refused.fault is not None
    assert (refused.state, refused.fault["code"]) == (JobState.FAILED, "goal")
    assert (refused.fault["text"], refused.fault["rewrite"]) == ("bursar.toml makes no sense", "something else")
    failed = ended(jobs, begin(jobs, "ana", "synth", "{}", None, fail))
    assert failed.fault is not None
    assert failed.fault["code"] == "internal"
    assert "Northmark" not in str(failed)
    assert ended(jobs, begin(jobs, "ana", "synth", "{}", "key", write)).state is JobState.DONE


def test_it_waits_for_its_turn_with_its_ticket(jobs: Jobs) -> None:
    tickets: list[int | None] = []

    def wait(step: Step) -> None:
        tickets.append(step.ticket)
        if step.ticket is None:
            raise Waiting(7, "it is another analyst's turn")

    assert ended(jobs, begin(jobs, "ana", "synth", "{}", None, wait)).state is JobState.DONE
    assert tickets == [None, 7]


def test_it_is_stopped_and_goes_on(jobs: Jobs) -> None:
    started = threading.Event()

    def endless(step: Step) -> None:
        while True:
            step.progress(1, 3)
            started.set()
            time.sleep(0.01)

    job = begin(jobs, "ana", "synth", "{}", "key", endless)
    started.wait(PATIENCE)
    assert begin(jobs, "ana", "synth", "{}", "key", never).id == job.id
    jobs.stop(job)
    assert ended(jobs, job).state is JobState.STOPPED
    assert ended(jobs, begin(jobs, "ana", "synth", "{}", "key", write)).state is JobState.DONE


def test_it_is_stopped_when_nobody_may_come_in_under_the_name_any_more(jobs: Jobs) -> None:
    begun, over = threading.Event(), threading.Event()

    def endless(step: Step) -> None:
        while True:
            step.progress(1, 1)
            begun.set()

    job = jobs.begin("ana", "synth", "{}", "key", endless, allowed=lambda: not over.is_set())
    assert begun.wait(PATIENCE)
    over.set()
    assert ended(jobs, job).state is JobState.STOPPED


def test_one_whose_process_is_gone_was_stopped(jobs: Jobs, tmp_path: Path) -> None:
    """A process that was killed leaves its state behind, and no lock."""
    held = threading.Event()
    job = begin(jobs, "ana", "synth", "{}", "key", lambda step: held.wait(PATIENCE) and None)
    other = Jobs(tmp_path / "bursar.bursar" / "jobs", Journal(io.StringIO()))  # another process of the server
    assert not (other.find("ana", job.id) or job).state.over
    held.set()
    ended(jobs, job)
    lock = FileLock(tmp_path / "bursar.bursar" / "jobs" / job.id / "lock")
    with lock.acquire(timeout=PATIENCE):  # held for another moment after the end was written down
        pass
    state = (tmp_path / "bursar.bursar" / "jobs" / job.id / "job.json").read_text()
    (tmp_path / "bursar.bursar" / "jobs" / job.id / "job.json").write_text(
        state.replace('"state": "done"', '"state": "running"')
    )
    found = other.find("ana", job.id)
    assert found is not None
    assert found.state is JobState.STOPPED
    with lock:
        running = other.find("ana", job.id)
        assert running is not None
        assert running.state is JobState.RUNNING
    other.close()


def test_so_many_at_a_time_and_none_for_ever(jobs: Jobs, tmp_path: Path) -> None:
    held = threading.Event()
    begun = [
        begin(jobs, "ana", "synth", "{}", None, lambda step: held.wait(PATIENCE) and None) for _ in range(MOST_JOBS)
    ]
    with pytest.raises(TooMuch):
        begin(jobs, "ana", "synth", "{}", None, never)
    held.set()
    for job in begun:
        ended(jobs, job)
    file = tmp_path / "bursar.bursar" / "jobs" / begun[0].id / "job.json"
    old = file.read_text().replace(f'"at": {begun[0].at}', f'"at": {begun[0].at - KEPT_SECONDS - 1}')
    file.write_text(old)
    jobs.sweep()
    assert begun[0].id not in os.listdir(tmp_path / "bursar.bursar" / "jobs")
    assert begun[1].id in os.listdir(tmp_path / "bursar.bursar" / "jobs")
    assert (tmp_path / "bursar.bursar" / "jobs").stat().st_mode & 0o077 == 0


def test_the_end_of_a_server_stops_its_jobs(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path / "jobs", Journal(io.StringIO()))
    started = threading.Event()

    def endless(step: Step) -> None:
        while True:
            started.set()
            step.progress(1, 3)
            time.sleep(0.01)

    job = begin(jobs, "ana", "synth", "{}", None, endless)
    started.wait(PATIENCE)
    jobs.close()
    found = jobs.find("ana", job.id)
    assert found is not None
    assert found.state is JobState.STOPPED
