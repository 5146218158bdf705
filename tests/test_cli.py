"""The command."""

import re
import subprocess
import sys

import pytest


def bochner(*arguments):
    program = f"import sys; sys.argv = ['bochner', *{list(arguments)!r}]; from bochner.cli import main; main()"
    return subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=300)


def test_the_demo_shows_kernels_that_are_well_approximated():
    done = bochner("demo", "--n-features", "512")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if "(" in line and "[" in line and not line.startswith("kernel")]
    assert len(rows) == 7
    errors = [float(re.search(r"(\S+) \[", row)[1]) for row in rows]
    assert max(errors) < 0.15
    best = max(float(re.search(r"\] +(0\.\d+)", row)[1]) for row in rows)
    assert best > 0.97


@pytest.mark.parametrize("arguments", [("--help",), ("demo", "--help")])
def test_help(arguments):
    done = bochner(*arguments)
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_version_and_unknown_commands():
    assert "0.1.0" in bochner("--version").stdout
    done = bochner("nonsense")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
