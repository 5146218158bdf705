"""Real histograms, from the folder that the environment variable BOCHNER_DATA names (skipped without it)."""

import os
import runpy
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bochner import features, kernels

FOLDER = os.environ.get("BOCHNER_DATA")


@pytest.mark.data
@pytest.mark.skipif(not FOLDER, reason="set BOCHNER_DATA to the folder of hist_*.npz files")
@pytest.mark.parametrize("name", ["caltech101_hog", "cifar10_bovw", "fashion_hog"])
@pytest.mark.parametrize(
    ("kernel", "plain"),
    [
        (kernels.Chi2(), features.SampledSignature),
        (kernels.ExponentialSemigroup("median"), features.RandomLaplace),
        (kernels.SkewedChi2("median"), partial(features.RandomFourier, form="phase")),
    ],
    ids=str,
)
def test_defaults_beat_plain_maps_on_real_histograms(name, kernel, plain):
    X = np.load(Path(str(FOLDER)) / f"hist_{name}.npz")["X"]
    X = X[np.random.default_rng(0).permutation(len(X))[:400]].astype(float)
    X = X[X.sum(axis=1) > 0]
    X /= X.sum(axis=1, keepdims=True)
    d = X.shape[1]
    width = 3 * d if plain is features.SampledSignature else 2048
    sample, held_out = X[:300], X[300:]
    kernel = kernel.resolve(sample)

    def rms(recipe):
        drawn = [recipe.draw(d, seed=seed, sample=sample) for seed in range(3)]
        return np.sqrt(np.mean([features.error(z, held_out).relative ** 2 for z in drawn]))

    # In thousands of columns little is left to gain on random frequencies.
    better = 0.5 if plain is features.SampledSignature else 1.0
    assert rms(features.choose(kernel, width, d)) < better * rms(plain(kernel, width))


@pytest.mark.data
@pytest.mark.skipif(not FOLDER, reason="set BOCHNER_DATA to the folder of hist_*.npz files")
def test_the_quick_bench_of_unlabelled_rows_runs(tmp_path, monkeypatch):
    bench = Path(__file__).parents[1] / "bench" / "semi_supervised.py"
    arguments = [str(bench), "--quick", "--only", "fashion", "--out", str(tmp_path / "semi")]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(bench), run_name="__main__")
    text = (tmp_path / "semi.md").read_text(encoding="utf-8")
    assert "| plain 3D |" in text
    assert "of 2)" in text
