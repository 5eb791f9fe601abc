"""`compress`: widths as asked, outputs kept where they can be, plain modules that save, load and export."""

import copy
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import small_networks as nets  # noqa: E402
from torch import nn  # noqa: E402

import understudy.torch as ut  # noqa: E402

CASES = {
    "vgg": (nets.Vgg, nets.images(60)),
    "resnet": (nets.ResNet, nets.images(60)),
    "dense": (nets.Dense, nets.images(60)),
    "sequence": (nets.Sequence, torch.randn(60, 4, 9)),
}


@pytest.mark.parametrize("name", CASES)
def test_all_widths_halved_and_the_original_untouched(name):
    make, data = CASES[name]
    model = nets.seeded(make).train()
    state = copy.deepcopy(model.state_dict())
    smaller = ut.compress(model, data, keep=0.5)
    assert all(layer.after == max(1, round(layer.before / 2)) for layer in smaller.report.layers)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert type(smaller.model) is make
    assert smaller.model.training
    assert smaller.report.after.parameters == sum(p.numel() for p in smaller.model.parameters())
    assert smaller.report.after.macs < smaller.report.before.macs
    smaller.model.eval()
    assert smaller.model(data).shape == model.eval()(data).shape


def redundant_mlp():
    """784-like chain in which 12 of 24 and 8 of 16 neurons are combinations of others on all inputs."""
    torch.manual_seed(0)
    model = nets.mlp(6, 24, 16, 3)
    with torch.no_grad():
        for layer, half in ((model[0], 12), (model[2], 8)):
            layer.weight[half:] = 2 * layer.weight[:half]
            layer.bias[half:] = 2 * layer.bias[:half]
    return model


