"""The exception tree.

BochnerError
├── DataError (ValueError)         the data are wrong: what, where (row, column), what to do
│   └── DomainError                a value outside the kernel's domain
├── KernelError (ValueError)       a kernel is ill-defined: a parameter, its text or its JSON
├── MapError (ValueError)          a map cannot be drawn: who lacks what, or an option is wrong
├── FileError (ValueError)         a file of ours cannot be written, or is not what it should be
├── SolverError (ValueError)       a solver cannot start: an option is wrong, or statistics do not suffice
└── MissingDependency (ImportError)  an optional package is not installed
"""

from __future__ import annotations

import re
from collections.abc import Sequence


class BochnerError(Exception):
    """Whatever this library refuses; catch this to catch all of it."""


class DataError(BochnerError, ValueError):
    """Bad input rows; ``row`` and ``column`` say where, when one place is to blame."""

    def __init__(self, message: str, row: int | None = None, column: int | str | None = None):
        super().__init__(message)
        self.row = row
        self.column = column

    def located(self, start: int, names: Sequence[str] | None = None, place: str = "") -> DataError:
        """The same error of rows that begin at number ``start`` of a source, and of a named file."""
        message = str(self)
        if self.row is not None:
            message = re.sub(r"\brow \d+", f"row {start + self.row}", message, count=1)
        if names is not None and isinstance(self.column, int):
            message = re.sub(r"\bcolumn \d+", f"column '{names[self.column]}'", message, count=1)
        row = None if self.row is None else start + self.row
        return type(self)(f"{place}: {message}" if place else message, row, self.column)


class DomainError(DataError):
    """A value at which the kernel is not defined."""


class KernelError(BochnerError, ValueError):
    """A kernel that does not exist or is not positive definite as written."""


class MapError(BochnerError, ValueError):
    """A feature map that the kernel does not admit, or an option out of range."""


class FileError(BochnerError, ValueError):
    """A model or statistics file that cannot be written, or is damaged, or is of another kind."""


class SolverError(BochnerError, ValueError):
    """A solver that cannot start: an option out of range, or statistics that do not suffice."""


class MissingDependency(BochnerError, ImportError):
    """An optional package is needed for this call; the message names the extra."""
