"""What ``bochner demo`` shows: kernels and their maps on real digits, then a table that is streamed from disk."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bochner import KernelClassifier, features, kernels, scan
from bochner.report import write_page
from bochner.saved import opened
from bochner.sources import Source
from bochner.sources.files import arrow

KERNELS = (
    "linear()",
    "polynomial(degree=3)",
    "gaussian(gamma=median)",
    "laplacian(gamma=median)",
    "chi2()",
    "exp_chi2(gamma=mean)",
    "reciprocal_semigroup(lam=median)",
)
COLUMNS, LATENT, CLASSES = 20, 4, 3
#: share of the labels that are drawn at random
WRONG = 0.05
#: rows that an exact kernel machine is given, and rows on which it is tested
EXACT, FEW = 5_000, 20_000
#: rows of a row group
_STEP = 1 << 17

Show = Callable[[str], None]


def run(n_features: int, rows: int, seed: int, output: str, show: Show) -> None:
    """Both parts; ``output`` is the page of the best model of the second."""
    digits(1024, seed, show)
    with tempfile.TemporaryDirectory() as folder:
        stream(n_features, rows, seed, Path(folder), output, show)


def digits(n_features: int, seed: int, show: Show) -> None:
    """For each kernel: the chosen map, its measured kernel error, and the accuracy of a linear model on it."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC

    X, y = load_digits(return_X_y=True)
    X = X / X.sum(axis=1, keepdims=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    show(
        f"1. {len(X_train)} handwritten digits to train on and {len(X_test)} to test on, as histograms of 8 × 8 "
        f"pixels; at most {n_features} features.\n"
    )
    show(f"{'kernel':38s} {'features':>8s} {'kernel error [90 % interval]':>28s} {'ridge':>6s} {'SVM':>6s}  time  map")
    for text in KERNELS:
        start = time.perf_counter()
        kernel = kernels.parse(text).resolve(X_train)
        drawn = features.choose(kernel, n_features, X.shape[1]).draw(X.shape[1], seed, sample=X_train)
        Z_train, Z_test = drawn(X_train), drawn(X_test)
        scale = float(np.square(Z_train).sum(axis=1).mean())
        ridge = RidgeClassifierCV(alphas=scale * np.geomspace(1e-7, 1.0, 8)).fit(Z_train, y_train)
        accuracy = ridge.score(Z_test, y_test)
        elapsed = time.perf_counter() - start
        error = features.error(drawn, kernel, X_test)
        # The exact kernel machine, for comparison: affordable on so few rows only.
        exact = SVC(kernel="precomputed", C=100.0).fit(kernel.gram(X_train) / scale, y_train)
        svm = exact.score(kernel.gram(X_test, X_train) / scale, y_test)
        interval = f"{error.relative:.1e} [{error.low:.1e}, {error.high:.1e}]"
        show(
            f"{text:38s} {drawn.width:8d} {interval:>28s} {accuracy:6.3f} {svm:6.3f} {elapsed:4.1f} s  "
            f"{type(drawn.map).__name__}"
        )
    show(
        "\nkernel error: relative, on pairs of test rows, which no map has seen.  ridge: accuracy of a linear model on "
        "the features.\nSVM: accuracy of the exact kernel machine, whose cost grows with the square of the rows.\n"
    )


def stream(n_features: int, rows: int, seed: int, folder: Path, output: str, show: Show) -> None:
    """A table that is never in memory whole: a linear model, an exact SVM on few rows, trees, and kernels."""
    train, test = folder / "train.parquet", folder / "test.parquet"
    held = max(1000, rows // 10)
    whole = rows - held
    world = _World(seed)
    size = _write(train, *world.rows(whole, 1)) + _write(test, *world.rows(held, 2))
    X_test, y_test = world.rows(held, 2)
    show(
        f"2. {rows:,} rows in Parquet files ({size / 2**20:.0f} MiB), {held:,} of them to test on: {COLUMNS} sensors "
        f"that see {LATENT}\n   hidden quantities, each in its own bent way, and {CLASSES} classes that these make. "
        f"{WRONG:.0%} of the labels are drawn at random.\n"
    )
    show(f"{'model':44s} {'rows':>10s} {'accuracy':>9s} {'fit':>8s} {'predict':>8s} {'memory':>9s}")

    def told(name: str, of: int, result: Result) -> None:
        show(
            f"{name:44s} {of:10,d} {result.accuracy:9.4f} {result.fit:6.1f} s {result.predict:6.1f} s "
            f"{result.memory / 2**20:5.0f} MiB"
        )

    source, truth = scan(str(train), target="label"), scan(str(test), target="label")
    linear = KernelClassifier("linear()", random_state=seed)
    told("linear model, streamed", whole, _measured(linear, (source,), truth, y_test))
    told(f"exact SVM on {min(EXACT, whole):,} rows", min(EXACT, whole), _exact(source, X_test, y_test))
    told("gradient boosting, in memory", whole, _trees(train, X_test, y_test))
    found: list[tuple[float, KernelClassifier]] = []
    for width in sorted({max(64, n_features // 4), n_features, 2 * n_features}):
        model = KernelClassifier(n_features=width, random_state=seed)
        result = _measured(model, (source,), truth, y_test, progress=True)
        found.append((result.accuracy, model))
        told(f"bochner, {model.report_.n_features} features, streamed", whole, result)
    _, model = max(found, key=lambda item: item[0])
    kept = folder / "best.bochner"
    model.save(kept, moments=True)
    write_page(output, opened(kept), truth, f"bochner demo: {rows:,} rows from disk")
    show(
        f"\nmemory: the most that the process grew by while fitting.\n\n{model.report_}\n\n"
        f"The report of the best model, as a page for a browser: {output}"
    )


@dataclass(frozen=True)
class Result:
    """Accuracy on the test rows, seconds, and bytes that the process grew by."""

    accuracy: float
    fit: float
    predict: float
    memory: int


def _measured(model: Any, given: tuple[Any, ...], rows: Any, truth: Any, **options: Any) -> Result:
    with _growth() as memory:
        start = time.perf_counter()
        model.fit(*given, **options)
        fit = time.perf_counter() - start
    start = time.perf_counter()
    accuracy = float((model.predict(rows) == truth).mean())
    return Result(accuracy, fit, time.perf_counter() - start, memory[0])


def _exact(source: Source, X_test: Any, y_test: Any) -> Result:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    sample = source.sample(EXACT, 0)
    model = make_pipeline(StandardScaler(), SVC(C=10.0))
    return _measured(model, (sample.X, sample.y), X_test[:FEW], y_test[:FEW])


def _trees(train: Path, X_test: Any, y_test: Any) -> Result:
    from sklearn.ensemble import HistGradientBoostingClassifier

    class Trees(HistGradientBoostingClassifier):  # type: ignore[misc]
        """Reads the file too, so that its memory counts."""

        def fit(self, path: str) -> Any:
            arrow()
            import pyarrow.parquet as parquet

            table = parquet.read_table(path)
            X = np.column_stack([table.column(j).to_numpy() for j in range(COLUMNS)])
            return super().fit(X, table.column("label").to_numpy())

    return _measured(Trees(random_state=0), (str(train),), X_test, y_test)


class _World:
    """Hidden quantities u in a cube, sensors tanh(a·u + b) with a little noise, and classes that are curved in u."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.seed = seed
        self.slopes = rng.normal(size=(LATENT, COLUMNS)).astype(np.float32)
        self.offsets = rng.normal(scale=0.5, size=COLUMNS).astype(np.float32)

    def rows(self, count: int, part: int) -> tuple[Any, Any]:
        """Sensors and labels."""
        rng = np.random.default_rng((self.seed, part))
        u = rng.uniform(-1.5, 1.5, (count, LATENT)).astype(np.float32)
        X = np.tanh(u @ self.slopes + self.offsets)
        X += 0.02 * rng.standard_normal(X.shape, dtype=np.float32)
        score = np.sin(3.0 * u[:, 0]) + u[:, 1] * u[:, 2] + np.cos(2.0 * u[:, 3])
        labels = np.digitize(score, [0.0, 0.8])
        wrong = rng.random(count) < WRONG
        labels[wrong] = rng.integers(0, CLASSES, int(wrong.sum()))
        return X, labels


def _write(path: Path, X: Any, labels: Any) -> int:
    """A Parquet file of rows with page checksums; its size in bytes."""
    pa = arrow()
    import pyarrow.parquet as parquet

    names = [f"sensor {j}" for j in range(COLUMNS)]
    table = pa.table([*(pa.array(X[:, j]) for j in range(COLUMNS)), pa.array(labels)], names=[*names, "label"])
    parquet.write_table(table, path, row_group_size=_STEP, write_page_checksum=True)
    return path.stat().st_size


@contextmanager
def _growth() -> Iterator[list[int]]:
    """The most bytes that the process grew by, where the system tells."""
    before, found, done = _resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            found[0] = max(found[0], _resident() - before)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def _resident() -> int:
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    import os

    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
