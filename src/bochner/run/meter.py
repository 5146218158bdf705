"""Progress that a person reads: rows, rows a second, the time that remains."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

from bochner.run.local import Progress


@dataclass
class Meter:
    """Writes progress to a stream: one line that is rewritten on a terminal, a line every while elsewhere.

    >>> import io
    >>> out = io.StringIO()
    >>> Meter("fit", out)(Progress(50, 50, 0.5))
    >>> out.getvalue()
    'fit: 50 of 50 rows (100 %), 100 rows/s, done in 0.5 s\\n'
    """

    what: str
    out: TextIO | None = None
    #: seconds between lines, on a terminal and elsewhere
    every: tuple[float, float] = (0.2, 10.0)
    _last: float = field(default=float("-inf"), repr=False)

    def __call__(self, progress: Progress) -> None:
        out = self.out or sys.stderr
        terminal = out.isatty()
        done = progress.of is not None and progress.rows >= progress.of
        now = time.monotonic()
        if not done and now - self._last < self.every[0 if terminal else 1]:
            return
        self._last = now
        out.write(("\r\x1b[K" if terminal else "") + f"{self.what}: {line(progress)}")
        out.write("\n" if done or not terminal else "")
        out.flush()


def line(progress: Progress) -> str:
    """How far, how fast, how long still."""
    rate = progress.rows / progress.seconds if progress.seconds > 0.0 else 0.0
    speed = f"{rate:,.0f} rows/s"
    if progress.of is None:
        return f"{progress.rows:,} rows, {speed}, {progress.seconds:.0f} s"
    share = f"{progress.rows:,} of {progress.of:,} rows ({progress.rows / max(progress.of, 1):.0%})".replace("%", " %")
    if progress.rows >= progress.of:
        return f"{share}, {speed}, done in {progress.seconds:.1f} s"
    remaining = (progress.of - progress.rows) / rate if rate else float("inf")
    return f"{share}, {speed}, {remaining:.0f} s to go"
