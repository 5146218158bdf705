"""What principal components are worth on histograms: with and without unlabelled rows, against plain features.

    BOCHNER_DATA=… python bench/semi_supervised.py [--quick] [--only TEXT] [--jobs 2] [--out docs/semi_supervised]

For each set and seed: some labelled rows, unlabelled ones and test rows; one draw of 3D features of the
exponentiated χ² kernel (3 Mercer functions of each entry, then Hadamard frequencies; bandwidth and map from
training rows, the same for every method); least squares with the penalty by exact cross-validation.  Plain
features are the first D of the same draw.
Writes OUT.json and OUT.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import sklearn

from bochner import KernelClassifier, Reduction, features, kernels

#: name: labelled rows of a class, unlabelled rows, test rows, D
SETS = {
    "fashion_hog": (50, 5000, 3000, 256),
    "cifar10_bovw": (100, 5000, 3000, 256),
    "caltech101_hog": (15, 5000, 1500, 384),
}
SEEDS = 5
METHODS = {
    "plain D": None,
    "PCA of 3D to D, labelled rows": ("D", False),
    "PCA of 3D to D, all rows": ("D", True),
    "PCA of 3D, rank by CV, labelled rows": ("cv", False),
    "PCA of 3D, rank by CV, all rows": ("cv", True),
    "plain 3D": None,
}
PAIRS = [
    ("PCA of 3D to D, labelled rows", "plain D"),
    ("PCA of 3D to D, all rows", "plain D"),
    ("PCA of 3D to D, all rows", "PCA of 3D to D, labelled rows"),
    ("PCA of 3D, rank by CV, all rows", "PCA of 3D, rank by CV, labelled rows"),
    ("PCA of 3D, rank by CV, labelled rows", "plain 3D"),
    ("PCA of 3D, rank by CV, all rows", "plain 3D"),
]


def rows_of(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows that sum to 1, and labels."""
    with np.load(folder / f"hist_{name}.npz") as file:
        X, y = file["X"].astype(np.float32), file["y"].astype(np.int64)
    kept = X.sum(axis=1) > 0.0
    return X[kept] / X[kept].sum(axis=1, keepdims=True), y[kept]


def split(y: np.ndarray, seed: int, of_class: int, unlabelled: int, test: int) -> tuple[np.ndarray, ...]:
    """Labelled, unlabelled and test rows: the labelled ones are as many of each class."""
    order = np.random.default_rng(seed).permutation(len(y))
    labelled = np.concatenate([order[y[order] == label][:of_class] for label in np.unique(y)])
    rest = order[~np.isin(order, labelled)]
    return labelled, rest[test : test + unlabelled], rest[:test]


def measured(name: str, seed: int, folder: Path, quick: bool) -> tuple[list[dict[str, object]], float]:
    """The results of one set and seed, and the CPU seconds that they took."""
    began = time.process_time()
    X, y = rows_of(name, folder)
    of_class, unlabelled, test, D = SETS[name]
    if quick:
        of_class, unlabelled, test, D = 10, 300, 200, 32
    labelled, others, held = split(y, seed, of_class, unlabelled, test)
    train = np.concatenate([labelled, others])
    d, sample = X.shape[1], X[train][:2000]
    kernel = kernels.ExpChi2("mean")
    outer = features.RandomFourier(kernels.Gaussian(1.0), 3 * D, frequencies="hadamard")
    recipe = features.Chain(kernel, 3 * D, inner=features.Mercer1D(kernels.Chi2(), 3 * d), outer=outer)
    assert recipe.prefix_stable  # the first D features of 3D are a draw of D
    wide = recipe.draw(d, seed, sample=sample)
    # Features are formed once; a linear kernel on them is the kernel machine.
    Z, Z_held = wide(X[train]), wide(X[held])
    partly = y[train].astype(object)
    partly[len(labelled) :] = None
    found = []
    for method, how in METHODS.items():
        width = D if method == "plain D" else 3 * D
        pca = None if how is None else Reduction(D if how[0] == "D" else "cv", unlabelled=how[1])
        semi = how is not None and how[1]
        model = KernelClassifier("linear", width, pca=pca, calibrate=False, scaling="none", random_state=seed)
        start = time.process_time()
        if semi:
            model.fit(Z, partly)
        else:
            model.fit(Z[: len(labelled), :width], y[labelled])
        seconds = time.process_time() - start
        accuracy = float((model.predict(Z_held[:, :width]).astype(int) == y[held]).mean())
        rank = None if model.pca_ is None else model.pca_.rank
        found.append(
            {
                "set": name,
                "seed": seed,
                "method": method,
                "labelled": len(labelled),
                "unlabelled": len(others) if semi else 0,
                "D": D,
                "width": width,
                "rank": rank,
                "penalty": model.alpha_,
                "accuracy": accuracy,
                "cpu_seconds": round(seconds, 2),
            }
        )
        print(f"{name:16}{seed:3}  {method:40}{accuracy:.4f}  rank {rank}  {seconds:.1f} s", flush=True)
    return found, time.process_time() - began


