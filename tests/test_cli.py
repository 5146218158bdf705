"""The command."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, r2_score, recall_score

import bochner as bochner_package
from bochner import KernelRegressor, features, kernels
from bochner.cli import main

rng = np.random.default_rng(0)
X = rng.normal(size=(900, 3))
PRICE = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=900)
KIND = np.where(PRICE > 0.5, "dear", "cheap")
FIT = ("--drop", "kind", "--kernel", "gaussian(gamma=0.3)", "-D", "64", "--threads", "1")


def bochner(*arguments):
    """The command in a process of its own."""
    program = f"import sys; sys.argv = ['bochner', *{list(arguments)!r}]; from bochner.cli import main; main()"
    return subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=300)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """The command in this process: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["bochner", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return caught.value.code or 0, out, err

    return run


@pytest.fixture
def files(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = {f"x{j}": X[:, j] for j in range(3)}
    table = pa.table({**names, "price": PRICE, "kind": KIND})
    parquet.write_table(table[:500], tmp_path / "a.parquet", write_page_checksum=True)
    parquet.write_table(table[500:700], tmp_path / "b.parquet", write_page_checksum=True)
    parquet.write_table(table[700:], tmp_path / "c.parquet")
    return tmp_path


def fitted(run, *more, data="a.parquet", target="price", output="m.bochner"):
    code, out, err = run("fit", data, "--target", target, *FIT, *more, "-o", output)
    assert code == 0, err
    return out


def test_a_model_is_fitted_scored_and_predicts(run, files):
    report = fitted(run)
    for word in ("regression", "gaussian(gamma=0.3)", "500 rows", "penalty"):
        assert word in report
    code, out, _ = run("score", "m.bochner", "b.parquet", "--target", "price", "--json")
    found = json.loads(out)
    assert code == 0
    model = bochner_package.load(files / "m.bochner")
    predicted = model.predict(X[500:700])
    assert found["rows"] == 200
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((predicted - PRICE[500:700]) ** 2)))
    assert found["mae"] == pytest.approx(np.mean(np.abs(predicted - PRICE[500:700])))
    assert found["r2"] == pytest.approx(r2_score(PRICE[500:700], predicted))
    assert found["r2"] > 0.9
    _, out, _ = run("predict", "m.bochner", "b.parquet")
    np.testing.assert_allclose(np.array(out.split()[1:], dtype=float), predicted, rtol=1e-9)
    run("predict", "m.bochner", "b.parquet", "-o", "p.npy")
    np.testing.assert_allclose(np.load(files / "p.npy"), predicted, rtol=1e-9)


def test_classes_are_told_from_numbers(run, files):
    code, out, err = run("fit", "a.parquet", "--target", "kind", "--drop", "price", *FIT[2:], "-o", "m.bochner")
    assert code == 0, err
    assert "classification; the target is text" in out
    _, out, _ = run("score", "m.bochner", "b.parquet", "--target", "kind", "--json")
    found = json.loads(out)
    model = bochner_package.load(files / "m.bochner")
    truth, predicted = KIND[500:700], model.predict(X[500:700])
    assert found["accuracy"] == pytest.approx(np.mean(predicted == truth))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, predicted))
    assert found["log_loss"] == pytest.approx(log_loss(truth, model.probabilities(X[500:700])))
    recall = recall_score(truth, predicted, average=None)
    np.testing.assert_allclose([row["recall"] for row in found["classes"]], recall)
    _, out, _ = run("predict", "m.bochner", "b.parquet", "--probabilities")
    assert out.splitlines()[0] == "prediction,p(cheap),p(dear)"
    run("predict", "m.bochner", "b.parquet", "--probabilities", "-o", "p.parquet")
    table = pytest.importorskip("pyarrow.parquet").read_table(files / "p.parquet")
    assert table.column("prediction").to_pylist() == predicted.tolist()


