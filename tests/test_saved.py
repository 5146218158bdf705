"""Model files: what is saved predicts the same bits again, and a changed file is refused or is another valid model."""

import copy
import random
import tracemalloc

import numpy as np
import pytest

import bochner
from bochner import KernelClassifier, KernelRegressor, features, kernels, saved, tensors
from bochner.errors import BochnerError, FileError
from bochner.features.base import registered

rng = np.random.default_rng(0)
X = rng.dirichlet(np.ones(4), 60)
NUMBERS = X @ [1.0, 2.0, 3.0, 4.0]
LABELS = np.array(["a", "b", "c"])[np.digitize(NUMBERS, [2.3, 2.7])]
MAPS = [
    pytest.param(recipe, id=f"{cls.__name__}-{i}") for cls in registered() for i, recipe in enumerate(cls.examples(4))
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.bochner"


@pytest.mark.parametrize("recipe", MAPS)
def test_every_map_is_drawn_again_bit_for_bit(recipe, path):
    rows = X / 4
    drawn = recipe.draw(4, seed=3, sample=rows)
    fitted = KernelRegressor(map=drawn, random_state=0).fit(rows, NUMBERS)
    fitted.save(path)
    model = bochner.load(path)
    np.testing.assert_array_equal(model.predict(rows), fitted.predict(rows))
    assert model.drawn.kernel == fitted.drawn_.kernel


@pytest.mark.parametrize(
    ("options", "y"),
    [
        ({}, LABELS),
        ({}, LABELS == "a"),
        ({}, np.where(LABELS == "a", None, LABELS)),
        ({}, np.digitize(NUMBERS, [2.3, 2.7])),
        ({"calibrate": True}, LABELS),
        ({"loss": "logistic"}, LABELS),
        ({"loss": "squared_hinge"}, LABELS == "a"),
        ({"scaling": "standard"}, LABELS),
        ({"scaling": "norm", "precision": "float32"}, LABELS),
    ],
)
def test_classifiers_come_back(options, y, path):
    options = {name: value for name, value in options.items() if name in KernelClassifier().get_params()}
    fitted = KernelClassifier("gaussian(gamma=2)", n_features=32, random_state=0, **options).fit(X, y)
    fitted.save(path)
    model = bochner.load(path)
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(model.decision(X), fitted.decision_function(X))
    assert model.predict(X).dtype == fitted.predict(X).dtype


def test_columns_by_name_are_part_of_the_model(path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("wxyz"))
    fitted = KernelRegressor("gaussian(gamma=2)", n_features=32, random_state=0).fit(table, NUMBERS)
    fitted.save(path)
    model = bochner.load(path)
    assert model.schema == fitted.model_.schema
    turned = table[list("zyxw")].assign(more="text")
    for rows in (table, turned):
        # Rows that lie otherwise in memory are multiplied in another order.
        np.testing.assert_allclose(model.predict(rows), fitted.predict(table), rtol=1e-12)
    with pytest.raises(BochnerError, match="column 'y'"):
        model.predict(table[list("wxz")])


def test_moments_go_with_a_model_or_alone(path, tmp_path):
    fitted = KernelRegressor("gaussian(gamma=2)", n_features=32, random_state=0).fit(X, NUMBERS)
    fitted.save(path)
    with pytest.raises(FileError, match="carries no moments"):
        saved.load_moments(path)
    fitted.save(path, moments=True)
    saved.save_moments(fitted.moments_, tmp_path / "alone", rows=60)
    for file in (path, tmp_path / "alone"):
        for key, part in saved.load_moments(file)[0].parts.items():
            np.testing.assert_array_equal(part.scatter, fitted.moments_.parts[key].scatter)
            assert part.count == fitted.moments_.parts[key].count
    assert saved.load_moments(tmp_path / "alone")[1] == {"rows": 60}
    with pytest.raises(FileError, match="where model is expected"):
        bochner.load(tmp_path / "alone")


def changed(path, change):
    """The file with a changed description or arrays, and the digest that belongs to them."""
    about, arrays = tensors.read(path)
    change(about, arrays)
    tensors.write(path, about, arrays)


@pytest.fixture
def written(path):
    recipe = features.RandomFourier(kernels.Gaussian(2.0), 32)
    KernelRegressor(map=recipe, random_state=0).fit(X, NUMBERS).save(path)
    return path


def put(*place):
    *keys, last, value = place

    def change(about, arrays):
        for key in keys:
            about = about[key]
        about[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("version", 99), "update it"),
        (put("version", True), "version True"),
        (put("what", "cake"), "'cake'"),
        (put("loss", "zero-one"), "no loss"),
        (put("dtype", "object"), "no precision"),
        (put("outcome", "GREAT"), "GREAT"),
        (put("map", "map", "os.system"), "no map"),
        (put("map", "kernel", "kernel", "eval"), "eval"),
        (put("map", "n_features", 1 << 40), "larger than the limit"),
        (put("map", "n_features", 2.0), "whole number"),
        (put("map", "n_features", 64), "do not belong together"),
        (put("map", "d", 1 << 40), "larger than the limit"),
        (put("map", "d", 3), "do not belong together"),
        (put("map", "seed", -1), "seed"),
        (put("scaling", "kind", "magic"), "scaling is one of"),
        (put("scaling", {"kind": "standard", "shift": [0.0, 1.0], "factor": [1.0, 1.0]}), "does not fit"),
        (put("targets", {"targets": "classes", "labels": [1, 2, 3], "dtype": "<i8"}), "do not fit 3 targets"),
        (put("schema", "plain", -4), "do not belong together"),
        (put("calibration", {"slope": 1.0, "bias": [0.0, 0.0, 0.0], "outcome": "CONVERGED"}), "does not fit"),
        (lambda about, arrays: arrays.update(coef=arrays["coef"] * np.nan), "finite"),
        (lambda about, arrays: arrays.update(coef=arrays["coef"][1:]), "do not belong together"),
        (lambda about, arrays: arrays.update(intercept=np.zeros((1, 1))), "dimensions"),
        (lambda about, arrays: arrays.pop("coef"), "coef"),
        (lambda about, arrays: about.pop("schema"), "schema"),
        (lambda about, arrays: about.clear(), "expected"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(written, change, said):
    changed(written, change)
    with pytest.raises(FileError, match=said) as caught:
        bochner.load(written)
    assert str(written) in str(caught.value)
    assert "\n" not in str(caught.value)


#: bytes that an array of a map may take
LIMIT = 1 << 22
VALUES = [None, True, -1, 0, 1, 2, 7, 1e308, -1e-300, 1 << 31, 1 << 70, "", "a", "coef", [], {}, [[]], [1, 2], {"a": 1}]


def mutated(item, dice):
    """One random place of nested JSON changed: another value, a part dropped, doubled or moved."""
    nodes = []

    def walk(parent, key):
        nodes.append((parent, key))
        value = parent[key]
        for inner in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            walk(value, inner)

    for key in list(item):
        walk(item, key)
    parent, key = dice.choice(nodes)
    what = dice.random()
    if what < 0.6:
        parent[key] = copy.deepcopy(dice.choice(VALUES))
    elif what < 0.75:
        del parent[key]
    elif what < 0.9:
        other, place = dice.choice(nodes)
        parent[key] = copy.deepcopy(other.get(place) if isinstance(other, dict) else other[place % max(1, len(other))])
    elif isinstance(parent, dict):
        parent[str(key) + "x"] = parent.pop(key)
    else:
        parent.insert(key, copy.deepcopy(parent[key]))


def mutate_arrays(arrays, dice):
    name = dice.choice(sorted(arrays))
    array = arrays[name]
    what = dice.randrange(5)
    if what == 0:
        arrays[name] = array.reshape(-1)
    elif what == 1:
        arrays[name] = array[..., :-1]
    elif what == 2:
        arrays[name] = array.astype(dice.choice(["f4", "i8", "u1", "?"]))
    elif what == 3:
        arrays[name] = np.full(array.shape, dice.choice([np.nan, np.inf, 1e300, 0.0]))
    else:
        arrays[dice.choice(sorted(arrays))] = array


def fuzz(makers, rounds, seed):
    """How many mutations were refused; anything but a model that predicts or the library's own error escapes."""
    dice = random.Random(seed)
    refused = 0
    tracemalloc.reset_peak()
    start = tracemalloc.get_traced_memory()[0]
    for i in range(rounds):
        about, arrays = copy.deepcopy(makers[i % len(makers)])
        with np.errstate(all="ignore"):
            for _ in range(dice.choice([1, 1, 1, 2, 5])):
                if dice.random() < 0.8:
                    mutated(about, dice)
                else:
                    mutate_arrays(arrays, dice)
        try:
            saved._require("file", about, "model")
            with np.errstate(all="ignore"):
                saved.revived("file", about, arrays, LIMIT).predict(X[:2] / 4)
        except BochnerError:
            refused += 1
    assert tracemalloc.get_traced_memory()[1] - start < 8 * LIMIT
    return refused


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.fixture(scope="module")
def makers(tmp_path_factory):
    """Descriptions and arrays of models of every map."""
    folder = tmp_path_factory.mktemp("models")
    made = []
    for cls in registered():
        for recipe in cls.examples(4):
            drawn = recipe.draw(4, seed=3, sample=X / 4)
            KernelClassifier(map=drawn, random_state=0).fit(X / 4, LABELS).save(folder / "m")
            made.append(tensors.read(folder / "m"))
    return made


def test_mutated_descriptions_are_refused_or_are_models(makers, traced):
    rounds = 2000
    refused = fuzz(makers, rounds, 0)
    assert 0.3 * rounds < refused < rounds


@pytest.mark.slow
def test_many_mutated_descriptions_are_refused_or_are_models(makers, traced):
    fuzz(makers, 20_000, 1)
