"""How near to the machine's limit the maps, the Gram, a fit and a prediction are, and how others do beside them.

    python bench/speed.py [--quick] [--only TEXT] [--out docs/speed]

Competitors take turns in one process on one thread of BLAS; the least CPU time of each counts.  Writes OUT.json and
OUT.md: what was measured, beside what was aimed at.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy.linalg.blas import ssyrk
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler
from sklearn.linear_model import RidgeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from bochner import KernelClassifier, features, kernels
from bochner.hot import fourier
from bochner.hot.gram import add_gram, mirror

D = 4096
Times = dict[str, float]
rng = np.random.default_rng(0)


def in_turn(work: dict[str, Callable[[], Any]], seconds: float = 4.0, least: int = 3) -> Times:
    """CPU seconds of each, the least of as many turns as fit into ``seconds``."""
    for do in work.values():
        do()
    best = dict.fromkeys(work, np.inf)
    end, turns = time.perf_counter() + seconds, 0
    while turns < least or time.perf_counter() < end:
        for name, do in work.items():
            start = time.process_time()
            do()
            best[name] = min(best[name], time.process_time() - start)
        turns += 1
    return best


def normal(n: int, d: int) -> np.ndarray:
    return rng.standard_normal((n, d), dtype=np.float32)


def peaks() -> tuple[dict[str, Callable[[], Any]], Callable[[Times], tuple[float, float]]]:
    """Work that shows the peaks of sgemm and of cosines, and their numbers a second from its times."""
    A, B, C = normal(1024, 1024), normal(1024, 1024), np.empty((1024, 1024), np.float32)
    phases, waves = normal(512, 128), np.empty((1024, 128), np.float32)

    def cosines() -> None:
        for _ in range(50):
            fourier.cos_sin(phases, 1.0, 1.0, waves)

    work = {"sgemm": lambda: np.matmul(A, B, out=C), "cosines": cosines}
    return work, lambda times: (2 * 1024**3 / times["sgemm"], 50 * waves.size / times["cosines"])


def row(what: str, ratio: float, target: str, times: Times) -> dict[str, Any]:
    print(f"{what}: {ratio:.3g} (to reach: {target})", flush=True)
    return {"what": what, "ratio": ratio, "target": target, "seconds": times}


def dense_fourier(quick: bool) -> Iterator[dict]:
    """Against the limit 2ndD / sgemm peak + nD / cosine peak, and against RBFSampler."""
    targets = {54: ("≥ 0.85", "≥ 2.1", "≥ 13"), 512: ("≥ 0.97", "", ""), 4096: ("≥ 0.97", "", "")}
    for d, (limit, single, double) in targets.items():
        if quick and d == 4096:
            continue
        n = 4096 if d < 4096 else 2048
        X, room = normal(n, d), np.empty(n * D, np.float32)
        sampler = RBFSampler(gamma=0.5 / d, n_components=D, random_state=0).fit(X)
        forms = {
            form: features.RandomFourier(kernels.Gaussian(0.5 / d), D, form=form).draw(d) for form in ("pairs", "phase")
        }
        work, per_second = peaks()
        work |= {name: lambda drawn=drawn, X=X, room=room: drawn.laid(X, room) for name, drawn in forms.items()}
        work["RBFSampler float32"] = lambda sampler=sampler, X=X: sampler.transform(X)
        if d == 54:
            few = X[:512].astype(np.float64)
            work["RBFSampler float64, an eighth"] = lambda sampler=sampler, few=few: sampler.transform(few)
        times = in_turn(work)
        gemm, cosine = per_second(times)
        bound = 2 * n * d * D / gemm + n * D / cosine
        print(f"sgemm {gemm / 1e9:.0f} GF/s, cosines {cosine / 1e9:.1f} G/s")
        for form in forms:
            ours = times[form]
            yield row(f"dense Fourier, {form}, d = {d}: share of the limit", bound / ours, limit, times)
            ratio = times["RBFSampler float32"] / ours
            yield row(f"dense Fourier, {form}, d = {d} / RBFSampler float32", ratio, single, times)
        if d == 54:
            ratio = 8 * times["RBFSampler float64, an eighth"] / times["pairs"]
            yield row("dense Fourier, pairs, d = 54 / RBFSampler float64", ratio, double, times)


def structured(quick: bool) -> Iterator[dict]:
    for d, target in ((54, "≥ 3.8"), (512, "≥ 11"), (4096, "≥ 58")):
        if quick and d == 4096:
            continue
        X, room = normal(2048, d), np.empty(2048 * D, np.float32)
        sampler = RBFSampler(gamma=0.5 / d, n_components=D, random_state=0).fit(X)
        drawn = features.RandomFourier(kernels.Gaussian(0.5 / d), D, frequencies="hadamard").draw(d)
        times = in_turn(
            {
                "ours": lambda drawn=drawn, X=X, room=room: drawn.laid(X, room),
                "RBFSampler float32": lambda sampler=sampler, X=X: sampler.transform(X),
            }
        )
        yield row(f"SORF, d = {d} / RBFSampler float32", times["RBFSampler float32"] / times["ours"], target, times)


def maclaurin(quick: bool) -> Iterator[dict]:
    """Against one product with all factors of all columns, in tiles that stay in cache."""
    for d, target in ((54, "≥ 0.78"), (512, "≥ 0.95")):
        n = 2048
        X, room = normal(n, d) / np.float32(d**0.5), np.empty(n * D, np.float32)
        drawn = features.RandomMaclaurin(kernels.Exponential(), D).draw(d)
        signs = rng.choice(np.array([-1, 1], np.float32), (d, len(drawn.columns.signs)))
        tile = np.empty((256, signs.shape[1]), np.float32)

        def bare(X: np.ndarray = X, signs: np.ndarray = signs, tile: np.ndarray = tile) -> None:
            for start in range(0, len(X), 256):
                np.matmul(X[start : start + 256], signs, out=tile)

        times = in_turn({"ours": lambda drawn=drawn, X=X, room=room: drawn.laid(X, room), "sgemm": bare})
        yield row(f"Maclaurin, d = {d}: share of a bare sgemm", times["sgemm"] / times["ours"], target, times)


def additive(quick: bool) -> Iterator[dict]:
    n, d = 2000, 900
    X = rng.random((n, d), dtype=np.float32)
    X /= X.sum(axis=1, keepdims=True)
    sampler = AdditiveChi2Sampler(sample_steps=2).fit(X)
    drawn = features.SampledSignature(kernels.Chi2(), 3 * d).draw(d)
    room = np.empty(n * 3 * d, np.float32)
    times = in_turn({"ours": lambda: drawn.laid(X, room), "AdditiveChi2Sampler": lambda: sampler.transform(X)})
    yield row(
        "χ² by sampling, 900 × 3 / AdditiveChi2Sampler", times["AdditiveChi2Sampler"] / times["ours"], "≥ 18", times
    )


def tensor_sketch(quick: bool) -> Iterator[dict]:
    n, d = 1000, 512
    X, room = normal(n, d), np.empty(n * D, np.float32)
    for degree in (2, 3):
        sampler = PolynomialCountSketch(degree=degree, n_components=D, random_state=0).fit(X)
        drawn = features.TensorSketch(kernels.Homogeneous(degree), D).draw(d)
        times = in_turn(
            {
                "ours": lambda drawn=drawn: drawn.laid(X, room),
                "PolynomialCountSketch": lambda sampler=sampler: sampler.transform(X),
            }
        )
        ratio = times["PolynomialCountSketch"] / times["ours"]
        yield row(f"TensorSketch of degree {degree}, d = 512 / PolynomialCountSketch", ratio, "≥ 5.5", times)


def gram(quick: bool) -> Iterator[dict]:
    width, rows = 2048, 4096
    Z = normal(rows, width)
    total = np.zeros((width, width))
    plain = np.zeros((width, width), np.float32, order="F")
    times = in_turn(
        {
            "ours": lambda: add_gram(Z, total),
            "ssyrk": lambda: ssyrk(1.0, Z.T, beta=1.0, c=plain, overwrite_c=1, lower=1),
        }
    )
    yield row("Gram with promotion, D = 2048: share of a bare ssyrk", times["ssyrk"] / times["ours"], "≥ 0.97", times)
    width, many = 512, 100_000 if quick else 1_000_000
    drawn = features.RandomFourier(kernels.Gaussian(0.5 / 54), width).draw(54)
    ours, exact = np.zeros((width, width)), np.zeros((width, width))
    for _ in range(many // 4000):
        Z = drawn(normal(4000, 54))
        add_gram(Z, ours)
        add_gram(Z.astype(np.float64), exact)
    mirror(ours)
    mirror(exact)
    error = float(np.abs(ours - exact).max() / np.diag(exact).mean())
    yield row(f"Gram of {many:,} rows: largest error / mean diagonal", error, "≤ 3e-8 at a million", {})


def fit(quick: bool) -> Iterator[dict]:
    """A fit with a given map; the penalty is chosen by exact cross-validation all the same."""
    n, d, width = 50_000 if quick else 500_000, 54, 2048
    X = normal(n, d)
    recipe = features.RandomFourier(kernels.Gaussian(0.01), width, frequencies="orthogonal")
    y = (X[:, :7] + 0.5 * np.sin(X[:, 7:14])).argmax(axis=1)

    def ours() -> None:
        KernelClassifier(map=recipe, random_state=0, n_jobs=1, precision="float32").fit(X, y)

    def peers() -> None:
        Z = RBFSampler(gamma=0.01, n_components=width, random_state=0).fit_transform(X)
        RidgeClassifier(alpha=1.0, solver="cholesky").fit(Z, y)

    work, per_second = peaks()
    peak = per_second(in_turn(work, 1.0))[0]
    recipe.draw(d)(X[:64])  # compiled
    times = {}
    for name, do in {"ours": ours, "RBFSampler + RidgeClassifier": peers}.items():
        start = time.process_time()
        do()
        times[name] = time.process_time() - start
    bound = (2 * n * d * width + n * width**2) / peak
    yield row(f"fit of {n:,} × 54, 7 classes, D = 2048: share of sgemm", bound / times["ours"], "≥ 0.85", times)
    ratio = times["RBFSampler + RidgeClassifier"] / times["ours"]
    yield row(f"fit of {n:,} × 54 / RBFSampler + RidgeClassifier", ratio, "≥ 2.5", times)


def one_row(quick: bool) -> Iterator[dict]:
    X = normal(6000, 54)
    y = X[:, 0] + np.sin(X[:, 1])
    given = {
        "orthogonal Fourier": {"map": features.RandomFourier(kernels.Gaussian(0.01), 2048, frequencies="orthogonal")},
        "the default map": {"kernel": "gaussian(gamma=0.01)", "n_features": 2048},
    }
    repeats = 200
    for name, options in given.items():
        model = KernelClassifier(random_state=0, n_jobs=1, precision="float32", **options).fit(X, (y > 0).astype(int))

        def ours(model: Any = model.model_) -> None:
            for _ in range(repeats):
                model.predict(X[:1])

        seconds = in_turn({"one row": ours}, 2.0)["one row"] / repeats
        what = f"prediction of one row, D = 2048, d = 54, {name}: microseconds"
        yield row(what, 1e6 * seconds, "≤ 60", {"one row": seconds})


PARTS = (dense_fourier, structured, maclaurin, additive, tensor_sketch, gram, fit, one_row)


def reached(ratio: float, target: str) -> str:
    """Whether a ratio is where it should be; nothing where nothing was aimed at."""
    if not target:
        return ""
    sign, number = target.split()[:2]
    return "yes" if (ratio >= float(number) if sign == "≥" else ratio <= float(number)) else "no"


def machine() -> str:
    """The processor and the BLAS."""
    name = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    blas = sorted(
        {f"{p['internal_api']} ({p.get('architecture')})" for p in threadpool_info() if p["user_api"] == "blas"}
    )
    return f"{name} ({platform.machine()}), BLAS {', '.join(blas)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, under five minutes")
    parser.add_argument("--only", default="", help="parts whose name contains this")
    parser.add_argument("--out", default="docs/speed", help="where the JSON and Markdown go")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        rows = [found for part in PARTS if options.only in part.__name__ for found in part(options.quick)]
        where = machine()
    about = (
        f"Written by `python bench/speed.py{' --quick' if options.quick else ''}` on {time.strftime('%Y-%m-%d')} with "
        f"NumPy {np.__version__}, SciPy {scipy.__version__} and scikit-learn {sklearn.__version__}, "
        f"{'with' if fourier.compiled() else 'without'} Numba, on {where}. One thread; competitors take turns in one "
        "process, and the least CPU time of each counts (the two fits of a row run once each). Maps have 4,096 "
        "features in float32. The limit of dense Fourier features is 2ndD / sgemm peak + nD / cosine peak; "
        "pairs need half of the projections, so they can be above it. That of a fit is (2ndD + nD²) / sgemm peak. "
        "*share* is the time of the limit over ours, *a / b* how many times as fast a is as b."
    )
    head = "| what | measured | to reach | reached |\n| --- | ---: | ---: | --- |\n"
    lines = [f"| {r['what']} | {r['ratio']:.3g} | {r['target']} | {reached(r['ratio'], r['target'])} |" for r in rows]
    if not options.only:
        out = Path(options.out)
        out.with_suffix(".json").write_text(json.dumps({"about": about, "rows": rows}, indent=1))
        out.with_suffix(".md").write_text(f"# Speed\n\n{about}\n\n{head}" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
