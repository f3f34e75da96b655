"""A black-box audit: does the whole engine, as it stands, keep the loss that it charges?

Two tables that differ by one privacy unit are made up over the public columns of a config; the real data are not
touched. Short sessions are played on each of them many times, by the real engine with the unit, policy and contract of
the config, each time on a new ledger in memory. From the transcripts alone a lower bound on the true loss is computed.
If it exceeds what the ledger says was spent, something is wrong.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.audit.bounds import POWER, detectable, loss_of, lower_bound
from bursar.audit.neighbours import NeighbourTables, write_neighbours
from bursar.audit.sessions import SESSIONS, Script, Session, SessionSetting, prepare, transcript
from bursar.config import Config
from bursar.core.accounting import Mode, from_units
from bursar.core.budget import LARGEST_BUDGET, Budget
from bursar.core.extensions.open_texts import give_cells
from bursar.core.noise.system import Randomness, SystemRandomness
from bursar.core.queries import Distinct, PerPerson, Predicate
from bursar.core.source.duckdb import DuckDBSource
from bursar.core.source.source import Source
from bursar.planner.choose import Preset
from bursar.report.status import OWNER
from bursar.session import Bursar
from bursar.testing import stage

SPARE = 2.0
"""How many times the loss of a session the analyst who plays it may spend."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class SessionResult:
    """One session: what was charged for it and what was seen, in the unit of the budget."""

    session: str
    finds: str
    trials: int  # how many times it was played on each table
    claimed: float  # the most that the ledger says was spent in one session
    seen: float  # lower bound on the true loss of one session
    detectable: float | None  # a true loss as large as this is found with probability .99; None: there is none

    @property
    def passed(self) -> bool:
        return self.seen <= self.claimed


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What was claimed and what was seen, session by session."""

    trials: int  # of each session on each table; of quick ones more
    confidence: float  # that no `seen` exceeds the true loss
    unit: str  # epsilon or rho
    played: tuple[SessionResult, ...]
    left_out: tuple[str, ...] = ()  # sessions that the config has no room for

    @property
    def passed(self) -> bool:
        """Nothing was found; an audit that could play no session has shown nothing, and has not passed."""
        return bool(self.played) and all(result.passed for result in self.played)

    def __str__(self) -> str:
        lines = [
            "sessions played on each of two made-up tables that differ by one privacy unit",
            f"{'session':<10}{'played':>8}{'charged':>10}{'seen':>12}{'found from':>12}   looks for",
        ]
        for result in self.played:
            least = "-" if result.detectable is None else f"{result.detectable:.3g}"
            mark = "" if result.passed else "   MORE THAN CHARGED"
            seen = f">= {result.seen:.3f}"
            figures = f"{result.trials:>8}{result.claimed:>10.3f}{seen:>12}{least:>12}"
            lines.append(f"{result.session:<10}{figures}   {result.finds}{mark}")
        if self.left_out:
            lines.append(f"not played, as this config has no room for it: {', '.join(self.left_out)}")
        blind = [result.session for result in self.played if result.detectable is None]
        if blind:
            lines.append(f"too few sessions to find anything in: {', '.join(blind)}; take more --trials")
        lines += [
            f"all in {self.unit}; what was seen is right with {100 * self.confidence:.4f}% confidence",
            f"found from: a true {self.unit} as large as this would have been found with probability {POWER:g},",
            "if it shows as too little noise shows; a leak that shows less often would have to be larger",
            self._verdict(),
        ]
        return "\n".join(lines)

    def _verdict(self) -> str:
        if not self.played:
            return "NOTHING WAS AUDITED: this config has no room for any session"
        return "nothing wrong was found" if self.passed else "MORE IS REVEALED THAN IS CHARGED"


def audit(
    config: Config,
    *,
    trials: int = 1000,
    alpha: float = 1e-6,
    sessions: Sequence[Session] = SESSIONS,
    preset: Preset | None = None,
    randomness: Randomness | None = None,
    progress: Progress = lambda done, of: None,
) -> Audit:
    """Play each session `trials` times on each of two neighbouring made-up tables, and compare.

    alpha is the chance of a false alarm, of all sessions together. The budget has the kind and the order of the
    config's, and as much in it as a session needs; turns of a queue and the pace, which set times, are left out.
    """
    randomness = randomness or SystemRandomness()
    with tempfile.TemporaryDirectory() as folder:
        tables = write_neighbours(config, Path(folder))
        key = randomness.secret(32)
        sources = [_source(config, path, tables, key) for path in (tables.without, tables.including)]
    planned: list[tuple[Session, _Runner, Script]] = []
    for session in sessions:
        loss = session.loss if config.budget.mode is Mode.PURE else session.loss**2 / 2
        runner = _Runner(config=_scratch(config, loss, tables), randomness=randomness, preset=preset)
        setting = SessionSetting(config=runner.config, table=sources[0], loss=loss)
        if (script := prepare(session, setting, runner.opened(sources[0]))) is not None:
            planned.append((session, runner, script))
    of = 2 * trials * sum(session.often for session, _, _ in planned)
    played: list[SessionResult] = []
    for session, runner, script in planned:
        done = 2 * sum(result.trials for result in played)
        times = trials * session.often
        left, right, claimed = runner.run_both(script, sources, times, partial(_report_progress, progress, done, of))
        played.append(_result(session, config.budget, times, left, right, claimed, alpha / len(sessions)))
    names = {result.session for result in played}
    left_out = tuple(session.name for session in sessions if session.name not in names)
    unit = config.budget.mode.unit
    return Audit(trials=trials, confidence=1 - alpha, unit=unit, played=tuple(played), left_out=left_out)


def _report_progress(progress: Progress, done: int, of: int, turn: int) -> None:
    progress(done + turn, of)


def _result(
    session: Session, budget: Budget, times: int, left: Reals, right: Reals, claimed: float, alpha: float
) -> SessionResult:
    mode, order = budget.mode, budget.order
    return SessionResult(
        session=session.name,
        finds=session.finds,
        trials=times,
        claimed=claimed,
        seen=lower_bound(left, right, alpha=alpha, loss=loss_of(mode, order)),
        detectable=detectable(times, claimed, alpha=alpha, mode=mode, order=order),
    )


def _scratch(config: Config, loss: float, tables: NeighbourTables) -> Config:
    """The config of the made-up data set: the real one, but for what is about the real rows and about waiting."""
    analysts = config.analysts
    share = float(analysts.accounts[_analyst(config)]) if analysts.shares else 1.0
    budget = Budget(
        mode=config.budget.mode, amount=min(SPARE * loss / share, LARGEST_BUDGET), order=config.budget.order
    )
    return replace(
        config,
        budget=budget,
        view=None,
        max_rows=max(config.max_rows, tables.rows),
        public_size=None if config.public_size is None else tables.rows,
        goal=None,
        pace=0.0,
        analysts=replace(analysts, scheduler="none", probabilities=None, idle=None),
    )


def _analyst(config: Config) -> str:
    """Who plays: where there are shares, the analyst with the largest."""
    shares = config.analysts.shares
    return max(shares, key=lambda name: shares[name]) if shares else OWNER


def _source(config: Config, path: Path, tables: NeighbourTables, key: bytes) -> Source:
    rows = max(config.max_rows, tables.rows)
    return _CachedSource(DuckDBSource(path, config.domain, config.unit, key=key, max_rows=rows))


@dataclass(frozen=True, kw_only=True)
class _Runner:
    """Plays sessions, each on a ledger of its own."""

    config: Config
    randomness: Randomness
    preset: Preset | None

    def opened(self, source: Source) -> Bursar:
        """An engine in front of a made-up table of which nothing was asked yet."""
        who = _analyst(self.config)
        db = stage(self.config, lambda key: source, randomness=self.randomness, preset=self.preset, analyst=who)
        db.owner.declare_shares()
        return db

    def run_both(
        self, script: Script, sources: Sequence[Source], times: int, progress: Callable[[int], None]
    ) -> tuple[Reals, Reals, float]:
        """The transcripts on either table, and the most that was spent in one session."""
        seen, claimed = [], 0.0
        for side, source in enumerate(sources):
            transcripts: list[list[float]] = []
            for turn in range(times):
                shown, spent = self.run_once(script, source)
                transcripts.append(shown)
                claimed = max(claimed, spent)
                progress(side * times + turn + 1)
            seen.append(transcripts)
        left, right = _padded(*seen)
        return left, right, claimed

    def run_once(self, script: Script, source: Source) -> tuple[list[float], float]:
        """The transcript of one session, and what the ledger says was spent."""
        db = self.opened(source)
        shown = transcript(db, script(db))
        return shown, from_units(db.kernel.spent())


def _padded(*sides: list[list[float]]) -> list[Reals]:
    """Transcripts as rows of one length: shorter ones are filled up, and their lengths are numbers of them too."""
    longest = max(len(numbers) for side in sides for numbers in side)
    rows = [[[float(len(numbers)), *numbers, *[0.0] * (longest - len(numbers))] for numbers in side] for side in sides]
    return [np.nan_to_num(np.array(side), nan=math.pi, posinf=1e300, neginf=-1e300) for side in rows]


@dataclass(frozen=True)
class _CachedSource:
    """A source that stays open although engines come and go, and remembers what it was asked."""

    inner: Source
    tables: dict[tuple[str, ...], NDArray[np.int64]] = field(default_factory=dict)
    contents: list[tuple[str, ...]] = field(default_factory=list)

    def content(self, first: int | None = None) -> tuple[str, ...]:
        if not self.contents:
            self.contents.append(self.inner.content())
        return self.contents[0]

    def table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        if attrs not in self.tables:
            self.tables[attrs] = self.inner.table(attrs)
        return self.tables[attrs].copy()

    def count(self, predicate: Predicate) -> int:
        return self.inner.count(predicate)

    def assign(self, texts: Mapping[str, Sequence[str]]) -> None:
        give_cells(self.inner, texts)
        self.tables.clear()

    def distinct(self, distinct: Distinct) -> NDArray[np.int64]:
        return self.inner.distinct(distinct)

    def per_person(self, people: PerPerson) -> NDArray[np.int64]:
        return self.inner.per_person(people)

    def close(self) -> None:
        """Kept open on purpose."""
