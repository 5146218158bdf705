"""Many features on covtype: sweeps of conjugate gradients against moments and Cholesky, and accuracy against width.

    python bench/large_d.py goal  [--width 16384] [--rows N]   side by side in one run (an hour of one core)
    python bench/large_d.py curve [--widths 1024 …]            accuracy against width and CPU time
    python bench/large_d.py write                              the page from the figures of both

BOCHNER_DATA names the folder with covtype.parquet.  Class 2 against the rest, 60 % of the rows to train,
numeric columns standardised, Gaussian kernel, Hadamard frequencies.  Times are CPU time of all threads, the
first sweep and the preconditioner included.  Figures are kept in docs/large_d.json; ``write`` makes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bochner import features, kernels
from bochner.run import Flow, Local
from bochner.solvers import Solution, pcg, ridge
from bochner.solvers.ridge import FLOAT32_NOISE
from bochner.sources import MemorySource
from bochner.stats import Classes, Moments

OUT = Path(__file__).parents[1] / "docs" / "large_d"
TWO = Classes(np.array([0, 1]))
clock = time.process_time


class Data:
    """Rows to train and held-out rows; the split does not depend on how many are used."""

    def __init__(self, rows: int | None):
        from pyarrow.parquet import read_table

        table = read_table(Path(os.environ["BOCHNER_DATA"]) / "covtype.parquet").to_pandas()
        y = (table.pop("label").to_numpy() == 2).astype(int)
        X = table.to_numpy(np.float32).copy()
        order = np.random.default_rng(0).permutation(len(X))
        cut = int(0.6 * len(X))
        numeric = slice(0, 10)
        X[:, numeric] -= X[order[:cut], numeric].mean(axis=0)
        X[:, numeric] /= X[order[:cut], numeric].std(axis=0)
        train, self.test = order[:cut][:rows], order[cut:]
        self.X, self.y, self.Xt, self.yt = X[train], y[train], X[self.test], y[self.test]


class Task:
    """One width and bandwidth: sweeps that count their CPU time, and the held-out accuracy of a solution."""

    def __init__(self, data: Data, width: int, gamma: float, threads: int = 1):
        self.data, self.width, self.threads = data, width, threads
        recipe = features.RandomFourier(kernels.Gaussian(gamma), width, frequencies="hadamard")
        self.drawn = recipe.draw(54, seed=0)
        self.drawn.laid(data.X[:64])  # compiled loops are loaded once
        self.flow = Flow(MemorySource(data.X, data.y), self.drawn, targets=TWO, by_class=False)
        self.each: list[float] = []

    def sweep(self, statistic: Any) -> Any:
        start = clock()
        found = Local(self.threads).sweep(self.flow, statistic)
        self.each.append(clock() - start)
        return found

    def accuracy(self, solution: Solution) -> float:
        right = 0
        for i in range(0, len(self.data.yt), 256):
            Z = self.drawn.laid(self.data.Xt[i : i + 256])
            right += int((solution.decision(Z).argmax(axis=1) == self.data.yt[i : i + 256]).sum())
        return right / len(self.data.yt)

    def begin(self, sketched: int) -> tuple[pcg.Begun, dict[str, Any]]:
        start = clock()
        begun = pcg.begin(self.sweep, self.width, 2, len(self.data.y), sketched)
        took = clock() - start
        first = self.each.pop()
        return begun, {"sketch": begun.sketched, "first_sweep": first, "factor": took - first, "ready": took}


def trace(task: Task, begun: pcg.Begun, penalty: float, tol: float) -> tuple[list[dict[str, Any]], list[Solution]]:
    """Accuracy and gap after every sweep, with the CPU time since the preconditioner was there."""
    found, solutions = [], []
    base = clock()
    spent = 0.0  # by measuring

    def note(solution: Solution) -> None:
        nonlocal spent
        start = clock()
        accuracy = task.accuracy(solution)
        solutions.append(solution)
        found.append(
            {
                "sweeps": solution.info["sweeps"],
                "cpu": start - base - spent,
                "accuracy": accuracy,
                "bound": solution.info["gap"],
                "objective": solution.info["objective"],
            }
        )
        spent += clock() - start
        print("  ", found[-1], flush=True)

    pcg.fit(task.sweep, begun.side, begun.precondition, [penalty], tol, watch=lambda now: note(now[0]))
    return found, solutions


def goal(width: int, rows: int | None, penalty: float, gamma: float, threads: int) -> dict[str, Any]:
    """Sweeps, then moments, of the same features in one run."""
    task = Task(Data(rows), width, gamma, threads)
    n = len(task.data.y)
    begun, ready = task.begin(pcg.sketch_rows(n, width))
    print(ready, flush=True)
    steps, solutions = trace(task, begun, penalty, 1e-5)
    start = clock()
    part = task.sweep(Moments(width, 2)).total()
    swept = clock() - start
    exact = ridge.solved(part, penalty, FLOAT32_NOISE)
    took = clock() - start
    accuracy = task.accuracy(exact)

    def objective(solution: Solution) -> float:
        v = solution.coef[:, 1]
        return float(part.target_scatter[1] - 2 * v @ part.cross[:, 1] + v @ (part.scatter @ v) + penalty * v @ v)

    least = objective(exact)
    for step, solution in zip(steps, solutions, strict=True):
        step["gap"] = (objective(solution) - least) / least

    def when(good: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first step from which on all are good."""
        last = max((i for i, step in enumerate(steps) if not good(step)), default=-1)
        step = steps[last + 1]
        cpu = ready["ready"] + step["cpu"]
        return {"sweeps": step["sweeps"], "cpu": cpu, "times_faster": took / cpu}

    return {
        "rows": n,
        "width": width,
        "gamma": gamma,
        "penalty": penalty,
        "threads": threads,
        "moments": {"sweep": swept, "solve": took - swept, "cpu": took, "accuracy": accuracy, "objective": least},
        "pcg": {**ready, "steps": steps},
        "accuracy_within_0.1_point": when(lambda step: step["accuracy"] >= accuracy - 1e-3),
        "gap_1e-4": when(lambda step: step["gap"] <= 1e-4),
    }


