"""Files that are damaged, of another kind or of the wrong shape: one sentence that names the fault, exit code 2."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from understudy.cli import app

EYE = np.eye(2, 3)


def invoke(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return done


def refused(word, *words):
    done = invoke(*words)
    assert done.exit_code == 2, done.output
    assert word in " ".join(done.output.split())


def archive(**arrays):
    return lambda file: np.savez(file, **arrays)


def damaged(**arrays):
    """A compressed archive with eight bytes of its first array turned around."""

    def write(file):
        np.savez_compressed(file, **arrays)
        sound = bytearray(file.read_bytes())
        for i in range(90, 98):
            sound[i] ^= 0xFF
        file.write_bytes(bytes(sound))

    return write


def text(content):
    return lambda file: file.write_text(content)


def array(values):
    def write(file):
        with file.open("wb") as stream:
            np.save(stream, values)

    return write


RANDOM = np.random.default_rng(0).normal(size=(30, 3))
TEACHERS = [
    ("t.npz", damaged(incoming=RANDOM), "t.npz cannot be read"),
    ("t.npz", text("no archive"), "t.npz cannot be read"),
    ("t.npz", archive(weights=EYE), "t.npz must hold incoming"),
    ("t.npz", archive(incoming=np.ones(3)), "incoming of t.npz must be a matrix (k, d); received shape (3,)"),
    ("t.npz", archive(incoming=np.zeros((0, 3))), "incoming of t.npz must be a matrix"),
    ("t.npz", archive(incoming=EYE * np.nan), "incoming of t.npz has NaN or infinite entries"),
    ("t.npz", archive(incoming=EYE, outgoing=[1.0]), "as many incoming vectors as outgoing weights; received 2 and 1"),
    ("t.npz", archive(incoming=EYE, bias=[1.0, 2.0, 3.0]), "biases of shape (2,)"),
    ("t.npz", archive(incoming=EYE, offset=[1.0, 2.0]), "offset"),
    ("t.npz", archive(W1=EYE, W2=np.ones((1, 2)), W3=np.ones((1, 1))), "a teacher has one hidden layer"),
    ("t.npy", array(EYE * 1j), "incoming of t.npy must be real numbers"),
    ("t.npy", text(""), "t.npy cannot be read"),
    ("t.csv", text("1,0\n0\n"), "t.csv cannot be read"),
    ("t.csv", text("a,b\n1,0\n"), "t.csv cannot be read"),
    ("t.json", text("[[1, 0], [0]]"), "incoming of t.json must be real numbers in rows of equal length"),
    ("t.json", text("{"), "t.json cannot be read"),
    ("t.json", text('{"incoming": [[1, NaN]]}'), "has NaN or infinite entries"),
    ("t.json", text('{"incoming": [[1, 0]], "activation": "os:system"}'), "os:system"),
    ("t.mat", text(""), "A file ends in .npz, .npy, .csv, .json"),
]


@pytest.mark.parametrize(("name", "write", "word"), TEACHERS)
def test_teachers(name, write, word, tmp_path):
    write(tmp_path / name)
    refused(word, "fit", "--teacher", tmp_path / name, "--student", "1")


def test_an_array_with_the_name_of_an_archive_is_read(tmp_path):
    from understudy.networks.teacher_files import parse_teacher

    array(EYE)(tmp_path / "t.npz")
    np.testing.assert_array_equal(parse_teacher("t.npz", (tmp_path / "t.npz").read_bytes())["incoming"], EYE)


COVARIANCES = [
    ("c.csv", text("1,2\n0,1\n"), "finite and symmetric"),
    ("c.csv", text("1,0\n0,-1\n"), "positive semidefinite"),
    ("c.csv", text("1,2,3\n"), "2 × 2 matrix"),
    ("c.csv", text("1\n-1\n"), "positive semidefinite"),
    ("c.csv", text("1,0,0\n0,1,0\n0,0,1\n"), "2 × 2 matrix"),
    ("c.csv", text("1,0\n0,nan\n"), "NaN or infinite"),
    ("c.npz", archive(a=np.eye(2), b=np.eye(2)), "c.npz must hold one array of numbers and nothing else"),
    ("c.npz", damaged(a=RANDOM), "c.npz cannot be read"),
    ("c.json", text('{"covariance": [[1, 0], [0, 1]]}'), "c.json must hold one array of numbers"),
]


@pytest.mark.parametrize(("name", "write", "word"), COVARIANCES)
def test_covariances(name, write, word, tmp_path):
    write(tmp_path / name)
    refused(word, "fit", "--teacher", "2", "--dim", "2", "--covariance", tmp_path / name)


@pytest.mark.parametrize(
    ("mean", "word"),
    [
        ("1,2", "must be 3 finite numbers; received shape (2,)"),
        ("0,nan,0", "mean"),
        ("0,inf,0", "mean"),
        ("m.csv", "1 axes; received shape (2, 2)"),
    ],
)
def test_means(mean, word, tmp_path):
    np.savetxt(tmp_path / "m.csv", np.eye(2), delimiter=",")
    refused(word, "fit", "--teacher", "2", "--mean", tmp_path / mean if mean.endswith(".csv") else mean)


@pytest.mark.parametrize(
    ("outputs", "word"),
    [("0", "--outputs is a positive whole number"), ("-1", "--outputs"), ("3", "at most 2 outputs")],
)
def test_outputs(outputs, word):
    refused(word, "fit", "--teacher", "2", "--outputs", outputs)


def test_outputs_that_are_not_those_of_the_file(tmp_path):
    np.savez(tmp_path / "t.npz", incoming=EYE, outgoing=np.ones((2, 2)))
    refused("have shape (2, 2); received --outputs 3", "fit", "--teacher", tmp_path / "t.npz", "--outputs", "3")


POINTS = [
    ("p.npz", damaged(incoming=RANDOM), "A point is .json or .npz"),
    ("p.npz", archive(incoming=EYE * 1j, outgoing=[1.0, 1.0]), "A point is .json or .npz"),
    ("p.npz", array(EYE), "A point is .json or .npz"),
    ("p.npz", archive(incoming=EYE, outgoing=[1.0]), "outgoing in"),
    ("p.npz", archive(incoming=EYE * np.nan, outgoing=[1.0, 1.0]), "must be finite"),
    ("p.npz", archive(W1=EYE, W2=np.ones((1, 3))), "layer 2 has weights (1, 3)"),
    ("p.npz", archive(W1=EYE, W2=np.ones((2, 2)), W3=np.ones((1, 2))), "a network of 3 layers"),
]


@pytest.mark.parametrize(("name", "write", "word"), POINTS)
def test_points(name, write, word, tmp_path):
    write(tmp_path / name)
    refused(word, "certify", tmp_path / name, "--teacher", "2")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A fit of one student that stops early, with two seeds."""
    place = tmp_path_factory.mktemp("fit")
    words = ["--teacher", "2", "--student", "1", "--seeds", "3,5", "--max-time", "1", "--out", place, "--json"]
    assert invoke("fit", *words).exit_code == 0
    return next(place.glob("*.nc"))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--student", "2"], "--continue takes the task and its starts from the stored fit. Leave --student out"),
        (["--covariance", "c.csv"], "Leave --covariance out"),
        (["--init-std", "1"], "Leave --init-std out"),
        (["--data", "table.csv"], "Leave --data out"),
        (["--activation", "relu"], "The stored fit has erf; received --activation relu"),
        (["--student-activation", "relu"], "The stored fit has erf; received --student-activation relu"),
        (["--seeds", "2"], "has the seeds 3, 5; received 0, 1, which it has not"),
        (["--tolerance", "0"], "--tolerance must lie between"),
        (["--times", "2,1"], "Snapshot times are increasing"),
        (["--cluster", "tcp://a:1"], "--continue works on this machine"),
    ],
)
def test_what_a_continued_fit_cannot_change(stored, options, word):
    refused(word, "fit", "--continue", stored, *options)


