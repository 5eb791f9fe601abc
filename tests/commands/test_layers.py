"""`understudy layers` on stored networks, sound and broken."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from understudy.cli import app


def stored(rng=None):
    rng = np.random.default_rng(0) if rng is None else rng
    first = rng.normal(size=(3, 2))
    first[2] = 2 * first[0]  # on the same ray as neuron 0
    return {
        "W1": first,
        "W2": rng.normal(size=(1, 3)),
        "inputs": rng.normal(size=(4, 2)),
        "targets": rng.normal(size=4),
    }


def run(*arguments):
    return CliRunner().invoke(app, ["layers", *map(str, arguments)])


def test_json_table_and_figure(tmp_path):
    file = tmp_path / "network.npz"
    np.savez(file, **stored())
    done = run(file, "--json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    (row,) = told["layers"]
    assert (row["neurons"], row["rays"], row["mergeable"], row["groups"]) == (3, 1, 1, [[0, 2]])
    assert row["dead"] == 1  # neuron 1 is zero on all four inputs
    assert row["rank"] == 2
    assert told["bias"] == 0.0
    endings = ("npz", "png", "svg")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {f"network-layers.{ending}" for ending in endings}
    assert [p.rsplit("/", 1)[1] for p in told["files"]] == [f"network-layers.{ending}" for ending in endings]
    plain = run(file)
    assert plain.exit_code == 0
    assert "imbalance" in plain.stdout


def test_bound_of_any_width(tmp_path):
    """Two inputs ±1 with targets 1: the best loss of any width is 0.38 (λ = 0.1); a worse network is told how far."""
    file = tmp_path / "network.npz"
    np.savez(file, W1=[[1.0], [-1.0]], W2=[[0.5, 0.5]], inputs=[[1.0], [-1.0]], targets=[1.0, 1.0])
    told = json.loads(run(file, "--json", "--bound", "--penalty", 0.05).stdout)
    known = told["any_width"]
    # The mean over two inputs: λ = 0.05 is half the problem with λ = 0.1 and weights 1.
    assert known["best_found"] == pytest.approx(0.19, abs=1e-5)
    assert 0.19 - 1e-4 <= known["lower_bound"] <= 0.19 + 1e-9
    assert known["within"] == pytest.approx(1 - known["lower_bound"] / told["loss"])
    assert "of any width" in " ".join(run(file, "--bound", "--penalty", 0.05).stdout.split())


def test_bound_is_for_one_hidden_layer(tmp_path):
    file = tmp_path / "network.npz"
    deep = {"W1": np.eye(2), "W2": np.eye(2), "W3": np.ones((1, 2)), "inputs": np.eye(2), "targets": np.ones(2)}
    np.savez(file, **deep)
    done = run(file, "--bound")
    assert done.exit_code == 2
    assert "one hidden layer; this one has 2" in " ".join(done.output.split())


def test_a_loose_bound_is_said_to_be_loose():
    from understudy.commands.layers import _of_any_width

    tight = _of_any_width({"any_width": {"lower_bound": 0.99, "best_found": 1.0, "within": 0.01}})
    loose = _of_any_width({"any_width": {"lower_bound": 0.4, "best_found": 1.0, "within": 0.6}})
    assert "far too low" not in tight
    assert "far too low" in loose


def test_biases_count_and_data_may_come_from_another_file(tmp_path):
    arrays = stored() | {"b1": np.array([0.1, -0.2, 0.3]), "b2": np.array([0.5])}
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez(tmp_path / "net.npz", **{k: v for k, v in arrays.items() if k[0] in "Wb"})
    np.savez(tmp_path / "data.npz", **{k: arrays[k] for k in ("inputs", "targets")})
    calls = ((tmp_path / "a.npz",), (tmp_path / "net.npz", "--data", tmp_path / "data.npz"))
    losses = [json.loads(run(*call, "--json").stdout)["loss"] for call in calls]
    hidden = np.maximum(arrays["inputs"] @ arrays["W1"].T + arrays["b1"], 0)
    error = np.mean((hidden @ arrays["W2"][0] + 0.5 - arrays["targets"]) ** 2)
    size = sum(float(np.sum(arrays[k] ** 2)) for k in ("W1", "W2", "b1", "b2"))
    assert losses == [pytest.approx(error + 1e-3 * size)] * 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W2": None}, "weights W1, …, WL of at least two layers"),
        ({"inputs": None}, "no arrays inputs (N, d) and targets"),
        ({"W2": np.zeros((1, 5))}, "layer 2 has weights (1, 5)"),
        ({"inputs": np.zeros((4, 3))}, "(N, 2), N ≥ 1; received shape (4, 3)"),
        ({"targets": np.zeros(3)}, "4 inputs need targets"),
        ({"targets": np.zeros((4, 2))}, "outputs have shape (4, 1) where the targets have (4, 2)"),
    ],
)
def test_bad_input_exits_2(tmp_path, changes, message):
    arrays = {k: v for k, v in (stored() | changes).items() if v is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    done = run(tmp_path / "bad.npz")
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert run(tmp_path / "nothing.npz").exit_code == 2


def test_dead_neurons_are_counted_by_activations(tmp_path):
    arrays = stored() | {"b1": np.array([0.1, -100.0, 0.3]), "b2": np.zeros(1)}
    np.savez(tmp_path / "net.npz", **arrays)
    (row,) = json.loads(run(tmp_path / "net.npz", "--json").stdout)["layers"]
    assert row["dead"] == 1
    assert row["rank_activated"] <= 2  # without the constant row of the biases


@pytest.mark.parametrize(
    ("targets", "cost", "message"),
    [
        ([0, 2, 1, 0], "squared", "use --cost cross-entropy"),
        ([0, 2, 3, 0], "cross-entropy", "go up to 3, but the network has only 3 outputs"),
        ([-1, 0, 1, 1], "cross-entropy", "received [-1, 0, 1]"),
        ([0.5, 1, 2, 1], "cross-entropy", "received [0.5, 1.0, 2.0]"),
        (-np.ones((4, 3)), "cross-entropy", "probabilities"),
    ],
)
def test_labels_that_do_not_fit_are_explained(tmp_path, targets, cost, message):
    np.savez(tmp_path / "net.npz", **(stored() | {"W2": np.ones((3, 3)), "targets": np.array(targets)}))
    done = run(tmp_path / "net.npz", "--cost", cost)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_biases_need_a_constant_row(tmp_path):
    np.savez(tmp_path / "net.npz", **(stored() | {"b1": np.ones(3), "b2": np.zeros(1)}))
    done = run(tmp_path / "net.npz", "--bias", 0)
    assert done.exit_code == 2
    assert "--bias must be positive, because this network has biases; received --bias 0" in " ".join(
        done.output.split()
    )


def test_labels_are_the_outputs_of_the_same_number(tmp_path):
    arrays = stored() | {"W2": np.random.default_rng(1).normal(size=(3, 3)), "targets": np.array([0, 2, 2, 0])}
    np.savez(tmp_path / "net.npz", **arrays)
    told = json.loads(run(tmp_path / "net.npz", "--cost", "cross-entropy", "--json").stdout)
    outputs = np.maximum(arrays["inputs"] @ arrays["W1"].T, 0) @ arrays["W2"].T
    entropy = np.log(np.exp(outputs).sum(1)) - outputs[range(4), arrays["targets"]]
    size = sum(float(np.sum(arrays[k] ** 2)) for k in ("W1", "W2"))
    assert told["loss"] == pytest.approx(entropy.mean() + 1e-3 * size)


def test_many_inputs_need_no_matrix_of_their_number_squared(tmp_path):
    rng = np.random.default_rng(0)
    arrays = stored() | {"inputs": rng.normal(size=(40_000, 2)), "targets": rng.normal(size=40_000)}
    np.savez(tmp_path / "net.npz", **arrays)  # 40,000² numbers are 12 GB
    done = run(tmp_path / "net.npz", "--json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "out" / "net-layers.npz") as kept:
        assert kept["K1"].shape == (1000, 1000)
