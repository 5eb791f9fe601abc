"""Certificates of trained networks, against linear algebra and against PyTorch's own dense Hessians."""

import importlib

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

import understudy.torch as ut  # noqa: E402
from understudy.torch.batches import Sample  # noqa: E402
from understudy.torch.curvature import Landscape, gain_within, lanczos  # noqa: E402

mse = nn.functional.mse_loss


def trained(decay, activation=nn.Tanh):
    """A small smooth network at a minimum of its loss with weight decay, found by L-BFGS in float64."""
    torch.manual_seed(1)
    x = torch.randn(60, 3, dtype=torch.float64)
    y = torch.sin(x.sum(1, keepdim=True))
    model = nn.Sequential(nn.Linear(3, 4), activation(), nn.Linear(4, 1)).double()
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=800, tolerance_grad=1e-13, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        value = mse(model(x), y) + 0.5 * decay * sum((p**2).sum() for p in model.parameters())
        value.backward()
        return value

    optimizer.step(closure)
    return model, (x, y)


def dense_hessian(model, data, decay):
    """Hessian, gradient and value of the loss of `trained`, written out as a function of one vector."""
    point = torch.cat([p.detach().flatten() for p in model.parameters()]).requires_grad_()

    def value(vector):
        w, b, a, c = vector.split([12, 4, 4, 1])
        outputs = torch.tanh(data[0] @ w.view(4, 3).T + b) @ a[:, None] + c
        return ((outputs - data[1]) ** 2).mean() + decay / 2 * (vector**2).sum()

    (gradient,) = torch.autograd.grad(value(point), point)
    return torch.autograd.functional.hessian(value, point.detach()), gradient, float(value(point.detach()))


def test_least_squares_with_weight_decay_is_a_minimum_with_the_eigenvalues_of_its_normal_matrix():
    draw = np.random.default_rng(0)
    x, y, decay = draw.standard_normal((40, 3)), draw.standard_normal((40, 1)), 0.1
    normal = 2 * x.T @ x / 40 + decay * np.eye(3)
    model = nn.Linear(3, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(np.linalg.solve(normal, 2 * x.T @ y / 40).T))
    found = ut.certify(model, mse, (torch.from_numpy(x), torch.from_numpy(y)), weight_decay=decay)
    assert found.kind == "minimum"
    assert found.complete
    assert found.gain < 1e-14
    np.testing.assert_allclose(found.lowest, np.linalg.eigvalsh(normal), rtol=1e-6)  # data become float32 and back
    (layer,) = found.forces
    assert layer.residual < 1e-6
    np.testing.assert_allclose(layer.attraction, -layer.repulsion, rtol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_a_network_at_a_minimum_has_the_eigenvalues_of_the_dense_hessian_and_balanced_forces(dense, monkeypatch):
    decay = 1e-2
    model, data = trained(decay)
    hessian, gradient, value = dense_hessian(model, data, decay)
    assert float(gradient.norm()) < 1e-9
    if not dense:
        monkeypatch.setattr(importlib.import_module("understudy.torch.certify"), "DENSE", 0)
    found = ut.certify(model, mse, data, weight_decay=decay, steps=21)
    least = torch.linalg.eigvalsh(hessian)
    assert found.kind == ("minimum" if dense else "probable minimum")
    assert abs(found.lowest[0] - float(least[0])) <= found.residuals[0] + 1e-9
    assert abs(found.highest - float(least[-1])) <= 1e-9
    assert abs(found.loss - value) < 1e-12
    assert all(layer.residual < 1e-6 for layer in found.forces)
    assert "cancel" in str(found)


def test_the_origin_of_a_smooth_network_is_a_strict_saddle_and_forces_are_left_out():
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    y = x[:, :1] - x[:, :1].mean()
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    for p in model.parameters():
        p.detach().zero_()
    found = ut.certify(model, mse, (x, y), weight_decay=1e-3)
    assert found.kind == "strict saddle"
    assert found.lowest[0] < 0
    assert found.forces is None
    assert "Forces are left out" in str(found)
    assert found.gradient_norm < 1e-7


def test_an_untrained_classifier_is_unconverged_and_comes_back_as_it_was():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 3)).train()
    before = {name: p.clone() for name, p in model.state_dict().items()}
    found = ut.certify(model, nn.functional.cross_entropy, (torch.randn(64, 5), torch.arange(64) % 3), steps=8)
    assert found.kind == "unconverged"
    assert not found.complete
    assert found.gain > 1e-3
    assert model.training
    assert model[0].weight.dtype is torch.float32
    assert all(torch.equal(before[name], p) for name, p in model.state_dict().items())
    assert found.to_dict()["kind"] == "unconverged"
    assert "<table>" in found._repr_html_()


def test_the_gain_is_the_fall_of_the_quadratic_model_inside_the_radius_and_on_it():
    """Against a fine search over the plane of a two-dimensional problem."""
    matrix = torch.diag(torch.tensor([2.0, -0.5], dtype=torch.float64))
    gradient = torch.tensor([0.3, 0.4], dtype=torch.float64)
    spectrum = lanczos(lambda v: matrix @ v, gradient, 2)
    angles = torch.linspace(0, 2 * torch.pi, 2001, dtype=torch.float64)
    for radius in (0.05, 0.5, 5.0):
        steps = torch.linspace(0, radius, 801, dtype=torch.float64)[:, None, None] * torch.stack(
            [angles.cos(), angles.sin()], dim=-1
        )
        falls = steps @ gradient - 0.5 * (steps**2 * torch.tensor([2.0, 0.5], dtype=torch.float64)).sum(-1)
        assert abs(gain_within(spectrum, 0.5, radius) - float(falls.max())) < 1e-4 * float(falls.max())


def test_products_are_those_of_the_dense_hessian_over_several_batches(monkeypatch):
    from understudy.torch import curvature

    monkeypatch.setattr(curvature, "BATCH", 7)
    model, data = trained(0.0)
    field = Landscape(model, mse, Sample((data[0],), data[1]), 0.3)
    hessian, gradient, _ = dense_hessian(model, data, 0.3)
    vector = torch.randn(len(gradient), dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(field.product(vector), hessian @ vector)
    torch.testing.assert_close(field.gradient(), gradient)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (torch.ones(3, 2), {}, "no labels"),
        ([], {}, "no inputs"),
        ((torch.ones(3, 2), torch.ones(3, 1)), {"weight_decay": -1}, "weight_decay"),
        ((torch.ones(3, 2), torch.ones(3, 1)), {"steps": 1}, "steps"),
        ((torch.ones(3, 2), torch.ones(3, 5).long()), {}, "loss fails"),
    ],
)
def test_bad_input_is_named(data, options, words):
    loss = nn.functional.cross_entropy if words == "loss fails" else mse
    with pytest.raises(ValueError, match=words):
        ut.certify(nn.Linear(2, 1), loss, data, **options)
