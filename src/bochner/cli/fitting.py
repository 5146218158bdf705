"""``fit`` and ``choose``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bochner.cli.options import JSON, OUTPUT, QUIET, TARGET, THREADS, data_options, number, size, source_of, tell
from bochner.cli.options import writable as require_writable

if TYPE_CHECKING:
    from bochner.sources import Source

#: distinct whole numbers up to which they are taken for classes
_CLASSES = 50
_LOSSES = ["squared", "logistic", "squared_hinge", "smoothed_hinge"]
TASK = click.option(
    "--task",
    type=click.Choice(["auto", "classify", "regress"]),
    default="auto",
    show_default=True,
    help="auto goes by the target: text, booleans and few whole numbers are classes.",
)
SEED = click.option("--seed", type=int, default=0, show_default=True, help="Of every draw.")


def task_of(source: Source, task: str) -> tuple[bool, str]:
    """Whether the target is of classes, and why."""
    if task != "auto":
        return task == "classify", "as asked"
    if len(source.target) > 1:
        return False, "there are several targets"
    import numpy as np

    from bochner.stats.targets import missing

    y = source.sample(2000, 0).y
    if y is None:
        from bochner.errors import DataError

        raise DataError("name the column to predict with --target")
    known = y[~missing(y)] if y.ndim == 1 else y
    if known.dtype.kind not in "iuf":
        return True, "the target is text or truth values"
    distinct = len(np.unique(known))
    if (known == np.round(known)).all() and distinct <= _CLASSES:
        return True, f"the target has {distinct} distinct whole numbers; --task regress takes them as quantities"
    return False, "the target is of numbers; --task classify takes them as classes"


@click.command(
    epilog="\b\nExamples:\n"
    '  bochner fit "data/*.parquet" --target price --drop id -o price.bochner\n'
    "  bochner fit rows.svm.gz -D 4096 --kernel 'exp_chi2(gamma=mean)' -o model.bochner\n"
    "  bochner fit a.csv --target class --tol 0.05 --checkpoint state/ --moments -o model.bochner"
)
@data_options
@TARGET
@TASK
@click.option("--kernel", "-k", default="auto", show_default=True, help="Its text form, or auto.")
@click.option("--n-features", "-D", type=number("auto", whole=True), default="auto", show_default=True)
@click.option("--tol", type=float, help="Relative error of the kernel for which -D auto finds the number of features.")
@click.option(
    "--loss", type=click.Choice(["squared", "logistic", "squared_hinge", "smoothed_hinge"]), default="squared"
)
@click.option("--solver", default="auto", show_default=True, help="How coefficients are found.")
@click.option("--alpha", type=number("cv", "gcv", "evidence"), default="cv", show_default=True, help="The penalty.")
@click.option("--folds", type=int, default=5, show_default=True, help="Of cross-validation.")
@click.option("--scaling", type=click.Choice(["auto", "none", "norm", "l1", "standard"]), default="auto")
@click.option("--precision", type=click.Choice(["auto", "float32", "float64"]), default="auto")
@click.option("--memory", type=size, help="Budget of the statistics, such as 4GB.")
@click.option("--moments", "keep", is_flag=True, help="Keep the statistics in the model, so that it can be updated.")
@click.option("--checkpoint", type=click.Path(file_okay=False), help="Folder in which a killed fit goes on.")
@click.option("--dask", metavar="ADDRESS", help="Sweep on a Dask cluster: tcp://…, or local:N for N processes here.")
@SEED
@THREADS
@QUIET
@JSON
@OUTPUT
def fit(data: tuple[str, ...], output: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Learn a model from DATA: files, folders or globs.

    The rows are streamed once; the penalty is chosen by exact cross-validation, and what is left open
    (kernel, features, scaling) by a sample.  The report says what was chosen and why.
    """
    require_writable(output)
    source = source_of(data, **options)
    classify, why = task_of(source, options["task"])
    from bochner import KernelClassifier, KernelRegressor

    shared = {name: options[name] for name in ("kernel", "tol", "solver", "alpha", "folds", "scaling", "precision")}
    shared |= {"n_features": options["n_features"], "random_state": options["seed"], "n_jobs": options["threads"]}
    if options["memory"] is not None:
        shared["memory"] = options["memory"]
    if not classify and options["loss"] != "squared":
        raise click.UsageError(f"--loss {options['loss']} is for classes, and this is regression: {why}")
    model = KernelClassifier(loss=options["loss"], **shared) if classify else KernelRegressor(**shared)
    folder = options["checkpoint"]
    if options["dask"] is None:
        model.fit(source, progress=not quiet, checkpoint=folder)
    else:
        from bochner.run.dask import DaskExecutor, connected

        with connected(options["dask"]) as client:
            model.fit(source, progress=not quiet, executor=DaskExecutor(client, folder))
    model.save(output, moments=options["keep"])
    if folder is not None:
        from bochner.run import journal, shelf

        (journal if options["dask"] is None else shelf).cleared(folder)
    report = model.report_
    result = {
        "model": output,
        "task": "classification" if classify else "regression",
        "why": why,
        "rows": report.rows,
        "kernel": report.kernel,
        "map": report.map,
        "n_features": report.n_features,
        "penalty": report.penalty,
        "held_out_error": report.error,
        "outcome": report.outcome.value,
        "seconds": report.seconds,
    }
    tell(result, f"task      {result['task']}; {why}\n{report}\nmodel     {output}", as_json)


@click.command(epilog="\b\nExample:\n  bochner choose data.parquet --target class")
@data_options
@TARGET
@TASK
@click.option("--rows", type=int, default=10_000, show_default=True, help="Of the sample.")
@click.option("--n-features", "-D", type=int, default=1024, show_default=True, help="At most, in the last round.")
@SEED
@JSON
def choose(data: tuple[str, ...], as_json: bool, rows: int, n_features: int, seed: int, **options: Any) -> None:
    """Compare kernels on a sample of DATA by exact cross-validation, by successive halving."""
    source = source_of(data, **options).settle()
    classify, why = task_of(source, options["task"])
    from bochner.estimators.search import search
    from bochner.stats import learn_targets

    sample = source.sample(rows, seed)
    found = search(sample, "auto", learn_targets(source.targets(), classify), n_features, seed)
    best = found.best
    scaling = best.scaling if isinstance(best.scaling, str) else best.scaling.kind
    rest = " ".join(data)
    command = f"bochner fit {rest} --kernel '{best.kernel}' --scaling {scaling} -o model.bochner"
    tried = [
        {"kernel": str(c.kernel), "error": c.error, "rows": c.rows, "n_features": c.n_features, "failure": c.failure}
        for c in found.tried
    ]
    text = f"held-out error on a sample, as a share of the variance ({why}):\n{found}\n\nnext: {command}"
    tell({"best": str(best.kernel), "scaling": scaling, "tried": tried, "why": why}, text, as_json)
