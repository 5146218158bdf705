"""What a feature map is: a frozen recipe, and what it draws, a function from rows to features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from bochner.arrays import Float, Float64, Matrix, Rows, as_rows, decode, dense, encode, tiles
from bochner.errors import DataError, MapError
from bochner.kernels import from_json as kernel_from_json
from bochner.kernels.base import Kernel
from bochner.seeds import Seed, as_seed

_maps: dict[str, type[FeatureMap]] = {}


def register(cls: type[Any]) -> type[Any]:
    """Make a map known by its name: in recipes, the docs and every law."""
    _maps[cls.__name__] = cls
    return cls


def registered() -> list[type[FeatureMap]]:
    """Every registered map."""
    return list(_maps.values())


@dataclass(frozen=True, eq=False)
class FeatureMap(ABC):
    """A recipe: which kernel, how many features, which options.

    ``draw`` first fits what is left to the data (bandwidths, grids, landmarks), which gives a recipe
    that needs no data any more, and then draws from the seed alone.
    """

    kernel: Kernel
    n_features: int
    #: why ``choose`` picked it
    why: str = field(default="", kw_only=True, repr=False)
    #: E ⟨z(x), z(y)⟩ = K(x, y) exactly
    unbiased: ClassVar[bool] = True
    #: the same for every seed
    deterministic: ClassVar[bool] = False
    #: the first columns of a wider draw are the narrower draw, up to scale
    prefix_stable: ClassVar[bool] = False
    #: ``draw`` needs a sample of rows
    needs_sample: ClassVar[bool] = False

    def __post_init__(self) -> None:
        size = self.n_features
        if not isinstance(size, (int, float, np.number)) or isinstance(size, bool) or size % 1 != 0 or size < 1:
            raise MapError(f"n_features must be a whole number ≥ 1, got {size!r}")
        object.__setattr__(self, "n_features", int(size))

    def draw(self, d: int, seed: int | Seed = 0, sample: Any = None) -> Drawn:
        """The map for rows of d columns; ``sample`` is a set of training rows, where it needs one.

        >>> from bochner import features, kernels
        >>> features.RandomFourier(kernels.Gaussian(0.5), 64).draw(3, seed=0)([[0.0, 1.0, 2.0]]).shape
        (1, 64)
        """
        if d < 1:
            raise MapError(f"a map is drawn for d ≥ 1 columns, got {d}")
        rows = None if sample is None else as_rows(sample)
        if rows is not None and rows.values.shape[1] != d:
            raise DataError(f"the sample has {rows.values.shape[1]} columns, the map is drawn for {d}")
        if rows is not None and rows.values.shape[0] == 0:
            raise DataError("the sample has no rows")
        node = as_seed(seed)
        drawn = self.prepared(d, node, rows)._draw(d, node)
        drawn.names = None if rows is None else rows.names
        return drawn

    def prepared(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        """The recipe with its kernel resolved and everything that comes from data frozen into it."""
        if self.needs_sample and sample is None and not self.is_fitted():
            raise MapError(f"{type(self).__name__} is made from data: pass draw(d, seed, sample=rows)")
        kernel = self.kernel.bound(None if sample is None else sample.names, d).resolve(sample)
        kernel.check(Rows(np.empty((0, d))) if sample is None else sample)
        if sample is not None:
            kernel.diag(sample)  # refuses rows at which the kernel overflows, and so at all pairs
        return replace(self, kernel=kernel).fitted(d, seed, sample)

    def is_fitted(self) -> bool:
        """Whether everything that comes from the data is here already."""
        return not self.needs_sample

    def fitted(self, d: int, seed: Seed, sample: Rows | None) -> FeatureMap:
        """The recipe with everything that comes from the data frozen into it."""
        return self

    @abstractmethod
    def _draw(self, d: int, seed: Seed) -> Drawn: ...

    def settled(self, name: str) -> Any:
        """An option that ``fitted`` finds, refused while it is open."""
        value = getattr(self, name)
        if value is None or isinstance(value, str):
            raise MapError(f"{name} of {type(self).__name__} is still open; draw(d, seed, sample=rows) settles it")
        return value

    @property
    def independent_columns(self) -> bool:
        """Whether √D times a column is by itself an unbiased scalar map, independent of the other columns."""
        return False

    @classmethod
    def examples(cls, d: int) -> Iterable[FeatureMap]:
        """Recipes that enrol the map in every law."""
        return ()

    def sized(self, n_features: int) -> Self:
        """The same recipe with another number of features."""
        return replace(self, n_features=n_features)

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON."""
        return {"map": type(self).__name__, **{f.name: _to_json(getattr(self, f.name)) for f in fields(self)}}

    def __repr__(self) -> str:
        shown = [f"{self.kernel!r}", f"{self.n_features}"]
        for f in fields(self)[2:]:
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                shown.append(f"{f.name}=<{'×'.join(map(str, value.shape))}>")
            elif f.repr and value != f.default:
                shown.append(f"{f.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Drawn(ABC):
    """A drawn map: call it on rows.  Its arrays are read-only; it can be pickled and shared by threads."""

    #: rows worked on at once
    tile: int = 1024
    #: the layout that features are made in: "F" (feature by row) costs less where ``out`` has it too
    layout: str = "C"
    #: names of the columns, where the sample had any: rows with other names are refused
    names: tuple[str, ...] | None = None

    def __init__(self, recipe: FeatureMap, d: int, seed: Seed, width: int):
        if width < 1:
            raise MapError(f"{type(recipe).__name__} has no feature for {recipe.kernel} in {recipe.n_features} columns")
        self.map, self.d, self.seed, self.width = recipe, d, seed, width

    @property
    def kernel(self) -> Kernel:
        """The kernel it approximates, with every parameter a number."""
        return self.map.kernel

    def __call__(self, X: Any, out: Float | None = None) -> Float:
        """Features of every row, in float32 or float64 as X; into ``out`` where it is given."""
        rows = self._checked(X)
        shape, dtype = (rows.shape[0], self.width), rows.dtype
        if out is None:
            out = np.empty(shape, dtype=dtype)
        elif out.shape != shape or out.dtype != dtype:
            raise DataError(f"out must have shape {shape} and dtype {dtype}, got {out.shape} and {out.dtype}")
        self.fill(rows, out)
        return out

    def laid(self, X: Any, room: Float | None = None) -> Float:
        """Features as ``__call__`` gives them, in the layout that costs least; in ``room`` (flat) if it is given."""
        rows = self._checked(X)
        size = rows.shape[0] * self.width
        flat = np.empty(size, dtype=rows.dtype) if room is None or room.dtype != rows.dtype else room[:size]
        fortran = self.layout == "F"
        out = flat.reshape(self.width, -1).T if fortran else flat.reshape(-1, self.width)
        self.fill(rows, out)
        return out

    def part(self, start: int, stop: int) -> Drawn:
        """The map of features ``start`` to ``stop`` alone.

        Maps that can make them without the others do so.
        """
        return _Part(self, start, stop)

    def _checked(self, X: Any) -> Matrix:
        """Rows of the right number of columns, within the domain of the kernel."""
        rows = as_rows(X)
        if rows.values.shape[1] != self.d:
            raise DataError(f"the map was drawn for {self.d} columns, the rows have {rows.values.shape[1]}")
        if self.names is not None and rows.names is not None and rows.names != self.names:
            place = next(j for j, (a, b) in enumerate(zip(self.names, rows.names, strict=True)) if a != b)
            raise DataError(
                f"column {place} is {rows.names[place]!r}, and the map was drawn for {self.names[place]!r} there; "
                "select the columns in the order of the sample",
                column=rows.names[place],
            )
        self.kernel.check(rows)
        return rows.values

    def fill(self, X: Matrix, out: Float) -> None:
        """Features of checked rows, tile by tile."""
        for rows in tiles(X.shape[0], self.tile):
            self._fill(X[rows], out[rows])

    @abstractmethod
    def _fill(self, X: Matrix, out: Float) -> None: ...

    def blocks(self) -> tuple[tuple[Kernel, slice], ...]:
        """The kernels of a sum, each with the columns that are its own; the whole where parts share columns."""
        return ((self.kernel, slice(0, self.width)),)

    def block_widths(self) -> tuple[int, ...]:
        """How many columns each of its ``blocks`` has."""
        return tuple(own.stop - own.start for _, own in self.blocks())

    def recipe(self) -> dict[str, Any]:
        """JSON that is enough to draw the map again, bit for bit: see ``features.from_recipe``."""
        names = None if self.names is None else list(self.names)
        place = {"d": self.d, "columns": names, "seed": self.seed.root, "path": list(self.seed.path)}
        return {**self.map.to_json(), **place}

    def variance(self, X: Any, Y: Any = None, replicates: int = 16) -> Float64:
        """Var ⟨z(x), z(y)⟩ over the draw, for every pair: exact where a formula is known.

        Here it is estimated: the sample variance over that many independent draws.
        """
        left, right = self._both(X, Y)
        if self.map.deterministic:
            return np.zeros((left.shape[0], right.shape[0]))
        grams = []
        for r in range(max(2, replicates)):
            other = self.map._draw(self.d, self.seed.child("variance", r))
            grams.append(other._features(left) @ other._features(right).T)
        return np.asarray(np.var(grams, axis=0, ddof=1), dtype=np.float64)

    #: whether ``variance`` is a formula
    variance_is_exact: bool = False

    def _both(self, X: Any, Y: Any) -> tuple[Float64, Float64]:
        """Checked rows and others (the same without Y), dense and in float64."""
        left = dense(self._checked(X)).astype(np.float64)
        return left, left if Y is None else dense(self._checked(Y)).astype(np.float64)

    def _features(self, X: Matrix) -> Float64:
        out = np.empty((X.shape[0], self.width))
        self.fill(X.astype(np.float64), out)
        return out

    def gram(self, X: Any, Y: Any = None) -> Float:
        """The approximate Gram z(X) z(Y)ᵀ."""
        left = self(X)
        return np.asarray(left @ (left if Y is None else self(Y)).T)

    def __repr__(self) -> str:
        return f"<drawn {self.map!r}: {self.d} columns to {self.width} features>"


class _Part(Drawn):
    """Some columns of a map, for which it makes all of them."""

    def __init__(self, whole: Drawn, start: int, stop: int):
        super().__init__(whole.map, whole.d, whole.seed, stop - start)
        self.whole, self.columns, self.names = whole, slice(start, stop), whole.names
        self.tile = max(16, min(whole.tile, (1 << 22) // whole.width))

    def _fill(self, X: Matrix, out: Float) -> None:
        Z = np.empty((X.shape[0], self.whole.width), dtype=out.dtype)
        self.whole.fill(X, Z)
        out[...] = Z[:, self.columns]


def _to_json(value: Any) -> Any:
    if isinstance(value, (Kernel, FeatureMap)):
        return value.to_json()
    if isinstance(value, np.ndarray):
        return encode(value)
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if "map" in value:
            return map_from_json(value)
        if "kernel" in value:
            return kernel_from_json(value)
        if "base64" in value:
            return decode(value)
        raise MapError(f"a recipe holds an object of unknown kind: {sorted(value)}")
    if isinstance(value, list):
        return tuple(_from_json(item) for item in value)
    return value


def map_from_json(item: Any) -> FeatureMap:
    """The recipe that ``FeatureMap.to_json`` wrote."""
    if not isinstance(item, dict) or item.get("map") not in _maps:
        known = ", ".join(sorted(_maps))
        raise MapError(f"there is no map {item.get('map') if isinstance(item, dict) else item!r} (known: {known})")
    cls = _maps[item["map"]]
    given = {name: value for name, value in item.items() if name != "map"}
    unknown = set(given) - {f.name for f in fields(cls)}
    if unknown:
        raise MapError(f"{cls.__name__} has no option {', '.join(sorted(unknown))}")
    try:
        return cls(**{name: _from_json(value) for name, value in given.items()})
    except TypeError as error:
        raise MapError(f"{cls.__name__} cannot be made from this recipe: {error}") from None


def from_recipe(recipe: dict[str, Any]) -> Drawn:
    """Draw again what ``Drawn.recipe`` described.

    >>> from bochner import features, kernels
    >>> drawn = features.RandomFourier(kernels.Gaussian(0.5), 8).draw(2, seed=3)
    >>> again = features.from_recipe(drawn.recipe())
    >>> bool((again([[1.0, 2.0]]) == drawn([[1.0, 2.0]])).all())
    True
    """
    try:
        body = dict(recipe)
        names = body.pop("columns", None)
        columns = None if names is None else tuple(str(name) for name in names)
        d, seed = int(body.pop("d")), Seed(int(body.pop("seed")), tuple(int(p) for p in body.pop("path")))
    except (KeyError, TypeError, ValueError) as error:
        raise MapError(f"a recipe is an object with d, seed and path ({error!r})") from None
    made = map_from_json(body)
    if made.kernel.unresolved():
        raise MapError(f"the recipe leaves {', '.join(made.kernel.unresolved())} to the data; keep Drawn.recipe()")
    drawn = made._draw(d, seed)
    drawn.names = columns
    return drawn


def who_lacks(kernel: Kernel, fact: str, advice: str) -> MapError:
    """The error of a map that asks a kernel for a fact that it does not have."""
    return MapError(f"{kernel} has no {fact}; {advice}")


def option(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse an option that is not one of the allowed words."""
    if value not in tuple(allowed):
        raise MapError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
