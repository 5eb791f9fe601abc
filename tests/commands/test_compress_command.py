"""`understudy compress` and `understudy compare` on files, sound and broken."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from understudy.cli import app  # noqa: E402


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    torch.save(model.state_dict(), "net.pt")
    x = torch.randn(100, 4)
    np.savez("data.npz", inputs=x.numpy(), targets=model(x).argmax(1).numpy())
    return model


def test_compress_writes_a_smaller_network(network, tmp_path):
    done = run("compress", "net.pt", "--data", "data.npz", "--widths", "6,4", "--out", "out", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [layer["after"] for layer in told["layers"]] == [6, 4]
    assert told["change"]["accuracy_before"] == 1.0
    state = torch.load(tmp_path / "out" / "net-small.pt", weights_only=True)
    assert state["0.weight"].shape == (6, 4)
    table = run("compress", "net.pt", "--keep", "0.5", "--format", "safetensors", "--out", "out")
    assert table.exit_code == 0
    assert "parameters" in table.stdout
    assert (tmp_path / "out" / "net-small.safetensors").exists()


@pytest.mark.parametrize("format_", ["pt", "safetensors", "npz"])
def test_a_full_disk_keeps_the_result_on_the_screen(network, tmp_path, monkeypatch, format_):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("understudy.files.os.fsync", full)
    done = run("compress", "net.pt", "--widths", "6,4", "--format", format_, "--out", "out")
    assert done.exit_code == 1, done.output
    assert "parameters" in done.stdout
    assert "Results could not be stored: [Errno 28] No space left on device" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_without_a_target_it_reports(network):
    done = run("compress", "net.pt", "--data", "data.npz")
    assert done.exit_code == 0, done.output
    assert "dead" in done.stdout
    assert [
        layer["neurons"]
        for layer in json.loads(run("compress", "net.pt", "--data", "data.npz", "--json").stdout)["layers"]
    ] == [12, 8]


def test_compare(network):
    run("compress", "net.pt", "--data", "data.npz", "--widths", "12,4", "--out", "out")
    done = run("compare", "out/net-small.pt", "net.pt", "--data", "data.npz", "--json")
    assert done.exit_code == 0, done.output
    first = json.loads(done.stdout)["layers"][0]
    assert first["recovered"] == first["neurons"]
    assert "untrained" in run("compare", "net.pt", "net.pt", "--data", "data.npz").stdout


def test_a_class_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mynet.py").write_text(
        "from torch import nn\nclass Net(nn.Sequential):\n    def __init__(self):\n"
        "        super().__init__(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))\n"
    )
    torch.save(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)).state_dict(), "net.pt")
    np.save("x.npy", np.random.default_rng(0).normal(size=(30, 1, 6, 6)))
    asked = run("compress", "net.pt", "--data", "x.npy", "--keep", "0.5")
    assert asked.exit_code == 2
    assert "Give the module too" in asked.output
    done = run("compress", "net.pt", "--data", "x.npy", "--keep", "0.5", "--module", "mynet:Net")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("net.pt",), "Give --data for a report"),
        (("net.pt", "--widths", "6,x"), "received '6,x'"),
        (("net.pt", "--keep", "0.5", "--params", "9"), "exactly one of"),
        (("net.pt", "--keep", "0.5", "--format", "zip"), "received 'zip'"),
        (("none.pt", "--keep", "0.5"), "There is no file"),
        (("net.pt", "--keep", "0.5", "--data", "none.npy"), "There is no file"),
        (("net.pt", "--keep", "0.5", "--data", "net.pt"), "no array 'inputs'"),
        (("net.pt", "--keep", "0.5", "--module", "nowhere"), "file:Class"),
        (("net.pt", "--keep", "0.5", "--module", "json:dumps"), "called without arguments"),
        (("net.pt", "--keep", "0.5", "--module", "builtins:dict"), "must make a torch.nn.Module"),
    ],
)
def test_bad_input_exits_2(network, arguments, message):
    done = run("compress", *arguments)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.output.split())


def test_sentences_fit_a_narrow_screen(network, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    for command in (["compress", "net.pt", "--keep", "0.5"], ["compress", "net.pt"], ["compare", "net.pt", "net.pt"]):
        done = run(*command, "--data", "data.npz")
        assert done.exit_code == 0, done.output
        sentences = [line for line in done.stdout.splitlines() if "  " not in line]
        assert sentences
        assert max(map(len, sentences)) <= 60
