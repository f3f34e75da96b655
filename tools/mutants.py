"""Planted bugs: small changes that break privacy or durability, and the tests that must catch each of them.

    python tools/mutants.py list                 what is planted, where, and which tests are asked
    python tools/mutants.py check                every planted text still stands exactly once in its file
    python tools/mutants.py run [NAME ...]       plant one at a time in a copy of src/, and run its tests on that copy

`run` fails if a mutant survives. A mutant is caught where a test fails; tests that cannot even be collected catch
nothing, and say that the mutant is broken.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bursar"
SECONDS = 1800
"""How long the tests of one mutant may take."""

CAUGHT, SURVIVED, BROKEN = "caught", "SURVIVED", "BROKEN"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One planted bug: in `file`, below src/bursar, `old` is replaced by `new`. `tests` are arguments of pytest."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """The text of the file with the bug; ValueError where the place has moved."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {text.count(self.old)} times, not once")
        return text.replace(self.old, self.new)


CORE = "tests/unit/core"
NOISE = (f"{CORE}/noise", "tests/statistical/test_noise_law.py")
NORMS = (f"{CORE}/queries", f"{CORE}/accounting", f"{CORE}/extensions/test_replace_one.py")
UNITS = ("tests/conformance/test_source_conformance.py", f"{CORE}/source/test_duckdb_source.py")
REFINE = (f"{CORE}/extensions/test_refine.py", "tests/statistical/test_noise_down_law.py")
ABOVE = (f"{CORE}/extensions/test_above.py", f"{CORE}/extensions/test_opened.py")
KERNEL = (f"{CORE}/test_kernel.py", f"{CORE}/test_kernel_edges.py")
GROUPS = (f"{CORE}/ledger/test_group_commit.py", "tests/conformance/test_ledger_conformance.py")
LEDGER = (f"{CORE}/ledger/test_sqlite_ledger.py", "tests/conformance/test_ledger_conformance.py")
SEALS = (f"{CORE}/test_seals.py",)

MEASURE_MUTANTS = (
    Mutant(
        name="Laplace noise of half its scale",
        file="core/noise/system.py",
        old="return exact_sampler.laplace(noise.scale, size)",
        new="return exact_sampler.laplace(noise.scale / 2, size)",
        tests=NOISE,
    ),
    Mutant(
        name="Gaussian noise of half its scale",
        file="core/noise/system.py",
        old="return exact_sampler.gaussian(noise.scale, size)",
        new="return exact_sampler.gaussian(noise.scale / 2, size)",
        tests=NOISE,
    ),
    Mutant(
        name="a generator instead of the system's entropy",
        file="core/noise/exact_sampler.py",
        old="return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
        new="return np.random.randint(0, 2**64, count, dtype=np.uint64)",
        tests=NOISE,
    ),
    Mutant(
        name="zero counted twice in Laplace noise",
        file="core/noise/exact_sampler.py",
        old="return magnitude ^ -side.astype(np.int64)",
        new="return np.where(side == 1, -magnitude, magnitude)",
        tests=NOISE,
    ),
    Mutant(
        name="acceptance decided in floats only",
        file="core/noise/exact_sampler.py",
        old="np.flatnonzero(np.abs(gap) <= MARGIN)",
        new="np.flatnonzero(np.abs(gap) < 0)",
        tests=NOISE,
    ),
    Mutant(
        name="ties of a cut not settled by more bits",
        file="core/noise/exact_sampler.py",
        old="            cells[i] = place(int(first[i]), self.floors, words)",
        new="            pass",
        tests=NOISE,
    ),
)

