"""Examples on the pages of the documentation run."""

import re
from pathlib import Path

import pytest

PAGES = sorted(
    path for path in (Path(__file__).parents[1] / "docs").glob("*.md") if "```python" in path.read_text("utf-8")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_examples_of_a_page_run(page, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile("\n".join(blocks), str(page), "exec"), {})
