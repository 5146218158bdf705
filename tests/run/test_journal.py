"""Sweeps that are killed go on with the same bits; what does not belong together is refused, and damage is told."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest

from bochner import features, kernels
from bochner.errors import FileError
from bochner.run import Flow, Local
from bochner.run.journal import Journal, cleared, state_digest
from bochner.solvers.losses import Logistic
from bochner.sources import MemorySource, Scaling
from bochner.stats import Classes, Folds, Moments
from bochner.stats.gradient import Gradient
from bochner.stats.products import Guess, Products, RightSide
from bochner.stats.sketched import Sketch
from bochner.stats.together import Together

rng = np.random.default_rng(0)
N, D = 70_000, 16
X = rng.normal(size=(N, 3)).astype(np.float32)
y = rng.integers(0, 3, N)
drawn = features.RandomFourier(kernels.Gaussian(0.5), D).draw(3, seed=0)
FLOW = Flow(MemorySource(X, y), drawn, targets=Classes(np.arange(3)), folds=Folds(3))
EMPTY = Moments(D, 3, folds=3)


class Stopped(Exception):
    pass


class Fragile(MemorySource):
    """Breaks off at a row."""

    until = N

    def chunks(self, size=8192, start=0):
        for chunk in super().chunks(size, start):
            if chunk.start >= self.until:
                raise Stopped
            yield chunk


def broken(flow, until):
    source = Fragile(X, y)
    source.until = until
    return replace(flow, source=source)


def same(a, b):
    for name, array in a.to_arrays().items():
        np.testing.assert_array_equal(array, b.to_arrays()[name])


@pytest.fixture(scope="module")
def plain():
    return Local(2).sweep(FLOW, EMPTY)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("until", [1, 20_000, 50_000, 65_000])
def test_a_sweep_that_breaks_off_goes_on_with_the_same_bits(tmp_path, plain, threads, until):
    with pytest.raises(Stopped):
        Journal(tmp_path, every=0).sweep(Local(threads), broken(FLOW, until), EMPTY)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert len(left) <= 2
    read = Counting(X, y)
    same(Journal(tmp_path, every=0).sweep(Local(threads), replace(FLOW, source=read), EMPTY), plain)
    if until > 30_000 and threads == 1:
        assert min(read.starts) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["sweep-000000-done.checkpoint"]


class Counting(MemorySource):
    def __init__(self, *args):
        super().__init__(*args)
        self.starts = []

    def chunks(self, size=8192, start=0):
        for chunk in super().chunks(size, start):
            self.starts.append(chunk.start)
            yield chunk


def test_what_is_done_is_not_done_again(tmp_path, plain):
    Journal(tmp_path).sweep(Local(2), FLOW, EMPTY)
    read = Counting(X, y)
    same(Journal(tmp_path).sweep(Local(2), replace(FLOW, source=read), EMPTY), plain)
    assert read.starts == []


@pytest.mark.parametrize(
    "statistic",
    [
        RightSide(D, 3),
        Products(np.eye(D)[:, :2], np.zeros(D), held=0, guess=Guess(np.ones((D, 3)), np.zeros(3), 3)),
        Sketch(D, together=4),
        Together(RightSide(D, 3), Sketch(D, together=4)),
    ],
    ids=lambda statistic: type(statistic).__name__,
)
def test_statistics_of_sweeping_solvers_are_kept(tmp_path, statistic):
    with pytest.raises(Stopped):
        Journal(tmp_path, every=0).sweep(Local(1), broken(FLOW, 50_000), statistic)
    assert any(path.name.startswith("sweep-000000-") for path in tmp_path.iterdir())
    read = Counting(X, y)
    found = Journal(tmp_path).sweep(Local(1), replace(FLOW, source=read), statistic)
    assert min(read.starts) > 0
    same(found, Local(1).sweep(FLOW, statistic))
    same(Journal(tmp_path).sweep(Local(1), FLOW, statistic), found)


def gradient(v):
    return Gradient(Logistic(), np.full((1, D, 3), v), np.zeros((1, 3)))


def test_several_sweeps_of_one_fit_are_kept_apart(tmp_path):
    first = Journal(tmp_path)
    statistics = (EMPTY, gradient(0.0), gradient(0.5))
    results = [first.sweep(Local(2), FLOW, statistic) for statistic in statistics]
    again = Journal(tmp_path)
    read = Counting(X, y)
    flow = replace(FLOW, source=read)
    for result, statistic in zip(results, statistics, strict=True):
        same(again.sweep(Local(2), flow, statistic), result)
    assert read.starts == []
    other = Journal(tmp_path)
    other.sweep(Local(2), FLOW, EMPTY)
    with pytest.raises(FileError, match="other statistic"):
        other.sweep(Local(2), FLOW, gradient(0.1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": MemorySource(X + np.float32(1e-3), y)}, "other data"),
        ({"source": MemorySource(X, (y + 1) % 3)}, "other data"),
        ({"source": MemorySource(X, y, weight=np.full(N, 2.0))}, "other data"),
        ({"drawn": features.RandomFourier(kernels.Gaussian(0.5), D).draw(3, seed=1)}, "other map"),
        ({"drawn": features.RandomFourier(kernels.Gaussian(0.6), D).draw(3, seed=0)}, "other map"),
        ({"folds": Folds(3, seed=1)}, "other folds"),
        ({"scaling": Scaling.learn("standard", [X])}, "other scaling"),
        ({"dtype": "float64"}, "other precision"),
        ({"first": 5}, "other rows"),
        ({"targets": Classes(np.arange(4))}, "other targets"),
    ],
)
def test_other_data_and_options_are_refused(tmp_path, change, said):
    with pytest.raises(Stopped):
        Journal(tmp_path, every=0).sweep(Local(1), broken(FLOW, 50_000), EMPTY)
    with pytest.raises(FileError, match=said):
        Journal(tmp_path).sweep(Local(1), replace(FLOW, **change), EMPTY)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_state_is_told_and_the_one_before_is_used(tmp_path, plain, damage):
    with pytest.raises(Stopped):
        Journal(tmp_path, every=0).sweep(Local(1), broken(FLOW, 60_000), EMPTY)
    older, newer = sorted(tmp_path.iterdir())
    content = bytearray(newer.read_bytes())
    content[len(content) // 2] ^= 4
    newer.write_bytes({"flip": content, "cut": content[: len(content) // 2], "empty": b""}[damage])
    with pytest.warns(RuntimeWarning, match=newer.name):
        same(Journal(tmp_path).sweep(Local(1), FLOW, EMPTY), plain)
    assert not older.exists()


# A warm parent forks a child for each attempt, which kills itself before its n-th write; writes are its only deeds.
HARNESS = """
    import os, sys
    import numpy as np
    from bochner import KernelClassifier
    from bochner.run import journal
    from bochner.run.journal import tensors

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = (X[:, 0] * X[:, 1] > 0.3 * rng.normal(size=20_000)).astype(int)
    journal.Journal.every = 0
    write = tensors.write

    def fit(folder, most):
        writes = 0

        def counted(path, about, arrays):
            nonlocal writes
            if writes == most:
                os.kill(os.getpid(), 9)
            write(path, about, arrays)
            writes += 1

        tensors.write = counted
        options = {"loss": "logistic", "sweep_tol": 0.03} if sys.argv[2] == "logistic" else {"solver": "sweeps"}
        model = KernelClassifier("gaussian(gamma=0.5)", n_features=32, random_state=0, n_jobs=2, **options)
        model.fit(X, y, checkpoint=folder)
        return model.coef_.tobytes() + model.intercept_.tobytes()

    def forked(work):
        child = os.fork()
        if child == 0:
            with open(sys.argv[1] + "/result", "wb") as file:
                file.write(work())
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert forked(lambda: fit(None, -1)) == 0
    whole = open(sys.argv[1] + "/result", "rb").read()
    kills, code = 0, -9
    while code == -9 and kills < 500:
        code = forked(lambda: fit(sys.argv[1] + "/kept", 1 + kills % 7))
        kills += code == -9
    assert code == 0, code
    assert open(sys.argv[1] + "/result", "rb").read() == whole, "other bits"
    print(kills)
"""


@pytest.mark.parametrize(("way", "least"), [("logistic", 8), ("sweeps", 5)])
def test_a_fit_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path, way, least):
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HARNESS), str(tmp_path), way],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) >= least


def test_a_folder_can_be_cleared(tmp_path):
    folder = tmp_path / "a" / "b"
    Journal(folder).sweep(Local(1), FLOW, EMPTY)
    (folder / "mine.txt").write_text("")
    cleared(folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    cleared(folder)
    assert not folder.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        Journal(tmp_path / "file" / "folder")


def test_the_digest_of_an_object_that_can_be_called_is_that_of_its_numbers():
    first, again, other = (features.RandomFourier(kernels.Gaussian(0.5), D).draw(3, seed) for seed in (0, 0, 1))
    assert state_digest(first) == state_digest(again)
    assert len({state_digest(item) for item in (first, other, first.part(0, 4))}) == 3
