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
QUICK, SOAK = "not heavy and not soak", "soak"
"""Which tests are asked: those of `make test`, or what is for `make soak` alone."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One planted bug: in `file`, below src/bursar, `old` is replaced by `new`. `tests` and `marks` are for pytest."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    marks: str = QUICK

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
CALLERS = ("tests/property/test_any_caller.py",)
GROUPS = (f"{CORE}/ledger/test_group_commit.py", "tests/conformance/test_ledger_conformance.py")
LEDGER = (f"{CORE}/ledger/test_sqlite_ledger.py", "tests/conformance/test_ledger_conformance.py")
POSTGRES = (f"{CORE}/ledger/test_postgres_ledger.py", "tests/faults/test_postgres_faults.py")
CHECKPOINTS = (f"{CORE}/extensions/test_checkpoint.py", "tests/property/test_checkpoints.py")
SEALS = (f"{CORE}/test_seals.py",)
SERVERS = ("tests/conformance/test_server_conformance.py",)
MARIADB = ("tests/integration/test_mariadb_source.py",)
SPARK = ("tests/integration/test_spark_source.py",)
DELTA = ("tests/integration/test_delta_lake.py",)
DELTA_LOG = (f"{CORE}/source/test_delta_log.py",)
ICEBERG = ("tests/integration/test_iceberg_tables.py",)
ICEBERG_METADATA = (f"{CORE}/source/test_iceberg_metadata.py",)
POSTGRESQL = ("tests/integration/test_postgresql_source.py",)
CELL_TABLES = ("tests/integration/test_cell_table.py",)

JOINS = ("tests/property/test_joined_rows.py",)
SERVER_JOINS = (*JOINS, *SERVERS)
PER_PERSON = (f"{CORE}/extensions/test_per_person.py", "tests/enumeration/test_per_person_exact.py")
DISTINCT = (f"{CORE}/extensions/test_distinct.py", "tests/enumeration/test_distinct_exact.py")

RELATIONS = (f"{CORE}/extensions/test_relations.py", "tests/enumeration/test_relations_exact.py")
TABLES = ("tests/property/test_person_in_all_tables.py", "tests/record_play/test_tables_played.py")

RELATION_MUTANTS = (
    Mutant(
        name="relations: the largest table instead of the sum over tables",
        file="core/accounting/accountant.py",
        old="""        spent = self.carried + sum(profile.spent(more.get(g, ())) for g, profile in profiles)
""",
        new="""        spent = max((profile.spent(more.get(g, ())) for g, profile in profiles), default=0)
