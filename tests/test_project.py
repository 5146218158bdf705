"""The project as a whole: its news, its commands, its files, what its import costs."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bochner

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LONGEST = 400

FRAGMENTS = sorted(path for path in (ROOT / "news").iterdir() if path.name != "README.md")

# Written so that this file does not match them.
HOSTS = re.compile(r"https?://[^ )]*/simple|pypi\.org|python(?:hosted)")
PLACES = re.compile(r"/(?:work|root|home|farm)/")


def project_files() -> list[Path]:
    """Files that git tracks, or would if they were added."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [path for name in sorted(set(listed.split("\0"))) if name and (path := ROOT / name).is_file()]


def code_blocks(language: str) -> list[str]:
    """The README's blocks of code in that language, in order."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_news_fragment_is_named_and_short(path):
    kinds = "|".join(kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"])
    assert re.fullmatch(rf"\d+\.({kinds})\.md", path.name), f"{path.name} is not <issue number>.<{kinds}>.md"
    text = re.sub(r"`[^`]*`", "code", path.read_text(encoding="utf-8")).strip()
    assert text, f"{path.name} is empty"
    sentences = len(re.findall(r"[.!?](?=\s|$)", text))
    assert 1 <= sentences <= 3, f"{path.name} has {sentences} sentences"


def test_the_first_code_block_of_the_readme_holds_two_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.index("```") == readme.index("```sh\n"), "the first code block must be a block of commands"
    commands = code_blocks("sh")[0].splitlines()
    assert len(commands) == 2
    assert all(command.startswith("python3 -m venv .venv && .venv/bin/pip install ") for command in commands)


def test_ci_installs_and_tests_as_the_readme_says():
    command = code_blocks("sh")[0].splitlines()[1]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace('"$venv"', ".venv")
    assert "\n" + "\n".join(command.split(" && ")) + "\n" in script


@pytest.mark.parametrize("block", code_blocks("python"), ids=["learning", "kernels"])
def test_an_example_in_the_readme_runs(block):
    exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize("heading", ["Kernels", "Feature maps"])
def test_the_tables_in_the_readme_name_what_exists(heading):
    from bochner import features, kernels

    section = (ROOT / "README.md").read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    names = [name for line in section.splitlines() if line.startswith("|") for name in re.findall(r"`(\w+)`", line)]
    module = kernels if heading == "Kernels" else features
    assert names
    assert [name for name in names if name not in module.__all__] == []


def test_no_file_names_a_registry_or_a_place_on_a_machine():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}"
        for path in project_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        for pattern in (HOSTS, PLACES)
        if (match := pattern.search(line))
    ]
    assert not found, "\n".join(found)


def test_source_files_stay_short():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "src").rglob("*.py")}
    long = [f"{path.relative_to(ROOT)} has {n} lines" for path, n in sorted(lengths.items()) if n >= LONGEST]
    assert not long, f"{'; '.join(long)}; fewer than {LONGEST} are wanted"


def test_every_module_has_a_docstring():
    bare = [
        str(path.relative_to(ROOT))
        for path in project_files()
        if path.suffix == ".py" and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not bare, f"without a docstring: {', '.join(bare)}"


def test_importing_bochner_is_cheap():
    heavy = ["sklearn", "numba", "matplotlib", "click", "rich", "pyarrow"]
    code = f"import bochner, sys; print(*(name for name in {heavy} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.split() == []


def test_the_version_is_one():
    assert PROJECT["project"]["version"] == bochner.__version__
    assert f"version: {bochner.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