def test_a_layer_that_reads_and_makes_the_same_neurons_is_narrowed_with_them():
    """x + conv(x): one space before and after the layer; copies planted in it go at no cost."""

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.inner = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
            self.head = nn.Linear(6, 2)

        def forward(self, x):
            x = torch.relu(self.first(x))
            return self.head(torch.relu(x + self.inner(x)).mean((2, 3)))

    model, data = nets.seeded(Loop), nets.images(60)
    with torch.no_grad():
        for layer in (model.first, model.inner):
            layer.weight[3:], layer.bias[3:] = layer.weight[:3].clone(), layer.bias[:3].clone()
    smaller = ut.compress(model, data, keep=0.5)
    assert smaller.model.inner.weight.shape == (3, 3, 3, 3)
    torch.testing.assert_close(smaller.model(data), model(data), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_type_mode_and_order_in_memory_stay(dtype):
    model = nets.seeded(nets.ResNet).to(dtype, memory_format=torch.channels_last).train()
    small = ut.compress(model, nets.images(40, 8), keep=0.5).model
    assert {tensor.dtype for tensor in small.parameters()} == {dtype}
    assert all(module.training for module in small.modules())
    weight = small.stages[0][0].conv1.weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert not weight.is_contiguous()


def test_redundant_neurons_cost_nothing():
    data = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    smaller = ut.compress(redundant_mlp(), data, widths=[12, 8])
    assert smaller.report.change.relative < 1e-5
    kept = smaller.report.layers[0].kept
    assert sorted(i % 12 for i in kept) == list(range(12))
    narrower = ut.compress(redundant_mlp(), data, widths=[6, 4])
    assert narrower.report.change.relative > 1e-2


def test_a_refit_beats_leaving_the_weights_as_they_are():
    from understudy.torch.batches import Sample
    from understudy.torch.measure import change
    from understudy.torch.model import prepare
    from understudy.torch.shrink import shrink

    data = nets.images(200)
    model, graph, _ = prepare(nets.seeded(nets.ResNet), data)
    widths = {space.index: space.size // 2 for space in graph.free}
    gaps = [
        change(
            model, shrink(model, graph, Sample((data[:150],)), widths, again=again)[0], Sample((data[150:],))
        ).relative
        for again in (True, False)
    ]
    assert gaps[0] < 0.6 * gaps[1]


def test_targets_are_met():
    model, data = nets.seeded(nets.mlp, 6, 24, 16, 3), torch.randn(300, 6)
    count = sum(p.numel() for p in model.parameters())
    half = ut.compress(model, data, params=0.5).report.after.parameters
    assert 0.4 * count < half <= 0.5 * count
    macs = ut.compress(model, data, macs=200).report.after.macs
    assert 150 < macs <= 200
    with torch.no_grad():
        model[-1].weight *= 30  # sure of its classes
    labels = model(data).argmax(1)
    for given in (data, (data, labels)):
        report = ut.compress(model, given, loss_increase=0.05).report
        assert report.after.parameters < count
    assert report.change.accuracy_before == 1.0
    assert report.change.accuracy_after > 0.9


def test_without_data_inputs_are_synthetic_and_the_report_says_so():
    smaller = ut.compress(redundant_mlp(), widths={"0": 12})
    assert smaller.report.change.relative < 1e-5
    assert smaller.report.change.inputs == "synthetic"
    assert "No data were given" in str(smaller)
    with pytest.raises(ValueError, match="example="):
        ut.compress(nets.seeded(nets.Vgg), keep=0.5)
    assert ut.compress(nets.seeded(nets.Vgg), keep=0.5, example=nets.images(3), samples=40).report.layers[0].after == 4


def test_data_in_any_form_give_the_same():
    x, y = torch.randn(50, 4), torch.arange(50) % 2
    model = nets.seeded(nets.mlp, 4, 8, 2)
    dataset = torch.utils.data.TensorDataset(x, y)
    forms = [
        x,
        x.numpy().astype(np.float64),
        (x, y),
        dataset,
        torch.utils.data.DataLoader(dataset, 20),
        [(x[:30], y[:30]), (x[30:], y[30:])],
        [{"label": y[:30], "image": x[:30]}, {"label": y[30:], "image": x[30:]}],
    ]
    found = [ut.compress(model, form, keep=0.5).report.layers[0].kept for form in forms]
    assert len(set(found)) == 1


def test_distilling_improves_and_keeps_the_better():
    model, data = nets.seeded(nets.mlp, 6, 24, 3), torch.randn(400, 6)
    plain, tuned = (ut.compress(model, data, widths=[6], epochs=epochs).report.change.relative for epochs in (0, 20))
    assert tuned < plain


def test_labels_and_time_can_decide_the_training():
    model, x = nets.seeded(nets.mlp, 6, 24, 3), torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    labels = x[:, :3].argmax(1)
    loss = nn.functional.cross_entropy
    plain, tuned = (
        ut.compress(model, (x, labels), widths=[8], loss=loss, epochs=epochs).report.change.accuracy_after
        for epochs in (0, 30)
    )
    assert tuned > plain + 0.2
    begin = time.process_time()
    ut.finetune(model, loss, (x, labels), epochs=10**6, seconds=0.2)
    assert time.process_time() - begin < 5
    with pytest.raises(ValueError, match="no labels"):
        ut.finetune(model, loss, x)


@pytest.mark.parametrize("make", [nets.Vgg, nets.ResNet])
def test_qr_with_pivots_chooses_other_neurons_and_refits_them(make):
    model, data = nets.seeded(make), nets.images(40)
    found = {name: ut.compress(model, data, keep=0.5, select=name) for name in ("elimination", "qr")}
    widths = [[layer.after for layer in result.report.layers] for result in found.values()]
    assert widths[0] == widths[1]
    assert found["qr"].report.layers != found["elimination"].report.layers
    assert found["qr"].report.change.relative < 1


def test_progress_is_shown_when_asked_for(capsys):
    model, data = nets.seeded(nets.mlp, 4, 8, 2), torch.randn(50, 4)
    ut.compress(model, data, widths=[3], epochs=1, progress=True)
    ut.report(model, data, progress=True)
    shown = capsys.readouterr().err
    assert "layers" in shown
    assert "held-out loss" in shown
    ut.report(model, data)
    assert capsys.readouterr().err == ""


def test_a_constructor_makes_fresh_networks_of_the_new_widths():
    smaller = ut.compress(nets.seeded(nets.mlp, 4, 8, 2), torch.randn(50, 4), widths=[3])
    fresh = smaller.constructor()()
    assert fresh[0].weight.shape == (3, 4)
    assert not torch.equal(fresh[0].weight, smaller.model[0].weight)
    fresh.load_state_dict(smaller.model.state_dict())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of"),
        ({"keep": 0.5, "params": 0.5}, "received keep, params"),
        ({"keep": 0.0}, "above 0"),
        ({"widths": [3, 3]}, "1 layers can change: 0 \\(8\\)"),
        ({"widths": [9]}, "has 8 neurons; received 9"),
        ({"widths": {"2": 1}}, "'2' is not a layer that can change"),
        ({"params": 1}, "received 1"),
        ({"loss_increase": 0.0}, "positive"),
        ({"keep": 0.5, "select": "svd"}, "select is one of elimination, qr; received 'svd'"),
        ({"keep": 0.5, "data": []}, "no inputs"),
        ({"keep": 0.5, "data": 3}, "received int"),
        ({"keep": 0.5, "data": iter([torch.ones(5, 4)])}, "iterator .* can be read only once"),
        ({"keep": 0.5, "data": [(torch.ones(2, 4), ["cat", "dog"])]}, "labels of a batch are not numbers"),
        ({"keep": 0.5, "data": [{"sensor": torch.ones(5, 4)}]}, "with the entries sensor. Call the inputs 'inputs'"),
        ({"keep": 0.5, "data": torch.full((3, 4), torch.nan)}, "not finite"),
        ({"keep": 0.5, "data": torch.ones(5, 3)}, "fails on an example input of shape \\(3, 3\\)"),
        ({"keep": 0.5, "data": (torch.ones(5, 4), torch.ones(4))}, "5 inputs and 4 labels"),
    ],
)
def test_bad_requests_are_explained(arguments, message):
    model = nets.seeded(nets.mlp, 4, 8, 2)
    with pytest.raises((ValueError, TypeError), match=message):
        ut.compress(model, **{"data": torch.randn(20, 4), **arguments})


