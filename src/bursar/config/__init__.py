"""The config: one TOML file in which the data owner declares the data, the privacy unit, the budget and the columns.

Everything in it is public. A complete example, with every kind of column:

    dataset = "people"            # the data-set id: the ledger, and with it the budget, is bound to it
    # preset = "boost"            # optional: a published system answers, for the life of the ledger

    [partition]                   # optional: the column along which the data grow
    column = "joined"
    seal = "calendar"             # or "all", the default: the data are complete; or "command"
    grace_days = 2                # how long after its last day a month is sealed

    [source]
    path = "people.csv"           # CSV, Parquet or a DuckDB file; relative to this file
    # url = "postgresql://..."    # instead of path: a table that stays in its database, with its schema,
    #                             # a password_file and a timeout where they are needed, or files for Spark;
    #                             # cells = "kept": a schema of PostgreSQL in which coded counts are kept
    table = "people"              # the name behind FROM; in a DuckDB file also the table itself
    # view = "SELECT ..."         # optional, of a DuckDB file: the rows are those of a SELECT over its tables
    max_rows = 100000             # a public number that the table will never exceed
    public_size = 50000           # optional: the number of rows, if it is no secret
    confirmed = true              # optional: false marks a guess of `bursar init`; a config with one does not open

    [privacy]
    unit = { column = "person" }  # or "row": each row is a person of its own
    max_contributions = 3         # at most so many rows of one person are counted
    neighbours = "add-remove"     # or "replace-one", which needs public_size
    pace = 0.5                    # optional: answers and refusals come at multiples of so many seconds

    [budget]
    epsilon = 1.0                 # or epsilon and delta, or rho; delta_keys is the part of delta for looking for texts

    [goal]                        # optional: for questions that name no goal
    error = "2%"                  # or a number of rows; or rmse instead of error
    confidence = 0.95             # or "95%"
    contract = "per-query"        # or "simultaneous", with a family = ["age", ["age", "sex"]]

    [analysts]                    # optional: people who share the budget
    policy = "shared"             # the default; or "independent"; or "seeded-cache", with a seed = { ... }
    scheduler = "round-robin"     # or "none", the default; or "randomized"
    shares = { alice = 0.5, bob = 0.3 }

    [histograms]                  # optional: columns that are asked about together, and not with others
    groups = [["sex", "age"], ["region", "income"]]

    [columns.sex]                 # listed values: text, whole numbers, or true and false
    values = ["F", "M"]
    outside = { as = "F" }        # or "other", the default here: a cell of its own
    null = "other"                # or "cell", the default: a cell of its own; or { as = value }

    [columns.region]
    values = ["FR", "DE", "JP"]

    [columns.region.levels]       # optional: columns of groups of listed values; GROUP BY country
    country = { "Europe" = ["FR", "DE"], "Asia" = ["JP"] }

    [columns.age]                 # whole numbers
    lower = 0
    upper = 99
    nullable = false              # no value is ever missing: GROUP BY lists no NULL
    outside = "clip"              # the default here: 120 counts as 99

    [columns.grade]               # decimals: rounded to the nearest step
    lower = 1.0
    upper = 6.0
    step = 0.1

    [columns.income]              # numbers in bins; or a list: edges = [0, 10000, 20000]
    edges = { from = 0, to = 100000, step = 10000 }
    # representatives = [...]     # optional: what the values of each bin count as in sums; their middle unless named

    [columns.joined]              # dates
    first = 2020-01-01
    last = 2023-12-31
    by = "month"                  # or "day", "week"

    [columns.town]                # texts that nobody has listed: those that a question names are told apart
    domain = "open"
    capacity = 200                # at most so many of them, for the life of the ledger
"""

from bursar.config.load import Config, load, load_draft, with_preset

__all__ = ["Config", "load", "load_draft", "with_preset"]
