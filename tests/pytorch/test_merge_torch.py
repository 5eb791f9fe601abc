"""`merge`: planted redundancy is found exactly in Linear, Conv and BatchNorm networks; removal changes nothing."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import small_networks as nets  # noqa: E402
from torch import nn  # noqa: E402

import understudy.torch as ut  # noqa: E402
from understudy.torch.model import prepare  # noqa: E402


def plant(model, example, *, scale=True):
    """Split every neuron of every free space in two, and add a dead one that nothing reads: float32, in place."""
    from understudy.torch.edit import get_tensor, set_tensor

    model, graph, _ = prepare(model, example=example)
    gen = torch.Generator().manual_seed(3)
    for space in graph.free:
        n = space.size
        index = torch.cat([torch.arange(n), torch.arange(n), torch.zeros(1, dtype=torch.long)])
        alpha = 0.5 + torch.rand(n, generator=gen) if scale else torch.ones(n)
        share = torch.rand(n, generator=gen)
        for slot in graph.slots:
            if any(part == space.index for part, _ in slot.layout):
                value = get_tensor(model, slot.name).detach().clone()
                entries = graph.entries(slot.layout, {space.index: index})
                value = value.index_select(slot.axis, entries)
                if slot.axis == 1:  # what reads them
                    repeats = len(entries) // len(index)
                    factor = torch.cat([share, (1 - share) / alpha, torch.zeros(1)]).repeat_interleave(repeats)
                    value *= factor.view(1, -1, *[1] * (value.ndim - 2))
                set_tensor(model, slot.name, value)
        norms = {call.mean.rpartition(".")[0] for call in graph.makers(space.index) if call.mean}
        for call in graph.makers(space.index):
            factor = torch.cat([torch.ones(n), alpha, torch.ones(1)])
            scaled = (
                [f"{p}.weight" for p in norms] + [f"{p}.bias" for p in norms] if call.mean else [call.weight, call.bias]
            )
            for name in filter(None, scaled):
                value = get_tensor(model, name).detach()
                set_tensor(model, name, value * factor.view(-1, *[1] * (value.ndim - 1)))
        space.size = len(index)
    return model


def biased_cnn():
    return nn.Sequential(
        nn.Conv2d(3, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(5, 6, 3), nn.BatchNorm2d(6), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 7), nn.ReLU(), nn.Linear(7, 2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "example", "scale"),
    [
        (lambda: nets.mlp(6, 8, 7, 3), torch.randn(40, 6), True),
        (lambda: nets.mlp(6, 8, 7, 3, activation=nn.GELU), torch.randn(40, 6), False),
        (biased_cnn, nets.images(20), True),
        (nets.Vgg, nets.images(20), False),
        (nets.Gated, torch.randn(40, 5), False),
    ],
    ids=["mlp", "gelu", "cnn with BatchNorm", "vgg", "gated"],
)
def test_planted_redundancy_is_found_exactly(make, example, scale):
    plain = nets.seeded(make)
    wide = plant(plain, example[:3], scale=scale)
    torch.testing.assert_close(wide(example), plain(example), rtol=1e-4, atol=1e-5)
    found = ut.merge(wide, example=example[:3])
    before = [layer.before for layer in found.report.layers]
    after = [layer.after for layer in found.report.layers]
    assert before == [2 * n + 1 for n in after]
    assert after == [space.size for space in prepare(plain, example=example[:3])[1].free]
    gap = (found.model(example) - wide(example)).norm() / wide(example).norm()
    assert gap < 1e-5
    for group in found.report.groups.values():
        assert all(len(members) == 2 for members in group)


def test_residual_streams_merge_where_all_their_layers_agree():
    plain = nets.seeded(nets.ResNet)
    wide = plant(plain, nets.images(3), scale=False)
    found = ut.merge(wide, example=nets.images(3))
    assert [layer.before - layer.after for layer in found.report.layers] == [
        layer.after + 1 for layer in found.report.layers
    ]
    torch.testing.assert_close(found.model(nets.images(9)), wide(nets.images(9)), rtol=1e-4, atol=1e-5)


def test_the_change_is_bounded_from_the_weights():
    """Neurons that are almost parallel: the bound holds on inputs of any size, and is not absurd."""
    model = nets.seeded(nets.mlp, 5, 6, 4, 2)
    with torch.no_grad():
        model[0].weight[5] = 2 * model[0].weight[0] + 1e-4 * torch.randn(5)
        model[0].bias[5] = 2 * model[0].bias[0]
    found = ut.merge(model, tolerance=1e-3)
    assert found.report.removed == 1
    bound = found.report.bound
    for size in (0.1, 1.0, 30.0):
        x = size * torch.randn(2000, 5, generator=torch.Generator().manual_seed(0))
        gap = (model(x) - found.model(x)).norm(dim=1) / x.norm(dim=1).clamp(min=1)
        assert gap.max() <= bound
    assert 0 < bound < 100 * gap.max()
    assert ut.merge(nets.seeded(nets.mlp, 5, 6, 2)).report.bound == 0


def test_constant_and_dead_neurons_go_and_their_value_stays():
    model = nets.seeded(nets.mlp, 4, 6, 2)
    with torch.no_grad():
        model[0].weight[1] = 0
        model[0].bias[1] = 0.7  # constant for every input
        model[0].bias[2] = -100  # dead on data, not for every input
    x = torch.randn(50, 4)
    assert ut.merge(model).report.silent == {"0": [1]}
    found = ut.merge(model, x)
    assert found.report.silent == {"0": [1, 2]}
    torch.testing.assert_close(found.model(x), model(x))
    assert found.report.bound is None


def test_opposite_and_unequal_neurons_stay():
    model = nets.seeded(nets.mlp, 4, 6, 2)
    with torch.no_grad():
        model[0].weight[1] = -model[0].weight[0]
        model[0].bias[1] = -model[0].bias[0]
    assert ut.merge(model).report.removed == 0
    smooth = nets.seeded(nets.mlp, 4, 6, 2, activation=nn.Tanh)
    with torch.no_grad():
        smooth[0].weight[1] = 2 * smooth[0].weight[0]  # parallel, which is not enough for tanh
        smooth[0].bias[1] = 2 * smooth[0].bias[0]
    assert ut.merge(smooth).report.removed == 0
    with pytest.raises(ValueError, match="below 2"):
        ut.merge(model, tolerance=3.0)


def test_copies_are_found_in_concatenations():
    plain, x = nets.seeded(nets.DenseNorm), nets.images(9)
    wide = ut.grow(plain, example=x[:3], to=[8, 10, 12], method="split")
    found = ut.merge(wide, example=x[:3])
    assert [layer.after for layer in found.report.layers] == [4, 5, 6]
    torch.testing.assert_close(found.model(x), plain(x), rtol=1e-4, atol=1e-5)


def test_parallel_neurons_stay_where_a_stored_number_is_added_or_each_has_its_own():
    model = nets.seeded(nets.Scaled)
    with torch.no_grad():
        for layer in (model.conv, model.fc, model.last):
            layer.weight[1], layer.bias[1] = 2 * layer.weight[0], 2 * layer.bias[0]
            layer.weight[3], layer.bias[3] = layer.weight[2], layer.bias[2]
    found = ut.merge(model, example=nets.images(3))
    assert found.report.groups == {"last": [[2, 3]]}  # equal, and nothing else belongs to each of them
    torch.testing.assert_close(found.model(nets.images(9)), model(nets.images(9)))


def test_a_batch_norm_counts_apart_where_others_read_what_it_reads():
    """The BatchNorm makes two channels equal that differ before it; the refit must not move its mean either."""
    model = nets.seeded(nets.BothSides)
    norm = model.norm
    with torch.no_grad():
        model.conv.weight[1] = 2 * model.conv.weight[0]
        norm.running_mean[1] = 2 * norm.running_mean[0]
        norm.running_var[1] = 4 * (norm.running_var[0] + norm.eps) - norm.eps
        norm.weight[1], norm.bias[1] = norm.weight[0], norm.bias[0]
    found = ut.merge(model, example=nets.images(3))
    assert found.report.removed == 0
    smaller = ut.compress(model, nets.images(60), keep=0.5)
    kept = smaller.report.layers[0].kept
    assert torch.equal(smaller.model.norm.running_mean, norm.running_mean[list(kept)])


def test_weights_used_twice_and_computed_weights_do_not_stop_a_merge():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = nn.utils.parametrizations.weight_norm(nn.Linear(5, 4))
            self.inner, self.head = nn.Linear(8, 6), nn.Linear(6, 2)

        def forward(self, x):
            return self.head(torch.relu(self.inner(torch.cat([self.shared(x[:, :5]), self.shared(x[:, 5:])], 1))))

    x = torch.randn(9, 10)
    wide = plant(nets.seeded(Twice), x[:3])
    found = ut.merge(wide, example=x[:3])
    assert [layer.after for layer in found.report.layers] == [6]
    torch.testing.assert_close(found.model(x), wide(x), rtol=1e-4, atol=1e-5)


def test_a_layer_of_constant_neurons_keeps_one_that_nothing_reads():
    """Their values go to the bias of what follows; the neuron that stays must not count twice."""
    model = nets.seeded(nets.mlp, 4, 3, 2)
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(1.0)
    found, x = ut.merge(model), torch.randn(5, 4)
    assert found.model[0].out_features == 1
    torch.testing.assert_close(found.model(x), model(x))


def test_neurons_that_only_unread_neurons_read_go_too():
    plain, x = nets.seeded(nets.mlp, 4, 5, 6, 2), torch.randn(9, 4)
    wide = ut.grow(plain, to=[9, 8])  # new neurons of the second layer read those of the first, and nothing reads them
    found = ut.merge(wide)
    assert [layer.after for layer in found.report.layers] == [5, 6]
    torch.testing.assert_close(found.model(x), plain(x))
