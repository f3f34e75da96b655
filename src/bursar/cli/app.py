"""The commands. Only what `--help` needs is imported here; the engine is imported when a command runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from bursar import __version__
from bursar.cli.opened import (
    ANALYST,
    CONFIG,
    Analyst,
    ChosenPreset,
    Data,
    Json,
    Server,
    Watch,
    chosen,
    opened,
    progress,
    reached,
    read,
    read_file,
    working,
)
from bursar.cli.people import user
from bursar.cli.serve import serve
from bursar.cli.setup import check, confirm, init
from bursar.cli.statement import statement
from bursar.cli.synth import drift, synth
from bursar.errors import ConfigError, Unsupported
from bursar.report import text as show

app = typer.Typer(
    name="bursar",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Ask questions about private data in SQL, and say how exact the answers must be.\n\n"
    "Answers are counts with a little random noise, so that they say much about everybody together and next to "
    "nothing about anyone. Every answer uses up some of a budget that the data owner has set; Bursar finds the way "
    "that uses up least, and a question that was asked before costs nothing.\n\n"
    "New here? Run: bursar demo",
    epilog="Exit codes: 0 done, 2 the question or the config is wrong, 3 the budget does not allow it, "
    "4 the data or the ledger cannot be used, 5 it is not your turn yet.",
)

Sql = Annotated[
    str,
    typer.Argument(
        help='A SELECT in quotes, or - to read it from standard input. The accuracy may also stand in it: "... WITH '
        'ERROR 50 CONFIDENCE 95%".',
        show_default=False,
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        metavar="50|2%",
        help="The largest error of any number in the answer: in rows, or a percentage of the declared size.",
    ),
]
Confidence = Annotated[
    str | None, typer.Option(metavar="95%", help="How sure the error must be; 95% unless the config says otherwise.")
]
Relative = Annotated[
    str | None,
    typer.Option(metavar="5%", help="Instead of --within: the largest error as a percentage of each true count."),
]
Floor = Annotated[
    float | None,
    typer.Option(
        metavar="200",
        help="Beside --relative: counts below this are taken for it; unless named, an even share of all rows.",
    ),
]
Rmse = Annotated[float | None, typer.Option(metavar="20", help="Instead of --within: the root mean square error.")]
Epsilon = Annotated[
    float | None, typer.Option(metavar="0.1", help="Instead of --within: the best answer for at most this cost.")
]
Rho = Annotated[float | None, typer.Option(metavar="0.01", help="The same, where the budget is counted in rho.")]
Expect = Annotated[
    str | None,
    typer.Option(
        metavar="RECORDS:HASH",
        help="The head that an earlier verify printed, from where you wrote it down: an older ledger put back is then "
        "refused, and a lost or damaged anchor is made anew.",
    ),
]
MaxCost = Annotated[float | None, typer.Option(metavar="0.1", help="Refuse if the answer would cost more than this.")]
Expected = Annotated[
    str | None,
    typer.Option(
        "--horizon",
        metavar="some",
        help="How many more such questions you expect: one-off, some, many, or a number. More of them justify buying "
        "rows that later ones can use.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Any name for this question: asking again under the same name gives the very same answer, free, even "
        "after a crash.",
    ),
]
Reader = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="NAME",
        envvar=ANALYST,
        help="Who looks: an analyst sees the own share and questions, the owner all.",
    ),
]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="If it is not your turn, print a ticket that keeps your place, and end.")
]
Ticket = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="The ticket that an earlier call with --no-wait printed.")
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write the answer to a file: .csv, .parquet, .png, .svg or .pdf."),
]
Bars = Annotated[
    bool | None,
    typer.Option("--bars/--no-bars", help="Draw bars beside the numbers; unless named, at a terminal."),
]


def _version(shown: bool) -> None:
    if shown:
        print(f"bursar {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version of Bursar.")
    ] = False,
) -> None:
    pass


def expected(horizon: str | None) -> str | int | None:
    """A horizon as it was typed: a number of questions, or a word."""
    return int(horizon) if horizon is not None and horizon.isdecimal() else horizon


@app.command()
def query(
    sql: Sql,
    data: Data = CONFIG,
    server: Server = None,
    preset: ChosenPreset = None,
    within: Within = None,
    confidence: Confidence = None,
    relative: Relative = None,
    floor: Floor = None,
    rmse: Rmse = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    max_cost: MaxCost = None,
    horizon: Expected = None,
    key: Key = None,
    no_wait: NoWait = False,
    ticket: Ticket = None,
    synthetic: Annotated[
        bool,
        typer.Option(
            "--synthetic",
            help="From the synthetic table of the last bursar synth, as it is: free, and the answer says what is known "
            "about its error, if anything is.",
        ),
    ] = False,
    out: Out = None,
    bars: Bars = None,
    analyst: Analyst = "owner",
    json: Json = False,
) -> None:
    """Ask a question; the answer is paid from the budget.

    Example: bursar query "SELECT region, COUNT(*) FROM people GROUP BY region" --within 50
    """
    text = read(sql)
    show.check(out)
    from bursar.planner.goals import Wanted

    goal = Wanted(
        within=within, confidence=confidence, relative=relative, floor=floor, rmse=rmse, epsilon=epsilon, rho=rho,
        max_cost=max_cost, horizon=expected(horizon), synthetic=synthetic,
    )  # fmt: skip
    with reached(server, data, analyst, preset) as bursar, show.ticket(as_json=json):
        with Watch(bursar).over(text), working("at work"):
            answer = bursar.run(text, goal, key=key, wait=not no_wait, ticket=ticket)
        show.answer(answer, as_json=json, bars=bars, out=out)


@app.command("release", hidden=True)
@app.command("batch")
def batch(
    file: Annotated[
        str, typer.Argument(help="A file of SELECTs with semicolons between them, or - for standard input.")
    ],
    data: Data = CONFIG,
    server: Server = None,
    preset: ChosenPreset = None,
    within: Within = None,
    confidence: Confidence = None,
    relative: Relative = None,
    floor: Floor = None,
    rmse: Rmse = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    max_cost: MaxCost = None,
    horizon: Expected = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="eigen",
            help="For comparison: the strategy to measure, eigen, eigen-program-1, eigen-separated, eigen-principal, "
            "wavelet or fourier; with a budget in rho.",
        ),
    ] = None,
    key: Key = None,
    no_wait: NoWait = False,
    ticket: Ticket = None,
    price: Annotated[bool, typer.Option("--price", help="Only say what all of it would cost. Free.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Pay without asking; scripts are never asked.")] = False,
    analyst: Analyst = "owner",
    json: Json = False,
) -> None:
    """Answer many questions at once: planned together, paid once, consistent with each other.

    All of them share one goal, and all error bars hold together. At a terminal the price is shown first, and nothing is
    paid unless you agree. Example: bursar batch monday.sql --within 100
    """
    from bursar.sql.tokens import questions_of

    questions = questions_of(read_file(file))
    with reached(server, data, analyst, preset) as bursar, show.ticket(as_json=json):
        collected = bursar.batch(
            within=within,
            confidence=confidence,
            relative=relative,
            floor=floor,
            rmse=rmse,
            epsilon=epsilon,
            rho=rho,
            max_cost=max_cost,
            horizon=expected(horizon),
            strategy=strategy,
            key=key,
            wait=not no_wait,
            ticket=ticket,
            progress=progress,
        )
        for sql in questions:
            collected.query(sql)
        if price:
            show.price(collected, bursar.budget(), as_json=json)
        elif yes or json or show.agreed(collected, bursar.budget()):
            with Watch(bursar).over(collected.text), working("at work"):
                answers = collected.pay()
            show.result(answers, as_json=json)
        else:
            print("nothing was asked, and nothing was paid")


@app.command()
def explain(
    sql: Sql,
    data: Data = CONFIG,
    server: Server = None,
    preset: ChosenPreset = None,
    within: Within = None,
    confidence: Confidence = None,
    relative: Relative = None,
    floor: Floor = None,
    rmse: Rmse = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    max_cost: MaxCost = None,
    horizon: Expected = None,
    analyst: Analyst = "owner",
    json: Json = False,
) -> None:
    """Show every way to answer a question, with its cost and its error. Free."""
    text = read(sql)
    with reached(server, data, analyst, preset) as bursar:
        explanation = bursar.explain(
            text,
            within=within,
            confidence=confidence,
            relative=relative,
            floor=floor,
            rmse=rmse,
            epsilon=epsilon,
            rho=rho,
            max_cost=max_cost,
            horizon=expected(horizon),
        )
        show.result(explanation, as_json=json)


@app.command()
def shell(
    data: Data = CONFIG,
    server: Server = None,
    preset: ChosenPreset = None,
    within: Within = None,
    confidence: Confidence = None,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="Where the lines you type are kept, - for nowhere; unless named, in your own folder for such things, "
            "never beside the ledger.",
        ),
    ] = None,
    analyst: Analyst = "owner",
) -> None:
    """Ask one question after the other at a prompt, with completion and history; \\help there tells the rest."""
    from bursar.cli.shell import default_history
    from bursar.cli.shell import shell as run
    from bursar.planner.goals import Wanted

    history_file = default_history() if history is None else None if history == "-" else Path(history)
    with reached(server, data, analyst, preset) as bursar:
        run(bursar, wanted=Wanted(within=within, confidence=confidence), history=history_file)


@app.command()
def budget(
    data: Data = CONFIG,
    server: Server = None,
    preset: ChosenPreset = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw a picture, a PNG file.")] = None,
    saved: Annotated[
        bool, typer.Option("--saved", help="Also compare with what plain noise would have spent on the same questions.")
    ] = False,
    analyst: Reader = "owner",
    json: Json = False,
) -> None:
    """Show how much of the budget is spent and left, what it was spent on, and whose budget is used most.

    An analyst sees the whole, the own share and the own questions; the data owner sees everybody's.
    """
    show.check(png, (".png",))
    with reached(server, data, analyst, preset) as bursar:
        spending = bursar.spending(saved=saved)
        show.budget(bursar.budget(), spending, as_json=json, png=png)


@app.command()
def log(
    data: Data = CONFIG,
    server: Server = None,
    last: Annotated[int, typer.Option(metavar="N", min=0, help="So many lines, the newest.")] = show.LOG_LINES,
    before: Annotated[
        int | None, typer.Option(metavar="#", min=1, help="Lines that stand before this one: the page before.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All lines.")] = False,
    of: Annotated[str | None, typer.Option(metavar="NAME", help="Only the lines of this analyst.")] = None,
    proposer: Annotated[
        str | None, typer.Option("--from", metavar="NAME", help="Only lines of this way of answering.")
    ] = None,
    erase: Annotated[
        bool, typer.Option("--erase-texts", help="For the data owner: erase the texts of all questions first.")
    ] = False,
    analyst: Reader = "owner",
    json: Json = False,
) -> None:
    """Show who asked what, when, and what it cost: the newest lines, oldest of them first."""
    if erase:
        if server is not None:
            raise Unsupported("texts are erased where the ledger is\ntry: the same there, without --server")
        with opened(data, analyst) as owned:
            typer.echo(f"{owned.owner.erase_texts()} texts erased", err=True)
    with reached(server, data, analyst) as bursar:
        lines = bursar.log(None if everything else last, before=before, of=of, proposer=proposer)
        show.log(lines, unit=bursar.budget().unit, as_json=json)


@app.command()
def queue(data: Data = CONFIG, server: Server = None, analyst: Reader = "owner", json: Json = False) -> None:
    """Show whose turn it is, your own tickets, and how many others wait."""
    with reached(server, data, analyst) as bursar:
        show.queue(bursar.queue(), as_json=json)


@app.command(name="pass")
def let_go(
    data: Data = CONFIG,
    server: Server = None,
    away: Annotated[bool, typer.Option("--away", help="Let every turn go until you ask again.")] = False,
    analyst: Analyst = "owner",
    json: Json = False,
) -> None:
    """Let your turn go: the present one, or the next if it is not your turn.

    Others can then go on. A turn that was let go is not made up for later.
    """
    with reached(server, data, analyst) as bursar:
        show.queue(bursar.let_go(away=away), as_json=json)


export = typer.Typer(no_args_is_help=True, help="Take away what was paid for. Free.")


@export.command()
def measurements(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write measurements.parquet and measurements.json into.")
    ] = Path("measurements"),
    data: Data = CONFIG,
    preset: ChosenPreset = None,
    analyst: Reader = "owner",
    json: Json = False,
) -> None:
    """Write the noisy numbers of the log, with what was measured and its noise, for models of your own.

    An analyst gets those that the own questions have paid for, the data owner all.
    """
    from bursar.report.noisy_rows import check_export

    if not json:
        check_export()
    with opened(data, analyst, preset=preset) as bursar:
        measurements = bursar.measurements()
        if json:
            show.result(measurements, as_json=True)
        else:
            numbers = sum(len(block.values) for block in measurements.blocks)
            print(f"{numbers} numbers of {len(measurements)} measurements")
            for file in measurements.write(out):
                print(f"written to {file}")


app.add_typer(export, name="export")
app.command()(synth)
app.command()(drift)
app.command()(serve)
app.command()(statement)
app.command()(init)
app.command()(confirm)
app.command()(check)
app.add_typer(user, name="user")


@app.command()
def create(
    data: Data = CONFIG,
    preset: ChosenPreset = None,
    carry: Annotated[
        Path | None,
        typer.Option(
            metavar="CONFIG",
            help="An earlier config about the same people. What was spent under it is spent here from the start, and "
            "its own ledger can spend no more.",
        ),
    ] = None,
) -> None:
    """For the data owner, once: open the ledger of a config. A new ledger is a new budget."""
    import bursar
    from bursar.ledgers import key_to_keep, others_with_a_ledger

    with bursar.create(data, preset=preset, carry=carry) as created:
        status = created.budget()
        others = [] if carry is not None else others_with_a_ledger(created.config)
        settings = created.config.ledger
        print(f"created {created.config.ledger_path if settings.url is None else f'the schema {settings.schema}'}")
        left = f"{status.unit} {status.left:.6g}" if status.carried else "all of it"
        print(f"budget  {status.description}, {left} left")
        if status.carried:
            print(f"carried {status.carried}")
        if status.charging:
            print(f"charge  {status.charging}")
        show.key_to_keep(key_to_keep(created.config))
    if others:
        show.second_budget(data, data.with_name(others[0].name))


@app.command()
def presets(json: Json = False) -> None:
    """List the published systems that can answer in Bursar's place, with what each does and its paper."""
    from bursar.presets import LISTED

    show.presets({name: (entry.line, entry.paper) for name, entry in LISTED.items()}, as_json=json)


