"""The register of kernels: one decorator enrols a class in parsing, JSON, the docs and every law."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeVar

from bochner.errors import KernelError
from bochner.kernels.base import DEEPEST, Kernel, snake

K = TypeVar("K", bound=type[Kernel])
_classes: dict[str, type[Kernel]] = {}


def register(cls: K) -> K:
    """Make a kernel class known by its name (``ExpChi2`` and ``exp_chi2``)."""
    for name in (cls.__name__, snake(cls.__name__)):
        if name in _classes:
            raise KernelError(f"two kernels are called {name}")
        _classes[name] = cls
    return cls


def registered() -> list[type[Kernel]]:
    """Every kernel class, in order of registration."""
    return list(dict.fromkeys(_classes.values()))


def lookup(name: str) -> type[Kernel]:
    """The class of that name; a near miss is suggested."""
    if name not in _classes:
        from difflib import get_close_matches

        near = get_close_matches(name.lower(), sorted({snake(c.__name__) for c in registered()}), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        known = ", ".join(sorted({snake(c.__name__) for c in registered()}))
        raise KernelError(f"there is no kernel {name!r}{hint} (known: {known})")
    return _classes[name]


def examples() -> Iterator[Kernel]:
    """Every example of every registered kernel."""
    for cls in registered():
        yield from cls.examples()


def from_json(item: Any) -> Kernel:
    """Read what ``Kernel.to_json`` wrote; anything else is refused.

    >>> from bochner import kernels
    >>> kernels.from_json(kernels.Gaussian(0.5).to_json())
    Gaussian(gamma=0.5)
    """
    return _kernel(item, depth=0)


def _kernel(item: Any, depth: int) -> Kernel:
    if not isinstance(item, dict) or not isinstance(item.get("kernel"), str):
        raise KernelError("a kernel in JSON is an object with the key 'kernel'")
    cls = lookup(item["kernel"])
    known = {f.name for f in fields(cls) if f.init}  # type: ignore[arg-type]
    given = [name for name in item if name != "kernel"]
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        raise KernelError(f"{cls.__name__} has no parameter {', '.join(unknown)}")
    values = {name: _value(item[name], depth + 1) for name in given}
    try:
        return cls(**values)
    except TypeError as error:
        raise KernelError(f"{cls.__name__} cannot be made from {', '.join(given) or 'nothing'}: {error}") from None


def _value(value: Any, depth: int) -> Any:
    if depth > 2 * DEEPEST:  # a sum is an object and a list
        raise KernelError(f"a kernel in JSON is nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        return _kernel(value, depth)
    if isinstance(value, list):
        return tuple(_value(v, depth + 1) for v in value)
    return value
