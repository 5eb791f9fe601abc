"""Networks trained together are those trained apart."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import copy  # noqa: E402

from benchmarks.trained import Beside, accuracies, mlp, outputs, train  # noqa: E402


def test_training_together_is_training_each():
    torch.manual_seed(0)
    data = torch.rand(256, 784), torch.arange(256) % 10
    teacher = torch.randn(256, 10)
    models = [mlp((6, 5)) for _ in range(3)]
    taught = [False, True, False]
    apart = []
    for model, marked in zip(copy.deepcopy(models), taught, strict=True):
        *_, alone = train([model], data, 2, seed=1, teacher=teacher, taught=[marked])
        apart.append(outputs(alone, data[0])[0])
    *_, beside = train(models, data, 2, seed=1, teacher=teacher, taught=taught)
    torch.testing.assert_close(outputs(beside, data[0]), torch.stack(apart), rtol=1e-4, atol=1e-5)
    assert accuracies(beside, data) == [float((found.argmax(1) == data[1]).float().mean()) for found in apart]
    assert not torch.allclose(apart[0], outputs(Beside(models), data[0])[0])  # the networks themselves are left alone


def test_fewer_epochs_are_the_beginning_of_more():
    data = torch.rand(256, 784), torch.arange(256) % 10
    torch.manual_seed(0)
    model = mlp((6, 5))
    reached = [outputs(b, data[0]) for b in train([copy.deepcopy(model)], data, 3, seed=1)]
    (first,) = (outputs(b, data[0]) for b in train([copy.deepcopy(model)], data, 1, seed=1))
    assert torch.equal(first, reached[0])
