"""svmlight text: the same rows as scikit-learn's loader, by blocks of any size; and every error in its place."""

import bz2
import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import bochner
from bochner.errors import DataError
from bochner.sources import libsvm, svmlight
from bochner.sources.svmlight import Bounds, Place, parse

rng = np.random.default_rng(0)


def written(path, text, how=""):
    path = path.with_name(path.name + how)
    opened = {"": open, ".gz": gzip.open, ".bz2": bz2.open}[how]
    with opened(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def dumped(path, rows=500, d=40, zero_based=False, integral=False):
    X = sp.random(rows, d, 0.2, format="lil", random_state=1)
    X[0, 0] = X[0, d - 1] = 1.0  # both ends occur, so that a reader that guesses guesses right
    X = X.tocsr()
    if integral:
        X.data = np.ceil(9 * X.data)
    y = rng.integers(-1, 2, rows)
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    return path


def whole(source, size=8192, start=0):
    chunks = list(source.chunks(size, start))
    assert [chunk.start for chunk in chunks] == list(range(start, source.n_rows, size))
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert all(sp.issparse(chunk.X) and chunk.X.dtype == np.float64 for chunk in chunks)
    return sp.vstack([chunk.X for chunk in chunks], format="csr"), np.concatenate([chunk.y for chunk in chunks])


def same(one, other):
    return one.shape == other.shape and (one != other).nnz == 0


@pytest.mark.parametrize("how", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("block", [900, 1 << 19])
def test_rows_are_those_of_scikit_learn(tmp_path, monkeypatch, how, zero_based, block):
    monkeypatch.setattr(libsvm, "BLOCK", block)
    plain = dumped(tmp_path / "a.svm", zero_based=zero_based)
    path = written(plain, plain.read_bytes(), how)
    X, y = load_svmlight_file(str(plain))
    source = bochner.scan(path)
    assert (source.n_rows, source.d, source.schema.first) == (500, 40, 0 if zero_based else 1)
    for size in (7, 100, 8192):
        found, labels = whole(source, size)
        assert same(found, X)
        np.testing.assert_array_equal(labels, y)
    found, labels = whole(source, 100, start=300)
    assert same(found, X[300:])
    np.testing.assert_array_equal(np.concatenate(list(source.targets(77))), y)


def test_all_that_a_file_may_hold(tmp_path):
    text = (
        "\ufeff# made by hand\r\n"
        "1 qid:7 1:0.5 3:-2e-3 # a comment with 5:6 in it\r\n"
        "\n"
        "   \t\n"
        "-1.5\tqid:8\t2:+4.25\t7:1E2   \n"
        "nan qid:8\n"
        "  +2 qid:09 7:.5"
    )
    for how in ("", ".gz", ".bz2"):
        source = bochner.scan(written(tmp_path / "a.txt", text, how), group="qid")
        (chunk,) = source.chunks()
        expected = [[0.5, 0, -0.002, 0, 0, 0, 0], [0, 4.25, 0, 0, 0, 0, 100], [0] * 7, [0] * 6 + [0.5]]
        np.testing.assert_array_equal(chunk.X.toarray(), expected)
        np.testing.assert_array_equal(chunk.y, [1, -1.5, np.nan, 2])
        assert chunk.group.tolist() == [7, 8, 8, 9]
    skipped = next(bochner.scan(tmp_path / "a.txt").chunks())
    assert skipped.group is None
    assert same(skipped.X, chunk.X)


def test_blocks_and_lines_are_parsed_alike(tmp_path):
    """The slow parser, which names what is wrong, is the oracle of the fast one."""
    for integral in (False, True):
        text = dumped(tmp_path / "a.svm", 200, integral=integral).read_bytes()
        for block in (text, b"# c\n\n" + text.replace(b"\n", b" # x:1\n", 20), b"3\n-2 \n" + text, b"1 0:1e300 2:-0\n"):
            fast = svmlight._at_once(block, Bounds(), False)
            slow = svmlight._line_by_line(block, Place("a"), Bounds(), False)
            assert fast is not None
            for name in ("labels", "indptr", "indices", "values"):
                np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name))
            rows, least, largest = svmlight.survey(block)
            filled = len(slow.indices) > 0
            assert rows == len(slow)
            assert (least, largest) == (slow.indices.min(), slow.indices.max()) if filled else (2**63 - 1, -1)


