"""Memory-mapped .npy files, and other arrays without names, one after another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bochner.errors import DataError
from bochner.sources.files import reading


def mapped(path: Path) -> Any:
    """The array of a .npy file, mapped into memory."""
    with reading(str(path)):
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            if "allow_pickle" in str(error) or "Python objects" in str(error):
                raise DataError(f"{path} holds Python objects, which are never loaded; save numbers or text") from None
            raise