@app.command()
def version(
    data: Data = CONFIG,
    same_rows: Annotated[
        bool,
        typer.Option(
            "--same-rows",
            help="Rows were only added: no earlier row was changed or removed. Then what was spent on the old and on "
            "the new data does not add up. Has no effect where a person is a column's value: new rows may replace old.",
        ),
    ] = False,
    table: Annotated[
        str | None,
        typer.Option(help="Of several private tables, the one that has changed; all of them where none is named."),
    ] = None,
) -> None:
    """For the data owner: declare that the data have changed.

    Until then, Bursar refuses to answer from data that are not what they were. What was learnt before stays spent, and
    old answers are not used for the new data.
    """
    with opened(data) as bursar:
        print(f"the data are now version {bursar.owner.declare_version(same_rows=same_rows, table=table)}")


@app.command()
def fill(data: Data = CONFIG) -> None:
    """For the data owner: fill the cells that are kept in PostgreSQL, again or for the first time.

    By the role that BURSAR_OWNER_URL names. Nothing is declared: rows that are not what they were are refused.
    """
    with opened(data) as bursar:
        for table in bursar.owner.fill_cells():
            print(f"the cells of {table} are kept")


@app.command()
def add_table(
    table: Annotated[str, typer.Argument(help="Its name: [tables.NAME] in the config, with max_contributions.")],
    data: Data = CONFIG,
) -> None:
    """For the data owner: let one more private table be asked about, for the same budget.

    Add it to the config first. Its columns and its bound are then fixed for the life of the ledger, like those of the
    first table.
    """
    from bursar.session import add_table

    with add_table(table, data) as bursar:
        print(f"added {table}; the budget is the same for all tables: {', '.join(bursar.tables)}")


