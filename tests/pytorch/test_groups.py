"""Convolutions with groups are narrowed, merged, grown and aligned: all groups keep the same number of neurons."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import small_networks as nets  # noqa: E402
from torch import nn  # noqa: E402

import understudy.torch as ut  # noqa: E402
from understudy.torch import select  # noqa: E402
from understudy.torch.edit import cut  # noqa: E402
from understudy.torch.groups import packed, spread  # noqa: E402
from understudy.torch.model import prepare  # noqa: E402


class Grouped(nn.Module):
    """A bottleneck with a residual sum as in ResNeXt, then a convolution in other groups with stride and dilation."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.inner, self.norm = nn.Conv2d(8, 16, 1, bias=False), nn.BatchNorm2d(16)
        self.middle = nn.Conv2d(16, 16, 3, padding=1, groups=4, bias=False)
        self.after, self.outer = nn.BatchNorm2d(16), nn.Conv2d(16, 8, 1)
        self.wide, self.head = nn.Conv2d(8, 12, 3, 2, 1, 2, groups=2), nn.Linear(12, 5)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        inside = torch.relu(self.after(self.middle(torch.relu(self.norm(self.inner(x))))))
        x = torch.relu(x + self.outer(inside))
        return self.head(torch.relu(self.wide(x)).mean((2, 3)))


WIDTHS = {"stem": 8, "inner": 16, "middle": 16, "wide": 12}
BLOCKS = {"stem": 2, "inner": 4, "middle": 4, "wide": 2}


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_spread_weights_compute_the_same(groups):
    layer = nn.Conv1d(6, 12, 3, groups=groups)
    x = torch.randn(4, 6, 9)
    wide = spread(layer.weight, groups)
    torch.testing.assert_close(nn.functional.conv1d(x, wide, layer.bias), layer(x))
    assert torch.equal(packed(wide, groups), layer.weight)


def test_spaces_know_their_groups():
    _, graph, _ = prepare(nets.seeded(Grouped), example=nets.images(3))
    assert {space.path: space.size for space in graph.free} == WIDTHS
    assert {space.path: space.blocks for space in graph.free} == BLOCKS


