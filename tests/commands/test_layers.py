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
    assert (row["neurons"], row["rays"], row["mergeable"], row["groups"]) == (3, 2, 1, [[0, 2]])
    assert row["rank"] == 2
    assert told["bias"] == 0.0
    endings = ("npz", "png", "svg")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {f"network-layers.{ending}" for ending in endings}
    assert [p.rsplit("/", 1)[1] for p in told["files"]] == [f"network-layers.{ending}" for ending in endings]
    plain = run(file)
    assert plain.exit_code == 0
    assert "mergeable" in plain.stdout


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
        ({"targets": np.zeros((4, 2))}, "shapes"),
    ],
)
def test_bad_input_exits_2(tmp_path, changes, message):
    arrays = {k: v for k, v in (stored() | changes).items() if v is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    done = run(tmp_path / "bad.npz")
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert run(tmp_path / "nothing.npz").exit_code == 2
