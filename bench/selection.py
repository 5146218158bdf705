"""What selection and clustering cost: CPU seconds beside scikit-learn's on materialised features, in one run.

    OMP_NUM_THREADS=1 python bench/selection.py [--quick] [--only TEXT]

One thread for everybody, each pair one after the other.  scikit-learn's times do not include making the
features, which is a column of its own; ours always do.  Writes docs/selection.json, and its tables into
docs/selection.md and docs/clustering.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.linear_model import LassoCV, lasso_path

from bochner import KernelKMeans, KernelRegressor, features, kernels
from bochner.run import Flow, Local
from bochner.solvers import group, lasso, weights
from bochner.solvers.ridge import penalties_for, surface
from bochner.sources import MemorySource
from bochner.stats import Folds, Moments, Numbers

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- measured by bench/selection.py -->", "<!-- end -->"


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def regression(n: int, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


def moments_of(drawn: features.Drawn, X: np.ndarray, y: np.ndarray, folds: int = 5) -> Moments:
    flow = Flow(MemorySource(X, y), drawn, targets=Numbers(), folds=Folds(folds), dtype="float64")
    return Local(1).sweep(flow, Moments(drawn.width, 1, folds=folds))


def lasso_rows(n: int, width: int, tight: float) -> list[dict[str, Any]]:
    """The path of 25 penalties, and 5-fold cross-validation with it, from the pass to the coefficients."""
    X, y = regression(n)
    drawn = features.RandomFourier(kernels.Gaussian(0.1), width).draw(X.shape[1], 0)
    drawn(X)  # so that memory is there
    making, Z = cpu(lambda: drawn(X))
    collecting, moments = cpu(lambda: moments_of(drawn, X, y))
    total = moments.total()
    path = lasso.penalties_for(total)
    rows = []
    for tol in (1e-4, tight):
        ours, found = cpu(lambda tol=tol: lasso.path(total, path, tol=tol))

        def theirs(tol: float = tol) -> tuple[np.ndarray, list[int]]:
            A, t = Z - Z.mean(axis=0), y - y.mean()
            options = {"precompute": True, "tol": tol, "max_iter": 200_000, "return_n_iter": True}
            _, found, _, sweeps = lasso_path(A, t, alphas=path / n, **options)
            return found, sweeps

        other, (coef, sweeps) = cpu(theirs)
        far = max(
            np.abs(s.coef[:, 0] - c).max() / max(np.abs(c).max(), 1e-300)
            for s, c in zip(found[1:], coef.T[1:], strict=True)
        )
        steps = max(int(s.info["steps"]) for s in found)
        gap = max(float(s.info["gaps"].max()) for s in found)
        rows.append(
            {
                "what": f"LASSO, 25 penalties, tolerance {tol:g}",
                "ours": collecting + ours,
                "solver": ours,
                "features": making,
                "sklearn": other,
                "note": f"at most {steps} steps and {max(sweeps):,} sweeps for a penalty; "
                f"our largest gap {gap:.0e}; coefficients differ by {far:.0e} of the largest",
            }
        )
    ours, model = cpu(
        lambda: KernelRegressor(map=drawn, penalty="lasso", alpha=path, scaling="none", random_state=0, n_jobs=1).fit(
            X, y
        )
    )

    def crossed() -> LassoCV:
        return LassoCV(alphas=path / n, cv=5, precompute=True, n_jobs=1, max_iter=200_000).fit(drawn(X), y)

    other, reference = cpu(crossed)
    note = f"penalties chosen: {model.alpha_ / n:.2e} and {reference.alpha_:.2e} (other folds)"
    rows.append(
        {
            "what": "LASSO, 5 folds × 25 penalties, and the fit",
            "ours": ours,
            "features": making,
            "sklearn": other - making,
            "note": note,
        }
    )
    return [{"n": n, "D": width, **row} for row in rows]


def sum_of_kernels() -> list[kernels.Kernel]:
    return [kernels.Gaussian(0.02), kernels.Gaussian(0.2), kernels.Laplacian(0.1)]


def stacked(width: int, d: int, X: np.ndarray) -> features.Drawn:
    parts = sum_of_kernels()
    recipe = features.Concatenate(
        kernels.Sum(tuple(parts)),
        3 * width,
        tuple(features.choose(k, width, d).prepared(d, features_seed(i), None) for i, k in enumerate(parts)),
    )
    return recipe.draw(d, 0, sample=X[:1000])


def features_seed(i: int) -> Any:
    from bochner.seeds import Seed

    return Seed(i)


def group_rows(n: int, width: int) -> list[dict[str, Any]]:
    """Group LASSO against accelerated proximal gradients with restarts on the same Gram, to the same gap."""
    X, y = regression(n)
    drawn = stacked(width, X.shape[1], X)
    total = moments_of(drawn, X, y[:, None]).total()
    blocks = [own for _, own in drawn.blocks()]
    problem = group.Grouped(total, blocks, group.prices_for(total, blocks))
    rows = []
    for share in (1e-1, 1e-2, 1e-3):
        penalty = share * problem.largest()
        ours, (found,) = cpu(lambda penalty=penalty: group.Grouped(total, blocks, problem.prices).path([penalty]))

        def objective(V: np.ndarray, penalty: float = penalty) -> float:
            squares = float(
                total.target_scatter.sum() - 2.0 * (V * total.cross).sum() + (V * (total.scatter @ V)).sum()
            )
            norms = np.array([np.linalg.norm(V[block]) for block in blocks])
            return 0.5 * squares + penalty * float(problem.prices @ norms)

        goal = objective(found.coef) + 1e-6 * float(total.target_scatter.sum())

        def proximal(penalty: float = penalty, goal: float = goal) -> int:
            size = 1.0 / float(np.linalg.eigvalsh(total.scatter)[-1])
            V = ahead = np.zeros_like(total.cross)
            t = 1.0
            for step in range(1, 20_001):
                after = ahead - size * (total.scatter @ ahead - total.cross)
                for block, price in zip(blocks, problem.prices, strict=True):
                    norm = float(np.linalg.norm(after[block]))
                    after[block] *= max(0.0, 1.0 - size * penalty * price / norm) if norm else 0.0
                restart = ((ahead - after) * (after - V)).sum() > 0.0
                t, before = (1.0, 1.0) if restart else (0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t)), t)
                ahead = after + (0.0 if restart else (before - 1.0) / t) * (after - V)
                V = after
                if step % 50 == 0 and objective(V) <= goal:
                    return step
            return -step

        other, steps = cpu(proximal)
        taken = f"{steps:,} gradient steps" if steps > 0 else f"not there after {-steps:,} gradient steps"
        rows.append(
            {
                "n": n,
                "D": drawn.width,
                "what": f"group LASSO, penalty {share:g} of the largest",
                "ours": ours,
                "other": other,
                "note": f"gap {found.info['gap']:.0e} against 1e-06; {taken}; "
                f"norms {', '.join(f'{v:.3g}' for v in found.info['norms'])}",
            }
        )
    return rows


def weight_rows(n: int, width: int) -> list[dict[str, Any]]:
    """Weights by descent against a grid on the simplex, both with exact cross-validation from the same moments."""
    X, y = regression(n)
    drawn = stacked(width, X.shape[1], X)
    folds = moments_of(drawn, X, y).labelled()
    blocks = [own for _, own in drawn.blocks()]
    ours, found = cpu(lambda: weights.weighed(folds, blocks))
    total = moments_of(drawn, X, y).total()
    path = penalties_for(total)

    def grid() -> tuple[int, float]:
        best, tried = np.inf, 0
        for first, second in itertools.product(range(5), repeat=2):
            if first + second > 4:
                continue
            factors = weights.roots(np.array([first, second, 4 - first - second]) / 4, blocks)
            errors = surface(folds, path, [drawn.width], lambda a, b, f=factors: (a.scaled(f), b.scaled(f)))
            best, tried = min(best, float(errors.mean.min() / errors.baseline.sum())), tried + 1
        return tried, best

    other, (tried, error) = cpu(grid)
    note = f"error {found.error:.5f} against {error:.5f} of {tried} points, {found.equal:.5f} with equal weights"
    return [
        {
            "n": n,
            "D": drawn.width,
            "what": "weights of 3 kernels and the penalty",
            "ours": ours,
            "other": other,
            "note": note,
        }
    ]


def cluster_rows(n: int, width: int, clusters: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    d = 10
    places = rng.normal(size=(clusters, d))
    X = (rng.normal(size=(n, d)) + 1.2 * places[rng.integers(0, clusters, n)]).astype(np.float32)
    drawn = features.RandomFourier(kernels.Gaussian(0.05), width).draw(d, 0)
    drawn(X)  # so that memory is there
    making, Z = cpu(lambda: drawn(X))
    init = Z[:clusters].astype(np.float64)
    common: dict[str, Any] = {"map": drawn, "precision": "float32", "n_jobs": 1, "random_state": 0}
    rows = []

    def row(what: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
        (mine, model), (other, reference) = cpu(ours), cpu(theirs)
        sweeps = (
            f"{model.n_iter_} and {reference.n_iter_} sweeps; inertia {model.inertia_:.1f} and {reference.inertia_:.1f}"
        )
        same = float((model.labels_ == reference.labels_).mean())
        note = sweeps + (f"; {same:.2%} of the labels are the same" if "same" in what else "")
        rows.append(
            {"n": n, "D": width, "what": what, "ours": mine, "features": making, "sklearn": other, "note": note}
        )

    row(
        f"{clusters} clusters, same first centres, 15 sweeps",
        lambda: KernelKMeans(clusters, init=init, max_sweeps=15, sweep_tol=0.0, **common).fit(X),
        lambda: KMeans(clusters, init=init.astype(np.float32), n_init=1, max_iter=15, tol=0.0).fit(Z),
    )
    row(
        f"{clusters} clusters, each with its own start and end",
        lambda: KernelKMeans(clusters, **common).fit(X),
        lambda: KMeans(clusters, random_state=0).fit(Z),
    )
    row(
        f"{clusters} clusters, mini-batches",
        lambda: KernelKMeans(clusters, batch_size=256, **common).fit(X),
        lambda: MiniBatchKMeans(clusters, random_state=0, n_init=3).fit(Z),
    )
    return rows


def table(rows: list[dict[str, Any]], other: str) -> str:
    made = "features" in rows[0]
    head = ["what", "n", "D", "ours", *(["making features"] if made else []), other, "ratio", "notes"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        theirs = row.get("sklearn", row.get("other"))
        mine = f"{row['ours']:.2f}" + (f" (solver {row['solver']:.2f})" if "solver" in row else "")
        whole = theirs + row.get("features", 0.0)
        cells = [row["what"], f"{row['n']:,}", f"{row['D']:,}", mine]
        cells += [f"{row['features']:.2f}"] if made else []
        cells += [f"{theirs:.2f}", f"{whole / row['ours']:.2f}", row["note"]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def insert(page: Path, text: str) -> None:
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(before + BEGIN + "\n\n" + text + "\n\n" + END + rest.split(END)[1], encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing is written")
    parser.add_argument("--only", default="", help="parts whose name contains this text; nothing is written")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    quick = given.quick
    parts = {
        "lasso": lambda: lasso_rows(*((4000, 128, 1e-6) if quick else (40_000, 1024, 1e-7))),
        "group": lambda: group_rows(*((4000, 64) if quick else (40_000, 341))),
        "weights": lambda: weight_rows(*((4000, 64) if quick else (40_000, 341))),
        "clusters": lambda: cluster_rows(*((8000, 64, 5) if quick else (200_000, 256, 20))),
    }
    found = {}
    for name, part in parts.items():
        if given.only in name:
            found[name] = part()
            print(table(found[name], "other"), flush=True)
    if quick or given.only:
        return
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    (DOCS / "selection.json").write_text(
        json.dumps({"versions": versions, "machine": platform.machine(), "unit": "CPU seconds", **found}, indent=1)
        + "\n",
        encoding="utf-8",
    )
    insert(
        DOCS / "selection.md",
        "CPU seconds, one thread; ratio = (making features + scikit-learn) / ours:\n\n"
        + table(found["lasso"], "scikit-learn")
        + "\n\nGroup LASSO beside accelerated proximal gradients on the same Gram, and weights beside a grid on the "
        "simplex,\nboth from the same moments (CPU seconds; ratio = other / ours):\n\n"
        + table(found["group"] + found["weights"], "other"),
    )
    insert(
        DOCS / "clustering.md",
        "CPU seconds, one thread, float32; ratio = (making features + scikit-learn) / ours:\n\n"
        + table(found["clusters"], "scikit-learn"),
    )


if __name__ == "__main__":
    main()
