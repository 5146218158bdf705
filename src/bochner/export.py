"""A model as ONNX: the same predictions wherever onnxruntime runs, for maps whose operations ONNX has."""

from __future__ import annotations

import os
from functools import singledispatch
from typing import Any

import numpy as np

from bochner.errors import MapError, MissingDependency
from bochner.features.algebra import DrawnChain, DrawnParts
from bochner.features.base import Drawn
from bochner.features.fourier import DrawnFourier
from bochner.features.nystroem import DrawnNystroem
from bochner.features.pca import DrawnPCA
from bochner.features.wrapped import DrawnOn, DrawnScaled
from bochner.kernels import Gaussian, Linear
from bochner.model import Model
from bochner.stats import Classes
from bochner.tensors import replacing

OPSET = 17


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingDependency("ONNX files need onnx: pip install 'bochner[onnx]'") from None
    return onnx


class Graph:
    """Nodes in order, and the constants that they take; names are made as they are needed."""

    def __init__(self, dtype: str):
        self.onnx, self.dtype = _onnx(), np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = None) -> str:
        """The name of an array, in the precision of the graph where nothing else is said."""
        name = f"c{len(self.constants)}"
        array = np.ascontiguousarray(np.asarray(values, dtype=dtype or self.dtype))
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operation: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """The name of what an operation gives."""
        out = name or f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), [out], **attributes))
        return out

    def cast(self, name: str) -> str:
        """An array in the precision of the graph."""
        return self.add("Cast", name, to=self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype))


