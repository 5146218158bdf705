"""A cluster of processes gives the bits of one machine, whatever dies; where it cannot, it says so in one sentence."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from bochner import KernelClassifier, KernelRegressor, features, kernels, scan
from bochner.errors import DataError, SolverError
from bochner.run import Flow, Local
from bochner.run.dask import DaskExecutor
from bochner.solvers.losses import Logistic
from bochner.sources import MemorySource, Scaling
from bochner.stats import Classes, Folds, Moments, Statistic
from bochner.stats.gradient import Gradient
from bochner.stats.remainder import Against, Remainder

distributed = pytest.importorskip("distributed")
pytest.importorskip("cloudpickle").register_pickle_by_value(sys.modules[__name__])

rng = np.random.default_rng(0)
N, D = 70_000, 24
X = rng.normal(size=(N, 3)).astype(np.float32)
y = rng.integers(0, 3, N)
drawn = features.RandomFourier(kernels.Gaussian(0.5), D).draw(3, seed=0)
OPTIONS = {"targets": Classes(np.arange(3)), "folds": Folds(3)}
FLOW = Flow(MemorySource(X, y), drawn, **OPTIONS)
EMPTY = Moments(D, 3, folds=3)


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    columns = {name: X[:, i] for i, name in enumerate("abc")}
    pq.write_table(pa.table({**columns, "y": y}), path, row_group_size=10_000)
    return path


def same(a, b):
    arrays = b.to_arrays()
    assert arrays
    for name, array in a.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


class Slow(Statistic):
    """The numbers of the rows, after a while; ``kills`` is a file that says whose process ends meanwhile."""

    summed = ("rows",)

    def __init__(self, seconds=0.0, kills=None):
        self.seconds, self.kills, self.rows = seconds, kills, np.zeros(0, dtype=np.int64)

    def fresh(self):
        return type(self)(self.seconds, self.kills)

    def update(self, batch):
        time.sleep(self.seconds)
        if self.kills is not None and 40_000 in batch.rows:
            try:
                os.unlink(self.kills)
            except FileNotFoundError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        self.rows = np.concatenate([self.rows, batch.rows])

    def __add__(self, other):
        both = self.fresh()
        both.rows = np.concatenate([self.rows, other.rows])
        return both


class Deadly(Slow):
    """Ends its process at the first row."""

    def update(self, batch):
        if 0 in batch.rows:
            os.kill(os.getpid(), signal.SIGKILL)
        super().update(batch)


class Failing(Slow):
    def update(self, batch):
        if 50_000 in batch.rows:
            raise DataError("row 50000, column 'a' is bad", 50_000, "a")
        if 20_000 in batch.rows and self.kills == "divide":
            raise ZeroDivisionError("division by zero")


def test_moments_of_rows_in_memory_have_the_bits_of_one_machine(cluster):
    same(DaskExecutor(cluster).sweep(FLOW, EMPTY), Local(2).sweep(FLOW, EMPTY))


@pytest.mark.parametrize("workers", [1, 8])
def test_the_number_of_workers_changes_no_bit(workers):
    shape = {"n_workers": workers, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**shape, dashboard_address=":0", silence_logs=50) as made,
        distributed.Client(made) as client,
    ):
        same(DaskExecutor(client).sweep(FLOW, EMPTY), Local(1).sweep(FLOW, EMPTY))


def test_moments_of_a_file_have_the_bits_of_one_machine_and_rows_do_not_travel(cluster, parquet, monkeypatch):
    source = scan(parquet, target="y")
    flow = Flow(source, drawn, Scaling.learn("standard", [X]), **OPTIONS)
    expected = Local(1).sweep(flow, EMPTY)
    monkeypatch.setattr(cluster, "scatter", None)
    same(DaskExecutor(cluster).sweep(flow, EMPTY), expected)


def test_every_row_comes_once_and_in_order_and_progress_is_told(cluster):
    told = []
    found = DaskExecutor(cluster).sweep(FLOW, Slow(), told.append)
    np.testing.assert_array_equal(found.rows, Local(1).sweep(FLOW, Slow()).rows)
    assert [progress.rows for progress in told] == [*range(8192, N, 8192), N]
    assert len(found.rows) == N


def test_a_gradient_and_the_part_of_a_map_have_the_bits_of_one_machine(cluster):
    part = FLOW.with_drawn(drawn.part(4, 10))
    gradient = Gradient(Logistic(), rng.normal(size=(1, 6, 3)), np.zeros((1, 3)))
    same(DaskExecutor(cluster).sweep(part, gradient), Local(1).sweep(part, gradient))


@pytest.mark.parametrize("of", [scan, None], ids=["parquet", "memory"])
def test_a_classifier_has_the_same_coefficients(cluster, parquet, of):
    data = (scan(parquet, target="y"),) if of else (X[:20_000], y[:20_000])
    model = KernelClassifier("gaussian(gamma=0.5)", 32, random_state=0)
    expected = model.fit(*data).coef_
    np.testing.assert_array_equal(model.fit(*data, executor=DaskExecutor(cluster)).coef_, expected)


@pytest.mark.parametrize(
    "learner",
    [
        KernelClassifier("gaussian(gamma=0.5)", 32, loss="logistic", alpha=1e-3, random_state=0),
        KernelRegressor("gaussian(gamma=0.5)", 32, solver="sweeps", alpha=1e-3, random_state=0),
    ],
    ids=["logistic", "sweeps"],
)
def test_solvers_that_sweep_have_the_same_coefficients(cluster, learner):
    target = y[:20_000] if isinstance(learner, KernelClassifier) else np.sin(X[:20_000, 0])
    expected = learner.fit(X[:20_000], target).coef_
    np.testing.assert_array_equal(learner.fit(X[:20_000], target, executor=DaskExecutor(cluster)).coef_, expected)


def test_an_error_of_a_worker_keeps_its_sentence(cluster):
    with pytest.raises(DataError, match=r"^row 50000, column 'a' is bad$") as caught:
        DaskExecutor(cluster).sweep(FLOW, Failing())
    assert (caught.value.row, caught.value.column) == (50_000, "a")
    with pytest.raises(SolverError, match=r"^a worker failed at rows 16384 to 24575: ZeroDivisionError: division by"):
        DaskExecutor(cluster).sweep(FLOW, Failing(kills="divide"))


@pytest.mark.parametrize("durable", [False, True])
def test_a_worker_that_is_killed_costs_no_bit(cluster, tmp_path, durable):
    kills = tmp_path / "kills"
    kills.touch()
    folder = tmp_path / "folder" if durable else None
    found = DaskExecutor(cluster, folder).sweep(FLOW, Slow(kills=kills))
    assert not kills.exists()
    np.testing.assert_array_equal(found.rows, Local(1).sweep(FLOW, Slow()).rows)


def test_a_sweep_that_broke_off_goes_on_from_the_folder(cluster, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        DaskExecutor(cluster, tmp_path).sweep(FLOW, EMPTY, interrupted)
    (place,) = tmp_path.iterdir()
    left = max(path.name for path in place.glob("total-*"))
    assert left >= "total-000000004"
    told = []
    same(DaskExecutor(cluster, tmp_path).sweep(FLOW, EMPTY, told.append), Local(1).sweep(FLOW, EMPTY))
    assert told[0].rows > 4 * 8192
    assert [path.name for path in place.iterdir()] == ["total-000000009"]
    same(DaskExecutor(cluster, tmp_path).sweep(FLOW, EMPTY, pytest.fail), Local(1).sweep(FLOW, EMPTY))


def interrupted(progress):
    if progress.rows >= 4 * 8192:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["part", "total"])
def test_damaged_files_are_swept_again(cluster, tmp_path, kind):
    with pytest.raises(KeyboardInterrupt):
        DaskExecutor(cluster, tmp_path).sweep(FLOW, EMPTY, interrupted)
    time.sleep(0.2)  # tasks that were running when the client left
    (place,) = tmp_path.iterdir()
    latest = max(place.glob("total-*"))
    damaged = latest if kind == "total" else place / f"part-{int(latest.name[-9:]):09d}"
    damaged.write_bytes(latest.read_bytes()[:-8])
    same(DaskExecutor(cluster, tmp_path).sweep(FLOW, EMPTY), Local(1).sweep(FLOW, EMPTY))


def test_a_task_that_always_kills_its_worker_ends_with_a_sentence(cluster):
    with pytest.raises(SolverError, match=r"^rows 0 to 8191 were lost 1 times, .*lacks memory: give it more"):
        DaskExecutor(cluster, retries=0).sweep(FLOW, Deadly())


def test_a_cluster_without_workers_ends_with_a_sentence():
    with (
        distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=":0", silence_logs=50) as empty,
        distributed.Client(empty) as client,
        pytest.raises(SolverError, match=r"^the cluster had no worker for 0.5 s \(0 of 9 groups were merged\)"),
    ):
        DaskExecutor(client, patience=0.5).sweep(FLOW, EMPTY)


def test_sums_that_no_worker_has_memory_for_are_refused_before_the_start(cluster):
    with pytest.raises(SolverError, match=r"^a worker has .* GiB, of which sums may take 60%"):
        DaskExecutor(cluster).sweep(FLOW, Moments(1_000_000))


def test_what_cannot_leave_its_process_is_refused(cluster):
    with pytest.raises(SolverError, match="keeps something for every row in one process"):
        DaskExecutor(cluster).sweep(FLOW, Against(EMPTY, Remainder(N, 3)))
    with pytest.raises(DataError, match=r"^Unsendable cannot be sent to the workers"):
        DaskExecutor(cluster).sweep(Flow(Unsendable(X, y), drawn, **OPTIONS), EMPTY)
    with pytest.raises(SolverError, match="give it the folder"):
        KernelClassifier().fit(X, y, executor=DaskExecutor(cluster), checkpoint="here")


class Unsendable(MemorySource):
    def __reduce__(self):
        raise TypeError("it has a lock")


class Counted(Slow):
    """Writes a line to the file ``kills`` for every group that is begun."""

    def update(self, batch):
        if not len(self.rows):
            with open(self.kills, "a") as file:
                file.write(f"{batch.rows[0]}\n")
        time.sleep(self.seconds)
        self.rows = np.concatenate([self.rows, batch.rows])


@pytest.mark.slow
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_workers_killed_at_random_moments_cost_no_bit_and_at_most_a_group_each(tmp_path, seed, durable):
    moments, done, kills = np.random.default_rng(seed), threading.Event(), 0
    flow = Flow(MemorySource(np.repeat(X, 8, axis=0), np.repeat(y, 8)), drawn, **OPTIONS)
    counts, address = tmp_path / "counts", f"tcp://127.0.0.1:{free_port()}"

    def kill():
        nonlocal kills
        while kills < 8 and not done.wait(moments.uniform(1.0, 4.0)):
            which = 1 + moments.integers(2)
            started[which].kill()
            started[which].wait()
            started[which] = process("worker", address)
            kills += 1

    with processes(address) as started, distributed.Client(address, timeout=30) as client:
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            folder = tmp_path / "folder" if durable else None
            found = DaskExecutor(client, folder).sweep(flow, Counted(0.04, counts))
        finally:
            done.set()
            killer.join()
    np.testing.assert_array_equal(found.rows, Local(1).sweep(flow, Slow()).rows)
    groups = -(-len(found.rows) // (flow.chunk * flow.group))
    begun = len(counts.read_text().splitlines())
    print(f"{kills} kills, {begun} groups begun of {groups}")
    assert kills > 0
    if durable:
        assert begun <= groups + kills


@pytest.mark.slow
@pytest.mark.parametrize("again", range(3))
def test_a_scheduler_that_is_killed_ends_with_a_sentence_and_the_folder_goes_on(tmp_path, again):
    address = f"tcp://127.0.0.1:{free_port()}"
    folder = tmp_path / "folder"
    with processes(address) as (scheduler, *_), distributed.Client(address, timeout=30) as client:

        def kill(progress):
            if progress.rows >= (1 + again) * 8192 and scheduler.poll() is None:
                scheduler.kill()

        with pytest.raises(SolverError, match=r"^the (scheduler is gone|cluster had no worker)"):
            DaskExecutor(client, folder, patience=5).sweep(FLOW, Slow(0.02), kill)
    with processes(address), distributed.Client(address, timeout=30) as client:
        told = []
        found = DaskExecutor(client, folder, patience=30).sweep(FLOW, Slow(0.02), told.append)
    assert len(told) < 9
    np.testing.assert_array_equal(found.rows, Local(1).sweep(FLOW, Slow()).rows)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def process(kind, address):
    more = ["--host", address, "--dashboard-address", ":0"]
    if kind == "worker":
        more = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def processes(address):
    """A scheduler and two workers, each a process of its own that nobody else starts again."""
    started = [process("scheduler", address), process("worker", address), process("worker", address)]
    try:
        yield started
    finally:
        for one in started:
            one.kill()
        for one in started:
            one.wait(30)