def test_cutting_is_silencing_neurons():
    """Zeros in what the layers after them read, by a hook: nothing of the code that cuts is used."""
    model, x = nets.seeded(Grouped), nets.images(3)
    small, graph, _ = prepare(model, example=x)
    kept = {}
    for space in graph.free:
        place = torch.arange(space.size) % (space.size // space.blocks)
        kept[space.index] = torch.nonzero(place != 1).flatten()
    cut(small, graph, kept)
    readers = {"inner": (8, 2), "wide": (8, 2), "middle": (16, 4), "outer": (16, 4), "head": (12, 2)}
    for name, (size, blocks) in readers.items():
        mask = (torch.arange(size) % (size // blocks) != 1).float()
        mask = mask if name == "head" else mask.view(-1, 1, 1)
        getattr(model, name).register_forward_pre_hook(lambda _, args, mask=mask: (args[0] * mask,))
    torch.testing.assert_close(small(x), model(x), rtol=1e-4, atol=1e-5)
    assert (small.middle.in_channels, small.middle.out_channels, small.middle.groups) == (12, 12, 4)


@pytest.mark.parametrize("choice", ["elimination", "qr"])
def test_narrowing_keeps_groups_equal_saves_and_exports(choice, tmp_path):
    model, x = nets.seeded(Grouped), nets.images(60)
    smaller = ut.compress(model, x, keep=0.5, select=choice)
    assert {layer.path: layer.after for layer in smaller.report.layers} == {p: n // 2 for p, n in WIDTHS.items()}
    assert smaller.report.notes == ()
    for layer in smaller.report.layers:
        size = layer.before // BLOCKS[layer.path]
        counts = torch.bincount(torch.tensor(layer.kept) // size)
        assert len(set(counts.tolist())) == 1
    assert smaller.model.middle.weight.shape == (8, 2, 3, 3)
    assert smaller.report.change.relative < 0.5
    again = ut.load(smaller.save(tmp_path / "small.pt"), into=nets.seeded(Grouped))
    program = ut.load(smaller.save(tmp_path / "small.pt2"))
    for other in (again, program):
        torch.testing.assert_close(other(x), smaller.model(x))
    assert {s.path: s.size for s in prepare(program, example=x[:3])[1].free} == {p: n // 2 for p, n in WIDTHS.items()}


def test_a_refit_within_groups_helps_and_targets_are_met():
    model, x = nets.seeded(Grouped), nets.images(100)
    from understudy.torch.batches import Sample
    from understudy.torch.measure import change
    from understudy.torch.shrink import shrink

    ready, graph, _ = prepare(model, x)
    widths = {space.index: space.size // 2 for space in graph.free}
    gaps = [
        change(ready, shrink(ready, graph, Sample((x[:80],)), widths, again=again)[0], Sample((x[80:],))).relative
        for again in (True, False)
    ]
    assert gaps[0] < 0.6 * gaps[1]
    count = sum(p.numel() for p in model.parameters())
    found = ut.compress(model, x, params=0.6).report
    assert found.after.parameters <= 0.6 * count
    assert all(layer.after % BLOCKS[layer.path] == 0 for layer in found.layers)
    layers = {layer.path: layer for layer in ut.report(model, x).layers}
    assert all(layers[path].step == blocks for path, blocks in BLOCKS.items())
    assert all(layer.width_for(0.1) % layer.step == 0 == layer.free_width % layer.step for layer in layers.values())


@pytest.mark.parametrize("method", ["split", "random"])
def test_planted_redundancy_is_found_exactly(method):
    """Each neuron split in two (float32), or neurons added that nothing reads: the merge finds the original widths."""
    plain, x = nets.seeded(Grouped), nets.images(20)
    wide = ut.grow(plain, example=x[:3], to={path: 2 * size for path, size in WIDTHS.items()}, method=method)
    torch.testing.assert_close(wide(x), plain(x), rtol=1e-4, atol=1e-5)
    found = ut.merge(wide, example=x[:3])
    assert {layer.path: layer.after for layer in found.report.layers} == WIDTHS
    torch.testing.assert_close(found.model(x), wide(x), rtol=1e-5, atol=1e-6)
    if method == "split":
        assert ut.compress(wide, x, widths=WIDTHS).report.change.relative < 1e-5


def test_copies_go_only_where_every_group_has_some():
    model, x = nets.seeded(Grouped), nets.images(20)
    with torch.no_grad():
        model.wide.weight[1], model.wide.bias[1] = 2 * model.wide.weight[0], 2 * model.wide.bias[0]
    found = ut.merge(model, example=x[:3])
    assert found.report.removed == 0
    torch.testing.assert_close(found.model(x), model(x))
    with torch.no_grad():
        model.wide.weight[8], model.wide.bias[8] = 0, 0.7  # constant, in the other group
    found = ut.merge(model, example=x[:3])
    assert {layer.path: layer.before - layer.after for layer in found.report.layers} == {
        **dict.fromkeys(WIDTHS, 0),
        "wide": 2,
    }
    torch.testing.assert_close(found.model(x), model(x), rtol=1e-5, atol=1e-6)


def test_equal_weights_in_two_groups_are_not_copies():
    """The two groups read different channels."""
    model = nets.seeded(Grouped)
    with torch.no_grad():
        model.wide.weight[6:], model.wide.bias[6:] = model.wide.weight[:6].clone(), model.wide.bias[:6].clone()
    assert ut.merge(model, example=nets.images(3)).report.removed == 0


def test_alignment_stays_within_groups():
    model, x = nets.seeded(Grouped), nets.images(30)
    mixed, graph, _ = prepare(model, x)
    orders = {}
    for space in graph.free:
        size = space.size // space.blocks
        parts = [
            torch.randperm(size, generator=torch.Generator().manual_seed(b)) + b * size for b in range(space.blocks)
        ]
        orders[space.index] = torch.cat(parts)
    cut(mixed, graph, orders)
    nets.assert_aligned(mixed, model, x)


def test_neurons_leave_in_turns(monkeypatch):
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(200, 12, generator=draw, dtype=torch.float64)
    rows[:, 4:8] *= 0.01  # one block that hardly matters
    targets = rows @ torch.randn(12, 3, generator=draw, dtype=torch.float64)
    for limit in (600, 0):
        monkeypatch.setattr(select, "ONE_BY_ONE", limit)
        reader = select.make_reader(rows.T @ rows, rows.T @ targets, torch.arange(12), 1.0)
        order, _ = select.eliminate([reader], 12, 3, 3)
        assert [sorted(neuron // 4 for neuron in order[i : i + 3]) for i in (0, 3, 6)] == [[0, 1, 2]] * 3


def test_widths_that_groups_cannot_have_are_refused():
    model, x = copy.deepcopy(nets.seeded(Grouped)), nets.images(20)
    with pytest.raises(ValueError, match="inner in 4 groups, which stay equal: give a multiple of 4; received 6"):
        ut.compress(model, x, widths={"inner": 6})
    with pytest.raises(ValueError, match="multiple of 2; received 9"):
        ut.grow(model, x, to={"stem": 9})
    single = nn.Sequential(nn.Conv1d(4, 4, 3, groups=4), nn.ReLU(), nn.Conv1d(4, 6, 1), nn.ReLU(), nn.Conv1d(6, 2, 1))
    notes = ut.compress(single, torch.randn(20, 4, 9), widths=[3]).report.notes
    assert notes == (
        "0: not narrowed, because the groups of a convolution that makes or reads them leave no equal parts to remove.",
    )