def test_statistics_of_several_places_make_the_model_of_all_rows(run, files):
    fitted(run, "--moments", "--scaling", "none", output="base.bochner")
    for name, first in (("b", 500), ("c", 700)):
        options = ("--target", "price", "--drop", "kind", "--first", first, "-o", f"{name}.moments")
        assert run("moments", "base.bochner", f"{name}.parquet", *options)[0] == 0
    assert run("merge", "b.moments", "c.moments", "-o", "bc.moments")[0] == 0
    assert run("solve", "base.bochner", "bc.moments", "-o", "solved.bochner")[0] == 0
    for name, start in (("b", "base"), ("c", "one")):
        options = ("--target", "price", "--drop", "kind", "-o", "one.bochner")
        assert run("update", f"{start}.bochner", f"{name}.parquet", *options)[0] == 0
    base, *others = (bochner_package.load(files / f"{name}.bochner") for name in ("base", "solved", "one"))
    whole = KernelRegressor(map=base.drawn, random_state=0, scaling="none").fit(X, PRICE)
    for model in others:
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-8)
    options = ("--target", "price", "--drop", "kind", "--first", 700, "-o", "less.bochner")
    assert run("forget", "one.bochner", "c.parquet", *options)[0] == 0
    ab = KernelRegressor(map=base.drawn, random_state=0, scaling="none").fit(X[:700], PRICE[:700])
    np.testing.assert_allclose(bochner_package.load(files / "less.bochner").predict(X), ab.predict(X), atol=1e-7)
    fitted(run, "--moments", "--seed", "7", output="other.bochner")
    code, _, err = run("solve", "other.bochner", "bc.moments", "-o", "never.bochner")
    assert code == 2
    assert "different maps" in err
    assert not (files / "never.bochner").exists()


def test_another_penalty_needs_no_rows(run, files):
    fitted(run, "--moments")
    fitted(run, "--alpha", "3.5", output="direct.bochner")
    assert run("solve", "m.bochner", "--alpha", "3.5", "-o", "again.bochner")[0] == 0
    direct, again = (bochner_package.load(files / f"{name}.bochner") for name in ("direct", "again"))
    np.testing.assert_allclose(again.solution.coef, direct.solution.coef, rtol=1e-12)


def test_a_deviation_needs_moments(run, files):
    fitted(run)
    code, _, err = run("predict", "m.bochner", "b.parquet", "--deviation")
    assert code == 2
    assert "moments" in err
    fitted(run, "--moments")
    _, out, _ = run("predict", "m.bochner", "b.parquet", "--deviation")
    assert out.splitlines()[0] == "prediction,deviation"
    assert len(out.splitlines()) == 201


def test_kernels_are_compared_on_a_sample(run, files):
    code, out, _ = run("choose", "a.parquet", "--target", "price", "--drop", "kind", "-D", "64")
    assert code == 0
    assert "next: bochner fit a.parquet --kernel" in out
    _, out, _ = run("choose", "a.parquet", "--target", "price", "--drop", "kind", "-D", "64", "--json")
    errors = [row["error"] for row in json.loads(out)["tried"]]
    assert errors[0] == min(errors)