def point(data: Data, width: int, penalty: float, gamma: float, tol: float, threads: int) -> dict[str, Any]:
    """One model by sweeps: its accuracy and what it cost."""
    wall, start = time.perf_counter(), clock()
    task = Task(data, width, gamma, threads)
    begun, ready = task.begin(pcg.sketch_rows(len(data.y), width))
    (solution,) = pcg.fit(task.sweep, begun.side, begun.precondition, [penalty], tol)
    cpu, wall = clock() - start, time.perf_counter() - wall
    return {
        "width": width,
        "gamma": gamma,
        "penalty": penalty,
        "tol": tol,
        "rows": len(data.y),
        "threads": threads,
        "sketch": ready["sketch"],
        "sweeps": solution.info["sweeps"],
        "outcome": solution.outcome.name,
        "cpu": cpu,
        "wall": wall,
        "accuracy": task.accuracy(solution),
    }


def kept() -> dict[str, Any]:
    path = OUT.with_suffix(".json")
    return json.loads(path.read_text()) if path.exists() else {}


def keep(name: str, value: Any) -> None:
    """Figures of one part; the others stay as they are."""
    machine = {"processor": platform.machine(), "numpy": np.__version__, "python": platform.python_version()}
    OUT.with_suffix(".json").write_text(json.dumps({**kept(), "machine": machine, name: value}, indent=1) + "\n")


def write() -> None:
    """docs/large_d.md keeps its text; the tables between the marks are made anew.  And the picture."""
    found, page = kept(), OUT.with_suffix(".md")
    start, end = "<!-- figures -->", "<!-- end of figures -->"
    text = page.read_text()
    head, tail = text[: text.index(start) + len(start)], text[text.index(end) :]
    page.write_text(f"{head}\n\n{tables(found)}\n{tail}")
    picture(found)


