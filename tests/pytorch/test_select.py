"""Backward elimination: against brute force, and the fast way for many features against the exact one."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from understudy.torch import select  # noqa: E402


def problem(neurons, block=1, outputs=3, copies=0, seed=0):
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(400, neurons * block, generator=draw, dtype=torch.float64)
    rows = rows @ torch.randn(neurons * block, neurons * block, generator=draw, dtype=torch.float64)
    if copies:
        rows[:, -copies * block :] = 2 * rows[:, : copies * block]
    targets = torch.relu(rows) @ torch.randn(neurons * block, outputs, generator=draw, dtype=torch.float64)
    owners = torch.arange(neurons).repeat_interleave(block)
    return rows, targets, select.make_reader(rows.T @ rows, rows.T @ targets, owners, float((targets**2).sum()))


def left_over(rows, targets, owners, kept):
    chosen = rows[:, torch.isin(owners, torch.tensor(kept))]
    return float(((targets - chosen @ torch.linalg.lstsq(chosen, targets).solution) ** 2).sum() / (targets**2).sum())


@pytest.mark.parametrize("block", [1, 3])
def test_each_step_leaves_out_the_cheapest_neuron(block, monkeypatch):
    monkeypatch.setattr(select, "RIDGE", 1e-12)
    rows, targets, reader = problem(6, block)
    order, errors = select.eliminate([reader], 6)
    kept = list(range(6))
    for neuron, error in zip(order, errors, strict=True):
        options = {i: left_over(rows, targets, reader.owners, [j for j in kept if j != i]) for i in kept}
        assert neuron == min(options, key=options.get)
        kept.remove(neuron)
        whole = left_over(rows, targets, reader.owners, range(6))
        assert error == pytest.approx(options[neuron] - whole, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("many", [False, True])
def test_copies_leave_first_at_no_cost_and_never_both(many, monkeypatch):
    if many:
        monkeypatch.setattr(select, "ONE_BY_ONE", 0)
    _, _, reader = problem(20, copies=5)
    order, errors = select.eliminate([reader], 20)
    assert sorted(i % 15 for i in order[:5]) == list(range(5))
    assert errors[4] < 1e-6 < errors[5]


def test_many_at_a_time_is_nearly_as_good(monkeypatch):
    rows, targets, reader = problem(60)
    gaps = []
    for limit in (600, 0):
        monkeypatch.setattr(select, "ONE_BY_ONE", limit)
        gone = set(select.eliminate([reader], 60, 30)[0])
        gaps.append(left_over(rows, targets, reader.owners, [i for i in range(60) if i not in gone]))
    assert gaps[1] < 1.2 * gaps[0]


def test_pivots_are_those_of_qr_on_the_activations():
    """Against SciPy's QR with pivots of the centred activations themselves; copies are never both taken."""
    from scipy.linalg import qr

    rows, targets, _ = problem(12, copies=3)
    rows = rows + 2.0
    whole = torch.cat([rows, torch.ones(len(rows), 1, dtype=torch.float64)], dim=1)
    owners = torch.cat([torch.arange(12), torch.tensor([-1])])
    reader = select.make_reader(whole.T @ whole, whole.T @ targets, owners, 1.0)
    pivots = qr((rows - rows.mean(0)).numpy(), mode="r", pivoting=True)[1]
    for width in (1, 4, 8):
        assert select.pivot([reader], 12, width) == sorted(pivots[:width].tolist())


def test_all_places_of_a_patch_count_for_pivots():
    rows, targets, reader = problem(5, block=3)
    other = select.make_reader(rows.T @ rows, rows.T @ targets, reader.owners, 1.0)
    stacked = torch.cat([rows[:, place::3] for place in range(3)])
    alone = select.make_reader(stacked.T @ stacked, stacked.T @ stacked, torch.arange(5), 1.0)
    assert [select.pivot([other], 5, k) for k in range(1, 5)] == [select.pivot([alone], 5, k) for k in range(1, 5)]