def test_without_seeds_all_stored_ones_are_continued(stored):
    done = invoke("fit", "--continue", stored, "--activation", "erf", "--json")
    assert done.exit_code == 0, done.output
    assert [run["seed"] for run in json.loads(done.stdout)["runs"]] == [3, 5]


@pytest.mark.parametrize("content", [b"", b"no result", b"\x89HDF\r\n\x1a\n" + bytes(100)])
def test_a_file_that_is_not_a_result(content, tmp_path):
    (tmp_path / "fit.nc").write_bytes(content)
    refused("fit.nc", "fit", "--continue", tmp_path / "fit.nc")
    refused("fit.nc", "certify", tmp_path / "fit.nc")
    refused("fit.nc", "split", "--result", tmp_path / "fit.nc")
    refused("fit.nc", "grow", "--result", tmp_path / "fit.nc")


def test_a_place_without_a_result(tmp_path):
    refused("There is no stored fit at", "fit", "--continue", tmp_path / "nothing")
    refused("holds 0 fits (none)", "fit", "--continue", tmp_path)


def test_the_seed_of_a_stored_fit(stored):
    refused("has the seeds 3, 5; received --seed 4", "certify", stored, "--seed", "4")
    refused("leave --teacher and --data out", "certify", stored, "--teacher", "2")
