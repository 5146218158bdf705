"""The examples on the pages of the docs run."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md") if "```python" in path.read_text(encoding="utf-8"))
#: what the examples of a page print, among other things
SHOWN = {
    "clustering.md": "[1000",
    "pca.md": "of 512 components",
    "selection.md": "('gaussian(gamma=0.5).on(1, 2)', 'gaussian(gamma=0.5).on(0)')",
}


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run(page, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert SHOWN.get(page, "") in capsys.readouterr().out
