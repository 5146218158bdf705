"""Files of arrays: equal contents are equal bytes, and whatever is not what was written is refused in one sentence."""

import json
import os

import numpy as np
import pytest

from bochner import tensors
from bochner.errors import FileError

ARRAYS = {
    "wide": np.arange(12.0).reshape(3, 4),
    "turned": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "strided": np.arange(20)[::3],
    "number": np.array(2.5),
    "none": np.empty((0, 4)),
    "bytes": np.array([1, 2, 3], dtype=np.uint8),
    "flags": np.array([True, False]),
    "big endian": np.arange(3, dtype=">i4"),
}
ABOUT = {"name": "müsli", "list": [1, 2.5, None, True], "deep": {"a": {}}}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "arrays.bochner"
    tensors.write(path, ABOUT, ARRAYS)
    return path


def test_what_is_written_is_read(path):
    about, arrays = tensors.read(path)
    assert about == ABOUT
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].shape == array.shape
        assert arrays[name].dtype == array.dtype.newbyteorder("=")


def test_equal_contents_are_equal_bytes(path, tmp_path):
    tensors.write(tmp_path / "again", ABOUT, dict(reversed(ARRAYS.items())))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_another_library_reads_the_same_arrays(path):
    numpy_of = pytest.importorskip("safetensors.numpy")
    arrays = numpy_of.load_file(path)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_every_flipped_bit_is_noticed(path, tmp_path):
    content = path.read_bytes()
    damaged = tmp_path / "damaged"
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        damaged.write_bytes(changed)
        if content[place : place + 1] == b" ":
            continue  # what fills the header up may be any blank
        with pytest.raises(FileError, match="damaged"):
            tensors.read(damaged)


@pytest.mark.parametrize("length", [0, 3, 8, 9, 40, -1, -8])
def test_a_file_without_its_end_is_refused(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(FileError, match=r"not a file of bochner|does not have the arrays"):
        tensors.read(path)


def test_bytes_at_the_end_are_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(FileError, match="does not have the arrays"):
        tensors.read(path)


def forged(header):
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(encoded).to_bytes(8, "little") + encoded + bytes(16)


NOTE = {"bochner": json.dumps({"about": "{}", "sha256": "0"})}


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"[" * 100_000, "not JSON"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "not a number"),
        (b"[]", "not a JSON object"),
        (b"\xff\xfe{}", "not JSON"),
        ({}, "not written by bochner"),
        ({"__metadata__": {"bochner": "{}"}}, "unknown form"),
        ({"__metadata__": NOTE, "x": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}, "damaged"),
        ({"__metadata__": NOTE, "x": {"dtype": "F64", "shape": [2**62], "data_offsets": [0, 16]}}, "wrong entry"),
        ({"__metadata__": NOTE, "x": {"dtype": "F64", "shape": [-2, -1], "data_offsets": [0, 16]}}, "wrong entry"),
        ({"__metadata__": NOTE, "x": {"dtype": "F64", "shape": [True, 2], "data_offsets": [0, 16]}}, "wrong entry"),
        ({"__metadata__": NOTE, "x": {"dtype": "F64", "shape": [2.0], "data_offsets": [0, 16]}}, "wrong entry"),
        ({"__metadata__": NOTE, "x": {"dtype": "F64", "shape": [1] * 99, "data_offsets": [0, 8]}}, "wrong entry"),
        ({"__metadata__": NOTE, "x": {"dtype": "object", "shape": [2], "data_offsets": [0, 16]}}, "wrong entry"),
        ({"__metadata__": NOTE, "x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, "does not have"),
        ({"__metadata__": NOTE, "x": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}, "does not have"),
        ({"__metadata__": NOTE, "x": None}, "wrong entry"),
    ],
)
def test_forged_headers_are_refused(tmp_path, header, said):
    path = tmp_path / "forged"
    path.write_bytes(forged(header))
    with pytest.raises(FileError, match=said):
        tensors.read(path)


def test_a_header_beyond_all_measure_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tensors, "LONGEST_HEADER", 50)
    path = tmp_path / "long"
    path.write_bytes(forged(b" " * 60))
    with pytest.raises(FileError, match="more than any"):
        tensors.read(path)
    with pytest.raises(FileError, match="longer than"):
        tensors.write(path, ABOUT, ARRAYS)


def test_what_cannot_be_kept_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(FileError, match="dtype object"):
        tensors.write(tmp_path / "x", {}, {"names": np.array(["a", None], dtype=object)})
    with pytest.raises(ValueError, match="JSON"):
        tensors.write(tmp_path / "x", {"error": float("nan")}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_keeps_what_was_there(path, monkeypatch):
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"arrays.bochner cannot be written: No space left"):
        tensors.write(path, {}, {})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match="nowhere"):
        tensors.write(tmp_path / "nowhere" / "x", {}, {})
    with pytest.raises(FileError, match="cannot be read: No such file"):
        tensors.read(tmp_path / "x")
