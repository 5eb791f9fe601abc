"""`understudy fit --data` and `understudy certify --data`: small files, stored results, and bad input."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import understudy as us
from understudy.cli import app
from understudy.data.tables import hold_out
from understudy.experiments import DataFit

runner = CliRunner()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table with a target that two tanh neurons fit, and class labels, in files."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = np.tanh(x @ [1.0, 0.5]) - 0.5 * np.tanh(x @ [0.3, -1.0]) + 0.05 * rng.normal(size=40)
    np.savetxt(folder / "table.csv", np.c_[x, y], delimiter=",", header="a,b,y", comments="")
    np.savez(folder / "classes.npz", inputs=x, targets=(y > 0).astype(int), three=np.arange(40) % 3, half=y)
    (folder / "bad.csv").write_text("a,b,y\n1,2,3\n4,oops,6\n")
    return folder


def test_a_table_is_fitted_stored_certified_and_read_again(place, tmp_path):
    words = ["fit", "--data", str(place / "table.csv"), "--student", "2", "--activation", "tanh", "--seeds", "2"]
    words += ["--init-std", "0.5", "--out", str(tmp_path), "--json"]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["task"]["cost"] == "squared"
    rows = np.loadtxt(place / "table.csv", delimiter=",", skiprows=1)
    split = hold_out({"inputs": rows[:, :2], "targets": rows[:, 2]}, 0.2)
    (file,) = tmp_path.glob("fit-*.nc")
    runs = us.open(file)
    for run, stored in zip(runs, told["runs"], strict=True):
        network = run.parameters
        for prefix, loss in (("", run.loss), ("held_out_", run.held_out_loss)):
            gap = np.asarray(network(jnp.asarray(split[f"{prefix}inputs"]), "tanh")) - split[f"{prefix}targets"]
            assert loss == pytest.approx(np.mean(gap**2), rel=1e-10)
        assert stored["held_out_loss"] == run.held_out_loss
        assert stored["kind"] == "minimum"
    assert "held out" in repr(runs)
    again = runner.invoke(app, [word for word in words if word != "--json"])
    assert "2 seeds reused" in again.stdout.replace("\n", " ")
    assert "32 rows to train on, 8 held out" in again.stdout.replace("\n", " ")

    found = runner.invoke(app, ["certify", str(file), "--seed", "1", "--follow", "--json"])
    assert found.exit_code == 0, found.output
    verdict = json.loads(found.stdout)
    assert (verdict["kind"], verdict["destinations"]) == ("minimum", [])
    assert verdict["loss"] == pytest.approx(runs[1].loss, rel=1e-12)
    np.savez(tmp_path / "point.npz", incoming=runs[1].parameters.incoming, outgoing=runs[1].parameters.outgoing)
    same = ["certify", str(tmp_path / "point.npz"), "--data", str(place / "table.csv"), "--activation", "tanh"]
    other = json.loads(runner.invoke(app, [*same, "--held-out", "0.2", "--json"]).stdout)
    assert other["loss"] == pytest.approx(verdict["loss"], rel=1e-12)


def test_a_saddle_on_data_is_followed_to_a_minimum(place, tmp_path):
    """A network without outgoing weights on one side: the origin of one neuron is a strict saddle."""
    np.savez(tmp_path / "zero.npz", incoming=np.zeros((1, 2)), outgoing=np.zeros(1))
    words = ["certify", str(tmp_path / "zero.npz"), "--data", str(place / "table.csv"), "--activation", "tanh"]
    done = runner.invoke(app, [*words, "--follow", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["kind"] == "strict saddle"
    assert {end["kind"] for end in told["destinations"]} == {"minimum"}
    assert all(end["loss"] < told["loss"] for end in told["destinations"])
    shown = runner.invoke(app, [*words, "--follow"])
    assert "+ direction 1" in shown.stdout


@pytest.mark.parametrize(
    ("options", "loss"),
    [
        ({"student": 3, "cost": "logistic"}, np.log(2)),
        ({"student": 3, "cost": "cross-entropy", "bias": "trained"}, np.log(2)),
        ({"layers": (3, 2), "cost": "cross-entropy"}, np.log(2)),
        ({"layers": (3,), "cost": "logistic", "penalty": 0.1}, np.log(2)),
        ({"student": 3, "cost": "cross-entropy", "penalty": 0.1}, np.log(2)),
    ],
)
def test_costs_at_zero_and_descriptions_from_their_configuration(place, options, loss):
    with np.load(place / "classes.npz") as arrays:
        data = {"inputs": arrays["inputs"], "targets": arrays["targets"]}
    fit = DataFit(**options, activation="tanh", arrays=hold_out(data, 0.25))
    task = fit.task()
    assert float(task.loss(np.zeros(task.size))) == pytest.approx(loss)
    assert fit.held_out_loss(task.unflatten(jnp.zeros(task.size))) == pytest.approx(loss)
    assert DataFit.of(json.loads(json.dumps(fit.configuration())), dict(fit.arrays)) == fit


@pytest.mark.thorough
def test_a_deep_network_learns_classes_with_a_penalty(place):
    words = [
        "fit",
        "--data",
        str(place / "classes.npz"),
        "--layers",
        "3",
        "--cost",
        "cross-entropy",
        "--penalty",
        "0.01",
    ]
    done = runner.invoke(app, [*words, "--activation", "tanh", "--seeds", "1", "--json"])
    assert done.exit_code == 0, done.output
    (run,) = json.loads(done.stdout)["runs"]
    assert run["kind"] == "minimum"
    assert run["held_out_loss"] < 0.6


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--data", "{}/bad.csv"], "Row 3 of bad.csv has 'oops' in column 'b'"),
        (["--data", "{}/nowhere.csv"], "nowhere.csv"),
        (["--data", "{}/table.csv", "--target", "z"], "no column 'z'; it has a, b, y"),
        (["--data", "{}/classes.npz", "--target", "labels"], "no array 'labels'"),
        (["--data", "{}/table.csv", "--cost", "hinge"], "--cost is 'squared', 'cross-entropy', 'logistic'"),
        (["--data", "{}/classes.npz", "--target", "half", "--cost", "cross-entropy"], "Class labels are whole numbers"),
        (
            ["--data", "{}/classes.npz", "--target", "three", "--cost", "logistic"],
            "Targets of the logistic cost are 0 and 1",
        ),
        (["--data", "{}/table.csv", "--penalty", "-1"], "--penalty is a positive number"),
        (["--data", "{}/table.csv", "--layers", "4-x"], "--layers are widths"),
        (["--data", "{}/table.csv", "--layers", "4", "--student", "2"], "--student or --layers"),
        (["--data", "{}/table.csv", "--layers", "4", "--bias", "none"], "Leave --bias out"),
        (["--data", "{}/table.csv", "--teacher", "3"], "--teacher does not go with --data"),
        (["--data", "{}/table.csv", "--held-out", "1.5"], "--held-out is a share"),
        (["--cost", "squared"], "--cost goes with --data"),
        (["--outputs", "9", "--teacher", "3"], "at most 3 outputs"),
        (["--activation", "x*foo(x)"], "no function 'foo'"),
        (["--activation", "nowhere_at_all:f"], "cannot be imported"),
    ],
)
def test_bad_input_is_named_and_costs_nothing(place, options, word):
    done = runner.invoke(app, ["fit", *(option.format(place) for option in options)])
    assert done.exit_code == 2, done.output
    assert word in done.output.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "--teacher K, --teacher FILE or --data FILE"),
        (["--teacher", "2", "--data", "{}/table.csv"], "not both"),
        (["--data", "{}/table.csv", "--target", "a,b"], "1 columns of inputs"),
        (["--data", "{}/table.csv", "--sphere"], "--sphere goes with --teacher"),
        (["--teacher", "2", "--cost", "squared"], "--cost goes with --data"),
        (["--teacher", "2", "--seed", "1"], "--seed chooses a run of a stored fit"),
    ],
)
def test_certify_says_what_is_wrong(place, tmp_path, options, word):
    np.savez(tmp_path / "point.npz", incoming=np.eye(2), outgoing=np.ones(2))
    done = runner.invoke(app, ["certify", str(tmp_path / "point.npz"), *(option.format(place) for option in options)])
    assert done.exit_code == 2, done.output
    assert word in done.output.replace("\n", " ")


def test_a_point_whose_arrays_do_not_fit_is_named(tmp_path):
    np.savez(tmp_path / "point.npz", incoming=np.eye(2), outgoing=np.ones(2), bias=np.ones(3))
    done = runner.invoke(app, ["certify", str(tmp_path / "point.npz"), "--teacher", "2"])
    assert done.exit_code == 2
    assert "bias in" in done.output


def test_outputs_give_orthonormal_teachers_several_outputs():
    from understudy.commands.describing import describe

    teacher = describe({"teacher": "3", "outputs": 2}).make_teacher()
    np.testing.assert_array_equal(teacher.outgoing, [[1, 0], [0, 1], [1, 0]])
