"""`compare` counts what is really found again; `grow` keeps the function."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import small_networks as nets  # noqa: E402
from torch import nn  # noqa: E402

import understudy.torch as ut  # noqa: E402
from understudy.torch.compare import cka  # noqa: E402


def test_a_network_is_found_in_itself_and_dead_neurons_count_nowhere():
    model = nets.seeded(nets.mlp, 6, 16, 12, 3)
    with torch.no_grad():
        model[0].bias[:4] = -100
    found = ut.compare(model, model, torch.randn(500, 6))
    first = found.layers[0]
    assert (first.neurons, first.still, first.recovered) == (12, 4, 12)
    assert first.untrained < 12
    assert first.cka == pytest.approx(1)
    assert [order for i, order in enumerate(first.order) if i >= 4] == list(range(4, 16))
    assert "untrained" in str(found)
    assert found.to_dict()["inputs"] == 500


def test_signs_count_unless_asked_not_to():
    model = nets.seeded(nets.mlp, 6, 5, 2, activation=nn.Tanh)
    opposite = nets.seeded(nets.mlp, 6, 5, 2, activation=nn.Tanh)
    with torch.no_grad():
        opposite[0].weight *= -1
        opposite[0].bias *= -1
    data = torch.randn(300, 6)
    assert ut.compare(opposite, model, data).layers[0].recovered == 0
    assert ut.compare(opposite, model, data, signed=False).layers[0].recovered == 5


def test_depths_may_differ_and_cka_is_never_nan():
    data = nets.images(30)
    found = ut.compare(nets.seeded(nets.Vgg), nets.seeded(nets.ResNet), data)
    assert len(found.layers) == 6
    assert all(0 <= layer.cka <= 1 + 1e-9 for layer in found.layers)
    assert cka(torch.ones(5, 2).numpy(), torch.randn(5, 3).numpy()) == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        ut.compare(nets.Vgg(), nets.Vgg(), data, threshold=2)


def test_layers_that_read_twice_are_left_out():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.again, self.last = (torch.nn.Linear(*size) for size in ((4, 6), (6, 6), (6, 2)))

        def forward(self, x):
            return self.last(torch.relu(self.again(torch.relu(self.again(torch.relu(self.first(x)))))))

    model = nets.seeded(Twice)
    (layer,) = ut.compare(model, model, torch.randn(60, 4)).layers
    assert (layer.teacher, layer.recovered) == ("again", layer.neurons)
    notes = ut.report(nets.seeded(nets.Odd), nets.images(3, 8)).notes
    assert len(set(notes)) == len(notes)


@pytest.mark.parametrize(
    ("make", "data"),
    [(lambda: nets.mlp(6, 9, 7, 3), torch.randn(200, 6)), (nets.ResNet, nets.images(30))],
    ids=["mlp", "resnet"],
)
def test_alignment_undoes_a_permutation(make, data):
    from understudy.torch.edit import cut
    from understudy.torch.model import prepare

    model = nets.seeded(make)
    mixed, graph, _ = prepare(model, data)
    cut(mixed, graph, {space.index: torch.randperm(space.size) for space in graph.free})
    nets.assert_aligned(mixed, model, data)


@pytest.mark.parametrize("method", ["random", "split", "gradmax"])
def test_growing_keeps_the_function(method):
    model, x = nets.seeded(nets.mlp, 6, 5, 4, 3).train(), torch.randn(50, 6)
    wider = ut.grow(model, (x, torch.arange(50) % 3), to=[9, 30], method=method)
    assert (wider[0].out_features, wider[2].out_features) == (9, 30)
    assert wider.training
    torch.testing.assert_close(wider(x), model(x), rtol=1e-4, atol=1e-6)
    nn.functional.cross_entropy(wider(x), torch.arange(50) % 3).backward()
    assert (wider[2].weight.grad if method == "split" else wider[4].weight.grad[:, 4:]).abs().max() > 0


@pytest.mark.parametrize("method", ["random", "split"])
def test_growing_residual_networks(method):
    model, x = nets.seeded(nets.ResNet), nets.images(8)
    wider = ut.grow(model, x, to={"conv1": 9, "stages.1.0.downsample.0": 11}, method=method)
    torch.testing.assert_close(wider(x), model(x), rtol=1e-4, atol=1e-5)
    assert wider.fc.in_features == 11


def test_gradmax_finds_steeper_neurons_than_chance():
    model = nets.seeded(nets.mlp, 20, 5, 3)
    x = torch.randn(500, 20)
    labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    slopes = []
    for method in ("gradmax", "random"):
        wider = ut.grow(model, (x, labels), to=[7], method=method)
        nn.functional.cross_entropy(wider(x), labels).backward()
        slopes.append(float(wider[2].weight.grad[:, 5:].norm()))
    assert slopes[0] > 1.3 * slopes[1]


def test_bad_requests_are_explained():
    model, x = nets.seeded(nets.mlp, 6, 5, 3), torch.randn(9, 6)
    for arguments, message in (
        ({"to": [4]}, "has 5 neurons already"),
        ({"to": [6, 7]}, "1 layers can change"),
        ({"to": {"2": 9}}, "'2' is not a layer"),
        ({"to": [6], "method": "luck"}, "received 'luck'"),
        ({"to": [6], "method": "gradmax"}, "needs data with labels"),
    ):
        with pytest.raises(ValueError, match=message):
            ut.grow(model, example=x, **arguments)
