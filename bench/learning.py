"""What every choice costs beside the one pass over the rows, and that it changes nothing.

    python bench/learning.py [--rows 500000] [--features 2048] [--out docs/learning]

CPU seconds of the pass (features and moments of five folds) of a Gaussian kernel over 54 columns, and of
exact cross-validation of 25 penalties at D/8, D/4, D/2 and D features from the moments, measured in one run.
Writes OUT.json and OUT.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bochner import features, kernels
from bochner.run import Flow, Local
from bochner.solvers import cross_validated, penalties_for
from bochner.solvers.ridge import FLOAT32_NOISE
from bochner.sources import MemorySource
from bochner.stats import Classes, Folds, Moments, Numbers

COLUMNS, PENALTIES, FOLDS, SIZES = 54, 25, 5, (8, 4, 2, 1)


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds of all threads, and what came of it."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measure(what: str, n: int, D: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, COLUMNS), dtype=np.float32)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    labels = np.digitize(y, np.quantile(y, np.arange(1, 7) / 7))
    targets, target = (Numbers(), y) if what == "regression" else (Classes(np.arange(7)), labels)
    drawn = features.RandomFourier(kernels.Gaussian(0.01), D).draw(COLUMNS, seed=0)
    executor = Local(1)

    def gathered(rows: int) -> Moments:
        flow = Flow(MemorySource(X[:rows], target[:rows]), drawn, targets=targets, folds=Folds(FOLDS))
        return executor.sweep(flow, Moments(D, targets.outputs, folds=FOLDS))

    gathered(2000)
    passing, moments = timed(lambda: gathered(n))
    total = moments.total()
    choosing, surface = timed(
        lambda: cross_validated(
            moments.labelled(), penalties_for(total, PENALTIES), [D // s for s in SIZES], FLOAT32_NOISE
        )
    )
    row = {
        "what": what,
        "rows": n,
        "features": D,
        "pass": passing,
        "choice": choosing,
        "ratio": choosing / passing,
        "error": float(surface.mean[-1].min() / surface.baseline.sum()),
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--out", type=Path, default=Path("docs/learning"))
    options = parser.parse_args()
    rows = [measure(what, options.rows, options.features) for what in ("regression", "7 classes")]
    about = (
        f"python bench/learning.py --rows {options.rows} --features {options.features}, on {platform.machine()}, "
        f"NumPy {np.__version__}, one thread, {time.strftime('%Y-%m-%d')}"
    )
    lines = [
        "# What the choices cost\n",
        f"Measured in one run by `{about}`.",
        f"A Gaussian kernel on {COLUMNS} columns, {FOLDS} folds; {PENALTIES} penalties at D/8, D/4, D/2 and D features",
        "by exact cross-validation from the moments. CPU seconds of one thread.\n",
        "| target | rows | D | the pass | every choice | choice / pass |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['what']} | {r['rows']:,} | {r['features']:,} | {r['pass']:.1f} | {r['choice']:.2f} | {r['ratio']:.2f} |"
        for r in rows
    ]
    options.out.with_suffix(".json").write_text(json.dumps({"about": about, "rows": rows}, indent=1))
    options.out.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