NORM_MUTANTS = (
    Mutant(
        name="a stack drops its last part",
        file="core/queries/product.py",
        old="return tuple(norm for part in self.parts for norm in part.norms(power))",
        new="return tuple(norm for part in self.parts[: max(1, len(self.parts) - 1)] for norm in part.norms(power))",
        tests=(f"{CORE}/queries/test_stack.py", "tests/property/test_footprint.py", "tests/property/test_prices.py"),
    ),
    Mutant(
        name="signed rows of replaced people cost twice, not four times",
        file="core/queries/linear_map.py",
        old="return 2 if self.power == 1 or self.one_sign else 4",
        new="return 2",
        tests=NORMS,
    ),
    Mutant(
        name="rho of a row rounded down",
        file="core/noise/law.py",
        old="return math.ceil(Fraction(change**2 << (UNIT_BITS + finer))",
        new="return math.floor(Fraction(change**2 << (UNIT_BITS + finer))",
        tests=NORMS,
    ),
    Mutant(
        name="epsilon of a row rounded down",
        file="core/noise/law.py",
        old="return math.ceil(Fraction(change << (UNIT_BITS + finer))",
        new="return math.floor(Fraction(change << (UNIT_BITS + finer))",
        tests=NORMS,
    ),
    Mutant(
        name="the footprint of a cell rounded down",
        file="core/accounting/profile.py",
        old="return -(-norm * self.units >> self.finer)",
        new="return norm * self.units >> self.finer",
        tests=NORMS,
    ),
    Mutant(
        name="a budget rounded up",
        file="core/noise/law.py",
        old="return math.floor(math.ldexp(budget, UNIT_BITS))",
        new="return math.ceil(math.ldexp(budget, UNIT_BITS))",
        tests=NORMS,
    ),
    Mutant(
        name="a block of a grid takes its first cell",
        file="core/accounting/profile.py",
        old="return np.maximum.reduceat(array, np.arange(0, array.shape[axis], width), axis=axis)",
        new="return np.take(array, np.arange(0, array.shape[axis], width), axis=axis)",
        tests=NORMS,
    ),
    Mutant(
        name="a transform forgets its rounding",
        file="core/extensions/transform.py",
        old="distance = length + 2 * self.float_error + math.sqrt(self.rows)",
        new="distance = length + 2 * self.float_error",
        tests=(f"{CORE}/extensions/test_transform.py",),
    ),
    Mutant(
        name="factors without columns overwrite each other",
        file="core/queries/product.py",
        old="return math.prod(mask.steps.largest() for mask in self.masks if not mask.attrs)",
        new="return ([1] + [mask.steps.largest() for mask in self.masks if not mask.attrs])[-1]",
        tests=(f"{CORE}/extensions/test_selected.py", f"{CORE}/extensions/test_reach.py"),
    ),
    Mutant(
        name="the rows of a unit not in the price",
        file="core/accounting/accountant.py",
        old="return noise.pure_units(change=self.unit.max_contributions, finer=finer)",
        new="return noise.pure_units(finer=finer)",
        tests=NORMS,
    ),
)

UNIT_MUTANTS = (
    Mutant(
        name="one row more of a unit is kept",
        file="core/source/duckdb.py",
        old="QUALIFY {rank} <= {unit.max_contributions})",
        new="QUALIFY {rank} <= {unit.max_contributions + 1})",
        tests=UNITS,
    ),
    Mutant(
        name="rows without a unit are counted",
        file="core/source/duckdb.py",
        old="(FROM ({copies} WHERE unit IS NOT NULL) QUALIFY",
        new="(FROM ({copies}) QUALIFY",
        tests=UNITS,
    ),
    Mutant(
        name="the rows of a unit chosen without the key",
        file="core/source/duckdb.py",
        old='self._derived("choice").hex(), max_rows',
        new='"choice", max_rows',
        tests=UNITS,
    ),
    Mutant(
        name="the rows of a unit chosen regardless of partitions",
        file="core/source/duckdb.py",
        old='order = ", ".join([*partition, f"sha256(concat_ws(\'/\', {message}))"])',
        new="order = f\"sha256(concat_ws('/', {message}))\"",
        tests=UNITS,
    ),
    Mutant(
        name="versions share a profile although units have a column",
        file="core/accounting/accountant.py",
        old="shares = event.same_rows and row_is_unit and event.version - 1",
        new="shares = event.same_rows and event.version - 1",
        tests=(f"{CORE}/accounting/test_book.py",),
    ),
)

