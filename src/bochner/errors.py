"""The exception tree.

BochnerError
├── DataError (ValueError)         the data are wrong: what, where (row, column), what to do
│   └── DomainError                a value outside the kernel's domain
├── KernelError (ValueError)       a kernel is ill-defined: a parameter, its text or its JSON
├── MapError (ValueError)          a map cannot be drawn: who lacks what, or an option is wrong
└── MissingDependency (ImportError)  an optional package is not installed
"""

from __future__ import annotations


class BochnerError(Exception):
    """Whatever this library refuses; catch this to catch all of it."""


class DataError(BochnerError, ValueError):
    """Bad input rows; ``row`` and ``column`` say where, when one place is to blame."""

    def __init__(self, message: str, row: int | None = None, column: int | str | None = None):
        super().__init__(message)
        self.row = row
        self.column = column


class DomainError(DataError):
    """A value at which the kernel is not defined."""


class KernelError(BochnerError, ValueError):
    """A kernel that does not exist or is not positive definite as written."""


class MapError(BochnerError, ValueError):
    """A feature map that the kernel does not admit, or an option out of range."""


class MissingDependency(BochnerError, ImportError):
    """An optional package is needed for this call; the message names the extra."""