def tables(found: dict[str, Any]) -> str:
    lines: list[str] = []
    if "goal" in found:
        g = found["goal"]
        m, p = g["moments"], g["pcg"]
        lines += [
            f"{g['rows']:,} rows, {g['width']:,} features, gamma {g['gamma']}, penalty {g['penalty']}, one run:",
            "",
            "| | CPU s | accuracy | times faster |",
            "| --- | --- | --- | --- |",
            f"| moments and Cholesky | {m['cpu']:.0f} | {m['accuracy']:.4f} | |",
        ]
        for name, words in (
            ("accuracy_within_0.1_point", "sweeps, accuracy within 0.1 point"),
            ("gap_1e-4", "sweeps, objective within 1e-4"),
        ):
            step = next(s for s in p["steps"] if s["sweeps"] == g[name]["sweeps"])
            lines.append(
                f"| {words}: {g[name]['sweeps']} sweeps | {g[name]['cpu']:.0f} | {step['accuracy']:.4f} | "
                f"{g[name]['times_faster']:.1f} |"
            )
        lines += [
            "",
            f"Of the time of the sweeps {p['first_sweep']:.0f} s are the first one, which makes a sketch of "
            f"{p['sketch']:,} rows, and {p['factor']:.0f} s its factor; a sweep is "
            f"{p['steps'][-1]['cpu'] / p['steps'][-1]['sweeps']:.1f} s.",
            "",
        ]
    if "curve" in found:
        lines += [
            "| features | gamma | penalty | sweeps | CPU s | accuracy |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {p['width']:,} | {p['gamma']:g} | {p['penalty']:g} | {p['sweeps']} "
            f"| {p['cpu']:.0f} | {p['accuracy']:.4f} |"
            for p in sorted(found["curve"], key=lambda p: (p["width"], p["gamma"], -p["penalty"]))
        ]
        lines.append("")
    return "\n".join(lines)


def picture(found: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bochner"
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for gamma in sorted({p["gamma"] for p in found.get("curve", [])}):
        best: dict[int, dict[str, Any]] = {}
        for p in (p for p in found["curve"] if p["gamma"] == gamma):
            if p["width"] not in best or p["accuracy"] > best[p["width"]]["accuracy"]:
                best[p["width"]] = p
        line = [best[width] for width in sorted(best)]
        left.plot([p["width"] for p in line], [p["accuracy"] for p in line], "o-", label=f"gamma {gamma:g}")
        right.plot([p["cpu"] for p in line], [p["accuracy"] for p in line], "o-", label=f"gamma {gamma:g}")
    if "goal" in found:
        g = found["goal"]
        cpu = [g["pcg"]["ready"] + s["cpu"] for s in g["pcg"]["steps"]]
        right.plot(cpu, [s["accuracy"] for s in g["pcg"]["steps"]], "k:", label=f"sweep by sweep, {g['width']:,}")
        right.plot([g["moments"]["cpu"]], [g["moments"]["accuracy"]], "kx", label=f"moments, {g['width']:,}")
    left.set(xscale="log", xlabel="features", ylabel="held-out accuracy", ylim=(0.75, None))
    right.set(xscale="log", xlabel="CPU seconds")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(OUT.with_suffix(".svg"), metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("goal", "curve", "write"))
    parser.add_argument("--width", type=int, default=16384)
    parser.add_argument("--widths", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 16384, 32768, 65536])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--penalty", type=float, default=0.1)
    parser.add_argument("--gamma", type=float, default=0.1)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="print, and keep nothing")
    a = parser.parse_args()
    if a.what == "goal":
        found = goal(a.width, a.rows, a.penalty, a.gamma, a.threads)
        print(json.dumps(found, indent=1))
        if not a.dry:
            keep("goal", found)
    elif a.what == "curve":
        data, points = Data(a.rows), list(kept().get("curve", []))
        for width in a.widths:
            found = point(data, width, a.penalty, a.gamma, a.tol, a.threads)
            print(json.dumps(found), flush=True)
            same = ("width", "gamma", "penalty", "tol", "rows", "threads")
            points = [p for p in points if any(p[key] != found[key] for key in same)] + [found]
            if not a.dry:
                keep("curve", sorted(points, key=lambda p: (p["gamma"], p["penalty"], p["width"])))
    else:
        write()


if __name__ == "__main__":
    main()
