"""A synthetic table by AIM or MST as SmartNoise Synth has them: python table_smartnoise_synth.py aim|mst JOB TABLE.

The job has the coded rows, the sizes of the columns, the sets of the workload and rho. Both are given rho itself: their
own conversion from epsilon is looser than ours. Rows are drawn one by one, twenty for each row of the data, so that
drawing hardly adds to their errors: the other way that mbi 1.1 has, "round", goes through the rows in one order for all
columns, and columns that should be independent given a third are not.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from mbi import Dataset, Domain
from snsynth.aim import aim
from snsynth.mst import mst

DRAWN = 20


def main(mechanism: str, job: str, table: str) -> None:
    given = np.load(job)
    columns = [f"col{i}" for i in range(len(given["sizes"]))]
    domain = Domain(columns, [int(size) for size in given["sizes"]])
    data = Dataset(pd.DataFrame(given["codes"], columns=columns), domain=domain)
    rho, rows = float(given["rho"]), DRAWN * len(given["codes"])
    if mechanism == "aim":
        made = aim.AIMSynthesizer()
        made.rho = rho
        made.AIM(data, [tuple(columns[i] for i in features) for features in given["sets"]])
        synthetic = made.synthesizer.synthetic_data(rows=rows, method="sample")
    else:
        mst.cdp_rho = lambda epsilon, delta: rho
        made = mst.MSTSynthesizer()
        made.MST(data, 1.0, 1e-9)
        synthetic = made.undo_compress_fn(made.synthesizer.synthetic_data(rows=rows, method="sample"))
    np.save(table, synthetic.df[columns].to_numpy().astype(np.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])