REFINE_MUTANTS = (
    Mutant(
        name="refined by fresh noise",
        file="core/noise/system.py",
        old="return noise_down(current, before=before.scale, after=after.scale)",
        new="return exact_sampler.laplace(after.scale, current.size)",
        tests=REFINE,
    ),
    Mutant(
        name="the noise before a refinement not compared",
        file="core/extensions/refine.py",
        old=" or np.any(scales != event.before.scale):",
        new=":",
        tests=REFINE,
    ),
    Mutant(
        name="the difference of a refinement rounded down",
        file="core/extensions/refine.py",
        old="units, finer = -(-units >> FINER), finer - FINER",
        new="units, finer = units >> FINER, finer - FINER",
        tests=(f"{CORE}/extensions/test_refined.py",),
    ),
    Mutant(
        name="a wrong probability of a leap",
        file="core/extensions/refine.py",
        old="leaps=Cuts.of(partial(cut_floors, coarse, coarse, fine))",
        new="leaps=Cuts.of(partial(cut_floors, fine, coarse, fine))",
        tests=REFINE,
    ),
)

SPARSE_VECTOR_MUTANTS = (
    Mutant(
        name="a sparse vector stays open after a test that was above",
        file="core/extensions/sparse_vector.py",
        old="        if above:\n            self.end(transaction, event, facts)",
        new="        if not above and above:\n            self.end(transaction, event, facts)",
        tests=ABOVE,
    ),
    Mutant(
        name="a sparse vector priced for one noise of its tests",
        file="core/extensions/sparse_vector.py",
        old="+ 2 / Fraction(self.test.scale)",
        new="+ 1 / Fraction(self.test.scale)",
        tests=ABOVE,
    ),
    Mutant(
        name="a test ignores the version of the data",
        file="core/extensions/sparse_vector.py",
        old="            if version != kernel._version:",
        new="            if version < 0:",
        tests=ABOVE,
    ),
    Mutant(
        name="a sparse vector outlives the version of its data",
        file="core/extensions/sparse_vector.py",
        old="            self.opened.clear()",
        new="            pass",
        tests=ABOVE,
    ),
    Mutant(
        name="a fork keeps the leases of its parent",
        file="core/extensions/sparse_vector.py",
        old="if self._process != os.getpid():",
        new="if self._process < 0:",
        tests=ABOVE,
    ),
    Mutant(
        name="an instance with an unsettled test is handed on",
        file="core/extensions/sparse_vector.py",
        old="            if instance in self._unsettled:\n                self._close(transaction, *found)",
        new="            if instance < 0:\n                self._close(transaction, *found)",
        tests=ABOVE,
    ),
    Mutant(
        name="a threshold is kept after the end",
        file="core/extensions/sparse_vector.py",
        old="        transaction.drop_secret(_name(event.instance))",
        new="        pass",
        tests=(*ABOVE, "tests/faults/test_above_faults.py"),
    ),
)

SELECT_MUTANTS = (
    Mutant(
        name="a selection at half its price",
        file="core/extensions/select.py",
        old="spread = change * (2 if draws == selected.count else 4)",
        new="spread = change * (1 if draws == selected.count else 2)",
        tests=(f"{CORE}/extensions/test_selected.py",),
    ),
)

