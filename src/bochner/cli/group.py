"""The commands by name, each imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from bochner import __version__

#: command → module, and what it does in a line (so that --help imports none of them)
_COMMANDS = {
    "fit": ("fitting", "Learn a model from files."),
    "predict": ("using", "Predict the rows of files with a model."),
    "score": ("using", "Compare the predictions of a model with the truth."),
    "report": ("using", "A page about a model and how well it predicts."),
    "export": ("using", "Write a model as ONNX."),
    "choose": ("fitting", "Compare kernels on a sample of the rows."),
    "moments": ("sharing", "Statistics of some rows, for a model that is solved elsewhere."),
    "merge": ("sharing", "Add up statistics of several places."),
    "solve": ("sharing", "A model from its statistics and those of other places."),
    "update": ("sharing", "Add rows to a model, exactly."),
    "forget": ("sharing", "Take rows out of a model, exactly."),
    "verify": ("looking", "Check files of rows, models and statistics for damage."),
    "inspect": ("looking", "Say what is in a file."),
    "demo": ("showing", "Kernels at work: on digits, and on a table streamed from disk."),
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        found: click.Command = getattr(import_module(f"bochner.cli.{_COMMANDS[name][0]}"), name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in _COMMANDS.items()])


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExamples:\n"
    '  bochner fit "data/*.parquet" --target price -o price.bochner\n'
    "  bochner predict price.bochner new.csv -o predictions.csv\n"
    "  bochner score price.bochner held-out.parquet --target price\n\n"
    'Shell completion: eval "$(_BOCHNER_COMPLETE=bash_source bochner)", or zsh_source, fish_source.',
)
@click.version_option(__version__, prog_name="bochner")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def bochner(debug: bool) -> Any:
    """Kernel machines at the cost of linear models."""