@app.command()
def keys(
    column: Annotated[str, typer.Argument(help='An open column: domain = "open" in the config.')],
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts of it to tell apart; without any, shows them.")
    ] = None,
    data: Data = CONFIG,
) -> None:
    """For the data owner: let texts of an open column be told apart, by everybody. Free.

    Name only texts that you know without looking at the rows: everybody sees which are named.
    """
    with opened(data) as bursar:
        keys = bursar.owner.name_keys(column, texts or [])
        print("\n".join(show.plain(text) for text in keys) or f"no text of {column} is told apart yet")


@app.command()
def discover(
    column: Annotated[str, typer.Argument(help='An open column: domain = "open" in the config.')],
    spend: Annotated[float, typer.Option(metavar="RHO", help="What to spend on it, in rho.")],
    delta: Annotated[
        float | None,
        typer.Option(help="The chance that a text is found which one person alone has; else half of what is left."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="Look among rows for which this holds, as in a question's WHERE."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Only say what it costs and whom it finds.")] = False,
    data: Data = CONFIG,
) -> None:
    """For the data owner: find texts of an open column that enough people have, and let them be told apart.

    They are then public, for good. Rarer texts stay in other; the answer says how rare.
    """
    with opened(data) as bursar:
        look = bursar.owner.explain_discovery if explain else bursar.owner.discover
        for line in str(look(column, spend=spend, delta=delta, where=where)).split("\n"):
            print(show.plain(line))


@app.command()
def seal(
    data: Data = CONFIG,
    through: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="The last partition to seal: a value of the partition column, or any day of a week or month. Without "
            "it: all that are over by the calendar, where the config has one; else the next one.",
        ),
    ] = None,
) -> None:
    """For the data owner: declare that partitions are complete.

    From then on they can be asked about, and take no more rows. Nothing can be unsealed.
    """
    with opened(data) as bursar:
        print(f"sealed through {bursar.owner.seal(through)}")


