"""How fast rows are read: CPU seconds of one pass over the same rows in every format, and of scikit-learn's loader.

    python bench/reading.py [--rows 100000] [--out docs/reading]

The files hold 50 columns of float32 noise; libsvm files hold 20 of 2,000 columns in each row.  Every pass is
made three times, in turn, and the least counts.  Writes OUT.json and OUT.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import bochner
from bochner.sources import Source

REPEATS = 3


def files(folder: Path, n: int) -> dict[str, Path]:
    """The same dense rows as tables, and sparse rows with few and with many digits."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 50), dtype=np.float32)
    table = pa.table([*X.T, rng.integers(0, 2, n)], names=[*(f"x{j}" for j in range(50)), "y"])
    found = {name: folder / f"rows.{name}" for name in ("parquet", "feather", "csv", "csv.gz", "npy", "svm")}
    found["one list column"] = folder / "lists.parquet"
    found["ones.svm"] = folder / "ones.svm"
    pa.parquet.write_table(table, found["parquet"], write_page_checksum=True)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 50)
    pa.parquet.write_table(pa.table({"x": lists, "y": table["y"]}), found["one list column"], write_page_checksum=True)
    pa.feather.write_feather(table, found["feather"], compression="uncompressed")
    pa.csv.write_csv(table, found["csv"])
    found["csv.gz"].write_bytes(gzip.compress(found["csv"].read_bytes(), 6))
    np.save(found["npy"], X)
    S = sp.random(n, 2000, 0.01, format="csr", random_state=0)
    dump_svmlight_file(S, table["y"].to_numpy(), str(found["svm"]), zero_based=False)
    S.data[:] = 1
    dump_svmlight_file(S, table["y"].to_numpy(), str(found["ones.svm"]), zero_based=False)
    return found


def drained(source: Source) -> None:
    for chunk in source.chunks():
        del chunk


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(folder: Path, n: int) -> list[dict]:
    paths = files(folder, n)
    # A pass of a fit: what is learnt in a light first pass is known already.
    settled = {
        name: bochner.scan(path, None if name == "npy" or "svm" in name else "y").settle()
        for name, path in paths.items()
    }
    seconds: dict[str, list[dict[str, float]]] = {name: [] for name in paths}
    for _ in range(REPEATS):
        for name, path in paths.items():
            here = {"pass": timed(lambda name=name: drained(settled[name]))}
            if "svm" in name:
                here["scan and pass"] = timed(lambda path=path: drained(bochner.scan(path)))
                here["scikit-learn"] = timed(lambda path=path: load_svmlight_file(str(path)))
            seconds[name].append(here)
    return [
        {"file": name, "bytes": path.stat().st_size, "rows": n}
        | {what: min(here[what] for here in seconds[name]) for what in seconds[name][0]}
        for name, path in paths.items()
    ]


def line(row: dict) -> str:
    """A row of the table."""
    speed = row["bytes"] / row["pass"] / 1e6
    own = [f"{row[what]:.2f}" if what in row else "" for what in ("scan and pass", "scikit-learn")]
    ratio = f"{row['scikit-learn'] / row['scan and pass']:.2f}" if "scikit-learn" in row else ""
    cells = [row["file"], f"{row['bytes'] / 1e6:.0f}", f"{row['pass']:.3f}", f"{speed:,.0f}", *own, ratio]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--out", default="docs/reading", help="where the JSON and Markdown go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), options.rows)
    about = (
        f"Written by `python bench/reading.py --rows {options.rows}` on {time.strftime('%Y-%m-%d')} with NumPy "
        f"{np.__version__} and pyarrow {pa.__version__} on {platform.machine()}: CPU seconds, the least of {REPEATS}. "
        "A *pass* reads all rows once, checked and as a fit takes them. *Scan and pass* has the light first pass too, "
        "which finds the numbers of rows and columns; `load_svmlight_file` of scikit-learn does the work of both."
    )
    head = "| file | MB | pass | MB/s | scan and pass | scikit-learn | scikit-learn / scan and pass |"
    rule = "| --- " + "| ---: " * 6 + "|"
    table = "\n".join([head, rule, *map(line, rows)])
    print(table)
    out = Path(options.out)
    out.with_suffix(".json").write_text(json.dumps({"about": about, "rows": rows}, indent=1))
    out.with_suffix(".md").write_text(f"# Reading rows\n\n{about}\n\n{table}\n")


if __name__ == "__main__":
    main()
