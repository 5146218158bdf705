"""``demo``."""

from __future__ import annotations

import click


@click.command()
@click.option("--n-features", "-D", default=1024, show_default=True, help="features of every map")
@click.option("--seed", default=0, show_default=True, help="seed of every draw")
def demo(n_features: int, seed: int) -> None:
    """Compare kernels, maps and their errors on digits that ship with scikit-learn."""
    from bochner.demo import run

    run(n_features, seed, click.echo)
