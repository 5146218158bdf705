"""The examples on the pages of the docs run."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("page", ["clustering.md", "selection.md"])
def test_the_examples_run(page, capsys):
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    shown = capsys.readouterr().out
    if page == "selection.md":
        assert "('gaussian(gamma=0.5).on(1, 2)', 'gaussian(gamma=0.5).on(0)')" in shown
    else:
        assert "[1000" in shown
