"""Files: what is written is read back; whatever is wrong with a file is said, and nothing in it is executed."""

import io
import os
import pickle
import re
import warnings
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import small_networks as nets  # noqa: E402

import understudy.torch as ut  # noqa: E402
from understudy.torch.files import read_state  # noqa: E402

X = nets.images(20)


@pytest.fixture(scope="module", params=["vgg", "resnet"])
def smaller(request):
    make = {"vgg": nets.Vgg, "resnet": nets.ResNet}[request.param]
    return make, ut.compress(nets.seeded(make), X, keep=0.5)


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_a_state_dict_goes_into_a_fresh_instance_of_the_old_widths(smaller, ending, tmp_path):
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    make, found = smaller
    file = found.save(tmp_path / f"small.{ending}")
    again = ut.load(file, into=make()).eval()
    torch.testing.assert_close(again(X), found.model(X))
    fresh = found.constructor()().eval()
    fresh.load_state_dict(read_state(file))
    torch.testing.assert_close(fresh(X), found.model(X))


def test_grouped_and_transposed_convolutions_come_back_as_they_were():
    make = nets.Unsupported
    found = ut.compress(nets.seeded(make), nets.images(20, 6), keep=0.5).model
    again = ut.load_state(make().eval(), found.state_dict())
    assert (again.grouped.groups, again.grouped.in_channels, again.grouped.out_channels) == (3, 3, 6)
    assert (again.transposed.in_channels, again.transposed.out_channels) == (6, 4)
    torch.testing.assert_close(again(nets.images(4, 6)), found(nets.images(4, 6)))


def test_programs_compute_the_same(smaller, tmp_path, capfd):
    _, found = smaller
    program = ut.load(found.save(tmp_path / "small.pt2"))
    torch.testing.assert_close(program(X), found.model(X))
    narrower = ut.compress(program, X, keep=0.5)  # a program is a module like any other
    assert narrower.report.after.parameters < found.report.after.parameters
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = runtime.InferenceSession(found.save(tmp_path / "small.onnx"), providers=["CPUExecutionProvider"])
    (name,) = [given.name for given in session.get_inputs()]
    (outputs,) = session.run(None, {name: X.numpy()})
    np.testing.assert_allclose(outputs, found.model(X).detach(), rtol=1e-4, atol=1e-5)
    assert set(read_state(tmp_path / "small.onnx"))
    assert "torchvision" not in capfd.readouterr().err


def test_a_bare_chain_is_understood_and_other_state_dicts_need_a_module(tmp_path):
    model = nets.seeded(nets.mlp, 4, 8, 6, 2)
    x = torch.randn(5, 4)
    for ending in ("pt", "npz"):
        torch.testing.assert_close(ut.load(ut.save(model, tmp_path / f"chain.{ending}"))(x), model(x))
    ut.save(nets.seeded(nets.Vgg), tmp_path / "vgg.pt")
    with pytest.raises(ValueError, match=r"Give the module too"):
        ut.load(tmp_path / "vgg.pt")
    with pytest.raises(ut.BadFileError, match="does not belong to this model"):
        ut.load(tmp_path / "vgg.pt", into=model)
    with pytest.raises(ValueError, match="ends in"):
        ut.save(model, tmp_path / "net.xyz")


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


@pytest.mark.parametrize("ending", ["pt", "pth", "npz", "safetensors", "onnx", "pt2"])
def test_foreign_code_is_not_run_and_broken_files_are_explained(ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"evil.{ending}").write_bytes(pickle.dumps(Evil()))
    if ending == "npz":
        np.savez("evil.npz", W1=np.array([Evil()], dtype=object))
    if ending == "pt":
        torch.save({"weight": Evil()}, "evil.pt")
    (tmp_path / f"empty.{ending}").write_bytes(b"")
    ut.save(nets.mlp(3, 4, 2), "good.pt" if ending == "pth" else f"good.{ending}", example=torch.ones(3, 3))
    whole = (tmp_path / ("good.pt" if ending == "pth" else f"good.{ending}")).read_bytes()
    (tmp_path / f"cut.{ending}").write_bytes(whole[: len(whole) // 2])
    for name in ("evil", "empty", "cut", "none"):
        with pytest.raises(ut.BadFileError, match=name):
            ut.load(tmp_path / f"{name}.{ending}")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"0.weight": torch.full((2, 2), torch.nan)}, "not finite"),
        ({"0.weight": torch.ones(2, 2, dtype=torch.complex64)}, "complex"),
        ({"0.weight": torch.ones(3, 2), "2.weight": torch.ones(2, 4)}, "2.weight reads 4 numbers and 0.weight makes"),
        ({"0.weight": torch.ones(3, 2), "0.bias": torch.ones(4)}, "bias has shape"),
        ({}, "no tensors"),
        ([1, 2], "no state_dict"),
    ],
)
def test_wrong_contents_are_explained(state, message, tmp_path):
    torch.save(state, tmp_path / "wrong.pt")
    with pytest.raises(ValueError, match=message):
        ut.load(tmp_path / "wrong.pt")


@pytest.mark.parametrize("attack", ["sample", "weight", "expression", "operator"])
def test_a_program_that_smuggles_code_is_refused(attack, tmp_path, monkeypatch):
    """PyTorch's own reader would run three of these."""
    monkeypatch.chdir(tmp_path)
    ut.save(nets.mlp(3, 4, 2), "good.pt2", example=torch.ones(3, 3))
    evil = io.BytesIO()
    torch.save(Evil(), evil)
    with zipfile.ZipFile("good.pt2") as good, zipfile.ZipFile("evil.pt2", "w", zipfile.ZIP_STORED) as bad:
        for name in good.namelist():
            content = good.read(name)
            if (attack == "sample" and "sample_inputs" in name) or (attack == "weight" and name.endswith("weight_0")):
                content = evil.getvalue()
            elif attack == "weight" and "weights_config" in name:
                content = content.replace(b'"use_pickle": false', b'"use_pickle": true', 1)
            elif attack == "expression" and name.endswith("model.json"):
                content = re.sub(
                    rb'"expr_str": "[^"]*"', b"\"expr_str\": \"__import__('os').system('touch executed')\"", content
                )
            elif attack == "operator" and name.endswith("model.json"):
                content = content.replace(b"torch.ops.aten.relu.default", b"torch.hub.load")
            bad.writestr(name, content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ut.BadFileError, match=r"evil\.pt2"):
            ut.load("evil.pt2")
    assert not (tmp_path / "executed").exists()