def written(rows: list[dict[str, object]], seconds: float, out: Path, quick: bool) -> None:
    about = {
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "machine": platform.machine(),
        "quick": quick,
        "cpu_seconds": round(seconds, 1),
    }
    names = list(dict.fromkeys(row["set"] for row in rows))
    accuracy = {
        (name, method): np.array([row["accuracy"] for row in rows if (row["set"], row["method"]) == (name, method)])
        for name in names
        for method in METHODS
    }

    def cell(values: np.ndarray) -> str:
        return (
            f"{100 * values.mean():.1f} ± {100 * values.std(ddof=1):.1f}"
            if len(values) > 1
            else f"{100 * values[0]:.1f}"
        )

    def change(name: str, better: str, than: str) -> str:
        gain = 100 * (accuracy[name, better] - accuracy[name, than])
        return f"{gain.mean():+.1f} ({int((gain > 0).sum())} of {len(gain)})"

    def size(name: str, method: str) -> str:
        ranks = [row["rank"] for row in rows if (row["set"], row["method"]) == (name, method)]
        return (
            "" if ranks[0] is None else f", rank {min(ranks)}" + (f"–{max(ranks)}" if min(ranks) < max(ranks) else "")
        )

    head = "| | " + " | ".join(names) + " |\n" + "|---" * (1 + len(names)) + "|\n"
    settings = {name: next(row for row in rows if row["set"] == name) for name in names}
    semi = {name: next(row for row in rows if row["set"] == name and row["unlabelled"]) for name in names}
    lines = [
        "| labelled / unlabelled / D | "
        + " | ".join(f"{settings[n]['labelled']:,} / {semi[n]['unlabelled']:,} / {settings[n]['D']}" for n in names)
        + " |"
    ]
    lines += [
        f"| {method} | " + " | ".join(cell(accuracy[n, method]) + size(n, method) for n in names) + " |"
        for method in METHODS
    ]
    pairs = [f"| {a} − {b} | " + " | ".join(change(n, a, b) for n in names) + " |" for a, b in PAIRS]
    text = (
        "# Principal components on histograms, with and without unlabelled rows\n\n"
        f"Written by `bench/semi_supervised.py`{' --quick' if quick else ''} in {about['cpu_seconds']:.0f} CPU "
        f"seconds, with NumPy {about['numpy']} on {about['machine']}. Test accuracy in percent, mean ± standard "
        f"deviation of {len({row['seed'] for row in rows})} seeds (rows, folds and draw), of least squares on features "
        "of the "
        "exponentiated χ² kernel. Every method of a seed has the same labelled and test rows, and the first columns of "
        "the same draw; the penalty is chosen by exact cross-validation. What is fitted costs at prediction as many "
        "features as were drawn: D for plain D, 3D for the others, since coefficients are folded back.\n\n"
        f"{head}"
        + "\n".join(lines)
        + "\n\nDifferences in points of accuracy on the same rows, and in how many seeds the "
        "first is ahead:\n\n" + f"{head}" + "\n".join(pairs) + "\n"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".json").write_text(json.dumps({"about": about, "rows": rows}, indent=1), encoding="utf-8")
    out.with_suffix(".md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows and features, two seeds")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "semi_supervised")
    arguments = parser.parse_args()
    folder = os.environ.get("BOCHNER_DATA")
    if folder is None:
        raise SystemExit("BOCHNER_DATA must name the folder with the histogram data")
    names = [name for name in SETS if arguments.only in name]
    tasks = [(name, seed) for name in names for seed in range(2 if arguments.quick else SEEDS)]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        begun = [pool.submit(measured, name, seed, Path(folder), arguments.quick) for name, seed in tasks]
        done = [task.result() for task in begun]
    rows = [row for found, _ in done for row in found]
    written(rows, sum(seconds for _, seconds in done), arguments.out, arguments.quick)


if __name__ == "__main__":
    main()