""",
        tests=RELATIONS,
    ),
    Mutant(
        name="relations: every table is priced by the bound of the first",
        file="core/accounting/accountant.py",
        old="return (self.accountant if terms is None else terms.accountant).footprints(event, block)",
        new="return self.accountant.footprints(event, block)",
        tests=RELATIONS,
    ),
    Mutant(
        name="relations: another table of the same kernel has the bound of its own",
        file="core/public.py",
        old="accountant = replace(self._accountant, unit=relation.unit)",
        new="accountant = self._accountant",
        tests=RELATIONS,
    ),
    Mutant(
        name="relations: an event of an undeclared version is booked to the first table",
        file="core/accounting/accountant.py",
        old="if table is None and self.further:",
        new="if False:",
        tests=RELATIONS,
    ),
    Mutant(
        name="relations: holds about other tables do not count",
        file="core/kernel.py",
        old="if hold.fence != besides), accounts)",
        new="if hold.fence != besides and hold.events[0].version == self._version), accounts)",
        tests=RELATIONS,
    ),
    Mutant(
        name="relations: a ledger opens with a table that is known otherwise",
        file="core/extensions/relations.py",
        old="if further is None or further.relation.added != event:",
        new="if further is None:",
        tests=RELATIONS,
    ),
    Mutant(
        name="relations: a checkpoint counts whatever the tables are",
        file="core/extensions/checkpoint.py",
        old="[added.fields() for added in public.added()]",
        new="[]",
        tests=RELATIONS,
    ),
    Mutant(
        name="relations: a sparse vector of one table is tested on another",
        file="core/extensions/sparse_vector.py",
        old="    if version != opened.version:\n",
        new="    if False:\n",
        tests=RELATIONS,
    ),
    Mutant(
        name="relations: a private table is bounded as the first one is",
        file="config/private_tables.py",
        old="unit = Unit(column=column or first.unit.column, max_contributions=most)",
        new="unit = Unit(column=column or first.unit.column, max_contributions=first.unit.max_contributions)",
        tests=("tests/unit/config/test_tables_with_rows.py",),
    ),
    Mutant(
        name="relations: one row of a person more than the bound of the table",
        file="core/source/duckdb.py",
        old='["number", *columns]), unit.max_contributions',
        new='["number", *columns]), unit.max_contributions + 1',
        tests=TABLES,
    ),
)

MEASURE_MUTANTS = (
    Mutant(
        name="noise is drawn before it is admitted",
        file="core/kernel.py",
        old="            charge = self._admit(transaction, event, **terms)\n"
        "            return self._append(transaction, event, draw()",
        new="            drawn, charge = draw(), self._admit(transaction, event, **terms)\n"
        "            return self._append(transaction, event, drawn",
        tests=CALLERS,
    ),
    Mutant(
        name="what a plan holds is not admitted again",
        file="core/kernel.py",
        old="        charge = self._require_budget(accounts, analyst, others, more)\n        if others:",
        new="        charge = Charge(total=0, account=0)\n        if fence is None:",
        tests=CALLERS,
    ),
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
        name="a work counts what was added up in line, and nothing since",
        file="core/kernel.py",
        old="self._advance(transaction.committed(self._position))\n            pending = transaction.pending()",
        new="pending = transaction.pending()",
        tests=("tests/unit/core/ledger/test_write_order.py",),
    ),
    Mutant(
        name="rho of a row rounded down",
        file="core/noise/law.py",
        old="return -(-((change * below) ** 2 << (UNIT_BITS + finer)) // (2 * above**2))",
        new="return ((change * below) ** 2 << (UNIT_BITS + finer)) // (2 * above**2)",
        tests=NORMS,
    ),
    Mutant(
        name="epsilon of a row rounded down",
        file="core/noise/law.py",
        old="return -(-(change * below << (UNIT_BITS + finer)) // above)",
        new="return (change * below << (UNIT_BITS + finer)) // above",
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
        name="sums that are kept miss what changed twice",
        file="core/accounting/profile.py",
        old="            self.changed.pop(columns, None)\n",
        new="",
        tests=NORMS,
    ),
    Mutant(
        name="one cell shows too soon that no bound is better",
        file="core/accounting/projections.py",
        old="for columns, loss in [*losses.items(), *placed.items()])",
        new="for columns, loss in [*losses.items(), *placed.items(), *placed.items()])",
        tests=NORMS,
    ),
    Mutant(
        name="the cell that is looked at stands where it stood before it moved",
        file="core/accounting/projections.py",
        old="for name, block, width in blocks}, {}",
        new="for name, block, width in blocks}, self.places",
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
        file="core/extensions/select.py",
        old="return math.prod(mask.steps.largest() for mask in product.masks if not mask.attrs)",
        new="return ([1] + [mask.steps.largest() for mask in product.masks if not mask.attrs])[-1]",
        tests=(f"{CORE}/extensions/test_selected.py", f"{CORE}/extensions/test_reach.py"),
    ),
    Mutant(
        name="the rows of a unit not in the price",
        file="core/accounting/accountant.py",
        old="return noise.pure_units(change=change, finer=finer)",
        new="return noise.pure_units(finer=finer)",
        tests=NORMS,
    ),
)

UNIT_MUTANTS = (
    Mutant(
        name="one row more of a unit is kept",
        file="core/source/duckdb.py",
        old="QUALIFY {rank} <= {most})",
        new="QUALIFY {rank} <= {most + 1})",
        tests=UNITS,
    ),
    Mutant(
        name="units with a few rows too many are not looked for",
        file="core/source/duckdb.py",
        old='FROM {rows} WHERE held <= {most}"',
        new='FROM {rows} WHERE held <= {2 * most}"',
        tests=UNITS,
    ),
    Mutant(
        name="what does not fit into memory lies in a file with a name",
        file="core/source/duckdb.py",
        old="        file.unlink()\n",
        new="",
        tests=(f"{CORE}/source/test_duckdb_source.py",),
    ),
    Mutant(
        name="the group of a file may read what does not fit into memory",
        file="sources.py",
        old="folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)",
        new="folder.stat().st_mode & stat.S_IRWXO",
        tests=(f"{CORE}/source/test_duckdb_source.py",),
    ),
    Mutant(
        name="a unit that stands between two groups is bounded in both",
        file="core/source/duckdb.py",
        old='"high": low + step - 1}',
        new='"high": low + step}',
        tests=UNITS,
    ),
    Mutant(
        name="the last units with too many rows are passed over",
        file="core/source/duckdb.py",
        old="for low in range(1, people + 1, step) if over",
        new="for low in range(1, people, step) if over",
        tests=UNITS,
    ),
    Mutant(
        name="rows without a unit are counted",
        file="core/source/duckdb.py",
        old="as_text(raw.column(unit.column).sql)",
        new="f\"coalesce({as_text(raw.column(unit.column).sql)}, 'nobody')\"",
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

DISTINCT_MUTANTS = (
    Mutant(
        name="people cost min(k, groups) on the cells of their groups",
        file="core/extensions/distinct.py",
        old="self.norms(power) if times == most else (Norm((), power),))",
        new="self.norms(power))",
        tests=DISTINCT,
    ),
    Mutant(
        name="people cost once, however many groups they are in",
        file="core/extensions/distinct.py",
        old="times = min(most, self.rows)",
        new="times = 1",
        tests=DISTINCT,
    ),
    Mutant(
        name="distinct values cost one row of a unit instead of k",
        file="core/accounting/kind.py",
        old="(isinstance(people, Distinct) and people.of is None)",
        new="isinstance(people, Distinct)",
        tests=DISTINCT,
    ),
    Mutant(
        name="a replaced row tells nothing of values within its group",
        file="core/extensions/distinct.py",
        old="return (Hull(masks, power) if self.rows == 1 else Unshared(masks, power),)",
        new="return (Norm(masks, power),)",
        tests=DISTINCT,
    ),
    Mutant(
        name="groups of people may overlap",
        file="core/extensions/distinct.py",
        old="self.groups.norms(1)[0].largest() > 1",
        new="False",
        tests=DISTINCT,
    ),
    Mutant(
        name="people counted under replace-one",
        file="core/extensions/distinct.py",
        old="if unit.column is None or unit.neighbours is Neighbours.REPLACE_ONE:",
        new="if unit.column is None:",
        tests=DISTINCT,
    ),
    Mutant(
        name="distinct counts refined row by row",
        file="core/extensions/refine.py",
        old="isinstance(self.measured, Transform | Distinct | PerPerson)",
        new="isinstance(self.measured, Transform)",
        tests=DISTINCT,
    ),
    Mutant(
        name="people counted by their rows",
        file="core/extensions/distinct.py",
        old="changes[1:] |= np.diff(what[order]) != 0",
        new="changes[1:] = True",
        tests=(*DISTINCT, *UNITS),
    ),
    Mutant(
        name="the ids of people are kept",
        file="core/source/duckdb.py",
        old="CAST(row_number() OVER (ORDER BY sha256(concat_ws('/', $opening, unit))) AS UINTEGER) AS number",
        new="unit || substr($opening, 1, 0) AS number",
        tests=UNITS,
    ),
    Mutant(
        name="people have the same number at every opening",
        file="core/source/duckdb.py",
        old='opening = {"opening": os.urandom(16).hex()}',
        new='opening = {"opening": "always"}',
        tests=UNITS,
    ),
)

PER_PERSON_MUTANTS = (
    Mutant(
        name="a person's number not clamped",
        file="core/extensions/per_person.py",
        old="clamped = np.clip(totals, self.lower, self.upper)",
        new="clamped = totals",
        tests=PER_PERSON,
    ),
    Mutant(
        name="a person's number priced by its upper bound alone",
        file="core/extensions/per_person.py",
        old="return max(1, *(abs(end - self.centre) for end in ends))",
        new="return max(1, *(end - self.centre for end in ends))",
        tests=PER_PERSON,
    ),
    Mutant(
        name="a person's numbers in several groups cost one",
        file="core/extensions/per_person.py",
        old="return Reach(times, self.change",
        new="return Reach(1, self.change",
        tests=PER_PERSON,
    ),
    Mutant(
        name="a person's number booked on the cells of its group",
        file="core/extensions/per_person.py",
        old="self.change, (Norm((), power),))",
        new="self.change, self.norms(power))",
        tests=PER_PERSON,
    ),
    Mutant(
        name="bins of people's numbers overlap",
        file="core/extensions/per_person.py",
        old="all(a[1] <= b[0] for a, b in pairwise(self.bins))",
        new="True",
        tests=PER_PERSON,
    ),
    Mutant(
        name="the numbers of different people run together",
        file="core/extensions/per_person.py",
        old="| (np.diff(who, prepend=-1) != 0)",
        new="",
        tests=(*PER_PERSON, *UNITS),
    ),
    Mutant(
        name="all rows of people counted behind seals",
        file="core/extensions/per_person.py",
        old="if not source._people or (people.value is None and domain.partition is not None):",
        new="if not source._people:",
        tests=UNITS,
    ),
)

JOIN_MUTANTS = (
    Mutant(
        name="rows of strangers joined by a shared key",
        file="core/extensions/joins.py",
        old="if not (parent.public or parent.owner):",
        new="if not parent.keys:",
        tests=JOINS,
    ),
    Mutant(
        name="all rows of a parent joined instead of one",
        file="core/extensions/joins.py",
        old=" WHERE {person} IS NOT NULL QUALIFY {chosen})",
        new=" WHERE {person} IS NOT NULL)",
        tests=JOINS,
    ),
    Mutant(
        name="one owner kept for rows that have several",
        file="core/extensions/joins.py",
        old="keys = [person, *(as_text",
        new="keys = [*([] if parent.owner else [person]), *(as_text",
        tests=JOINS,
    ),
    Mutant(
        name="a public table with several rows for a key joined",
        file="core/extensions/joins.py",
        old="HAVING count(*) > 1)",
        new="HAVING count(*) > 1000)",
        tests=JOINS,
    ),
    Mutant(
        name="rows without a parent dropped",
        file="core/extensions/joins.py",
        old="{'JOIN' if parent.owner else 'LEFT JOIN'}",
        new="JOIN",
        tests=JOINS,
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
        old="units, finer = -(-units >> FINER_BITS), finer - FINER_BITS",
        new="units, finer = units >> FINER_BITS, finer - FINER_BITS",
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
        name="a sparse vector opened by no plan",
        file="core/extensions/sparse_vector.py",
        old='    if (fence := terms.get("fence")) is None:',
        new='    if (fence := terms.get("fence")) is None and event.cut < 0:',
        tests=ABOVE,
    ),
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
        old="for at, opening in self.opened.items() if opening[1].version in self.versions}",
        new="for at, opening in self.opened.items()}",
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
        old="            if instance in self._unsettled:\n                self._close(transaction, *opening)",
        new="            if instance < 0:\n                self._close(transaction, *opening)",
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
        name="steps that were read before are taken for others over more cells",
        file="core/queries/map_codec.py",
        old="@lru_cache(maxsize=2**12)\ndef _steps(",
        new="@lambda f: lru_cache()(lambda n, p, body, kept={}: kept.setdefault(body, f(n, p, body)))\ndef _steps(",
        tests=(f"{CORE}/queries/test_queries_codec.py",),
    ),
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
        old="            for record in pending[len(booked) :]:",
        new="            for record in pending[:0]:",
        tests=KERNEL,
    ),
    Mutant(
        name="a key that was answered is paid again",
        file="core/kernel.py",
        old="if claim is not None and transaction.claim(claim, self.ledger.now()) is not None:",
        new="if claim is not None and transaction.claim(claim, self.ledger.now()) == 0:",
        tests=KERNEL,
    ),
    Mutant(
        name="what others hold is not counted",
        file="core/kernel.py",
        old="others = self._held(transaction, accounts, besides=fence)",
        new="others = self._held(transaction, accounts, besides=fence)[:0]",
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
        file="core/ledger/sqlite.py",
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
        old="if [content.encode() for content in source.content(len(names))[: len(names)]] != self._secrets(names):",
        new="if self._secrets(names) is None:",
        tests=(*SEALS, *KERNEL, "tests/unit/test_engine.py"),
    ),
    Mutant(
        name="an older ledger that was put back is taken",
        file="core/ledger/integrity.py",
        old="    if state.commits < commits or not",
        new="    if not",
        tests=LEDGER,
    ),
    Mutant(
        name="a ledger in PostgreSQL reads a snapshot that is older than its lock",
        file="core/ledger/postgresql/postgres_connection.py",
        old='BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ',
        new='BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE; ',
        tests=POSTGRES,
    ),
    Mutant(
        name="servers do not wait for each other",
        file="core/ledger/postgresql/postgres_connection.py",
        old="SELECT pg_advisory_xact_lock({lock}); ",
        new="SELECT pg_try_advisory_xact_lock({lock}); ",
        tests=POSTGRES,
    ),
    Mutant(
        name="a notice on COMMIT is ignored",
        file="core/ledger/postgresql/postgres_connection.py",
        old='if self._notices or cursor.statusmessage != "COMMIT":',
        new='if cursor.statusmessage != "COMMIT":',
        tests=POSTGRES,
    ),
    Mutant(
        name="commits do not wait for the database's disk or standby",
        file="core/ledger/postgresql/postgres_connection.py",
        old="SET LOCAL synchronous_commit = on; COMMIT",
        new="SET LOCAL synchronous_commit = off; COMMIT",
        tests=POSTGRES,
    ),
    Mutant(
        name="the clock is read before the wait for the lock",
        file="core/ledger/postgresql/postgres_connection.py",
        old="extract(epoch FROM clock_timestamp())::float8",
        new="extract(epoch FROM now())::float8",
        tests=POSTGRES,
    ),
    Mutant(
        name="secrets stand in the database as they are",
        file="core/ledger/database.py",
        old='ENCRYPTED = ("secrets", "texts")',
        new='ENCRYPTED = ("texts",)',
        tests=POSTGRES,
    ),
    Mutant(
        name="one secret passes for another",
        file="core/ledger/database.py",
        old='        return chain.seal(self.charter_hash, table, name, b"")',
        new='        return chain.seal(self.charter_hash, table, "", b"")',
        tests=POSTGRES,
    ),
    Mutant(
        name="a database that went back under an open ledger is taken",
        file="core/ledger/database.py",
        old="if self._state.commits < self._seen:",
        new="if self._state.commits < 0:",
        tests=POSTGRES,
    ),
    Mutant(
        name="a log without a key on the position is taken",
        file="core/ledger/postgresql/postgres_connection.py",
        old="        if self.run(SHAPE, (self._schema,)) != expected:",
        new="        if len(self.run(SHAPE, (self._schema,))) != len(expected):",
        tests=POSTGRES,
    ),
    Mutant(
        name="standbys that lag behind are taken",
        file="core/ledger/postgresql/postgres_connection.py",
        old="if self.asynchronous and not self._lossy:",
        new="if self.asynchronous and self._lossy is None:",
        tests=POSTGRES,
    ),
    Mutant(
        name="a ledger that was moved can still be spent from",
        file="core/extensions/move.py",
        old="            old.put_state(state, moved=True)",
        new="            old.put_state(state)",
        tests=(f"{CORE}/extensions/test_move.py",),
    ),
    Mutant(
        name="a copy can be spent from before the original is retired",
        file="core/extensions/move.py",
        old="    new.put_state(state, moved=True)\n    new.connection",
        new="    new.put_state(state)\n    new.connection",
        tests=(f"{CORE}/extensions/test_move.py",),
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

CHECKPOINT_MUTANTS = (
    Mutant(
        name="rows of a report that the log does not vouch for",
        file="core/extensions/charges.py",
        old="if len(whole) != self.saved * size or digest != self.digest:",
        new="if len(whole) != self.saved * size:",
        tests=CHECKPOINTS[1:],
    ),
    Mutant(
        name="what an account pays, shown as what the data set pays",
        file="core/extensions/charges.py",
        old="amounts = (min(charge.total, LARGEST), min(charge.account, LARGEST))",
        new="amounts = (min(charge.account, LARGEST), min(charge.account, LARGEST))",
        tests=CHECKPOINTS[1:],
    ),
    Mutant(
        name="books of accounts that stay when other analysts get shares",
        file="core/extensions/shares.py",
        old="self.books if shares.keys() == self.shares.keys() else {}",
        new="self.books",
        tests=CHECKPOINTS[1:],
    ),
    Mutant(
        name="a checkpoint without its last record",
        file="core/extensions/checkpoint.py",
        old="position, body = public._position, encode_tree([_head(public), public.state()])",
        new="state = public.state()[1:]\n"
        "        position = public._position + 1\n"
        "        body = encode_tree([_head(public), [position, *state]])",
        tests=CHECKPOINTS[1:],
    ),
    Mutant(
        name="a checkpoint accepted from other sources",
        file="core/extensions/checkpoint.py",
        old="if head == _head(public) and",
        new="if head[2] == _head(public)[2] and",
        tests=CHECKPOINTS,
    ),
    Mutant(
        name="a checkpoint with pending records",
        file="core/extensions/checkpoint.py",
        old="parts = (public._versions, public._accounts, public._blocks",
        new='parts = (public._versions, getattr(public, "_group", (0, 0, public._accounts))[2], public._blocks',
        tests=CHECKPOINTS,
    ),
    Mutant(
        name="a checkpoint that no record vouches for",
        file="core/extensions/checkpoint.py",
        old="vouched |= position > event.position and _tells(body, event)",
        new="vouched |= position > event.position",
        tests=CHECKPOINTS,
    ),
    Mutant(
        name="links behind the owner's note unchecked from a checkpoint on",
        file="core/extensions/checkpoint.py",
        old="start = min(event.position, landmark, verified[0] or event.position)",
        new="start = event.position",
        tests=CHECKPOINTS,
    ),
    Mutant(
        name="shares divided anew without what is before a checkpoint",
        file="core/extensions/shares.py",
        old="return chain(self.earlier(), islice(self.past, end))",
        new="return islice(self.past, end)",
        tests=CHECKPOINTS,
    ),
    Mutant(
        name="a record by itself is not checked by its link",
        file="core/ledger/database.py",
        old="((_, body),) = database.walk(position - 1, database.chain_at(position - 1), here)",
        new='((body,),) = database.run("SELECT body FROM log WHERE position = ?", (here.position,))',
        tests=CHECKPOINTS,
    ),
    Mutant(
        name="a row is refined from what was shown first",
        file="core/extensions/refine.py",
        old="scales[event.rows], positions[event.rows] = event.after.scale, record.position",
        new="scales[event.rows] = event.after.scale",
        tests=(*REFINE, *CHECKPOINTS),
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
        file="core/extensions/curator.py",
        old="if hashes != read.contents[: now.sealed]:",
        new="if hashes is None:",
        tests=SEALS,
    ),
    Mutant(
        name="sizes of partitions in the log although they are secret",
        file="core/extensions/curator.py",
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

SERVER_MUTANTS = (
    Mutant(
        name="a DuckDB file: units are bounded in two groups, half of their rows in each",
        file="core/source/servers/cell_rule.py",
        old="among + dialect.one_group(who)",
        new='among + dialect.one_group(f"raw_.{columns[domain.names[0]][0]}")',
        tests=SERVERS,
    ),
    Mutant(
        name="a DuckDB file: the last group of units is passed over",
        file="core/source/servers/duckdb_file.py",
        old="for group in range(groups):",
        new="for group in range(max(groups - 1, 1)):",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: values above a range are not clamped",
        file="core/source/servers/cell_rule.py",
        old='above = f"{read} >= {dialect.real(attribute.upper + 1)}"',
        new='above = f"{read} > {dialect.real(9e15)}"',
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: one row more of a unit is kept",
        file="core/source/servers/cell_rule.py",
        old="AS ranked WHERE rank_ <= {k}",
        new="AS ranked WHERE rank_ <= {k + 1}",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: units with too many rows are not looked for",
        file="core/source/servers/cell_rule.py",
        old="HAVING count(*) > {k}",
        new="HAVING count(*) > {2 * k}",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: units with too many rows keep them where people are told apart",
        file="core/source/servers/cell_rule.py",
        old="units.rows_ <= {k}",
        new="units.rows_ <= {2 * k}",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: rows without a unit are counted",
        file="core/source/servers/cell_rule.py",
        old="units.u IS NULL AND raw_.{raw} IS NOT NULL",
        new="units.u IS NULL",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: the last sealed partition is not read",
        file="core/source/servers/cell_rule.py",
        old="for place in (0, first))",
        new="for place in (0, max(first - 1, 0)))",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: rows whose day is unknown are passed over",
        file="core/source/servers/cell_rule.py",
        old="first > min(attribute.null_cell, *strays(attribute)[::2])",
        new="first > attribute.declared",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: the rows of a unit chosen regardless of partitions",
        file="core/source/servers/cell_rule.py",
        old="ORDER BY {''.join(f'{part}, ' for part in parts)}hash_)",
        new="ORDER BY hash_)",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: the rows of a unit chosen without the key",
        file="core/source/servers/sql_source.py",
        old='else derived(key, "choice").hex() + os.urandom(32).hex()',
        new="else bytes(32).hex() + os.urandom(32).hex()",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: the content hash forgets how often a row occurs",
        file="core/source/servers/kept_cells.py",
        old="for column in (*columns.values(), rows):",
        new="for column in columns.values():",
        tests=SERVERS,
    ),
    Mutant(
        name="a server's table: counted outside of the snapshot",
        file="core/source/servers/postgresql.py",
        old="BEGIN ISOLATION LEVEL REPEATABLE READ",
        new="BEGIN ISOLATION LEVEL READ COMMITTED",
        tests=POSTGRESQL,
    ),
    Mutant(
        name="a server's table: it can be emptied inside the snapshot",
        file="core/source/servers/postgresql.py",
        old="IN ACCESS SHARE MODE",
        new="IN ACCESS SHARE MODE NOWAIT; COMMIT; BEGIN",
        tests=POSTGRESQL,
    ),
    Mutant(
        name="a server's table: a collation makes texts equal",
        file="core/source/servers/postgresql.py",
        old="""f'(CAST({value} AS text) COLLATE "C")'""",
        new='f"(CAST({value} AS text))"',
        tests=POSTGRESQL,
    ),
    Mutant(
        name="a server's table: MariaDB's padding makes texts equal",
        file="core/source/servers/mariadb.py",
        old="COLLATE utf8mb4_nopad_bin)",
        new="COLLATE utf8mb4_bin)",
        tests=MARIADB,
    ),
    Mutant(
        name="a server's table: an engine without snapshots is read",
        file="core/source/servers/mariadb.py",
        old='if tables[0] != ("BASE TABLE", "InnoDB"):',
        new='if tables[0][0] != "BASE TABLE":',
        tests=MARIADB,
    ),
    Mutant(
        name="a server's table: files that change meanwhile are not noticed",
        file="core/source/servers/spark.py",
        old="if self._listed() != self._before:",
        new="if not self._before:",
        tests=SPARK,
        marks=SOAK,
    ),
    Mutant(
        name="delta: a file that was removed still counts",
        file="core/source/servers/delta_log.py",
        old="files.pop(_identity(removed), None)",
        new="removed",
        tests=DELTA_LOG,
    ),
    Mutant(
        name="delta: part of a checkpoint counts as the whole of it",
        file="core/source/servers/delta_log.py",
        old="if key[0] <= last and len(files) == key[1]]",
        new="if key[0] <= last]",
        tests=DELTA_LOG,
    ),
    Mutant(
        name="delta: a commit that is gone is passed over",
        file="core/source/servers/delta_log.py",
        old="following = range(start[0] + 1, last + 1)",
        new="following = [number for number in range(start[0] + 1, last + 1) if number in commits]",
        tests=DELTA_LOG,
    ),
    Mutant(
        name="delta: rows that a deletion vector names still count",
        file="core/source/servers/delta_log.py",
        old='if any(file.get("deletionVector") for file in files):',
        new="if False:",
        tests=DELTA_LOG,
    ),
    Mutant(
        name="delta: an overwritten file counts",
        file="core/source/servers/file_list.py",
        old='if there != {f"{home}/{path}": size for path, size in sizes.items()}:',
        new='if {*there} != {f"{home}/{path}" for path in sizes}:',
        tests=DELTA,
        marks=SOAK,
    ),
    Mutant(
        name="iceberg: an overwritten file counts",
        file="core/source/servers/file_list.py",
        old='if there != {f"{home}/{path}": size for path, size in sizes.items()}:',
        new='if {*there} != {f"{home}/{path}" for path in sizes}:',
        tests=ICEBERG,
        marks=SOAK,
    ),
    Mutant(
        name="iceberg: part of a manifest counts as the whole of it",
        file="core/source/servers/file_list.py",
        old="if any(size not in (None, len(content))",
        new="if False and any(size not in (None, len(content))",
        tests=ICEBERG,
        marks=SOAK,
    ),
    Mutant(
        name="iceberg: columns are found by their names",
        file="core/source/servers/file_list.py",
        old='"spark.sql.parquet.fieldId.read.enabled": "true"',
        new='"spark.sql.parquet.fieldId.read.enabled": "false"',
        tests=ICEBERG,
        marks=SOAK,
    ),
    Mutant(
        name="iceberg: filters find columns by their names",
        file="core/source/servers/file_list.py",
        old='"spark.sql.parquet.filterPushdown": "false"',
        new='"spark.sql.parquet.filterPushdown": "true"',
        tests=ICEBERG,
        marks=SOAK,
    ),
    Mutant(
        name="iceberg: columns of files without numbers are NULL",
        file="core/source/servers/file_list.py",
        old='"spark.sql.parquet.fieldId.read.ignoreMissing": "false"',
        new='"spark.sql.parquet.fieldId.read.ignoreMissing": "true"',
        tests=ICEBERG,
        marks=SOAK,
    ),
    Mutant(
        name="iceberg: partitions are read from the names of folders",
        file="core/source/servers/file_list.py",
        old='{"recursiveFileLookup": "true"}',
        new='{"basePath": home}',
        tests=ICEBERG,
        marks=SOAK,
    ),
    Mutant(
        name="iceberg: a file that was removed still counts",
        file="core/source/servers/iceberg_metadata.py",
        old=' if each["status"] != REMOVED)',
        new=")",
        tests=ICEBERG_METADATA,
    ),
    Mutant(
        name="iceberg: rows that delete files name still count",
        file="core/source/servers/iceberg_metadata.py",
        old='if file.get("content", ROWS) != ROWS:',
        new='if file.get("content", ROWS) not in (ROWS, 2):',
        tests=ICEBERG_METADATA,
    ),
    Mutant(
        name="iceberg: files may lie anywhere",
        file="core/source/servers/iceberg_metadata.py",
        old=' or {".", ".."} & {*full.split("/")}:',
        new=":",
        tests=ICEBERG_METADATA,
    ),
    Mutant(
        name="iceberg: an older snapshot has the columns of today",
        file="core/source/servers/iceberg_metadata.py",
        old='schema = schema if wanted is None else found[0].get("schema-id", schema)',
        new="",
        tests=ICEBERG_METADATA,
    ),
    Mutant(
        name="iceberg: one of two commits is taken for the last",
        file="core/source/servers/iceberg_metadata.py",
        old="if wanted is None and len(contents) > 1:",
        new="if False:",
        tests=ICEBERG_METADATA,
    ),
    Mutant(
        name="a server's table: an error quotes the database",
        file="core/source/servers/sql_source.py",
        old="return attempt(lambda: KeptCells(self._domain, self._capacity, server.lines(sql, secret)), failed)",
        new="return KeptCells(self._domain, self._capacity, server.lines(sql, secret))",
        tests=POSTGRESQL,
    ),
    Mutant(
        name="a server's table: a role that can write is let in",
        file="core/source/servers/postgresql.py",
        old="too_much = writes and self.only_reads",
        new="too_much = writes and not self.only_reads",
        tests=POSTGRESQL,
    ),
    Mutant(
        name="a server's table: early rows are passed over where they are clipped",
        file="core/source/servers/cell_rule.py",
        old="if strays(attribute)[1] >= first else",
        new="if strays(attribute)[1] >= 0 else",
        tests=SERVERS,
    ),
    Mutant(
        name="a table of cells: lines that came later are counted",
        file="core/source/servers/postgresql_cells.py",
        old="""return (f"xmin = '{written[0][0]}'", written[0][1])""",
        new="""return ("true", written[0][1])""",
        tests=CELL_TABLES,
    ),
    Mutant(
        name="a table of cells: lines that are gone are not missed",
        file="core/source/servers/cell_table.py",
        old="if seen != self._lines:",
        new="if seen > self._lines:",
        tests=CELL_TABLES,
    ),
    Mutant(
        name="a table of cells: what it was filled for is not looked at",
        file="core/source/servers/cell_table.py",
        old="if note != self.note(through):",
        new="if note is None:",
        tests=CELL_TABLES,
    ),
    Mutant(
        name="a table of cells: partitions are sealed that it does not have",
        file="core/source/servers/cell_table.py",
        old="and through < first:",
        new="and through < 0:",
        tests=CELL_TABLES,
    ),
    Mutant(
        name="a table of cells: a table of the owner's is replaced",
        file="core/source/servers/postgresql_cells.py",
        old='not (self._before[0] or "").startswith(MARK):',
        new='(self._before[0] or "").endswith(MARK):',
        tests=CELL_TABLES,
    ),
    Mutant(
        name="tables joined in a server: rows of other people are joined",
        file="core/source/servers/joined_rows.py",
        old='on.append(f"{whose} = {row}.{UNIT}")',
        new='on.append("1 = 1")',
        tests=SERVER_JOINS,
    ),
    Mutant(
        name="tables joined in a server: a public table has two rows for a key",
        file="core/source/servers/joined_rows.py",
        old="    if number:",
        new="    if number < 0:",
        tests=SERVER_JOINS,
    ),
    Mutant(
        name="MariaDB tells people apart by the beginning of their names",
        file="core/source/servers/mariadb.py",
        old="        return self.sha256(value)\n",
        new="        return value\n",
        tests=("tests/integration/test_mariadb_source.py",),
    ),
    Mutant(
        name="tables joined in a server: one row for a key, whoever has it",
        file="core/source/servers/joined_rows.py",
        old="for name in (UNIT, *keys))",
        new="for name in (keys or (UNIT,)))",
        tests=SERVER_JOINS,
    ),
    Mutant(
        name="tables joined in a server: all rows of a person for a key",
        file="core/source/servers/joined_rows.py",
        old="AS ranked WHERE place_ = 1",
        new="AS ranked WHERE place_ >= 1",
        tests=SERVER_JOINS,
    ),
    Mutant(
        name="tables joined in a server: the row of a person chosen without the key",
        file="core/source/servers/joined_rows.py",
        old="message = [choice_key(secret), ",
        new="message = [",
        tests=SERVER_JOINS,
    ),
    Mutant(
        name="tables joined in a server: they can be emptied inside the snapshot",
        file="core/source/servers/postgresql.py",
        old="for name, right in rights.items():",
        new="for name, right in list(rights.items())[:1]:",
        tests=POSTGRESQL,
    ),
    Mutant(
        name="tables joined in a server: row-level security hides rows of them",
        file="core/source/servers/postgresql.py",
        old="        if guarded:",
        new="        if guarded and table == self._table:",
        tests=POSTGRESQL,
    ),
    Mutant(
        name="tables joined in a server: MariaDB's views are read",
        file="core/source/servers/mariadb.py",
        old="for name in (self._table, *self.beside):",
        new="for name in (self._table,):",
        tests=MARIADB,
    ),
    Mutant(
        name="a table of cells: which tables were joined is not looked at",
        file="core/source/servers/cell_table.py",
        old=", first, *map(Parent.to_json, self.parents))",
        new=", first)",
        tests=CELL_TABLES,
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

DOOR_MUTANTS = (
    Mutant(
        name="an address that nobody has verified is believed",
        file="service/openid.py",
        old='if self.settings.claim == "email" and claims.get("email_verified") is not True:',
        new="if False:",
        tests=("tests/integration/test_openid.py",),
    ),
    Mutant(
        name="a log-in that another program was given is good here",
        file="service/openid.py",
        old='"aud": {"essential": True, "value": audience}',
        new='"aud": {"essential": True}',
        tests=("tests/integration/test_openid.py",),
    ),
    Mutant(
        name="a log-in that the browser did not begin is taken",
        file="service/openid.py",
        old="if not hmac.compare_digest(begun.state.encode(), state.encode()):",
        new="if False:",
        tests=("tests/integration/test_openid.py",),
    ),
    Mutant(
        name="analysts use the pages of owners",
        file="service/pages/visits.py",
        old="    if not visitor.owner:\n",
        new="    if False:\n",
        tests=("tests/unit/service/pages/test_page_roles.py",),
    ),
    Mutant(
        name="other sites send forms to the pages",
        file="service/pages/visits.py",
        old='return site == "same-origin"',
        new="return True",
        tests=("tests/unit/service/pages/test_page_roles.py",),
    ),
)

KEYS = (f"{CORE}/extensions/test_open_keys.py", "tests/enumeration/test_open_keys_exact.py")
TEXTS = (f"{CORE}/source/test_open_texts.py", "tests/record_play/test_open_keys_played.py")

KEY_MUTANTS = (
    Mutant(
        name="open keys: cells without a text may be told apart",
        file="core/tables.py",
        old="            check_keys(strategy, self._domain, self.texts)\n",
        new="            pass\n",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: the first free cell is not compared",
        file="core/extensions/open_keys.py",
        old="return not np.any((mask.steps.at > first) & (mask.steps.at <= last))",
        new="return not np.any((mask.steps.at > first + 1) & (mask.steps.at <= last))",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: other is not compared with free cells",
        file="core/extensions/open_keys.py",
        old="inside = np.moveaxis(values, 1 + axis, 0)[first : last + 1]",
        new="inside = np.moveaxis(values, 1 + axis, 0)[first : max(last, first + 1)]",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: conditions are not looked at",
        file="core/extensions/open_keys.py",
        old="return _never_cut(part.condition, name, first, last)",
        new="return True",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: what a person's number is made of is not looked at",
        file="core/extensions/open_keys.py",
        old="for each in (part.groups, part.value) if",
        new="for each in (part.groups,) if",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: tests of sparse vectors are not checked",
        file="core/extensions/sparse_vector.py",
        old="distance = abs(int(tables.answers(row)[0]) - estimate)",
        new="distance = abs(int(row.apply(tables.counts)[0]) - estimate)",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: maps that are not known pass",
        file="core/extensions/open_keys.py",
        old="            return all(alike(each, name, first, last) for each in parts)\n    return False\n",
        new="            return all(alike(each, name, first, last) for each in parts)\n    return True\n",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: a log may give a text a second cell",
        file="core/extensions/open_keys.py",
        old="if listed is None or text in texts or not is_key(text):",
        new="if listed is None or not is_key(text):",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: members of one commit share a cell",
        file="core/extensions/open_keys.py",
        old="    for record in transaction.pending():\n        lists.add(record)\n    return lists\n",
        new="        return lists\n",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: tables are checked by a list that the source was not given",
        file="core/kernel.py",
        old="                give_cells(source, texts)\n",
        new="",
        tests=(*KEYS, *TEXTS),
    ),
    Mutant(
        name="open keys: a checkpoint forgets the keys",
        file="core/extensions/checkpoint.py",
        old="    public._keys.restore(keys)\n",
        new="",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: a column of texts does not say that it is open",
        file="core/extensions/open_keys.py",
        old="    open = True\n",
        new="",
        tests=KEYS,
    ),
    Mutant(
        name="open keys: which rows of a person count depends on storage",
        file="core/source/duckdb.py",
        old="f\"coalesce(sha256({c}), 'NULL')\" if text else c",
        new="c",
        tests=TEXTS,
    ),
    Mutant(
        name="open keys: the content hash follows the keys",
        file="core/source/duckdb.py",
        old='f"SELECT {column} FROM cells WHERE rowid >= {low}',
        new='f"WITH k AS (SELECT *, row_number() OVER () - 1 AS rowid FROM {self._cells}) '
        "SELECT {column} FROM k WHERE rowid >= {low}",
        tests=TEXTS,
    ),
    Mutant(
        name="open keys: texts are compared as they are stored",
        file="core/extensions/open_texts.py",
        old="trim(nfc_normalize({text}), {spaces})",
        new="trim({text}, {spaces})",
        tests=TEXTS,
    ),
)

FINDS = (f"{CORE}/extensions/test_discovery.py", "tests/enumeration/test_discovery_exact.py")

CARRYING = (f"{CORE}/extensions/test_carried.py", "tests/enumeration/test_carried_exact.py")

CARRIED_MUTANTS = (
    Mutant(
        name="carried: what was spent before is forgotten",
        file="core/accounting/accountant.py",
        old="            self.carried += event.units\n",
        new="            pass\n",
        tests=CARRYING,
    ),
    Mutant(
        name="carried: what was spent before is not added",
        file="core/accounting/accountant.py",
        old="spent = self.carried + sum(profile.spent(more.get(g, ())) for g, profile in profiles)",
        new="spent = max(self.carried, sum(profile.spent(more.get(g, ())) for g, profile in profiles))",
        tests=CARRYING,
    ),
    Mutant(
        name="carried: a checkpoint forgets it",
        file="core/extensions/saved_state.py",
        old="book.versions.state(), profiles, book.carried]",
        new="book.versions.state(), profiles, 0]",
        tests=("tests/property/test_checkpoints.py",),
    ),
    Mutant(
        name="carried: a copy of a book forgets it",
        file="core/accounting/accountant.py",
        old="self.further, self.versions.copy(), self.carried)",
        new="self.further, self.versions.copy())",
        tests=CARRYING,
    ),
    Mutant(
        name="carried: the old ledger keeps half for itself",
        file="core/extensions/carried.py",
        old="event = Carried(units=units - spent, delta=delta - used,",
        new="event = Carried(units=(units - spent) // 2, delta=delta - used,",
        tests=CARRYING,
    ),
    Mutant(
        name="carried: it can be handed over twice",
        file="core/extensions/carried.py",
        old="        if any(event.ledger != target for event in before):\n",
        new="        if False:\n",
        tests=CARRYING,
    ),
    Mutant(
        name="carried: delta stays behind",
        file="core/extensions/discovery.py",
        old="isinstance(each.event, Found | Carried))",
        new="isinstance(each.event, Found))",
        tests=CARRYING,
    ),
    Mutant(
        name="carried: other people, or other units, will do",
        file="core/extensions/carried.py",
        old="        if before.get(name) != after.get(name):\n",
        new="        if False:\n",
        tests=CARRYING,
    ),
    Mutant(
        name="carried: a loss can be lowered",
        file="core/extensions/carried.py",
        old="type(number) is int and number >= 0 for number",
        new="type(number) is int for number",
        tests=CARRYING,
    ),
    Mutant(
        name="carried: the first record is not in the new ledger",
        file="core/ledger/database.py",
        old=" if carried is None else begin_with(self, carried)",
        new="",
        tests=("tests/conformance/test_ledger_conformance.py",),
    ),
)

DISCOVERY_MUTANTS = (
    Mutant(
        name="discovery: delta counts one text of a person",
        file="core/extensions/discovery.py",
        old="chance = max(texts * _tail(self.noise.scale, each) for texts, each in least.items())",
        new="chance = max(_tail(self.noise.scale, each) for texts, each in least.items())",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: delta is that of people with as many texts as possible",
        file="core/extensions/discovery.py",
        old="for texts in range(1, self.most + 1)}",
        new="for texts in [self.most]}",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: every text of a person gets the whole weight",
        file="core/extensions/discovery.py",
        old="return math.isqrt(self.weight * self.weight // texts)",
        new="return self.weight",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: shares are rounded up",
        file="core/extensions/discovery.py",
        old="return math.isqrt(self.weight * self.weight // texts)",
        new="return 1 + math.isqrt(self.weight * self.weight // texts)",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: delta is not checked",
        file="core/extensions/discovery.py",
        old="        admit_delta(kernel, transaction, event)\n",
        new="",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: members of one commit and plans use up no delta",
        file="core/extensions/discovery.py",
        old="kernel._deltas.after(transaction.pending()) + others, kernel",
        new="kernel._deltas.spent, kernel",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: plans use up no delta",
        file="core/extensions/discovery.py",
        old="others = sum(each.delta for each in held if isinstance(each, Found))",
        new="others = 0",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: a new version begins with a new delta",
        file="core/extensions/discovery.py",
        old="return self.spent + sum(each.event.delta",
        new="return sum(each.event.delta",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: a checkpoint forgets delta",
        file="core/extensions/checkpoint.py",
        old="    public._deltas.restore(deltas)\n",
        new="",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: who is replaced pays once",
        file="core/extensions/discovery.py",
        old="(Unshared((), accountant.power),)",
        new="(Unshared.__mro__[1]((), accountant.power),)",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: the weight of a person is not priced",
        file="core/extensions/discovery.py",
        old="reach = Reach(1, self.weight,",
        new="reach = Reach(1, 1,",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: texts without noise are released",
        file="core/extensions/discovery.py",
        old="noisy = (exact + kernel._randomness.draw(event.noise, len(exact))).tolist()",
        new="noisy = exact.tolist()",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: texts below the threshold are released",
        file="core/extensions/discovery.py",
        old="if sum_ >= event.threshold]",
        new="if sum_ > 0]",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: tails are too small",
        file="core/extensions/discovery.py",
        old="/ -math.expm1(-least / square)",
        new="",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: rows outside of the scope count",
        file="core/extensions/open_texts.py",
        old=" AND ({scope})",
        new="",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: a scope may tell free cells apart",
        file="core/extensions/discovery.py",
        old="        check_keys(event.scope, tables._domain, tables.texts)\n",
        new="        pass\n",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: a scope is not written down",
        file="core/extensions/discovery.py",
        old='scope = {} if self.scope is None else {"strategy": self.scope.digest}',
        new="scope: dict[str, object] = {}",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: texts are drawn in the order of storage",
        file="core/extensions/open_texts.py",
        old="for text in sorted(order, key=order.__getitem__)]",
        new="for text in order]",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: a text that a person has in two rows weighs twice",
        file="core/extensions/open_texts.py",
        old='texts_of_people = f"SELECT DISTINCT unit, t{place} AS text {free.format(source._kept)}"',
        new='texts_of_people = f"SELECT unit, t{place} AS text {free.format(source._kept)}"',
        tests=FINDS,
    ),
    Mutant(
        name="discovery: delta is not kept aside",
        file="core/budget.py",
        old="noise_delta = None if delta is None else delta - delta_keys",
        new="noise_delta = delta",
        tests=FINDS,
    ),
    Mutant(
        name="discovery: the charter does not bind delta_keys",
        file="core/budget.py",
        old='"delta": budget.delta, **order, **keys},',
        new='"delta": budget.delta, **order},',
        tests=FINDS,
    ),
)

MUTANTS = (
    *MEASURE_MUTANTS,
    *NORM_MUTANTS,
    *UNIT_MUTANTS,
    *DISTINCT_MUTANTS,
    *PER_PERSON_MUTANTS,
    *JOIN_MUTANTS,
    *RELATION_MUTANTS,
    *KEY_MUTANTS,
    *CARRIED_MUTANTS,
    *DISCOVERY_MUTANTS,
    *REFINE_MUTANTS,
    *SPARSE_VECTOR_MUTANTS,
    *SELECT_MUTANTS,
    *LEDGER_MUTANTS,
    *CHECKPOINT_MUTANTS,
    *SOURCE_MUTANTS,
    *SERVER_MUTANTS,
    *WIRE_MUTANTS,
    *DOOR_MUTANTS,
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
    outcome, said = tried(mutant.tests, mutant.marks, mutant)
    return {True: (SURVIVED, said), False: (CAUGHT, said), None: (BROKEN, said)}[outcome]


def tried(tests: Iterable[str], marks: str, mutant: Mutant | None = None) -> tuple[bool | None, str]:
    """Whether the tests pass on a copy of src/, with the mutant in it if there is one; None where they did not run.

    With the first test that failed, or the last line of pytest.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("*.egg-info"))  # what is compiled stays so
        if mutant is not None:
            file = copy / "bursar" / mutant.file
            file.write_text(mutant.planted(file.read_text(encoding="utf-8")), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", marks, "-p", "no:cacheprovider"]
        command.append("--hypothesis-profile=unshrunk")
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
    for marks in {mutant.marks for mutant in chosen}:
        passed, said = tried(sorted({test for m in chosen if m.marks == marks for test in m.tests}), marks)
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
