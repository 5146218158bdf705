"""The page of a model: whole, self-contained, and true to what it shows."""

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score, recall_score

from bochner import KernelClassifier, KernelRegressor, saved, scan
from bochner.errors import DataError
from bochner.report import charts, page, write_page
from bochner.report.truth import compare

rng = np.random.default_rng(0)
X = rng.normal(size=(900, 3))
PRICE = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=900)
KIND = np.array(["<low>", "mid", "high"])[np.digitize(PRICE, [-0.7, 0.7])]
WEIGHT = rng.uniform(0.5, 2.0, 300)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    models = {
        "numbers": KernelRegressor(random_state=0).fit(X[:600], PRICE[:600]),
        "classes": KernelClassifier("gaussian(gamma=0.3)", 128, random_state=0).fit(X[:600], KIND[:600]),
        "selected": KernelRegressor("gaussian(gamma=0.3) + linear()", 64, weights="cv", random_state=0).fit(
            X[:600], PRICE[:600]
        ),
        "components": KernelRegressor("gaussian(gamma=0.3)", 64, pca="cv", random_state=0).fit(X[:600], PRICE[:600]),
        "logistic": KernelClassifier("gaussian(gamma=0.3)", 64, loss="logistic", random_state=0).fit(
            X[:600], KIND[:600]
        ),
    }
    for name, model in models.items():
        model.save(folder / name, moments=True)
    return {name: saved.opened(folder / name) for name in models}


def held_out(name, weight=None):
    y = KIND[600:] if name in ("classes", "logistic") else PRICE[600:]
    return scan(X[600:], target=y, weight=weight)


class Reader(HTMLParser):
    """Tags that are open, addresses, and the text of charts."""

    void = frozenset({"meta", "path", "rect", "circle"})

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.told, self.headings = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        self.told += [value for name, value in attributes if name == "aria-label"]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.void:
            self.handle_endtag(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.mark.parametrize("name", ["numbers", "classes", "selected", "components", "logistic"])
def test_a_page_is_whole_and_needs_nothing_else(opened, name, tmp_path):
    write_page(tmp_path / "r.html", opened[name], held_out(name))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert reader.addresses == []
    assert "http" not in text
    assert "nan" not in re.sub(r"<[^>]*>", "", text).lower()
    assert "NaN" not in text
    assert len(text) < 200_000
    assert {"What was chosen, and why", "The data", "How close the map is to its kernel"} <= set(reader.headings)
    assert ("Cross-validation" in reader.headings) == (name != "logistic")
    assert ("Which kernels matter" in reader.headings) == (name == "selected")
    assert ("Kernels that were tried" in reader.headings) == (name == "numbers")
    assert ("Classes, on held-out rows" in reader.headings) == (name in ("classes", "logistic"))
    assert ("Residuals, on held-out rows" in reader.headings) == (name not in ("classes", "logistic"))
    assert all(len(words) > 20 for words in reader.told)


def test_labels_are_text_and_not_tags(opened):
    text = page(opened["classes"], held_out("classes"))
    assert "&lt;low&gt;" in text
    assert "<low>" not in text


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_scores_are_those_of_scikit_learn(opened, weight):
    model, truth = opened["numbers"].model, compare(opened["numbers"].model, held_out("numbers", weight))
    predicted = model.predict(X[600:])
    assert truth.scores["r2"] == pytest.approx(r2_score(PRICE[600:], predicted, sample_weight=weight))
    assert truth.scores["mae"] == pytest.approx(mean_absolute_error(PRICE[600:], predicted, sample_weight=weight))
    assert truth.residuals[1].sum() == pytest.approx(300, abs=4)
    model, truth = opened["classes"].model, compare(opened["classes"].model, held_out("classes", weight))
    predicted = model.predict(X[600:])
    assert truth.scores["accuracy"] == pytest.approx(accuracy_score(KIND[600:], predicted, sample_weight=weight))
    recall = recall_score(KIND[600:], predicted, average=None, sample_weight=weight)
    np.testing.assert_allclose(truth.classes.recall, recall)
    found = log_loss(KIND[600:], model.probabilities(X[600:]), sample_weight=weight)
    assert truth.scores["log_loss"] == pytest.approx(found)
    said, came, mass = truth.classes.reliability
    assert mass.sum() == pytest.approx(3 * (300 if weight is None else weight.sum()))
    assert np.average(said, weights=mass) == pytest.approx(1 / 3)
    assert np.average(came, weights=mass) == pytest.approx(1 / 3)


def test_rows_without_a_target_are_no_truth(opened):
    with pytest.raises(DataError, match="no target"):
        compare(opened["numbers"].model, scan(X[600:]))
    with pytest.raises(DataError, match="no row has a target"):
        compare(opened["numbers"].model, scan(X[600:], target=np.full(300, np.nan)))


def test_charts_leave_out_what_they_cannot_show():
    line = charts.Line("one", [0.0, 1.0, 10.0, 100.0], [1.0, np.inf, 2.0, 3.0])
    chart = charts.lines("Title", "x", "y", [line], log_x=True, words="What it shows.")
    assert chart.count("<circle") == 2
    assert 'aria-label="Title. What it shows."' in chart
    assert charts.lines("Title", "x", "y", [charts.Line("none", [np.nan], [1.0])]) == ""
    assert html.escape("a & b") in charts.bars("t", ["a & b"], [1.0], str, "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1200, "dark")])
def test_a_browser_shows_it(opened, tmp_path, width, scheme):
    write_page(tmp_path / "r.html", opened["classes"], held_out("classes"))
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    shot = tmp_path / "r.png"
    command = ["chromium", *options, *dark, f"--window-size={width},3000", f"--screenshot={shot}"]
    subprocess.run([*command, f"file://{tmp_path / 'r.html'}"], check=True, capture_output=True, timeout=120)
    pyplot = pytest.importorskip("matplotlib.image")
    image = pyplot.imread(shot)[..., :3]
    assert (image.mean() < 0.4) == (scheme == "dark")
    assert image.std(axis=(0, 1)).max() > 0.03