LEDGER_MUTANTS = (
    Mutant(
        name="a commit that failed still releases",
        file="core/ledger/transaction.py",
        old="            for turn in group:\n                turn.error = LedgerError(",
        new="            for turn in group[1:]:\n                turn.error = LedgerError(",
        tests=GROUPS,
    ),
    Mutant(
        name="earlier members of a group are not counted",
        file="core/kernel.py",
        old="            for record in pending[len(known) :]:",
        new="            for record in pending[:0]:",
        tests=KERNEL,
    ),
    Mutant(
        name="a key that was answered is paid again",
        file="core/kernel.py",
        old="if claim is not None and transaction.claim(claim, time.time()) is not None:",
        new="if claim is not None and transaction.claim(claim, time.time()) == 0:",
        tests=KERNEL,
    ),
    Mutant(
        name="what others hold is not counted",
        file="core/kernel.py",
        old="others = self._held(transaction, besides=fence)",
        new="others = self._held(transaction, besides=fence)[:0]",
        tests=KERNEL,
    ),
    Mutant(
        name="a stale version is admitted",
        file="core/kernel.py",
        old="if declared or event.version != self._version:",
        new="if event.version < 0:",
        tests=(*KERNEL, *REFINE),
    ),
    Mutant(
        name="a price that rose is charged",
        file="core/kernel.py",
        old='if charge.account > terms["at_most"]:',
        new="if charge.account < 0:",
        tests=KERNEL,
    ),
    Mutant(
        name="a commit does not wait for the disk",
        file="core/ledger/database.py",
        old='"synchronous=FULL"',
        new='"synchronous=OFF"',
        tests=("tests/faults/test_storage_faults.py", *LEDGER),
    ),
    Mutant(
        name="others can read the ledger",
        file="core/ledger/sqlite.py",
        old="draft.touch(mode=0o600)",
        new="draft.touch(mode=0o644)",
        tests=LEDGER,
    ),
    Mutant(
        name="a group runs in another order",
        file="core/ledger/transaction.py",
        old="            for turn in group:\n                self._run_one(turn)",
        new="            for turn in reversed(group):\n                self._run_one(turn)",
        tests=GROUPS,
    ),
    Mutant(
        name="the content of the data not compared on opening",
        file="core/kernel.py",
        old="if [content.encode() for content in source.content()[: len(names)]] != self._secrets(names):",
        new="if self._secrets(names) is None:",
        tests=(*SEALS, *KERNEL, "tests/unit/test_engine.py"),
    ),
    Mutant(
        name="an older ledger that was put back is taken",
        file="core/ledger/sqlite.py",
        old="behind = anchor is not None and state.commits < anchor.commits",
        new="behind = False",
        tests=LEDGER,
    ),
    Mutant(
        name="a record off the hash chain is read",
        file="core/ledger/database.py",
        old="            if hash_ != stored:",
        new="            if not stored:",
        tests=LEDGER,
    ),
    Mutant(
        name="the share of an analyst is no limit",
        file="core/extensions/shares.py",
        old="book.spent([*held, *more]), self.cap_of(analyst), limit)",
        new="book.spent([*held, *more]), 2**62, limit)",
        tests=(f"{CORE}/test_accounts.py",),
    ),
)

SOURCE_MUTANTS = (
    Mutant(
        name="partitions are asked that are not sealed",
        file="core/extensions/partitions.py",
        old="if looked_at(strategy, domain) > sealed:",
        new="if looked_at(strategy, domain) < 0:",
        tests=SEALS,
    ),
    Mutant(
        name="sealed partitions not compared before more is sealed",
        file="core/curator.py",
        old="if known != read.contents[: now.sealed]:",
        new="if known is None:",
        tests=SEALS,
    ),
    Mutant(
        name="sizes of partitions in the log although they are secret",
        file="core/curator.py",
        old="public = axis is not None and axis.public_sizes",
        new="public = axis is not None",
        tests=SEALS,
    ),
    Mutant(
        name="an error quotes the database",
        file="core/source/raw.py",
        old="    except Exception:\n        pass\n    raise SourceError(text)",
        new='    except Exception as fault:\n        raise SourceError(f"{text}: {fault}") from fault',
        tests=UNITS,
    ),
    Mutant(
        name="values above a range are not clamped",
        file="core/source/coding.py",
        old='below, above = f"{read} < {attribute.lower}", f"{read} >= {attribute.upper + 1}"',
        new='below, above = f"{read} < {attribute.lower}", "FALSE"',
        tests=(*UNITS, f"{CORE}/source/test_coding.py"),
    ),
    Mutant(
        name="rows beyond max_rows are read",
        file="core/source/duckdb.py",
        old="    if rows > max_rows:",
        new="    if rows < 0:",
        tests=UNITS,
    ),
)

