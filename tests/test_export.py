"""ONNX files predict what the model predicts, in another engine; what has no form there is refused."""

import numpy as np
import pytest

from bochner import KernelClassifier, KernelRegressor, features, kernels
from bochner.errors import MapError
from bochner.export import to_onnx

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

rng = np.random.default_rng(0)
X = rng.dirichlet(np.ones(4), 400)
NUMBERS = np.sin(6 * X[:, 0]) + X[:, 1]
LABELS = np.array(["a", "b", "c"])[np.digitize(NUMBERS, [0.8, 1.1])]
G, S = kernels.Gaussian(2.0), kernels.SkewedChi2(0.5)
FOURIER = features.RandomFourier(G, 64)
MAPS = {
    "pairs": FOURIER,
    "phase": features.RandomFourier(G, 64, form="phase"),
    "hadamard": features.RandomFourier(G, 64, frequencies="hadamard"),
    "anisotropic": features.RandomFourier(kernels.Gaussian([1.0, 2.0, 3.0, 4.0]), 64),
    "skewed": features.SkewedFourier(S, 64),
    "landmarks": features.Nystroem(G, 32),
    "linear landmarks": features.Nystroem(kernels.Linear(), 8),
    "components": features.PCAFeatures(G, 16, base=FOURIER),
    "stacked": features.Concatenate(G + S, 96, (FOURIER, features.SkewedFourier(S, 32))),
    "scaled": features.Scaled(2.5 * G, 64, FOURIER),
    "columns": features.OnColumns(G.on([3, 1]), 64, FOURIER),
}


def run(model, path, rows):
    to_onnx(model.model_, path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": rows.astype(model.dtype_)})
    return dict(zip([output.name for output in session.get_outputs()], found, strict=True))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", MAPS)
def test_every_map_predicts_the_same(name, precision, tmp_path):
    model = KernelRegressor(map=MAPS[name], alpha=1e-3, precision=precision, random_state=0, n_jobs=1).fit(X, NUMBERS)
    native = model.predict(X.astype(precision))
    found = run(model, tmp_path / "m.onnx", X)["prediction"]
    assert found.shape == native.shape
    np.testing.assert_allclose(found, native, atol=1e-5 * np.abs(native).max())


@pytest.mark.parametrize("scaling", ["none", "norm", "l1", "standard"])
def test_scaling_is_part_of_it(scaling, tmp_path):
    rows = np.vstack([X, np.zeros((1, 4))])
    model = KernelRegressor(map=FOURIER, scaling=scaling, alpha=1e-3, random_state=0).fit(rows, [*NUMBERS, 0.0])
    np.testing.assert_allclose(
        run(model, tmp_path / "m.onnx", rows)["prediction"], model.predict(rows), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("labels", [LABELS, LABELS == "a", np.digitize(NUMBERS, [0.8, 1.1]) * 10], ids=str)
@pytest.mark.parametrize("options", [{}, {"calibrate": False}, {"loss": "logistic"}], ids=str)
def test_classes_come_back(labels, options, tmp_path):
    model = KernelClassifier(map=FOURIER, random_state=0, **options).fit(X, labels)
    found = run(model, tmp_path / "m.onnx", X)
    agree = found["prediction"].astype(labels.dtype) == model.predict(X)
    margin = np.sort(found["scores"], axis=1)
    assert agree[margin[:, -1] - margin[:, -2] > 1e-4].all()
    native = model.decision_function(X)
    scores = found["scores"]
    if native.ndim == 1:
        scores = scores[:, 1] - scores[:, 0]
    np.testing.assert_allclose(scores, native, atol=1e-4 * np.abs(native).max())


def test_several_targets(tmp_path):
    Y = np.column_stack([NUMBERS, X[:, 2]])
    model = KernelRegressor(map=FOURIER, alpha=1e-3, random_state=0).fit(X, Y)
    np.testing.assert_allclose(run(model, tmp_path / "m.onnx", X)["prediction"], model.predict(X), atol=1e-5)


def test_what_has_no_form_is_refused_and_nothing_is_written(tmp_path):
    model = KernelRegressor(map=features.Mercer1D(kernels.Chi2(), 16), alpha=1e-3, random_state=0).fit(X, NUMBERS)
    with pytest.raises(MapError, match="Mercer1D has no form in ONNX"):
        to_onnx(model.model_, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