def test_inputs_that_cannot_be_drawn_are_asked_for():
    tokens = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 2))
    example = torch.randint(9, (3, 3))
    with pytest.raises(ValueError, match=r"whole numbers .* Give data"):
        ut.compress(tokens, example=example, keep=0.5)
    smaller = ut.compress(tokens, torch.randint(9, (40, 3)), keep=0.5)
    assert smaller.report.notes == ("0: not narrowed, because embedding is not supported.",)


def test_bad_models_are_explained():
    data = torch.ones(4, 4)
    broken = nets.seeded(nets.mlp, 4, 8, 2)
    with torch.no_grad():
        broken[0].weight[0, 0] = torch.nan
    for model, message in (
        (broken, "0.weight has values that are not finite"),
        (nn.Linear(4, 2), "no layer whose width can change"),
        ("net.pt", "understudy.torch.load"),
        (nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 2)), "Run the model once"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ut.compress(model, data, keep=0.5)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.out = nn.Linear(6, 12), nn.Linear(4, 12), nn.Linear(12, 3)

    def forward(self, x, y):
        return self.out(torch.relu(self.left(x) + self.right(y)))


def test_a_model_with_two_inputs(tmp_path):
    model = nets.seeded(TwoInputs)
    x, y, labels = torch.randn(100, 6), torch.randn(100, 4), torch.arange(100) % 3
    forms = [((x, y), None), ((x.numpy(), y.numpy()), labels), [((x[:50], y[:50]), labels[:50]), [[x[50:], y[50:]]]]]
    found = [ut.compress(model, data, widths=[8]) for data in forms]
    assert len({result.report.layers for result in found}) == 1
    assert [result.report.change.accuracy_after is None for result in found] == [True, False, True]
    smaller = found[0]
    assert [layer.path for layer in smaller.report.layers] == ["left"]
    again = ut.load(smaller.save(tmp_path / "small.pt2"))
    torch.testing.assert_close(again(x, y), smaller.model(x, y))
    assert [layer.teacher for layer in ut.compare(again, again, ((x, y), None)).layers] == ["left"]  # names are known
    assert ut.report(model, ((x, y), labels)).inputs == 100
    assert ut.merge(model, example=(x[:3], y[:3])).report.removed == 0
    torch.testing.assert_close(ut.grow(model, to=[16], example=(x[:3], y[:3]))(x, y), model(x, y))
    with pytest.raises(ValueError, match=r"several inputs as \(\(x1, x2\), labels\)"):
        ut.compress(model, (x, labels), widths=[8])
    with pytest.raises(ValueError, match=r"different lengths: \[100, 50\]"):
        ut.compress(model, [((x, y[:50]), labels)], widths=[8])
