"""Every example runs."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, capsys):
    runpy.run_path(str(path))
    assert capsys.readouterr().out


def test_the_quick_error_bench_runs(tmp_path):
    import sys

    bench = Path(__file__).parents[1] / "bench" / "error.py"
    arguments = [str(bench), "--quick", "--only", "exp(t)", "--out", str(tmp_path / "error")]
    before, sys.argv = sys.argv, arguments
    try:
        runpy.run_path(str(bench), run_name="__main__")
    finally:
        sys.argv = before
    assert (tmp_path / "error.md").read_text(encoding="utf-8").startswith("# Kernel error at equal width")