@app.command()
def ingest(
    files: Annotated[
        list[Path] | None, typer.Argument(help="CSV or Parquet files with rows to add.", show_default=False)
    ] = None,
    data: Data = CONFIG,
    watch: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="After these, the files of a folder, as they come; Ctrl-C ends it."),
    ] = None,
    json: Json = False,
) -> None:
    """For the data owner: add the rows of files to data that grow.

    A file is added as a whole or not at all, and only once. Rows of partitions that are sealed are set aside. The
    numbers printed here are exact: they are not for analysts.
    """
    from bursar.curate.ingest import Watcher

    if not files and watch is None:
        raise ConfigError("there is nothing to add\ntry: bursar ingest FILE, or bursar ingest --watch FOLDER")
    with opened(data) as bursar:
        for file in files or ():
            show.taken(bursar.owner.ingest(file), as_json=json)
        if watch is not None:
            watcher = Watcher(
                bursar.config,
                watch,
                bursar.owner.ingest,
                tell=lambda taken: show.taken(taken, as_json=json),
                between=bursar.owner.seal_due,
            )
            with suppress(KeyboardInterrupt):
                watcher.watch()


@app.command()
def shares(data: Data = CONFIG, json: Json = False) -> None:
    """For the data owner: give out the shares of the budget that the config declares.

    Refused where they would take away what somebody has spent, or promise what is spent already.
    """
    from bursar.session import share

    with share(data, preset=chosen(None)) as bursar:
        show.budget_status(bursar.budget(), as_json=json)


