"""Spaces of neurons: found in chains, branches and concatenations, coupled by sums, frozen with a reason elsewhere."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import small_networks as nets  # noqa: E402

import understudy.torch as ut  # noqa: E402
from understudy.torch.edit import cut  # noqa: E402
from understudy.torch.model import prepare  # noqa: E402


def spaces(model, *example):
    _, graph, _ = prepare(model, example=example)
    free = {space.path: space.size for space in graph.free}
    return free, {space.path: space.frozen for space in graph.spaces.values() if space.frozen}


def test_a_chain_has_a_space_per_hidden_layer():
    free, frozen = spaces(nets.seeded(nets.mlp, 4, 8, 6, 2), torch.ones(3, 4))
    assert free == {"0": 8, "2": 6}
    assert frozen == {"4": "they are the model's outputs"}


def test_convolutions_pooling_and_flattening():
    assert spaces(nets.seeded(nets.Vgg), nets.images(3))[0] == {"conv1": 8, "conv2": 12, "fc1": 16}


def test_residual_sums_couple_widths():
    free, _ = spaces(nets.seeded(nets.ResNet), nets.images(3))
    blocks = {f"stages.{s}.{b}.conv1": w for s, w in ((0, 6), (1, 8)) for b in (0, 1)}
    assert free == {"conv1": 6, **blocks, "stages.1.0.downsample.0": 8}


def test_concatenation_and_depthwise():
    assert spaces(nets.seeded(nets.Dense), nets.images(3))[0] == {"first": 6, "second": 4, "last": 7}
    assert spaces(nets.seeded(nets.Sequence), torch.randn(3, 4, 9))[0] == {"conv": 6, "token": 7}


def test_what_cannot_be_narrowed_is_named_and_the_rest_is_not():
    free, frozen = spaces(nets.seeded(nets.Odd), nets.images(3, 8))
    assert free == {"extra": 5}
    assert "fails with another width" in frozen["fixed"]
    assert "attention" in frozen["after"]
    assert frozen["free"] == "the weights shared.weight are used twice"
    assert "decide" in frozen["decides"]
    assert "layer_norm in norm" in frozen["normed"]


@pytest.mark.parametrize("unseen", [False, True])
def test_layers_that_another_branch_may_use_keep_their_widths(unseen):
    """Narrowed networks must run on inputs that take the branch which the example did not take."""
    model = nets.seeded(nets.Branching, unseen)
    free, frozen = spaces(model, torch.randn(3, 6))
    assert free == ({"free": 9} if unseen else {"stem": 8, "part.before": 10, "free": 9})
    assert frozen["part.after"] == "the code in part may take another way for other values (bool)"
    smaller = ut.compress(model, torch.randn(50, 6), keep=0.5)
    assert smaller.model(torch.full((2, 6), 1e7)).shape == (2, 2)


def test_layers_of_other_kinds_are_named():
    model = nets.seeded(nets.Unsupported)
    notes = ut.compress(model, nets.images(20, 6), keep=0.5).report.notes
    left = {note.partition(":")[0]: note for note in notes}
    assert set(left) == {"grouped", "transposed", "scaled", "memory", "attention"}
    assert left["grouped"] == "grouped: not narrowed, because conv_transpose2d in transposed is not supported."
    assert left["memory"] == "memory: not narrowed, because lstm is not supported."
    assert [space.path for space in prepare(model, example=nets.images(3, 6))[1].free] == ["free"]


def test_layers_that_only_training_mode_reaches_keep_what_they_read():
    model = nets.seeded(nets.Auxiliary)
    smaller = ut.compress(model.train(), torch.randn(50, 5), keep=0.5)
    assert [(layer.path, layer.after) for layer in smaller.report.layers] == [("inner", 3)]
    assert [tuple(y.shape) for y in smaller.model.train()(torch.randn(4, 5))] == [(4, 2), (4, 3)]
    stem, aux = smaller.report.notes
    assert stem == "stem: not narrowed, because training mode uses layers (aux) that need this width."
    assert aux == "aux: not narrowed, because the example does not reach it."


def test_stored_vectors_are_carried_along():
    assert spaces(nets.seeded(nets.Scaled), nets.images(3))[0] == {"conv": 6, "fc": 8, "last": 7}


def test_depthwise_convolutions_of_two_channels_survive_the_trial():
    """With one channel left, nothing distinguishes them from ordinary convolutions."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Conv2d(2, 2, 3, groups=2), torch.nn.Conv2d(2, 4, 1))
    ready, graph, _ = prepare(model, example=nets.images(3))
    assert [space.size for space in graph.free] == [2]
    assert ready[1].groups == ready[1].in_channels == 2
    torch.testing.assert_close(ready(nets.images(3)), model(nets.images(3)))
    assert ut.compress(model, nets.images(20), widths=[1]).model[1].groups == 1


