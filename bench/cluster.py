"""Moments on a Dask cluster of processes against one thread of this machine, on the same file.

    python bench/cluster.py [--rows 400000] [--width 1024] [--repeats 3]

Times are wall-clock, side by side, the best of the repeats after one that warms up.  Figures go to
docs/cluster.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import bochner
from bochner import features, kernels
from bochner.run import Flow, Local
from bochner.run.dask import DaskExecutor, connected
from bochner.stats import Moments, Numbers

OUT = Path(__file__).parents[1] / "docs" / "cluster.json"
COLUMNS = 20


def written(rows: int, folder: str) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=rows).astype(np.float32) for j in range(COLUMNS)}
    path = Path(folder) / "rows.parquet"
    parquet.write_table(pa.table({**columns, "y": rng.normal(size=rows)}), path, row_group_size=32_768)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    found: dict[str, Any] = {"rows": given.rows, "columns": COLUMNS, "width": given.width}
    with tempfile.TemporaryDirectory() as folder, connected("local:1") as one, connected("local:2") as two:
        source = bochner.scan(written(given.rows, folder), target="y")
        drawn = features.RandomFourier(kernels.Gaussian(0.05), given.width).draw(COLUMNS, seed=0)
        flow = Flow(source, drawn, targets=Numbers())
        empty = Moments(given.width, 1)
        ways = {
            "local, 1 thread": Local(1),
            "1 process": DaskExecutor(one),
            "1 process, folder": DaskExecutor(one, Path(folder) / "state"),
            "2 processes": DaskExecutor(two),
        }
        best = dict.fromkeys(ways, float("inf"))
        bits = set()
        for repeat in range(given.repeats + 1):
            for name, way in ways.items():
                for path in (Path(folder) / "state").glob("*/*"):
                    path.unlink()
                start = time.perf_counter()
                total = way.sweep(flow, empty).total()
                if repeat:
                    best[name] = min(best[name], time.perf_counter() - start)
                bits.add(total.scatter.tobytes())
    found["seconds"] = {name: round(seconds, 3) for name, seconds in best.items()}
    found["same bits"] = len(bits) == 1
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
