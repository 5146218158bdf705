"""Kernels of the values of another kernel: f(K) for a series f, and radial functions of its distance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bochner.arrays import Float64, Matrix, Rows
from bochner.errors import DomainError, KernelError
from bochner.kernels import series as maclaurin
from bochner.kernels.base import Kernel, require_kernels
from bochner.kernels.compound import compounded
from bochner.kernels.dot import DotKernel, Exponential, Homogeneous, Linear, Polynomial
from bochner.kernels.histogram import Chi2
from bochner.kernels.pairwise import upper
from bochner.kernels.register import register
from bochner.kernels.series import Series
from bochner.kernels.spectrum import Spectrum
from bochner.kernels.stationary import Cauchy, Gaussian, Laplacian, Matern, Stationary


def compose(outer: Kernel, inner: Kernel) -> Kernel:
    """outer(inner(x, y)) for a dot-product kernel outer: f applied to a kernel instead of ⟨x, y⟩.

    >>> compose(Polynomial(2), Gaussian(0.5)).gram([[0.0]], [[0.0]]).tolist()
    [[4.0]]
    """
    return Compose(outer, inner)


@register
@dataclass(frozen=True, repr=False)
class Compose(Kernel):
    """f(inner(x, y)) with f the series of a dot-product kernel (Kar & Karnick, section 5)."""

    outer: Kernel
    inner: Kernel

    def __post_init__(self) -> None:
        require_kernels("a composition", (self.outer, self.inner))
        if not isinstance(self.outer, DotKernel):
            raise KernelError(f"the outer kernel of a composition must be a dot-product kernel, not {self.outer}")

    def _outer(self) -> DotKernel:
        assert isinstance(self.outer, DotKernel)
        return self.outer

    def check(self, rows: Rows) -> None:
        # The outer kernel sees values of the inner one, never the rows.
        self.inner.check(rows)
        limit = math.inf if self.unresolved() else self._outer().reach()
        if math.isfinite(limit):
            values = self.inner._diag(rows.values.astype(np.float64))
            bad = np.flatnonzero(values >= limit)
            if bad.size:
                raise DomainError(
                    f"row {bad[0]} has K(x, x) = {values[bad[0]]:.6g} under {self.inner}, but {self.outer} converges "
                    f"only below {limit:.6g}",
                    int(bad[0]),
                )

    def _resolved(self, X: Matrix) -> Kernel:
        inner = self.inner._resolved(X)
        roots = np.sqrt(np.maximum(inner._diag(X), 0.0))[:, None]
        return Compose(self.outer._resolved(roots), inner)

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        return self._outer().function(self.inner._gram(X, Y))

    def _diag(self, X: Matrix) -> Float64:
        return self._outer().function(self.inner._diag(X))

    def spectrum(self) -> Spectrum | None:
        inner = self.inner.spectrum()
        return None if inner is None else compounded(self._outer().series(), inner)

    def series(self) -> Series | None:
        inner = self.inner.series()
        return None if inner is None else maclaurin.composed(self._outer().series(), inner)

    def render(self, text: bool) -> str:
        return f"compose({self.outer.render(text)}, {self.inner.render(text)})"

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield compose(Exponential(), Gaussian(0.5))
        yield compose(Polynomial(2), compose(Homogeneous(2), Cauchy(0.5)))


@register
@dataclass(frozen=True, repr=False)
class Over(Kernel):
    """A radial kernel of the distance √(K(x,x) + K(y,y) − 2K(x,y)) of another kernel."""

    outer: Kernel
    inner: Kernel

    def __post_init__(self) -> None:
        require_kernels("a radial kernel over another", (self.outer, self.inner))
        outer = self.outer
        if not isinstance(outer, Stationary) or isinstance(getattr(outer, outer.parameter), tuple):
            raise KernelError(f"only a radial kernel with one scale can stand over another kernel, not {outer}")
        if isinstance(outer, Laplacian):
            outer.of_squared(np.zeros(1))  # refuses, with advice

    def _outer(self) -> Stationary:
        assert isinstance(self.outer, Stationary)
        return self.outer

    def check(self, rows: Rows) -> None:
        self.inner.check(rows)

    def _gram(self, X: Matrix, Y: Matrix) -> Float64:
        factor = float(np.asarray(self._outer().factors())) ** 2
        return self._outer().of_squared(factor * self.inner._distance2(X, Y))

    def _diag(self, X: Matrix) -> Float64:
        return np.ones(X.shape[0])

    def _resolved(self, X: Matrix) -> Kernel:
        inner, outer = self.inner._resolved(X), self._outer()
        if isinstance(getattr(outer, outer.parameter), str):
            return Over(outer.resolved_by_distance(upper(inner._distance2(X, X))), inner)
        return Over(outer, inner)

    def radial(self) -> tuple[Kernel, Kernel]:
        return self.outer, self.inner

    def spectrum(self) -> Spectrum | None:
        return self.outer.spectrum() if isinstance(self.inner, Linear) else None

    def render(self, text: bool) -> str:
        return f"{self.outer.render(text)}.over({self.inner.render(text)})"

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        yield Gaussian(0.5).over(Chi2())
        yield Matern(1.5, 1.0).over(Polynomial(2))