@pytest.mark.parametrize(
    ("make", "example"),
    [
        (nets.Scaled, nets.images(4)),
        (nets.Gated, torch.randn(4, 5)),
        (nets.DenseNorm, nets.images(4)),
        (nets.Vgg, nets.images(4)),
        (nets.ResNet, nets.images(4)),
        (nets.Dense, nets.images(4)),
        (nets.Sequence, torch.randn(4, 4, 9)),
    ],
    ids=["scaled", "gated", "dense with BatchNorm", "vgg", "resnet", "dense", "sequence"],
)  # fmt: skip
def test_cutting_all_spaces_is_silencing_neurons(make, example):
    """Remove neuron 0 of every space: the outputs are those with all weights zero that read it."""
    model, graph, _ = prepare(nets.seeded(make), example=example)
    silenced, _, _ = prepare(model, example=example)
    with torch.no_grad():
        for call in graph.calls:
            for space in graph.free:
                if call.inputs and any(part == space.index for part, _ in call.inputs):
                    weight = silenced.get_parameter(call.weight)
                    weight[:, graph.owners(call.inputs, space.index) == 0] = 0
        cut(model, graph, {space.index: torch.arange(1, space.size) for space in graph.free})
        torch.testing.assert_close(model(example), silenced(example), rtol=1e-4, atol=1e-5)
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            assert (module.out_features, module.in_features) == tuple(module.weight.shape)


class Tied(torch.nn.Module):
    """The decoder is the encoder's transpose, computed anew in every pass."""

    def __init__(self):
        super().__init__()
        self.encoder, self.middle, self.head = torch.nn.Linear(6, 8), torch.nn.Linear(6, 9), torch.nn.Linear(9, 2)

    def forward(self, x):
        x = torch.nn.functional.linear(torch.relu(self.encoder(x)), self.encoder.weight.T)
        return self.head(torch.relu(self.middle(x)))


def test_a_weight_of_the_model_itself_has_its_own_name():
    class Lone(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.head = torch.nn.Parameter(torch.randn(8, 6)), torch.nn.Linear(8, 2)

        def forward(self, x):
            return self.head(torch.relu(torch.nn.functional.linear(x, self.weight)))

    assert spaces(nets.seeded(Lone), torch.ones(3, 6))[0] == {"weight": 8}


def test_every_reason_names_something():
    _, graph, _ = prepare(nets.seeded(Tied), example=torch.ones(3, 6))
    assert graph.notes("not narrowed") == (
        "encoder: not narrowed, because the weights are computed, not stored.",
        "the model: not narrowed, because its weights are computed, not stored.",
    )
    apart = torch.nn.Sequential(torch.nn.Conv1d(3, 8, 1), torch.nn.LayerNorm(7), torch.nn.Conv1d(8, 8, 3))
    with pytest.raises(ValueError, match=r"0: layer_norm in 1 is not supported; 2: they are the model's outputs"):
        ut.compress(apart, torch.randn(5, 3, 7), keep=0.5)