WIRE_MUTANTS = (
    Mutant(
        name="a wrong token proves itself over the wire",
        file="service/wire/scram.py",
        old="if hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key):",
        new="if len(client_key) == len(verifier.stored_key):",
        tests=("tests/unit/service/wire/test_scram.py",),
    ),
    Mutant(
        name="a revoked token goes on asking over the wire",
        file="service/wire/session.py",
        old="if not self.login.good:",
        new="if False:",
        tests=("tests/integration/test_wire_login.py",),
    ),
    Mutant(
        name="a portal is asked anew for every piece that is fetched",
        file="service/wire/session.py",
        old="if portal.result is not None:",
        new="if portal.result is not None and portal.at == 0:",
        tests=("tests/integration/test_wire_python.py",),
    ),
    Mutant(
        name="a statement may be about the data and the catalog",
        file="service/wire/router.py",
        old="if data and public:",
        new="if False:",
        tests=("tests/unit/service/wire/test_questions.py",),
    ),
    Mutant(
        name="the catalog calls any function",
        file="service/wire/catalog.py",
        old="        check(self.parsed.tree)\n",
        new="        pass\n",
        tests=("tests/unit/service/wire/test_questions.py",),
    ),
    Mutant(
        name="plain bytes before a handshake are taken for encrypted ones",
        file="service/wire/connection.py",
        old='if getattr(self._reader, "_buffer", b""):',
        new="if False:",
        tests=("tests/integration/test_wire_login.py",),
    ),
)

MUTANTS = (
    *MEASURE_MUTANTS,
    *NORM_MUTANTS,
    *UNIT_MUTANTS,
    *REFINE_MUTANTS,
    *SPARSE_VECTOR_MUTANTS,
    *SELECT_MUTANTS,
    *LEDGER_MUTANTS,
    *SOURCE_MUTANTS,
    *WIRE_MUTANTS,
)


def moved(mutants: Iterable[Mutant] = MUTANTS) -> list[str]:
    """What is wrong with the places of mutants, and with the names of their tests; empty where nothing is."""
    wrong = []
    for mutant in mutants:
        try:
            mutant.planted((SOURCE / mutant.file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as fault:
            wrong.append(str(fault))
        wrong += [f"{mutant.name}: there is no {test}" for test in mutant.tests if not (ROOT / test).exists()]
    return wrong


def run(mutant: Mutant) -> tuple[str, str]:
    """Whether the tests catch the mutant, and the first test that does, or what pytest said last."""
    outcome, said = tried(mutant.tests, mutant)
    return {True: (SURVIVED, said), False: (CAUGHT, said), None: (BROKEN, said)}[outcome]


def tried(tests: Iterable[str], mutant: Mutant | None = None) -> tuple[bool | None, str]:
    """Whether the tests pass on a copy of src/, with the mutant in it if there is one; None where they did not run.

    With the first test that failed, or the last line of pytest.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        if mutant is not None:
            file = copy / "bursar" / mutant.file
            file.write_text(mutant.planted(file.read_text(encoding="utf-8")), encoding="utf-8")
        quick = "not heavy and not soak"
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", quick, "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, *tests],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(copy)},
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return None, f"the tests took more than {SECONDS} seconds"
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["nothing"]
    failed = re.findall(r"^FAILED (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode == 1 and failed:
        return False, failed[0]
    return (True if done.returncode == 0 else None), lines[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description="Planted bugs, and whether the tests catch them.")
    parser.add_argument("command", choices=("list", "check", "run"))
    parser.add_argument("names", nargs="*", help="of mutants, or words of their names; all where none is given")
    parser.add_argument("--workers", type=int, default=1, help="how many mutants are tested at the same time")
    given = parser.parse_args()
    chosen = [m for m in MUTANTS if not given.names or any(name in m.name for name in given.names)]
    if given.command == "list":
        for mutant in chosen:
            print(f"{mutant.name}: {mutant.file}; {', '.join(mutant.tests)}")
        return 0
    if wrong := moved(chosen):
        print("\n".join(wrong))
        return 1
    if given.command == "check":
        return 0
    passed, said = tried(sorted({test for mutant in chosen for test in mutant.tests}))
    if not passed:  # or a test that fails anyway would seem to catch everything
        print(f"the tests do not pass without a planted bug: {said}")
        return 1
    outcomes = []
    with ThreadPoolExecutor(given.workers) as pool:
        for mutant, (outcome, by) in zip(chosen, pool.map(run, chosen), strict=True):
            print(f"{outcome:8}  {mutant.name}: {by}", flush=True)
            outcomes.append(outcome)
    print(f"{outcomes.count(CAUGHT)} of {len(chosen)} mutants caught")
    return 0 if chosen and set(outcomes) == {CAUGHT} else 1


if __name__ == "__main__":
    raise SystemExit(main())