@app.command()
def verify(data: Data = CONFIG, expect: Expect = None, json: Json = False) -> None:
    """Check the ledger from its first record to its last."""
    with opened(data, expect=expect) as bursar:
        show.health(bursar.owner.verify(), as_json=json)


@app.command()
def checkpoint(data: Data = CONFIG) -> None:
    """Save what the ledger adds up to, so that opening it does not begin at its first record.

    This happens by itself every 250 records. A checkpoint costs nothing and changes no answer; one that is lost or
    damaged is not used.
    """
    with opened(data) as bursar:
        print(f"checkpoint at record {bursar.owner.checkpoint()}")


@app.command()
def move_ledger(
    to: Annotated[str, typer.Argument(metavar="TO", help="The URL of a PostgreSQL database, or: file")],
    schema: Annotated[str, typer.Option(metavar="NAME", help="The schema to make there.")] = "bursar",
    data: Data = CONFIG,
    json: Json = False,
) -> None:
    """For the data owner: move the ledger between its file and a PostgreSQL database, and check it on both sides.

    Nobody can ask meanwhile. What is left behind refuses to be used.
    """
    from dataclasses import replace

    from bursar.config import load
    from bursar.config.ledger import settings_of
    from bursar.ledgers import key_to_keep
    from bursar.ledgers import move_ledger as move

    config, target = load(data), settings_of(to, schema)
    show.health(move(config, target), as_json=json)
    if not json:
        show.key_to_keep(key_to_keep(replace(config, ledger=target)))
        print(f"now change {data}: {target.lines()}")


