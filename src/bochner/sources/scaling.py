"""Scaling of rows, learnt on the training data and part of the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bochner.arrays import Float64, Matrix, dense, frozen, is_sparse
from bochner.errors import DataError

KINDS = ("none", "norm", "l1", "standard")


@dataclass(frozen=True, eq=False)
class Scaling:
    """What is done to rows before a kernel sees them.

    "norm" divides all rows by one constant, the largest ‖x‖ of the training data (Kar & Karnick); "l1"
    divides each row by its sum of absolute values (histograms); "standard" makes columns of mean 0 and
    standard deviation 1 (sparse rows keep their zeros: their means stay).

    >>> Scaling.learn("norm", [np.array([[3.0, 4.0], [0.0, 1.0]])]).apply(np.array([[5.0, 0.0]])).tolist()
    [[1.0, 0.0]]
    """

    kind: str = "none"
    shift: NDArray[Any] | None = None
    factor: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DataError(f"scaling is one of {', '.join(KINDS)}; got {self.kind!r}")

    @classmethod
    def learn(cls, kind: str, chunks: Iterable[Matrix]) -> Scaling:
        """The constants of a scaling from one pass over rows."""
        if kind in ("none", "l1"):
            return cls(kind)
        cls(kind)
        largest, count = 0.0, 0
        mean: Float64 = np.zeros(1)
        squares: Float64 = np.zeros(1)
        sparse = False
        for X in chunks:
            sparse = is_sparse(X)
            if kind == "norm":
                norms = X.multiply(X).sum(axis=1) if sparse else np.einsum("ij,ij->i", X, X, dtype=np.float64)
                largest = max(largest, float(np.max(norms)))
                continue
            n = X.shape[0]
            here, spread_here = _column_moments(X)
            away = here - mean
            squares = squares + spread_here + away**2 * (count * n / (count + n))
            mean = mean + away * (n / (count + n))
            count += n
        if kind == "norm":
            return cls(kind, factor=frozen([1.0 / np.sqrt(largest) if largest > 0.0 else 1.0]))
        deviation = np.sqrt(squares / max(count, 1))
        # A column that is constant up to rounding stays 0 after centring instead of becoming noise.
        constant = deviation <= 1e-12 * np.abs(mean)
        factor = 1.0 / np.where(constant | (deviation == 0.0), 1.0, deviation)
        return cls(kind, frozen(np.zeros_like(mean) if sparse else mean), frozen(factor))

    def apply(self, X: Matrix) -> Matrix:
        """Scaled rows, in the precision of X."""
        if self.kind == "none":
            return X
        if self.kind == "l1":
            sums = np.asarray(abs(X).sum(axis=1)).ravel()
            inverse = (1.0 / np.where(sums > 0.0, sums, 1.0)).astype(X.dtype)
            return sp.csr_array(X.multiply(inverse[:, None])) if is_sparse(X) else X * inverse[:, None]
        assert self.factor is not None
        factor = self.factor.astype(X.dtype)
        if is_sparse(X):
            if self.shift is not None and self.shift.any():
                return self.apply(dense(X))
            return sp.csr_array(X.multiply(factor[None, :]))
        return (X - self.shift.astype(X.dtype)) * factor if self.shift is not None else X * factor

    def to_json(self) -> dict[str, Any]:
        """JSON that ``from_json`` reads back."""
        constants = {
            name: None if a is None else a.tolist() for name, a in (("shift", self.shift), ("factor", self.factor))
        }
        return {"kind": self.kind, **constants}

    @classmethod
    def from_json(cls, item: Any) -> Scaling:
        """The scaling that ``to_json`` wrote."""
        try:
            shift, factor = (
                None if item[name] is None else frozen(item[name], np.float64) for name in ("shift", "factor")
            )
            return cls(str(item["kind"]), shift, factor)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"a scaling has the keys kind, shift and factor ({error!r})") from None


def _column_moments(X: Matrix) -> tuple[Float64, Float64]:
    """Mean and centred sum of squares of every column."""
    n = X.shape[0]
    if not is_sparse(X):
        mean = X.mean(axis=0, dtype=np.float64)
        return mean, np.square(X - mean).sum(axis=0, dtype=np.float64)
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    squares = np.asarray(X.multiply(X).sum(axis=0), dtype=np.float64).ravel()
    return mean, np.maximum(squares - n * mean**2, 0.0)
