"""Nyström features of any kernel: landmarks, and the inverse root of their Gram."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Matrix, Rows, as_rows, dense, frozen
from bochner.errors import DataError, MapError
from bochner.features.base import Drawn, FeatureMap, option, register
from bochner.features.landmarks import LANDMARKS, choose_landmarks
from bochner.kernels import Chi2, Gaussian
from bochner.seeds import Seed


@register
@dataclass(frozen=True, eq=False, repr=False)
class Nystroem(FeatureMap):
    """k(x, L) V Λ^{−½} of c = n_features landmarks L with k(L, L) = V Λ Vᵀ, the ``rank`` largest kept.

    ``landmarks``: "uniform" rows of the sample, "rpcholesky" (randomly pivoted Cholesky), "leverage"
    (approximate ridge leverage scores), "kmeans" (centres), or an array of rows, of which there may be
    more than features.
    """

    landmarks: str | NDArray[Any] = "rpcholesky"
    rank: int | None = None
    unbiased: ClassVar[bool] = False
    needs_sample: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.landmarks, str):
            option("landmarks", self.landmarks, LANDMARKS)
        elif sp.issparse(self.landmarks) or not isinstance(self.landmarks, np.ndarray):
            object.__setattr__(self, "landmarks", dense(as_rows(self.landmarks).values))
        if self.rank is not None and not 1 <= self.rank <= self.n_features:
            raise MapError(f"rank must lie between 1 and n_features = {self.n_features}, got {self.rank}")

    def is_fitted(self) -> bool:
        return not isinstance(self.landmarks, str)

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if not isinstance(self.landmarks, str):
            rows = as_rows(self.landmarks)
            if rows.values.shape[1] != d:
                raise DataError(f"the landmarks have {rows.values.shape[1]} columns, the map is drawn for {d}")
            self.kernel.check(rows)
            return replace(self, landmarks=frozen(rows.values, np.float64))
        assert sample is not None
        chosen = choose_landmarks(self.landmarks, self.kernel, sample.values, self.n_features, seed)
        return replace(self, landmarks=frozen(chosen, np.float64))

    def _draw(self, d: int, seed: Seed) -> DrawnNystroem:
        return DrawnNystroem(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        for landmarks in LANDMARKS:
            yield cls(Gaussian(0.5 / d), 32, landmarks=landmarks)
        yield cls(Chi2(), 32)
        yield cls(Gaussian(0.5 / d), 32, rank=16)


class DrawnNystroem(Drawn):
    """Landmarks and V Λ^{−½}; ``spectrum`` holds the kept eigenvalues."""

    def __init__(self, recipe: Nystroem, d: int, seed: Seed):
        self.landmarks = np.asarray(recipe.settled("landmarks"))
        K = recipe.kernel._gram(self.landmarks, self.landmarks)
        values, vectors = np.linalg.eigh(0.5 * (K + K.T))
        values, vectors = values[::-1], vectors[:, ::-1]
        # Relative to the largest: duplicates and dependent landmarks leave eigenvalues of rounding size.
        floor = len(values) * np.finfo(np.float64).eps * float(values.max(initial=0.0))
        keep = min(int((values > floor).sum()), recipe.rank or recipe.n_features)
        if keep == 0:
            raise MapError(f"{recipe.kernel} is zero on all landmarks")
        self.spectrum: Float64 = frozen(values[:keep])
        signs = np.sign(vectors[np.abs(vectors[:, :keep]).argmax(axis=0), np.arange(keep)])
        self.basis = frozen(vectors[:, :keep] * signs / np.sqrt(values[:keep]))
        super().__init__(recipe, d, seed, keep)

    def _fill(self, X: Matrix, out: Float) -> None:
        out[:] = self.kernel._gram(X.astype(np.float64), self.landmarks) @ self.basis

    def residual(self, X: Any) -> float:
        """Σ K(x, x) − ‖z(x)‖² over rows, as a share of Σ K(x, x): an upper bound on the trace error."""
        rows = self._checked(X)
        exact = self.kernel._diag(rows.astype(np.float64))
        lost = np.maximum(exact - np.square(self._features(rows)).sum(axis=1), 0.0).sum()
        return float(lost / exact.sum()) if lost > 0.0 else 0.0