def to_onnx(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as ONNX: input ``X`` (rows, columns); output ``prediction``, of classifiers ``scores`` too.

    Scores are those of ``model.decision``.  A map with operations that ONNX lacks is refused.
    """
    onnx = _onnx()
    graph = Graph(model.dtype)
    kind = onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
    X = graph.add("Identity", "X")
    Z = features(model.drawn, graph, _scaled(model, graph, X))
    out = graph.add(
        "Add", graph.add("MatMul", Z, graph.constant(model.solution.coef)), graph.constant(model.solution.intercept)
    )
    value = onnx.helper.make_tensor_value_info
    if isinstance(model.targets, Classes):
        outputs = _classes(model, model.targets, graph, out, kind)
    else:
        flat = getattr(model.targets, "flat", False)
        if flat:
            graph.add("Squeeze", out, graph.constant([1], np.int64), name="prediction")
        else:
            graph.add("Identity", out, name="prediction")
        outputs = [value("prediction", kind, ["rows"] if flat else ["rows", model.solution.coef.shape[1]])]
    made = onnx.helper.make_graph(
        graph.nodes, "bochner", [value("X", kind, ["rows", model.drawn.d])], outputs, graph.constants
    )
    whole = onnx.helper.make_model(
        made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=8, producer_name="bochner"
    )
    onnx.checker.check_model(whole)
    with replacing(path) as file:
        file.write(whole.SerializeToString())


def _scaled(model: Model, graph: Graph, X: str) -> str:
    scaling = model.scaling
    if scaling.kind == "none":
        return X
    if scaling.kind == "l1":
        sums = graph.add("ReduceL1", X, axes=[1], keepdims=1)
        empty = graph.add("Equal", sums, graph.constant(0.0))
        return graph.add("Div", X, graph.add("Where", empty, graph.constant(1.0), sums))
    if scaling.shift is not None:
        X = graph.add("Sub", X, graph.constant(scaling.shift))
    return graph.add("Mul", X, graph.constant(scaling.factor))


def _classes(model: Model, targets: Classes, graph: Graph, out: str, kind: int) -> list[Any]:
    """Scores as ``model.decision`` gives them, one column for each class, and the label of the largest."""
    value = graph.onnx.helper.make_tensor_value_info
    if model.solution.coef.shape[1] == 1:
        halves = graph.constant([[-0.5, 0.5]])
        out = graph.add("MatMul", out, halves)
    if model.calibration is not None:
        out = graph.add("Mul", out, graph.constant(model.calibration.slope))
        out = graph.add("Add", out, graph.constant(model.calibration.bias))
    graph.add("Identity", out, name="scores")
    place = graph.add("ArgMax", "scores", axis=1, keepdims=0)
    labels = targets.labels
    if labels.dtype.kind in "UO":
        text = graph.onnx.helper.make_tensor(
            "labels", graph.onnx.TensorProto.STRING, [len(labels)], [str(label).encode() for label in labels]
        )
        graph.constants.append(text)
        graph.add("Gather", "labels", place, name="prediction")
        shown = graph.onnx.TensorProto.STRING
    else:
        known = labels.astype(np.int64 if labels.dtype.kind in "iub" else labels.dtype)
        graph.add("Gather", graph.constant(known, known.dtype), place, name="prediction")
        shown = graph.onnx.helper.np_dtype_to_tensor_dtype(known.dtype)
    return [value("prediction", shown, ["rows"]), value("scores", kind, ["rows", len(labels)])]


@singledispatch
def features(drawn: Drawn, graph: Graph, X: str) -> str:
    """The name of the features of rows ``X``."""
    known = "RandomFourier, SkewedFourier, Nystroem, PCAFeatures, Concatenate, Scaled, OnColumns and Chain"
    raise MapError(
        f"{type(drawn.map).__name__} has no form in ONNX here; it is there for {known}: name one with map=…, "
        "or keep the model as a file of bochner"
    )


@features.register
def _fourier(drawn: DrawnFourier, graph: Graph, X: str) -> str:
    frequencies = drawn.frequencies
    spectrum = frequencies.spectrum
    if spectrum.heavy:
        raise MapError(f"{drawn.kernel} has frequencies that single precision loses; ONNX has no form for it here")
    if spectrum.view[:1] == ("log",):
        X = graph.add("Log", graph.add("Add", X, graph.constant(spectrum.view[1])))
    elif spectrum.view != ():
        raise MapError(f"the map of {drawn.kernel} changes its rows in a way that has no form in ONNX here")
    # Whatever makes them, phases are linear in the embedded rows.
    matrix = frequencies.matrix_of(drawn.d)
    phases = graph.add("MatMul", X, graph.constant(matrix))
    scale = graph.constant(drawn.amplitude)
    if drawn.offsets is not None:
        return graph.add("Mul", graph.add("Cos", graph.add("Add", phases, graph.constant(drawn.offsets))), scale)
    # Cosines and sines stand by turns.
    deep = graph.constant([2], np.int64)
    both = [graph.add("Unsqueeze", graph.add(wave, phases), deep) for wave in ("Cos", "Sin")]
    pairs = graph.add("Concat", *both, axis=2)
    flat = graph.add("Reshape", pairs, graph.constant([0, drawn.width], np.int64))
    return graph.add("Mul", flat, scale)


@features.register
def _nystroem(drawn: DrawnNystroem, graph: Graph, X: str) -> str:
    kernel, landmarks = drawn.kernel, drawn.landmarks
    # In double precision, as the map itself: small eigenvalues multiply the rounding of the kernel.
    single, graph.dtype = graph.dtype, np.dtype(np.float64)
    X = graph.cast(X)
    if isinstance(kernel, Linear):
        gram = graph.add("MatMul", X, graph.constant(landmarks.T))
    elif isinstance(kernel, Gaussian):
        factors = np.asarray(kernel.factors())
        rows = graph.add("Mul", X, graph.constant(factors))
        own = graph.add("ReduceSumSquare", rows, axes=[1], keepdims=1)
        scaled = landmarks * factors
        cross = graph.add("MatMul", rows, graph.constant(-2.0 * scaled.T))
        squared = graph.add("Add", graph.add("Add", cross, own), graph.constant(np.square(scaled).sum(axis=1)))
        gram = graph.add("Exp", graph.add("Neg", graph.add("Relu", squared)))
    else:
        raise MapError(f"landmarks of {kernel} have no form in ONNX here; it is there for gaussian() and linear()")
    Z = graph.add("MatMul", gram, graph.constant(drawn.basis))
    graph.dtype = single
    return graph.cast(Z)


@features.register
def _components(drawn: DrawnPCA, graph: Graph, X: str) -> str:
    Z = graph.add("Sub", features(drawn.base, graph, X), graph.constant(np.asarray(drawn.mean)))
    return graph.add("MatMul", Z, graph.constant(drawn.basis))


@features.register
def _parts(drawn: DrawnParts, graph: Graph, X: str) -> str:
    return graph.add("Concat", *(features(part, graph, X) for part in drawn.parts), axis=1)


@features.register
def _scale(drawn: DrawnScaled, graph: Graph, X: str) -> str:
    return graph.add("Mul", features(drawn.inner, graph, X), graph.constant(np.sqrt(drawn.factor)))


@features.register
def _columns(drawn: DrawnOn, graph: Graph, X: str) -> str:
    return features(drawn.inner, graph, graph.add("Gather", X, graph.constant(drawn.index, np.int64), axis=1))


@features.register
def _chain(drawn: DrawnChain, graph: Graph, X: str) -> str:
    return features(drawn.outer, graph, features(drawn.inner, graph, X))
