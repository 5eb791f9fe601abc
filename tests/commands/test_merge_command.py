"""`understudy merge` on archives and stored fits: what it says, what it writes, and what it refuses."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from understudy.cli import app
from understudy.network_files import BadNetworkError, read_data, read_network, write_network
from understudy.networks import Deep, TwoLayer

RNG = np.random.default_rng(0)


def run(*arguments):
    return CliRunner().invoke(app, ["merge", *map(str, arguments)])


@pytest.fixture
def archive(tmp_path):
    """Three neurons and a copy of twice the size of each; the second layer has a silent neuron."""
    first = RNG.normal(size=(3, 2))
    second = np.concatenate([RNG.normal(size=(3, 6)), np.zeros((1, 6))])
    path = tmp_path / "net.npz"
    b1 = RNG.normal(size=3)
    np.savez(
        path, W1=np.concatenate([first, 2 * first]), b1=np.concatenate([b1, 2 * b1]), W2=second, b2=[0.1, 0.2, 0.3, 0.0],
        W3=RNG.normal(size=(2, 4)), activation="relu",
    )  # fmt: skip
    return path


def test_it_merges_writes_and_draws(archive, tmp_path):
    done = run(archive, "--json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert [(layer["before"], layer["after"]) for layer in told["layers"]] == [(6, 3), (4, 3)]
    assert told["layers"][0]["groups"] == [[0, 3], [1, 4], [2, 5]]
    assert told["layers"][1]["removed"] == [3]
    assert told["norm_after"] <= told["norm_before"]
    assert told["relative_change"] < 1e-14
    assert [f.rsplit(".", 1)[1] for f in told["files"]] == ["npz", "png", "svg"]
    before, after = read_network(archive), read_network(told["files"][0])
    assert after.activation == "relu"
    x = jnp.asarray(RNG.normal(size=(20, 2)))
    np.testing.assert_allclose(after.network(x, "relu"), before.network(x, "relu"), atol=1e-13)
    table = run(archive).output
    assert "Squared norm" in table
    assert "hidden layer" in table


def test_a_dot_in_a_name_is_part_of_it(archive, tmp_path):
    for name in ("net-0.5", "net-0.7"):
        archive = archive.rename(tmp_path / f"{name}.npz")
        assert run(archive, "--out", tmp_path / "out").exit_code == 0
    wanted = {f"net-0.{x}-merged.{ending}" for x in (5, 7) for ending in ("npz", "png", "svg")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == wanted


def test_data_and_the_other_ways(archive, tmp_path):
    data = tmp_path / "x.npy"
    np.save(data, RNG.normal(size=(2, 2)))
    told = json.loads(run(archive, "--data", data, "--by", "covariance", "--json").output)
    assert max(layer["after"] for layer in told["layers"]) <= 6
    assert told["measured_on"] == "data"
    assert told["relative_change"] < 1e-10
    line = tmp_path / "line.npz"
    write_network(line, Deep.glorot([1, 40, 1], seed=0, bias=1.0), "relu")
    np.save(data, np.array([-1.0, 0.0, 1.0]))
    told = json.loads(run(line, "--data", data, "--by", "activity", "--json").output)
    assert told["layers"][0]["after"] <= 10
    assert told["largest_change"] < 1e-13


def test_a_stored_fit(tmp_path):
    import xarray as xr

    from understudy.store import Store

    incoming = np.array([[[1.0, 0.0], [2.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    rows = xr.Dataset(
        {
            "incoming": (("seed", "student", "dim"), incoming),
            "outgoing": (("seed", "student"), np.ones((2, 2))),
            "loss": ("seed", [0.1, 0.2]),
        },
        coords={"seed": [3, 5]},
    )
    file = Store(tmp_path).save({"kind": "fit", "activation": "relu"}, rows)
    assert json.loads(run(file, "--json").output)["layers"][0]["after"] == 1
    assert json.loads(run(file, "--seed", 5, "--json").output)["layers"][0]["after"] == 2
    refused = run(file, "--seed", 4)
    assert refused.exit_code == 2
    assert "it has 3, 5" in refused.output


def test_bad_input_exits_2_and_writes_nothing(archive, tmp_path):
    bare = tmp_path / "bare.npz"
    np.savez(bare, W1=np.ones((2, 2)), W2=np.ones((1, 2)))
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"not an archive")
    odd = tmp_path / "odd.npz"
    np.savez(odd, W1=np.ones((2, 2)), W2=np.ones((1, 3)))
    for arguments, message in [
        ((tmp_path / "none.npz",), "There is no file"),
        ((bare,), "Give --activation"),
        ((bare, "--activation", "erf"), "received 'erf'"),
        ((bare, "--activation", "relu", "--by", "luck"), "received 'luck'"),
        ((bare, "--activation", "relu", "--by", "activity"), "Add --data"),
        ((bare, "--activation", "relu", "--data", broken), "cannot be read as data"),
        ((broken,), "cannot be read as an archive"),
        ((odd, "--activation", "relu"), "layer 2 has weights (1, 3)"),
        ((archive, "--seed", 1), "archive of one network"),
        ((archive, "--tolerance", 3), "less than 2"),
    ]:
        done = run(*arguments, "--out", tmp_path / "out")
        assert done.exit_code == 2, (arguments, done.output)
        assert message in " ".join(done.output.split())
    assert not (tmp_path / "out").exists()


def test_archives_round_trip(tmp_path):
    for net in (
        TwoLayer(RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2))),
        TwoLayer(np.ones((1, 2)), [2.0]),
        Deep.glorot([2, 3, 3, 1], bias=1.0),
    ):
        again = read_network(write_network(tmp_path / "n.npz", net, "abs"))
        x = jnp.ones((1, 2))
        assert type(again.network) is type(net)
        np.testing.assert_array_equal(again.network(x, "abs"), net(x, "abs"))
    np.savez(tmp_path / "d.npz", inputs=np.ones(4))
    x, y = read_data(tmp_path / "d.npz")
    assert x.shape == (4, 1)
    assert y is None
    with pytest.raises(BadNetworkError, match="no array 'inputs'"):
        read_data(tmp_path / "n.npz")


def test_data_measure_the_change_and_do_not_decide_what_is_merged(archive, tmp_path):
    data = tmp_path / "x.npy"
    np.save(data, -np.abs(RNG.normal(size=(5, 2))))  # many neurons are silent here
    told = json.loads(run(archive, "--data", data, "--json").output)
    assert [layer["after"] for layer in told["layers"]] == [3, 3]
    assert told["measured_on"] == "data"
    assert told["relative_change_elsewhere"] is None
    there = json.loads(run(archive, "--data", data, "--by", "activations", "--json").output)
    assert sum(layer["after"] for layer in there["layers"]) < 6
    assert "kept on these inputs only" in run(archive, "--data", data, "--by", "activations").output


def test_what_keeps_outputs_on_data_only_says_what_it_does_elsewhere(tmp_path):
    wide, data = tmp_path / "wide.npz", tmp_path / "x.npy"
    write_network(wide, Deep.glorot([3, 40, 1], seed=0, bias=1.0), "relu")
    np.save(data, RNG.normal(size=(3, 3)))
    told = json.loads(run(wide, "--data", data, "--by", "covariance", "--json").output)
    assert told["relative_change"] < 1e-8
    assert told["relative_change_elsewhere"] > 1e-2
    np.save(data, RNG.normal(size=(60, 3)))
    refused = run(wide, "--data", data, "--by", "covariance")
    assert refused.exit_code == 2
    assert "N(N+1) = 3660 neurons" in " ".join(refused.output.split())


def test_merged_archives_keep_data_and_precision(archive, tmp_path):
    with np.load(archive) as loaded:
        arrays = {k: v.astype(np.float32) if v.dtype.kind == "f" else v for k, v in loaded.items()}
    np.savez(archive, **arrays, inputs=np.ones((4, 2)), targets=np.arange(4))
    file = json.loads(run(archive, "--out", tmp_path / "out", "--json").output)["files"][0]
    with np.load(file) as found:
        assert found["W1"].dtype == np.float32
        np.testing.assert_array_equal(found["targets"], np.arange(4))
        assert found["inputs"].shape == (4, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda w: w * 1e200, "whose squares overflow"), (lambda w: w * 1j, "complex numbers"), (lambda w: np.array([{}]), "Python objects")],
    ids=["huge", "complex", "objects"],
)  # fmt: skip
def test_weights_that_cannot_be_merged_are_refused(tmp_path, change, message):
    np.savez(tmp_path / "bad.npz", W1=change(np.ones((2, 2))), W2=np.ones((1, 2)))
    done = run(tmp_path / "bad.npz", "--activation", "relu")
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_pytorch_files_are_read_and_broken_ones_explained(archive, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with np.load(archive) as loaded:
        state = {f"{l}.{k}": torch.tensor(loaded[f"{n}{l}"]) for l in (1, 2, 3) for n, k in (("W", "weight"), ("b", "bias")) if f"{n}{l}" in loaded}  # fmt: skip
    torch.save(state, tmp_path / "net.pt")
    told = json.loads(run(tmp_path / "net.pt", "--json").output)
    assert [layer["after"] for layer in told["layers"]] == [3, 3]
    for name in ("bad.onnx", "bad.safetensors", "bad.pt"):
        (tmp_path / name).write_bytes(b"nothing")
        done = run(tmp_path / name)
        assert done.exit_code == 2
        assert "pickle" not in done.output
