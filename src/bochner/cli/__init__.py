"""The command: parse, call, print.  What it imports heavily, a command imports when it runs."""

from __future__ import annotations

import sys

from bochner.errors import BochnerError, MissingDependency

#: exit codes: wrong data or options; an error of ours; interrupted
WRONG, BROKEN, INTERRUPTED = 2, 70, 130


def main() -> None:
    """The entry point: errors are one sentence on standard error, and ``--debug`` shows where they come from."""
    debug = "--debug" in sys.argv
    try:
        _run()
    except KeyboardInterrupt:
        _end("interrupted; what was complete on disk before is as it was", INTERRUPTED, debug)
    except BrokenPipeError:  # whoever read the output has enough
        sys.stderr.close()
        sys.exit(0)
    except BochnerError as error:
        _end(" ".join(str(error).split()), WRONG, debug)
    except MemoryError:
        _end("there is not enough memory; ask for fewer features (-D) or a smaller --memory", WRONG, debug)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _end(f"{place}{error.strerror or error}", WRONG, debug)
    except Exception as error:
        _end(f"this should not happen ({type(error).__name__}: {error}); please report it with --debug", BROKEN, debug)


def _run() -> None:
    try:
        import click
    except ImportError:
        raise MissingDependency("the command needs click: pip install 'bochner[cli]'") from None
    from bochner.cli.group import bochner

    try:
        code = bochner.main(standalone_mode=False)
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _end(message: str, code: int, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc()
    print(f"bochner: {message}", file=sys.stderr)
    sys.exit(code)
