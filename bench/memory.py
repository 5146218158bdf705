"""Peak memory of a streamed fit, at n and at 10 n rows, beside the formula of docs/data.md.

Every fit runs in a process of its own: the peak is what the operating system says, less what the process held
after it had fitted a few rows (interpreter, libraries, their buffers).  Needs Linux (/proc/self/status).
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

#: bytes of a tile of features, as in bochner.stats.base
TILE = 32 << 20
MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """One fit: a format, sizes and threads; ``k`` classes, or none for one number as the target."""

    kind: str
    n: int
    d: int
    D: int
    k: int
    threads: int
    folds: int = 5
    row_group: int = 1 << 20

    @property
    def outputs(self) -> int:
        return max(self.k, 1)


def expected(case: Case) -> dict[str, float]:
    """The formula, in bytes, part by part."""
    itemsize = 4 if case.kind == "parquet" else 8
    per_row = case.d * itemsize if case.kind == "parquet" else min(case.d, ENTRIES) * 16
    rows = 8192 if case.kind != "parquet" else min(8192, max(512, 1 << ((1 << 22) // case.d).bit_length() - 1))
    group = max(1, min(case.n // (rows * 8), (1 << 15) // rows))
    workers = max(1, min(case.threads, -(-case.n // (rows * group))))
    fold = 8 * case.D * (case.D + 2 * case.outputs)
    return {
        "statistics": ((workers + 2) * case.folds + 2) * fold,
        "tiles": workers * (3 * min(TILE, 4096 * case.D * 4) + 8 * case.D**2),
        "chunks": (workers * (group + 2) + 4) * rows * per_row,
        "sample": 4 * min(case.n, 10_000) * per_row,
        "reading": 3 * min(case.d * MIB, case.n * per_row) if case.kind == "parquet" else 16 * MIB,
        "allocators": 32 * MIB,
    }


#: entries of a sparse row
ENTRIES = 12


def write(case: Case, folder: Path) -> Path:
    """The rows of a case as a file, made block by block."""
    rng = np.random.default_rng(0)
    path = folder / f"{case.kind}-{case.n}-{case.d}-{case.k}-{case.row_group}"
    if path.exists():
        return path

    def blocks():
        for start in range(0, case.n, 1 << 16):
            X = rng.normal(size=(min(1 << 16, case.n - start), case.d)).astype(np.float32)
            signal = np.sin(X[:, 0]) + X[:, 1]
            y = signal if not case.k else np.floor(case.k * (1.0 - np.exp(-np.abs(signal)))).astype(int)
            yield X, y

    if case.kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as parquet

        names = [f"x{j}" for j in range(case.d)] + ["y"]
        writer = None
        for X, y in blocks():
            table = pa.table([*X.T, y], names=names)
            writer = writer or parquet.ParquetWriter(path, table.schema, write_page_checksum=True)
            writer.write_table(table, case.row_group)
        writer.close()
    else:
        with open(path, "w") as file:
            for X, y in blocks():
                few = np.sort(rng.permuted(np.tile(np.arange(case.d), (len(X), 1)), axis=1)[:, :ENTRIES], axis=1)
                for row, columns, label in zip(X, few, y, strict=True):
                    file.write(f"{label:g} " + " ".join(f"{j + 1}:{row[j]:.4f}" for j in columns) + "\n")
    return path


def measured(case: Case, path: Path) -> dict[str, float]:
    """One fit in a fresh process."""
    arguments = [sys.executable, __file__, "--child", json.dumps(asdict(case)), "--path", str(path)]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def resident(what: str) -> int:
    """Bytes of "VmRSS" or "VmHWM", the highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) << 10
    raise OSError("this system does not tell the memory of a process")


def child(case: Case, path: Path) -> None:
    """Fit, and print the peak."""
    import bochner

    estimator = bochner.KernelClassifier if case.k else bochner.KernelRegressor
    settings = {"folds": case.folds, "n_jobs": case.threads, "precision": "float32", "random_state": 0}
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    estimator("gaussian(gamma=0.1)", 16, **settings).fit(X, y)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    options = {} if case.kind == "libsvm" else {"target": "y"}
    source = bochner.scan(path, format=case.kind, **options)
    start, cpu = time.time(), time.process_time()
    estimator("gaussian(gamma=0.02)", case.D, **settings).fit(source)
    print(
        json.dumps(
            {
                "peak": resident("VmHWM") - before,
                "before": before,
                "seconds": time.time() - start,
                "cpu": time.process_time() - cpu,
            }
        )
    )


def cases(quick: bool) -> list[Case]:
    """Each at n and 10 n."""
    n = 20_000 if quick else 50_000
    found = [
        Case("parquet", n, 54, 512, 0, 1),
        Case("parquet", n, 54, 512, 0, 2),
        Case("parquet", n, 54, 1024, 0, 2),
        Case("parquet", n, 54, 2048, 0, 2),
        Case("parquet", n, 54, 512, 7, 2),
        Case("parquet", n, 400, 512, 0, 2),
        Case("libsvm", n, 100, 512, 0, 2),
        Case("libsvm", n, 100, 512, 7, 2),
    ]
    if quick:
        found = [found[1], found[6]]
    return [Case(**(asdict(case) | {"n": case.n * times})) for case in found for times in (1, 10)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    parser.add_argument("--out", default="docs/memory", help="where the JSON and Markdown go")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(Case(**json.loads(options.child)), Path(options.path))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(options.quick):
            path = write(case, Path(folder))
            parts = expected(case)
            row = {**asdict(case), "file": path.stat().st_size, "expected": sum(parts.values()), "parts": parts}
            rows.append(row | measured(case, path))
            print(line(rows[-1]), flush=True)
    report(rows, Path(options.out), options.quick)


def line(row: dict) -> str:
    target = f"{row['k']} classes" if row["k"] else "a number"
    numbers = [row["file"], row["expected"], row["peak"]]
    mib = " | ".join(f"{value / MIB:,.0f}" for value in numbers)
    share = row["peak"] / row["expected"]
    sizes = f"{row['n']:,} | {row['d']} | {row['D']:,} | {target} | {row['threads']}"
    return f"| {row['kind']} | {sizes} | {mib} | {share:.2f} | {row['cpu']:.0f} |"


def report(rows: list[dict], out: Path, quick: bool) -> None:
    import pyarrow

    about = (
        f"Written by `python bench/memory.py{' --quick' if quick else ''}` on {time.strftime('%Y-%m-%d')} with NumPy "
        f"{np.__version__} and pyarrow {pyarrow.__version__} on {platform.machine()}. Each row is one fit with 5 folds "
        "in a process of its own. *Peak* is the most that it held, less what it held after the fit of a few rows. "
        "*Bound* is the formula of [data.md](data.md). Sizes are in MiB."
    )
    head = "| file | n | d | D | target | threads | file size | bound | peak | peak / bound | CPU s |"
    rule = "| --- | " + "---: | " * 3 + "--- | " + "---: | " * 5 + "---: |"
    out.with_suffix(".json").write_text(json.dumps({"about": about, "rows": rows}, indent=1))
    table = "\n".join([head, rule, *map(line, rows)])
    out.with_suffix(".md").write_text(f"# Memory of a streamed fit\n\n{about}\n\n{table}\n")


if __name__ == "__main__":
    main()
