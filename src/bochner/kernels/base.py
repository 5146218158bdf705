"""What a kernel is: an immutable object with an exact Gram and the facts that maps ask for."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bochner.arrays import REALS, Domain, Float, Float64, Matrix, Rows, as_rows, spread
from bochner.errors import DataError, DomainError, KernelError

if TYPE_CHECKING:
    from bochner.kernels.laplace import Measure
    from bochner.kernels.profile import Profile
    from bochner.kernels.series import Series
    from bochner.kernels.spectrum import Spectrum

#: how deep kernels of kernels may be nested: whatever is printed, compared or saved recurses
DEEPEST = 64
#: characters of a kernel in an error
_SHOWN = 200


class Kernel(ABC):
    """A positive semidefinite function K(x, y).

    Subclasses are frozen dataclasses; they compute in float64 and may assume checked rows.  A fact
    that a kernel does not have is ``None``, so that the algebra can ask.
    """

    domain: ClassVar[Domain] = REALS
    __array_ufunc__ = None  # np.float64(2) * kernel is the kernel's business, not an array of objects

    # ---- values -------------------------------------------------------------------------------
    def gram(self, X: Any, Y: Any = None) -> Float:
        """The exact matrix K(xᵢ, yⱼ), in float32 when all input is float32, else float64.

        >>> from bochner import kernels
        >>> kernels.Polynomial(2).gram([[1.0, 0.0]], [[2.0, 1.0]]).tolist()
        [[9.0]]
        """
        left = as_rows(X)
        right = left if Y is None or Y is X else as_rows(Y)
        _require_alike(left, right)
        kernel = self.prepared(left)
        if right is not left:
            kernel.check(right)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below, by row
            result = kernel._gram(_double(left.values), _double(right.values))
            result = result.astype(np.result_type(left.values.dtype, right.values.dtype), copy=False)
        if right is left:  # then one row is to blame
            self._require_finite(np.diagonal(result))
        self._require_finite(result)
        return result

    def diag(self, X: Any) -> Float:
        """K(xᵢ, xᵢ) for every row, without the Gram."""
        rows = as_rows(X)
        kernel = self.prepared(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            result = kernel._diag(_double(rows.values)).astype(rows.values.dtype, copy=False)
        self._require_finite(result)
        return result

    def _require_finite(self, values: Float) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()) or np.isfinite(values).all():
                return
        row, *column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
        other = f" and row {column[0]} of Y" if column else ""
        raise DomainError(
            f"{self._who()} overflows {values.dtype} at row {row}{other}; scale the rows down or change its parameters",
            row,
        )

    @abstractmethod
    def _gram(self, X: Matrix, Y: Matrix) -> Float64: ...

    @abstractmethod
    def _diag(self, X: Matrix) -> Float64: ...

    def _distance2(self, X: Matrix, Y: Matrix) -> Float64:
        """Squared distance in feature space, K(x,x) + K(y,y) − 2K(x,y)."""
        squared = self._diag(X)[:, None] + self._diag(Y)[None, :] - 2.0 * self._gram(X, Y)
        return np.maximum(squared, 0.0, out=squared)

    # ---- what has to be settled before values exist -----------------------------------------------
    def settled(self, name: str) -> Any:
        """A parameter, refused while it is left to the data."""
        value = getattr(self, name)
        if isinstance(value, str):
            raise KernelError(f"{name}={value!r} is left to the data; call kernel.resolve(sample) first")
        return value

    def prepared(self, rows: Rows) -> Kernel:
        """This kernel with column names turned into positions, after checking the rows."""
        kernel = self.bound(rows.names, rows.values.shape[1])
        left_open = kernel.unresolved()
        if left_open:
            raise KernelError(
                f"{', '.join(left_open)} is left to the data; call kernel.resolve(sample) first, or give a number"
            )
        kernel.check(rows)
        return kernel

    def check(self, rows: Rows) -> None:
        """Refuse rows outside the domain, naming the first bad row and column."""
        self.domain.require(rows, self._who())
        for child in self.children():
            child.check(rows)

    def _who(self) -> str:
        shown = str(self)
        return f"the kernel {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"

    def bound(self, names: Sequence[str] | None, d: int) -> Kernel:
        """The same kernel with columns given by position; checks that they exist among d."""
        return self.rebuilt(lambda child: child.bound(names, d))

    def unresolved(self) -> list[str]:
        """Parameters that are left to the data, as written."""
        own = [f"{f.name}={value!r}" for f in _fields(self) if isinstance(value := getattr(self, f.name), str)]
        return own + [name for child in self.children() for name in child.unresolved()]

    def resolve(self, sample: Any) -> Kernel:
        """Replace every parameter left to the data by the number that a sample of rows gives.

        >>> from bochner import kernels
        >>> kernels.Gaussian("median").resolve([[0.0], [2.0], [4.0]])
        Gaussian(gamma=0.125)
        """
        if sample is None:
            if self.unresolved():
                raise KernelError(f"{', '.join(self.unresolved())} is left to the data: pass a sample of rows")
            return self
        rows = as_rows(sample)
        kernel = self.bound(rows.names, rows.values.shape[1])
        kernel.check(rows)
        return kernel._resolved(_double(spread(rows.values, 1000)))

    def _resolved(self, X: Matrix) -> Kernel:
        return self.rebuilt(lambda child: child._resolved(X))

    # ---- facts ------------------------------------------------------------------------------------
    def spectrum(self) -> Spectrum | None:
        """Shift-invariant kernels: the law of the frequencies (Bochner)."""
        return None

    def series(self) -> Series | None:
        """Dot-product kernels: the Maclaurin series (Schoenberg)."""
        return None

    def laplace(self) -> Measure | None:
        """Semigroup kernels: the Laplace measure (Berg, Christensen and Ressel)."""
        return None

    def profile(self) -> Profile | None:
        """Additive kernels: the one-dimensional kernel."""
        return None

    def radial(self) -> tuple[Kernel, Kernel] | None:
        """(outer, inner) where K is a radial kernel of the distance in the feature space of inner."""
        return None

    @classmethod
    def examples(cls) -> Iterable[Kernel]:
        """Instances that enrol the class in every law of the test suite."""
        return ()

    # ---- the tree ---------------------------------------------------------------------------------
    def children(self) -> list[Kernel]:
        """The kernels this one is made of."""
        found: list[Kernel] = []
        for f in _fields(self):
            value = getattr(self, f.name)
            found.extend(v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, Kernel))
        return found

    def rebuilt(self, change: Callable[[Kernel], Kernel]) -> Self:
        """The same node over changed children."""
        if not self.children():
            return self
        new: dict[str, Any] = {}
        for f in _fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Kernel):
                new[f.name] = change(value)
            elif isinstance(value, tuple) and any(isinstance(v, Kernel) for v in value):
                new[f.name] = tuple(change(v) for v in value)
        return replace(self, **new)  # type: ignore[type-var]

    # ---- algebra ----------------------------------------------------------------------------------
    def __add__(self, other: Kernel | float) -> Kernel:
        from bochner.kernels import algebra

        return algebra.add(self, other)

    def __radd__(self, other: float) -> Kernel:
        from bochner.kernels import algebra

        return self if isinstance(other, int) and other == 0 else algebra.add(other, self)  # sum([k, …])

    def __mul__(self, other: Kernel | float) -> Kernel:
        from bochner.kernels import algebra

        return algebra.multiply(self, other)

    def __rmul__(self, other: float) -> Kernel:
        from bochner.kernels import algebra

        return algebra.multiply(other, self)

    def on(self, columns: Any) -> Kernel:
        """This kernel on some columns only: positions, a slice, names, or text like "f10:f300"."""
        from bochner.kernels import algebra

        return algebra.On(self, columns)

    def normalized(self) -> Kernel:
        """K(x, y) / √(K(x, x) K(y, y)); zero where K(x, x) is zero."""
        from bochner.kernels import algebra

        return algebra.Normalized(self)

    # ---- text and JSON ----------------------------------------------------------------------------
    def render(self, text: bool) -> str:
        """Python source (``repr``) or the command line's text form (``str``); both can be parsed."""
        shown = []
        for f in _fields(self):
            value = getattr(self, f.name)
            if f.default is MISSING or value != f.default:
                shown.append(f"{f.name}={render_value(value, text)}")
        name = snake(type(self).__name__) if text else type(self).__name__
        return f"{name}({', '.join(shown)})"

    def __repr__(self) -> str:
        return self.render(text=False)

    def __str__(self) -> str:
        return self.render(text=True)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON that ``kernels.from_json`` reads back to an equal kernel."""
        body = {f.name: _to_json(getattr(self, f.name)) for f in _fields(self)}
        return {"kernel": type(self).__name__, **body}


def _fields(kernel: Kernel) -> tuple[Any, ...]:
    return tuple(f for f in fields(kernel) if f.init)  # type: ignore[arg-type]


def _to_json(value: Any) -> Any:
    if isinstance(value, Kernel):
        return value.to_json()
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return value


def render_value(value: Any, text: bool) -> str:
    """A parameter as one types it."""
    if isinstance(value, Kernel):
        return value.render(text)
    if isinstance(value, tuple):
        return "[" + ", ".join(render_value(item, text) for item in value) + "]"
    return str(value) if text and isinstance(value, str) else repr(value)


def snake(name: str) -> str:
    """ExpChi2 → exp_chi2."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _double(values: Matrix) -> Matrix:
    return values if values.dtype == np.float64 else values.astype(np.float64)


