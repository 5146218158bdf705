"""The page about data: its examples run, and what it says of formats and of memory is so."""

import json
import re
import sys
from pathlib import Path

import pytest

from bochner.sources.files import FORMATS, PACKED

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
MEMORY = ROOT / "bench" / "memory.py"


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "data.md", "exec"), names)


def test_the_endings_exist():
    named = set(re.findall(r'"a(\.\w+)"', PAGE)) | set(re.findall(r"`(\.(?:gz|bz2))`", PAGE))
    assert named <= {*FORMATS, *PACKED}
    assert set(PACKED) <= named


def peaks(folder, kind, sizes, D=128):
    """Peaks beyond what a process holds from the start, in bytes."""
    sys.path.insert(0, str(MEMORY.parent))
    try:
        import memory
    finally:
        sys.path.pop(0)
    cases = [memory.Case(kind, n, 30, D, 3, 1, row_group=10_000) for n in sizes]
    return [(memory.measured(case, memory.write(case, folder))["peak"], memory.expected(case)) for case in cases]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@pytest.mark.parametrize("kind", ["parquet", "libsvm"])
def test_memory_does_not_grow_with_the_rows(tmp_path, kind):
    (few, bound), (many, _) = peaks(tmp_path, kind, (30_000, 300_000))
    assert many < few + (16 << 20)  # the rows are 10 times as many: 34 MiB against 3 MiB, and more as sparse ones
    assert max(few, many) < sum(bound.values())


def test_the_measured_peaks_are_below_the_bound():
    rows = json.loads((ROOT / "docs" / "memory.json").read_text())["rows"]
    assert rows
    assert all(row["peak"] <= row["expected"] for row in rows)


def test_one_fit_is_measured(tmp_path):
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("needs Linux")
    ((peak, _),) = peaks(tmp_path, "parquet", (500,), 16)
    assert peak > 0
