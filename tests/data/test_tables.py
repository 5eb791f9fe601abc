"""Data sets from files: what is read, and errors that name the column or the array."""

import numpy as np
import pytest

from understudy.data.tables import hold_out, read_data_arrays


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content) if isinstance(content, str) else np.savez(path, **content)
    return path


@pytest.mark.parametrize(
    ("content", "target", "inputs", "targets"),
    [
        ("a,b,y\n1,2,3\n4,5,6\n", None, [[1, 2], [4, 5]], [3, 6]),
        ("1,2,3\n4,5,6\n", None, [[1, 2], [4, 5]], [3, 6]),
        ("a,b,y\n1,2,3\n4,5,6\n", ["a"], [[2, 3], [5, 6]], [1, 4]),
        ("a,b,y\n1,2,3\n4,5,6\n", ["y", "1"], [[2], [5]], [[3, 1], [6, 4]]),
        ("\ufeffa,y\n1e-3, 2\n\n-4,5\n", None, [[1e-3], [-4]], [2, 5]),
    ],
)
def test_tables(tmp_path, content, target, inputs, targets):
    found = read_data_arrays(write(tmp_path, "t.csv", content), target)
    np.testing.assert_array_equal(found["inputs"], inputs)
    np.testing.assert_array_equal(found["targets"], targets)


def test_archives(tmp_path):
    path = write(tmp_path, "d.npz", {"inputs": np.arange(3.0), "targets": [0, 1, 2], "other": [[1.0], [2.0], [3.0]]})
    assert read_data_arrays(path)["inputs"].shape == (3, 1)
    np.testing.assert_array_equal(read_data_arrays(path, ["other"])["targets"], [[1], [2], [3]])
    both = {"inputs": np.ones((2, 1)), "targets": [1, 2], "held_out_inputs": np.ones((1, 1)), "held_out_targets": [3]}
    assert set(read_data_arrays(write(tmp_path, "h.npz", both))) == set(both)


@pytest.mark.parametrize(
    ("name", "content", "target", "message"),
    [
        ("t.csv", "a,b\n1,2\n3,x\n", None, "Row 3 of t.csv has 'x' in column 'b'"),
        ("t.csv", "1,2\n3,\n", None, "Row 2 of t.csv has '' in column 2"),
        ("t.csv", "a,b\n1,nan\n", None, "'nan' in column 'b'"),
        ("t.csv", "a,b\n1,2,3\n", None, "Row 2 of t.csv has 3 entries; the first row has 2"),
        ("t.csv", "a,b\n1,2\n", ["c"], "no column 'c'; it has a, b"),
        ("t.csv", "a,b\n1,2\n", ["a", "b"], "All columns of t.csv are targets"),
        ("t.csv", "", None, "t.csv is empty"),
        ("t.csv", "a,b\n", None, "a row of numbers"),
        ("d.npz", {"inputs": np.ones((2, 1))}, None, "no array 'targets'; it has inputs"),
        ("d.npz", {"inputs": np.ones((2, 1)), "targets": [1.0]}, None, "2 rows in 'inputs' and 1 in 'targets'"),
        ("d.npz", {"inputs": np.ones((2, 1, 1)), "targets": [1.0, 2.0]}, None, "'inputs' of d.npz must have the shape"),
        (
            "d.npz",
            {"inputs": np.ones((2, 1)), "targets": ["a", "b"]},
            None,
            "'targets' of d.npz must hold real numbers",
        ),
        (
            "d.npz",
            {"inputs": [[np.inf], [1]], "targets": [1, 2]},
            None,
            r"'inputs' of d.npz .* received inf at \(0, 0\)",
        ),
        ("d.npz", "not an archive", None, "d.npz cannot be read"),
        ("d.txt", "1,2\n", None, "ends in .npz or .csv"),
    ],
)
def test_errors_name_the_column_or_the_array(tmp_path, name, content, target, message):
    with pytest.raises(ValueError, match=message):
        read_data_arrays(write(tmp_path, name, content), target)


def test_a_missing_file_and_a_directory_are_named(tmp_path):
    for place in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(ValueError, match="Cannot read the data"):
            read_data_arrays(place)


def test_hold_out_is_the_same_every_time_and_loses_no_row():
    arrays = {"inputs": np.arange(10.0)[:, None], "targets": np.arange(10.0)}
    one, two = hold_out(arrays, 0.3), hold_out(arrays, 0.3)
    assert sorted([*one["targets"], *one["held_out_targets"]]) == list(range(10))
    np.testing.assert_array_equal(one["held_out_inputs"], two["held_out_inputs"])
    assert set(hold_out(arrays, 0.0)) == {"inputs", "targets"}
    for share in (-0.1, 1.0, 0.99):
        with pytest.raises(ValueError, match=r"hold out|train on"):
            hold_out(arrays, share)
