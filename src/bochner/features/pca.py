"""Principal components of random features: draw many, keep the combinations that carry the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bochner.arrays import Float, Float64, Matrix, Rows, encode, frozen, tiles
from bochner.errors import MapError
from bochner.features.base import Drawn, FeatureMap, register
from bochner.features.fourier import RandomFourier
from bochner.kernels import Gaussian
from bochner.seeds import Seed


@register
@dataclass(frozen=True, eq=False, repr=False)
class PCAFeatures(FeatureMap):
    """(z(x) − mean) U with U the top n_features eigenvectors of the scatter of a wider map.

    Without ``centred`` the scatter is Σ z zᵀ and the mean is not taken off, so that inner products still
    stand for the kernel.  Fit on the sample of ``draw``, or with ``from_moments`` on streamed ones.
    """

    base: FeatureMap | None = None
    centred: bool = False
    basis: NDArray[Any] | None = None
    mean: NDArray[Any] | None = None
    base_seed: tuple[int, ...] | None = None
    unbiased: ClassVar[bool] = False
    needs_sample: ClassVar[bool] = True

    def _base(self) -> FeatureMap:
        if self.base is None:
            raise MapError("PCAFeatures needs base=, the recipe of the wider map")
        if self.base.n_features < self.n_features:
            raise MapError(f"{self.n_features} components of {self.base.n_features} features cannot be had")
        return self.base

    def is_fitted(self) -> bool:
        return self.basis is not None

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        if self.basis is not None or sample is None:
            return self
        node = seed.child("base")
        base = replace(self._base(), kernel=self.kernel).prepared(d, node, sample)
        drawn = base._draw(d, node)
        scatter, mean, count = np.zeros((drawn.width, drawn.width)), np.zeros(drawn.width), 0
        for rows in tiles(sample.values.shape[0], 2048):
            Z = drawn._features(sample.values[rows])
            # Chan's merge: Σ z zᵀ − n m mᵀ would lose the digits that the mean takes.
            away = Z.mean(axis=0) - mean
            Z -= Z.mean(axis=0)
            scatter += Z.T @ Z + np.outer(away, away) * (count * len(Z) / (count + len(Z)))
            count += len(Z)
            mean += away * (len(Z) / count)
        return replace(self, base=base)._from(drawn, scatter, mean, count)

    @classmethod
    def from_moments(
        cls, base: Drawn, n_features: int, scatter: Float64, mean: Float64, count: float, centred: bool = False
    ) -> Drawn:
        """The map from Σ (z − m)(z − m)ᵀ, the mean m and the number of rows of the base features."""
        recipe = cls(base.kernel, n_features, base=base.map, centred=centred)
        return recipe._from(base, scatter, mean, count)._draw(base.d, base.seed)

    def _from(self, base: Drawn, scatter: Float64, mean: Float64, count: float) -> PCAFeatures:
        S = scatter if self.centred else scatter + count * np.outer(mean, mean)
        keep = self.n_features
        if keep > base.width:
            raise MapError(f"{keep} components of {base.width} features cannot be had")
        vectors = np.linalg.eigh(0.5 * (S + S.T))[1][:, ::-1][:, :keep]
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(keep)])
        return replace(
            self,
            basis=frozen(vectors * signs),
            mean=frozen(mean if self.centred else np.zeros_like(mean)),
            base_seed=(base.seed.root, *base.seed.path),
        )

    def _draw(self, d: int, seed: Seed) -> DrawnPCA:
        return DrawnPCA(self, d, seed)

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        kernel = Gaussian(0.5 / d)
        yield cls(kernel, 32, base=RandomFourier(kernel, 96, frequencies="orthogonal" if d > 1 else "iid"))


class DrawnPCA(Drawn):
    """The wider map and the projection."""

    def __init__(self, recipe: PCAFeatures, d: int, seed: Seed):
        root, *path = recipe.settled("base_seed")
        self.base = recipe._base()._draw(d, Seed(root, tuple(path)))
        self.basis, self.mean = recipe.settled("basis")[:, : recipe.n_features], recipe.settled("mean")
        super().__init__(recipe, d, seed, self.basis.shape[1])

    def _fill(self, X: Matrix, out: Float) -> None:
        Z = np.empty((X.shape[0], self.base.width), dtype=out.dtype)
        self.base.fill(X, Z)
        if np.any(self.mean):
            Z -= self.mean.astype(out.dtype)
        out[:] = Z @ self.basis.astype(out.dtype)


class Blockwise(Drawn):
    """z(x) times one basis for each block of its features.  Nothing is taken off; it cannot be drawn again."""

    def __init__(self, base: Drawn, bases: Sequence[Float64]):
        self.base, self.bases = base, [frozen(basis) for basis in bases]
        if sum(map(len, self.bases)) != base.width:
            raise MapError(f"the bases have {sum(map(len, self.bases))} rows, the map has {base.width} features")
        super().__init__(base.map, base.d, base.seed, sum(self.block_widths()))
        self.names = base.names

    def block_widths(self) -> tuple[int, ...]:
        return tuple(basis.shape[1] for basis in self.bases)

    def recipe(self) -> dict[str, Any]:
        return {**super().recipe(), "bases": [encode(basis) for basis in self.bases]}

    def fold(self, coef: Float64) -> Float64:
        """The coefficients of z(x) that give what these give."""
        stops = np.cumsum(self.block_widths())[:-1]
        return np.concatenate([B @ c for B, c in zip(self.bases, np.split(coef, stops), strict=True)])

    def _fill(self, X: Matrix, out: Float) -> None:
        Z = np.empty((X.shape[0], self.base.width), dtype=out.dtype)
        self.base.fill(X, Z)
        row = column = 0
        for basis in self.bases:
            height, width = basis.shape
            out[:, column : column + width] = Z[:, row : row + height] @ basis.astype(out.dtype)
            row, column = row + height, column + width
