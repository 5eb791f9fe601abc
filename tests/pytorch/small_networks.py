"""Small networks for tests: VGG-like, ResNet-like, with concatenations, and some that cannot be narrowed."""

from itertools import pairwise

import torch
from torch import nn


def seeded(make, *arguments, **options):
    """A network with the same random weights every time, and BatchNorm statistics unlike those of a fresh layer."""
    torch.manual_seed(0)
    model = make(*arguments, **options)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.3)
    return model.eval()


def mlp(*widths, activation=nn.ReLU):
    layers = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


class Vgg(nn.Module):
    """Convolutions, BatchNorm, pooling, then Linear layers on a flattened map, written with functions."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 12, 3, padding="same", dilation=2)
        self.fc1 = nn.Linear(12 * 4 * 4, 16)
        self.fc2 = nn.Linear(16, 5)
        self.dropout = nn.Dropout()

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = nn.functional.avg_pool2d(self.conv2(x).relu_(), 2)
        x = self.dropout(self.fc1(x.view(x.size(0), -1)))
        return self.fc2(nn.functional.gelu(x))


class Block(nn.Module):
    def __init__(self, before, width, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or before != width:
            self.downsample = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """Two blocks per stage, as in ResNet-18, narrow."""

    def __init__(self, widths=(6, 8)):
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        stages = []
        for before, width in zip((widths[0], *widths), widths, strict=False):
            stages.append(nn.Sequential(Block(before, width, 1 if width == before else 2), Block(width, width)))
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(widths[-1], 5)

    def forward(self, x):
        x = self.stages(torch.relu(self.bn1(self.conv1(x))))
        return self.fc(x.mean([2, 3]))


class Dense(nn.Module):
    """Concatenations of what came before, and a depthwise convolution."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.second = nn.Conv2d(6, 4, 3, padding=1)
        self.depthwise = nn.Conv2d(10, 10, 3, padding=1, groups=10)
        self.last = nn.Conv2d(10, 7, 1)
        self.head = nn.Linear(7, 5)

    def forward(self, x):
        a = torch.relu(self.first(x))
        b = torch.relu(self.second(a))
        c = torch.relu(self.depthwise(torch.cat([a, b], dim=1)))
        return self.head(torch.tanh(self.last(c)).amax((2, 3)))


class Sequence(nn.Module):
    """Conv1d with BatchNorm1d and PReLU, transposed to Linear."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, stride=2)
        self.norm = nn.BatchNorm1d(6)
        self.act = nn.PReLU(6)
        self.token = nn.Linear(6, 7)
        self.head = nn.Linear(7, 2)

    def forward(self, x):
        x = self.act(self.norm(self.conv(x))).transpose(1, 2)
        return self.head(torch.relu(self.token(x)).mean(1))


class Odd(nn.Module):
    """One of everything that cannot be narrowed, beside one layer that can."""

    def __init__(self):
        super().__init__()
        self.fixed = nn.Conv2d(3, 4, 3)  # its width stands in forward
        self.after = nn.Linear(4 * 36, 6)  # read by attention
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.free = nn.Linear(6, 9)
        self.shared = nn.Linear(9, 9)
        self.decides = nn.Linear(9, 8)
        self.normed = nn.Linear(8, 6)
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 2)
        self.extra = nn.Linear(6, 5)
        self.last = nn.Linear(5, 2)

    def forward(self, x):
        x = torch.relu(self.after(self.fixed(x).view(-1, 4 * 36)))
        x = x.unsqueeze(1)
        x = self.attention(x, x, x)[0].squeeze(1)
        side = self.last(torch.relu(self.extra(x)))
        x = torch.relu(self.free(x))
        x = torch.relu(self.shared(torch.relu(self.shared(x))))
        x = self.decides(x)
        if not x.tolist():
            x = -x
        return self.head(self.norm(self.normed(x))) + side


class Branching(nn.Module):
    """A part that branches on values, with or without a layer that the example does not reach, beside one that does
    not branch."""

    def __init__(self, unseen=False):
        super().__init__()
        self.stem = nn.Linear(6, 8)
        self.part = Branches(unseen)
        self.free = nn.Linear(7, 9)
        self.head = nn.Linear(9, 2)

    def forward(self, x):
        return self.head(torch.relu(self.free(self.part(torch.relu(self.stem(x)), x))))


class Branches(nn.Module):
    def __init__(self, unseen):
        super().__init__()
        self.before = nn.Linear(8, 10)
        self.first = nn.Linear(10, 7)
        self.after = nn.Linear(7, 7)
        self.other = nn.Linear(8, 7) if unseen else None

    def forward(self, x, inputs):
        found = self.first(torch.relu(self.before(x)))
        if inputs.abs().max() > 1e6:
            return self.other(x) if self.other is not None else torch.tanh(self.after(found))
        return torch.relu(self.after(torch.relu(found)))


class Unsupported(nn.Module):
    """Layers of PyTorch whose width cannot change, each before one that can."""

    def __init__(self):
        super().__init__()
        self.grouped = nn.Conv2d(3, 6, 3, padding=1, groups=3)
        self.transposed = nn.ConvTranspose2d(6, 4, 2, 2)
        self.scaled = nn.utils.parametrizations.weight_norm(nn.Linear(4, 5))
        self.memory = nn.LSTM(5, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.free = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = self.scaled(self.transposed(self.grouped(x)).mean((2, 3))).unsqueeze(1)
        x = self.memory(x)[0]
        return self.head(torch.relu(self.free(self.attention(x, x, x)[0].squeeze(1))))


class Auxiliary(nn.Module):
    """A second head that only training mode uses."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(5, 8)
        self.norm = nn.BatchNorm1d(8)
        self.inner = nn.Linear(8, 6)
        self.head = nn.Linear(6, 2)
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        found = self.head(torch.relu(self.inner(x)))
        return (found, self.aux(x)) if self.training else found