@pytest.mark.parametrize("seed", range(4))
def test_what_the_fast_parser_takes_the_slow_one_takes_too(seed):
    """Damaged text: the fast parser leaves whatever is unusual to the other, and never reads something else."""
    pick = np.random.default_rng(seed)
    pieces = [
        b" ",
        b":",
        b"\n",
        b"\t",
        b"\r",
        b"#",
        b"-",
        b"+",
        b".",
        b"e",
        b"1",
        b"0",
        b"nan",
        b"qid:",
        b",",
        b"\x00",
        b"\xff",
    ]
    pieces += [b"inf", b"1:", b"\n1 2:3\n", b" 7:1", b"_", b'"', b"1e999", b"  "]
    text = b"1 1:0.5 3:2\n-1 2:1e-3 9:4 # c\n\n+2 qid:3 1:7 2:8\n3\n"
    taken = 0
    for _ in range(800):
        block = text
        for _ in range(pick.integers(1, 4)):
            at = int(pick.integers(len(block)))
            new = pieces[pick.integers(len(pieces))] if pick.random() < 0.8 else b""
            block = block[:at] + new + block[at + int(pick.integers(0, 3)) :]
        for bounds in (Bounds(), Bounds(1, 9)):
            fast = svmlight._at_once(block, bounds, False)
            if fast is None:
                continue
            taken += 1
            slow = svmlight._line_by_line(block, Place("a"), bounds, False)
            for name in ("labels", "indptr", "indices", "values"):
                np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=repr(block))
            filled = len(slow.indices) > 0
            ends = (slow.indices.min(), slow.indices.max()) if filled else (2**63 - 1, -1)
            assert svmlight.survey(block) == (len(slow), *ends), block
    assert taken > 50


def test_numpy_reads_what_pyarrow_reads(tmp_path):
    text = dumped(tmp_path / "a.svm", 300).read_bytes().translate(bytes.maketrans(b" :", b"\n\n"))
    count = len(text.split())
    np.testing.assert_array_equal(svmlight._numbers(text, count), svmlight._numbers_of_numpy(text, count))
    assert svmlight._numbers_of_numpy(b"1\nx\n2\n", 3) is None
    assert svmlight._numbers_of_numpy(b"1\n2\n", 3) is None


