"""``demo``."""

from __future__ import annotations

import click

from bochner.cli.options import writable as require_writable


@click.command(epilog="\b\nExample:\n  bochner demo --rows 100000 -D 256")
@click.option("--n-features", "-D", default=1024, show_default=True, help="A quarter of these, these, and twice these.")
@click.option("--rows", default=1_000_000, show_default=True, help="Of the table that is streamed from disk.")
@click.option("--seed", default=0, show_default=True, help="Of every draw.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), default="bochner-demo.html", show_default=True)
def demo(n_features: int, rows: int, seed: int, output: str) -> None:
    """Kernels and their maps on real digits; then a table that is streamed from disk, beside other models.

    Takes two to three minutes on two cores with the defaults, and writes a report as a page.
    """
    require_writable(output)
    if rows < 20_000 or n_features < 64:
        raise click.UsageError("the demo needs 20000 rows and 64 features or more")
    from bochner.demo import run

    run(n_features, rows, seed, output, click.echo)
