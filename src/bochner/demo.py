"""What ``bochner demo`` shows: one real data set, several kernels, their maps and what they are good for."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bochner import features, kernels

KERNELS = (
    "linear()",
    "polynomial(degree=3)",
    "gaussian(gamma=median)",
    "laplacian(gamma=median)",
    "chi2()",
    "exp_chi2(gamma=mean)",
    "reciprocal_semigroup(lam=median)",
)


def run(n_features: int, seed: int, show: Callable[[str], None]) -> None:
    """For each kernel: the chosen map, its measured kernel error, and the accuracy of a linear model on it."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC

    X, y = load_digits(return_X_y=True)
    X = X / X.sum(axis=1, keepdims=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    show(
        f"{len(X_train)} handwritten digits to train on and {len(X_test)} to test on, as histograms of 8 × 8 pixels; "
        f"at most {n_features} features.\n"
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
        "the features.\nSVM: accuracy of the exact kernel machine, whose cost grows with the square of the rows."
    )