GOOD = "1 1:1 2:2\n# nothing\n"
WRONG = {
    "1 1:1 2:x\n": "line 3 (row 1) holds '2:x', whose value is not a number",
    "1 1:1 x:2\n": "line 3 (row 1) holds 'x:2', whose part before the value is not a whole number",
    "1 1.5:2\n": "line 3 (row 1) holds '1.5:2', whose part before the value is not a whole number",
    "red 1:1\n": "line 3 (row 1) has the label 'red', which is not a number",
    "inf 1:1\n": "line 3 (row 1) has the label inf",
    "1 2:1 1:1\n": "line 3 (row 1) has the index 1 after 2",
    "1 2:1 2:1\n": "line 3 (row 1) has the index 2 twice",
    "1 -3:1\n": "line 3 (row 1) has the negative index -3",
    "1 1:nan\n": "line 3 (row 1) has the value nan in column 1",
    "1 1:inf\n": "line 3 (row 1) has the value inf in column 1",
    "1 1:1e400\n": "line 3 (row 1) has the value 1e400 in column 1",
    "1,2 1:1\n": "line 3 (row 1) has several labels (1,2)",
    "1 3\n": "line 3 (row 1) holds '3', which is not index:value",
    "1 3: 4\n": "line 3 (row 1) holds '3:', which is not index:value",
    "1 3 :4\n": "line 3 (row 1) holds '3', which is not index:value",
    "1 3::4\n": "line 3 (row 1) holds '3::4', whose value is not a number",
    "1 3:4:5 6\n": "line 3 (row 1) holds '3:4:5', whose value is not a number",
    "1:2 3:4\n": "line 3 (row 1) has the label '1:2'",
    "1 1:1 2:\x00\n": "line 3 (row 1) holds '2:\\x00'",
    '1 1:1 2:"3"\n': "line 3 (row 1) holds '2:\"3\"'",
    "1 1:1 2:é\n": "line 3 (row 1) holds '2:é'",
    "1 1:0x10\n": "line 3 (row 1) holds '1:0x10'",
    "1 99999999999999999999:1\n": "line 3 (row 1) holds '9",
    "1 99999999999999999:1\n": "line 3 (row 1) has the index 99999999999999999, but the largest known one is 8",
    "1 qid:x 1:1\n": "line 3 (row 1) holds 'qid:x'",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_is_named(tmp_path, line):
    path = written(tmp_path / "a.svm", GOOD + line + "1 1:1\n")
    with pytest.raises(DataError) as error:
        list(bochner.scan(path, n_features=9, zero_based=True).chunks())
    assert str(error.value).startswith(f"{path}: {WRONG[line]}")
    assert error.value.row == 1
    assert "\n" not in str(error.value)


def test_rows_and_lines_are_numbered_across_blocks_and_files(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm, "BLOCK", 50)
    written(tmp_path / "a1.svm", "1 1:1\n" * 30)
    path = written(tmp_path / "a2.svm", "1 1:1\n\n" * 40 + "1 1:x\n")
    with pytest.raises(DataError, match=r"a2.svm: line 81 \(row 70\) holds '1:x'") as error:
        list(bochner.scan([tmp_path / "a1.svm", path]).chunks(16))
    assert error.value.row == 70


def test_indices_count_from_0_or_1(tmp_path):
    one = written(tmp_path / "one.svm", "1 1:1 3:1\n")
    zero = written(tmp_path / "zero.svm", "1 0:1 3:1\n")
    assert [bochner.scan(path).d for path in (one, zero, [one, zero])] == [3, 4, 4]
    assert bochner.scan(one, zero_based=True).d == 4
    with pytest.raises(DataError, match=r"zero.svm: line 1 \(row 0\) has the index 0, but .* zero_based=True"):
        list(bochner.scan(zero, zero_based=False).chunks())
    with pytest.raises(DataError, match=r"one.svm: line 1 \(row 0\) has the index 3, but the largest known one is 2"):
        list(bochner.scan(one, n_features=2).chunks())
    assert bochner.scan(one, n_features=7).d == 7
    model = bochner.scan(zero).schema
    again = bochner.scan(one).with_schema(model)  # a file without a 0 does not start to count from 1
    np.testing.assert_array_equal(next(again.chunks()).X.toarray(), [[0, 1, 0, 1]])
    with pytest.raises(DataError, match="index 3, but the largest known one is 2"):
        list(bochner.scan(one).with_schema(bochner.scan(written(tmp_path / "2.svm", "1 1:1 2:1\n")).schema).chunks())


@pytest.mark.parametrize(("options", "said"), [
    ({"features": ["a"]}, "do not apply"),
    ({"missing": "mean"}, "do not apply"),
    ({"target": "y"}, "the target of libsvm files is their label"),
    ({"group": "g"}, "a group is group='qid'"),
    ({"delimiter": ";"}, "delimiter is for csv files"),
    ({"n_features": 0}, "n_features is a number ≥ 1"),
    ({"zero_based": "no"}, "zero_based is True, False or 'auto'"),
    ({"group": "qid"}, r"line 1 \(row 0\) has no qid"),
])  # fmt: skip
def test_options_that_do_not_fit_are_refused(tmp_path, options, said):
    path = written(tmp_path / "a.svm", GOOD)
    with pytest.raises(DataError, match=said):
        list(bochner.scan(path, **options).chunks())


@pytest.mark.parametrize("how", [".gz", ".bz2"])
def test_a_damaged_packed_file_is_named(tmp_path, how):
    path = written(tmp_path / "a.svm", dumped(tmp_path / "b.svm").read_bytes(), how)
    content = bytearray(path.read_bytes())
    for damaged in (content[: len(content) // 2], content[:5], b"not packed at all"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a.svm\.\w+ cannot be read: "):
            list(bochner.scan(path).chunks())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a.svm\.\w+"):
        list(bochner.scan(path).chunks())


def test_files_without_rows_or_entries_are_refused(tmp_path):
    for text, said in (("# none\n\n", "the source has no rows"), ("1\n2\n", "holds no entry at all")):
        with pytest.raises(DataError, match=said):
            list(bochner.scan(written(tmp_path / "a.svm", text)).chunks())
    source = bochner.scan(tmp_path / "a.svm", n_features=3)
    assert next(source.chunks()).X.toarray().tolist() == [[0.0] * 3] * 2


def test_a_file_that_changes_is_noticed(tmp_path):
    path = written(tmp_path / "a.svm", "1 1:1\n" * 9)
    source = bochner.scan(path)
    before = source.fingerprint()
    assert before == bochner.scan(path).fingerprint()
    written(path, "1 1:1\n" * 8)
    assert source.fingerprint() != before
    with pytest.raises(DataError, match="holds 8 rows, but 9 were counted before; has it changed"):
        list(source.chunks())


def test_parsing_reads_no_more_than_it_is_told():
    rows = parse(b"1 1:1\n2 2:2\n3 3:3\n", Place("a")).rows(1, 3)
    assert (rows.labels.tolist(), rows.indptr.tolist(), rows.indices.tolist()) == ([2, 3], [0, 1, 2], [2, 3])