class Scaled(nn.Module):
    """Stored vectors with one number per channel, as in layer scale, and stored single numbers."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.scale = nn.Parameter(torch.rand(6, 1, 1) + 0.5)
        self.fc = nn.Linear(6, 8)
        self.shift = nn.Parameter(torch.randn(1, 8))
        self.last = nn.Linear(8, 7)
        self.number = nn.Parameter(torch.tensor(0.7))
        self.head = nn.Linear(7, 2)

    def forward(self, x):
        x = torch.relu(self.conv(x) * self.scale).mean((2, 3))
        x = torch.relu(self.fc(x)) + self.shift
        return self.head(torch.relu(self.last(x)) + self.number)


class Gated(nn.Module):
    """Products of two sets of neurons."""

    def __init__(self):
        super().__init__()
        self.value, self.gate, self.head = nn.Linear(5, 8), nn.Linear(5, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.sigmoid(self.gate(x)) * self.value(x))


class DenseNorm(nn.Module):
    """A BatchNorm over concatenated convolutions."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 5, 3, padding=1, bias=False)
        self.norm, self.last, self.head = nn.BatchNorm2d(9), nn.Conv2d(9, 6, 1), nn.Linear(6, 2)

    def forward(self, x):
        x = self.first(x)
        x = self.last(torch.relu(self.norm(torch.cat([x, self.second(torch.relu(x))], 1))))
        return self.head(torch.relu(x).mean((2, 3)))


class BothSides(nn.Module):
    """What a convolution makes is read before and after its BatchNorm."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 6, 3, bias=False), nn.BatchNorm2d(6)
        self.after, self.before = nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, x):
        x = self.conv(x)
        return self.after(torch.relu(self.norm(x)).mean((2, 3))) + self.before(torch.relu(x).mean((2, 3)))


def images(count, size=16):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(1))


def assert_aligned(mixed, model, x):
    """`mixed` is `model` with its neurons in another order, and `ut.align` finds the order again."""
    import understudy.torch as ut

    torch.testing.assert_close(mixed(x), model(x), rtol=1e-4, atol=1e-5)
    again = ut.align(mixed, model, x)
    torch.testing.assert_close(again(x), model(x), rtol=1e-4, atol=1e-5)
    for before, after in zip(ut.compare(mixed, model, x).layers, ut.compare(again, model, x).layers, strict=True):
        fixed = [i == j for i, j in enumerate(after.order)]
        assert sum(fixed) >= after.neurons  # dead neurons have no place of their own
        assert before.order != after.order
