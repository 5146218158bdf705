"""The command: parse, call, print."""

from __future__ import annotations

import sys
from typing import Any

from bochner.errors import BochnerError, MissingDependency


def main() -> None:
    """The entry point: errors are one sentence on standard error."""
    try:
        _commands()(standalone_mode=True)
    except BochnerError as error:
        print(f"bochner: {error}", file=sys.stderr)
        sys.exit(2)


def _commands() -> Any:
    try:
        import click
    except ImportError:
        raise MissingDependency("the command needs click: pip install 'bochner[cli]'") from None
    from bochner import __version__

    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(__version__, prog_name="bochner")
    def bochner() -> None:
        """Kernel machines at the cost of linear models."""

    @bochner.command()
    @click.option("--n-features", "-D", default=1024, show_default=True, help="features of every map")
    @click.option("--seed", default=0, show_default=True, help="seed of every draw")
    def demo(n_features: int, seed: int) -> None:
        """Compare kernels, maps and their errors on digits that ship with scikit-learn."""
        from bochner.demo import run

        run(n_features, seed, click.echo)

    return bochner
