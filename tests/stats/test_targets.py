"""Targets: labels of any one type become codes, numbers become columns, gaps become unlabelled rows."""

import json

import numpy as np
import pytest

from bochner.errors import DataError
from bochner.stats.targets import Classes, Numbers, learn_targets, missing, targets_from_json

LABELS = {
    "integers": np.array([3, -1, 3, 7, -1]),
    "floats": np.array([0.5, 2.0, 0.5, np.nan, 2.0]),
    "booleans": np.array([True, False, False, True, True]),
    "text": np.array(["cat", "dog", "cat", "ant", "dog"]),
    "objects": np.array(["cat", None, "ant", "dog", "cat"], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_become_codes_and_come_back(name):
    y = LABELS[name]
    targets = learn_targets(iter([y[:2], y[2:]]), classify=True)
    codes, labelled = targets.encode(y)
    gaps = missing(y)
    np.testing.assert_array_equal(labelled, ~gaps)
    assert (codes[gaps] == -1).all()
    assert targets.labels[codes[labelled]].tolist() == y[labelled].tolist()
    assert targets.outputs == len(set(y[labelled].tolist()))
    assert targets.labels.tolist() == sorted(targets.labels.tolist())


@pytest.mark.parametrize("name", LABELS)
def test_classes_as_json(name):
    targets = learn_targets(iter([LABELS[name]]), classify=True)
    again = targets_from_json(json.loads(json.dumps(targets.to_json())))
    assert isinstance(again, Classes)
    assert again.labels.dtype == targets.labels.dtype
    np.testing.assert_array_equal(again.labels, targets.labels)


def test_a_label_that_is_unknown_is_named_with_its_row():
    targets = Classes(np.array(["a", "c"]))
    with pytest.raises(DataError, match="row 102 has the label 'b', which is none of the 2 known classes") as caught:
        targets.encode(np.array(["a", "c", "b"]), start=100)
    assert caught.value.row == 102
    with pytest.raises(DataError, match="none of the 2 known classes"):
        targets.encode(np.array([1, 2]))
    with pytest.raises(DataError, match="none of the 2 known classes"):
        Classes(np.array([1, 2])).encode(np.array([3]))


def test_numbers_become_columns_and_gaps_unlabelled_rows():
    y = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0]])
    values, labelled = Numbers(2, False).encode(y)
    assert labelled.tolist() == [True, False, True]
    np.testing.assert_array_equal(values[labelled], y[[0, 2]])
    flat, labelled = Numbers().encode(np.array([1, None, 3], dtype=object))
    assert flat.shape == (3, 1)
    assert labelled.tolist() == [True, False, True]
    assert learn_targets(iter([y]), classify=False) == Numbers(2, False)
    assert learn_targets(iter([y[:, 0]]), classify=False) == Numbers(1, True)


def test_numbers_that_are_wrong_are_refused():
    with pytest.raises(DataError, match="row 11 has an infinite target"):
        Numbers().encode(np.array([1.0, np.inf]), start=10)
    with pytest.raises(DataError, match="the target of row 10 or later is not a number"):
        Numbers().encode(np.array(["a", "b"]), start=10)
    with pytest.raises(DataError, match="has 2 columns, 1 are expected"):
        Numbers().encode(np.ones((4, 2)))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([1, 1, 1]), "one class only"),
        (np.array([np.nan, np.nan]), "no labelled rows"),
        (np.array([1, "a", 2.5], dtype=object), "cannot be ordered together"),
        (np.ones((3, 2)), "one column of labels"),
    ],
)
def test_labels_that_say_nothing_are_refused(y, message):
    with pytest.raises(DataError, match=message):
        learn_targets(iter([y]), classify=True)


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="no rows"):
        learn_targets(iter([]), classify=False)
    with pytest.raises(DataError, match="no labelled rows"):
        learn_targets(iter([]), classify=True)


@pytest.mark.parametrize(
    "item",
    [
        None,
        {},
        {"targets": "words"},
        {"targets": "numbers"},
        {"targets": "classes", "labels": [1], "dtype": "V8"},
        {"targets": "classes", "labels": ["a"], "dtype": "<i8"},
    ],
)
def test_other_json_is_refused(item):
    with pytest.raises(DataError):
        targets_from_json(item)


def test_numbers_as_json():
    for targets in (Numbers(), Numbers(3, False)):
        assert targets_from_json(json.loads(json.dumps(targets.to_json()))) == targets