def require_kernels(what: str, parts: Any, least: int = 1) -> None:
    """Refuse anything but kernels as the parts of another, and towers that recursion could not climb."""
    if not isinstance(parts, tuple) or len(parts) < least or not all(isinstance(k, Kernel) for k in parts):
        raise KernelError(f"{what} is made of {'kernels' if least == 1 else 'two or more kernels'}, got {parts!r}")
    if max(map(_height, parts)) >= DEEPEST:
        raise KernelError(f"{what} would be nested deeper than {DEEPEST} levels")


def _height(kernel: Kernel) -> int:
    return 1 + max(map(_height, kernel.children()), default=0)


def _require_alike(left: Rows, right: Rows) -> None:
    if left.values.shape[1] != right.values.shape[1]:
        raise DataError(
            f"X has {left.values.shape[1]} columns and Y has {right.values.shape[1]}; "
            "a kernel compares rows of the same columns"
        )
    if left.names is not None and right.names is not None and left.names != right.names:
        column = next(j for j, pair in enumerate(zip(left.names, right.names, strict=True)) if pair[0] != pair[1])
        raise DataError(
            f"column {column} is {left.names[column]!r} in X and {right.names[column]!r} in Y; "
            "put the columns in the same order",
            column=column,
        )


def number(name: str, value: Any, *, least: float = 0.0, strict: bool = True) -> float:
    """A finite parameter above ``least`` (or equal to it unless ``strict``), as a float."""
    try:
        if isinstance(value, (str, bytes, bool, Kernel)) or np.ndim(value):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError):
        raise KernelError(f"{name} must be a number, got {value!r}") from None
    except OverflowError:
        result = math.inf
    if not math.isfinite(result) or result < least or (strict and result == least):
        raise KernelError(f"{name} must be a finite number {'>' if strict else '≥'} {least:g}, got {value!r}")
    return result


def whole(name: str, value: Any, *, least: int = 1, most: int = 1_000_000) -> int:
    """An integer parameter."""
    result = number(name, value, least=least, strict=False)
    if not result.is_integer() or result > most:
        raise KernelError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
    return int(result)


def bandwidth(name: str, value: Any, rules: tuple[str, ...]) -> float | tuple[float, ...] | str:
    """A positive number, one for each column, or the name of a rule that reads it from the data."""
    if isinstance(value, str):
        if value not in rules:
            raise KernelError(f"{name} must be a positive number or one of {', '.join(rules)}; got {value!r}")
        return value
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        if not len(value):
            raise KernelError(f"{name} needs one number for each column, got none")
        return tuple(number(f"{name}[{i}]", item) for i, item in enumerate(value))
    return number(name, value)