def test_files_are_verified_and_inspected(run, files):
    fitted(run, "--moments")
    code, out, _ = run("verify", "m.bochner", "a.parquet", "c.parquet")
    assert code == 0
    sound, checked, bare = out.splitlines()
    assert "digest" in sound
    assert "every page with its checksum" in checked
    assert "no page checksums" in bare
    for name in ("m.bochner", "a.parquet"):
        content = bytearray((files / name).read_bytes())
        content[len(content) // 3] ^= 1
        (files / name).write_bytes(content)
        code, out, _ = run("verify", name)
        assert code == 1
        assert out.startswith("WRONG")
    code, out, _ = run("inspect", "c.parquet")
    assert "x0 (number)" in out
    fitted(run, "--moments", data="b.parquet")
    code, out, _ = run("inspect", "m.bochner")
    assert "x0, x1, x2" in out
    assert "gaussian(gamma=0.3)" in out


def test_a_model_is_exported_or_refused(run, files):
    pytest.importorskip("onnx")
    rows = np.abs(X)
    for name, recipe in (
        ("fourier", features.RandomFourier(kernels.Gaussian(0.3), 32)),
        ("mercer", features.Mercer1D(kernels.Chi2(), 12)),
    ):
        KernelRegressor(map=recipe, alpha=0.1, random_state=0).fit(rows, PRICE).save(files / f"{name}.bochner")
    assert run("export", "fourier.bochner", "-o", "f.onnx")[0] == 0
    assert (files / "f.onnx").stat().st_size > 0
    code, _, err = run("export", "mercer.bochner", "-o", "m.onnx")
    assert code == 2
    assert "Mercer1D has no form in ONNX" in err
    assert not (files / "m.onnx").exists()


def test_a_killed_fit_goes_on_and_clears_up(run, files):
    fitted(run)
    fitted(run, "--checkpoint", "state", output="kept.bochner")
    assert not (files / "state").exists()
    plain, kept = (bochner_package.load(files / f"{name}.bochner") for name in ("m", "kept"))
    np.testing.assert_array_equal(plain.solution.coef, kept.solution.coef)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "nowhere.parquet", "--target", "y", "-o", "m"), "nowhere.parquet"),
        (("fit", "a.parquet", "--target", "cost", "-o", "m"), "cost"),
        (("fit", "a.parquet", "--target", "price", "-k", "gausian()", "-o", "m"), "gausian"),
        (("fit", "a.parquet", "--target", "price", "-D", "many", "-o", "m"), "neither a whole number"),
        (("fit", "a.parquet", "--target", "price", "--memory", "much", "-o", "m"), "no size"),
        (("fit", "a.parquet", "--target", "price", "-o", "nowhere/m"), "no folder"),
        (("fit", "a.parquet", "--target", "price", "--loss", "logistic", "-o", "m"), "is for classes"),
        (("fit", "a.parquet", "-o", "m"), "target"),
        (("predict", "a.parquet", "b.parquet"), "not a file of bochner"),
        (("predict", "nowhere.bochner", "b.parquet"), "nowhere.bochner"),
        (("forget", "m", "b.parquet", "-o", "m"), "--first"),
    ],
)
def test_what_is_wrong_is_one_sentence(run, files, arguments, said):
    before = sorted(files.iterdir())
    code, out, err = run(*arguments)
    assert code == 2
    assert said in err
    assert out == ""
    assert sorted(files.iterdir()) == before


def test_the_demo_shows_kernels_at_work(run, tmp_path):
    pytest.importorskip("pyarrow")
    code, out, err = run("demo", "--rows", "20000", "-D", "64", "-o", tmp_path / "page.html")
    assert code == 0, err
    rows = [line for line in out.splitlines() if "(" in line and "[" in line and not line.startswith("kernel")]
    assert len(rows) == 7
    errors = [float(re.search(r"(\S+) \[", row)[1]) for row in rows]
    assert max(errors) < 0.15
    assert max(float(re.search(r"\] +(0\.\d+)", row)[1]) for row in rows) > 0.97
    table = re.findall(r"^(linear model|exact|gradient|bochner).*? {2}(0\.\d+) ", out, re.MULTILINE)
    accuracy = {name: float(value) for name, value in table}  # of bochner the widest, which comes last
    assert len(table) == 5
    assert accuracy["bochner"] > accuracy["linear model"] + 0.1
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


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


def test_a_cluster_of_processes_fits_the_same_model(run, files):
    pytest.importorskip("distributed")
    fitted(run, output="here.bochner")
    command = ("fit", "a.parquet", "--target", "price", *FIT, "-o", "there.bochner", "--checkpoint", "state", "-q")
    done = bochner(
        *(str(files / word) if word.endswith((".parquet", ".bochner", "state")) else word for word in command),
        "--dask",
        "local:1",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (files / "state").exists()
    here, there = (bochner_package.load(files / name) for name in ("here.bochner", "there.bochner"))
    np.testing.assert_array_equal(here.predict(X), there.predict(X))
    code, _, err = run(*command, "--dask", "local:none")
    assert code != 0
    assert "local:N starts N worker processes" in err