@app.command()
def recover(data: Data = CONFIG, expect: Expect = None, json: Json = False) -> None:
    """Clear up after a crash, then check the ledger.

    What a dead process had set aside is free again. Nothing that was paid for is lost.
    """
    with opened(data, expect=expect) as bursar:
        show.health(bursar.owner.recover(), as_json=json)


@app.command()
def simulate(
    mix: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="An analyst, and a file of SELECTs with semicolons; once per analyst."),
    ] = None,
    often: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=3", help="How often an analyst asks, in proportion; 1 unless named."),
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Instead of --mix: the questions of the log.")] = False,
    seed_on: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns of a seed, with commas; unless named, the seed of the config."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw a picture, a PNG file.")] = None,
    data: Data = CONFIG,
    within: Within = None,
    confidence: Confidence = None,
    rmse: Rmse = None,
    json: Json = False,
) -> None:
    """For the data owner: what each policy would mean for the analysts. Costs nothing.

    The questions are asked on made-up people, again for each policy; your data and your budget are not touched.
    """
    from bursar.cli.simulation import Choice, run
    from bursar.planner.goals import Wanted

    choice = Choice(mix=mix or [], often=often or [], seed_on=seed_on, plot=plot)
    goal = Wanted(within=within, confidence=confidence, rmse=rmse)
    if replay:
        with opened(data) as bursar:
            run(data, choice, goal, log=bursar.log(), as_json=json)
    else:
        run(data, choice, goal, log=None, as_json=json)


@app.command()
def audit(
    data: Data = CONFIG,
    trials: Annotated[
        int, typer.Option(min=10, max=1_000_000, help="How often each session is played per table.")
    ] = 1_000,
    json: Json = False,
) -> None:
    """Try to catch Bursar revealing more than it charges, on made-up data. Costs nothing.

    Two tables are made up from the columns of the config that differ by one person, or whatever the config protects,
    with all their rows; your data and your budget are not touched. Short sessions with your settings are played many
    times on both: groups, sums, repeated and tighter questions, tests and picks. From what they show, a lower bound on
    what was revealed is computed, and how large a fault would have been found. Exit code 4 if more was revealed than
    was charged.
    """
    from bursar.audit import audit as run
    from bursar.config import load

    result = run(load(data), trials=trials, progress=progress)
    show.audit(result, as_json=json)
    if not result.passed:
        raise typer.Exit(4)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--dir", help="Where to put the demo data.")] = Path("bursar-demo"),
    rows: Annotated[int, typer.Option(min=10_000, max=5_000_000, help="How many people to make up.")] = 50_000,
) -> None:
    """A guided tour with made-up data.

    It asks, repeats, explains, tightens and is refused, and leaves data and config for you to go on with.
    """
    from bursar.cli.tour import tour

    tour(folder, rows=rows)
