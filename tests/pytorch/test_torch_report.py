"""`report`: planted redundancy is counted exactly, widths it suggests hold, and layers are named."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import json  # noqa: E402

import small_networks as nets  # noqa: E402
from test_merge_torch import biased_cnn, plant  # noqa: E402

import understudy.torch as ut  # noqa: E402


@pytest.mark.parametrize(
    ("make", "data"),
    [(lambda: nets.mlp(6, 8, 7, 3), torch.randn(300, 6)), (biased_cnn, nets.images(60))],
    ids=["mlp", "cnn"],
)
def test_copies_are_counted(make, data):
    plain = nets.seeded(make)
    before, after = ut.report(plain, data), ut.report(plant(plain, data[:3]), data)
    for one, two in zip(before.layers, after.layers, strict=True):
        assert one.copies == ()
        assert two.neurons == 2 * one.neurons + 1
        assert sum(len(g) - 1 for g in two.copies) == one.neurons + 1  # the dead one copies neuron 0
        assert sum(len(g) - 1 for g in two.rays) == sum(len(g) - 1 for g in one.rays) + one.neurons + 1 - len(
            one.dead
        ) * 1 - (0 in one.dead)
        assert two.free_width == one.free_width
        assert two.rank == one.rank


def test_dead_neurons_are_found_by_activations_and_constants_apart():
    model = nets.seeded(nets.mlp, 4, 6, 2)
    with torch.no_grad():
        model[0].bias[2] = -100.0
        model[0].weight[4] = 0
        model[0].bias[4] = 0.5
    (layer,) = ut.report(model, torch.randn(200, 4)).layers
    assert layer.dead == (2,)
    assert layer.constant == (4,)
    assert layer.free_width == 4


def test_curves_end_at_zero_and_suggestions_hold():
    model, data = nets.seeded(nets.Vgg), nets.images(80)
    found = ut.report(model, data)
    for layer in found.layers:
        assert len(layer.curve) == layer.neurons
        assert layer.curve[-1] == 0
        assert list(layer.curve) == sorted(layer.curve, reverse=True)
    assert found.suggest(0.0) == {
        layer.path: next(k for k, e in enumerate(layer.curve, 1) if e == 0) for layer in found.layers
    }
    widths = found.suggest(0.2)
    smaller = ut.compress(model, data, widths=widths)
    assert {layer.path: layer.after for layer in smaller.report.layers} == widths
    assert smaller.report.change.relative < 0.5


def test_it_prints_within_80_columns_draws_and_becomes_json(tmp_path):
    found = ut.report(nets.seeded(nets.mlp, 4, 6, 2), torch.randn(50, 4))
    table = str(found).splitlines()[:2]
    assert max(map(len, table)) <= 80
    assert ">0</td>" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["inputs"] == 50
    found.figure(tmp_path / "curves")
    assert (tmp_path / "curves.png").exists()


def test_sensitivity_of_a_last_layer_is_one():
    (layer,) = ut.report(nets.seeded(nets.mlp, 4, 6, 2), torch.randn(500, 4)).layers
    assert layer.sensitivity == pytest.approx(1, rel=0.1)
