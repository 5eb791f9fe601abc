"""Claim `cifar`: students of a convolutional teacher trained on CIFAR-10 align more when they are wider."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from understudy.papers.cells import compute
from understudy.papers.check import Check, at_least
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    import xarray as xr


def _images(settings: Settings) -> tuple[Any, ...]:
    """Training and test images, averaged down to the size asked for and standardised, and labels."""
    from understudy.data.cifar import cifar10
    from understudy.data.errors import MissingDataError

    data = cifar10()
    size = settings["size"]
    factor = 32 // size
    found = []
    for x, count in ((data.x_train, settings["samples"]), (data.x_test, settings["tested"])):
        if len(x) < count:
            raise MissingDataError(
                f"The claim asks for {count:,} images, and {data.place} has {len(x):,}. Use a whole copy of CIFAR-10 "
                "(five training batches), or fewer samples."
            )
        part = x[:count].astype(float) / 255
        found.append(part.reshape(count, size, factor, size, factor, 3).mean(axis=(2, 4)))
    mean, spread = found[0].mean(axis=(0, 1, 2)), found[0].std(axis=(0, 1, 2))
    x, test = ((part - mean) / spread for part in found)
    return (
        x,
        data.y_train[: settings["samples"]].astype(int),
        test,
        data.y_test[: settings["tested"]].astype(int),
    )


def _teacher(settings: Settings, x: Any, y: Any, test: Any, labels: Any) -> tuple[Any, dict[str, float]]:
    """Trained on the labels, pruned to its strongest channels, trained on, and its outputs standardised on the
    training images.
    """
    import jax.numpy as jnp
    import numpy as np

    from understudy.dynamics.optimizers import adam
    from understudy.dynamics.sgd import Trainer
    from understudy.networks.convolutional import Convolutional
    from understudy.papers.alignment.channels import prune_channels
    from understudy.papers.alignment.costs import cross_entropy

    def fit(network: Any, epochs: int) -> Any:
        trainer = Trainer(cross_entropy, adam(settings["teacher_rate"]), x, y, [0], batch=settings["batch"])
        training = trainer.begin([network])
        for _ in range(epochs):
            training, _ = trainer.advance(training)
        return _first(training.parameters)

    def accuracy(network: Any) -> float:
        return float(np.mean(np.argmax(_outputs(network, test), axis=1) == labels))

    whole = fit(
        Convolutional.start(settings["channels"], 10, size=settings["size"], seed=0), settings["teacher_epochs"]
    )
    pruned, _ = prune_channels(whole, settings["pruned"])
    teacher = fit(pruned, settings["tuning_epochs"])
    outputs = _outputs(teacher, x)
    spread = jnp.asarray(outputs.std(axis=0))
    scaled = Convolutional(
        teacher.kernels,
        teacher.biases,
        teacher.weight / spread[:, None],
        (teacher.bias - jnp.asarray(outputs.mean(axis=0))) / spread,
    )
    told = {"teacher's accuracy": accuracy(whole), "pruned and trained on": accuracy(teacher)}
    return scaled, told


def _outputs(network: Any, images: Any) -> Any:
    """Outputs for all images, compiled, some hundred images at a time."""
    import equinox as eqx
    import jax.numpy as jnp
    import numpy as np

    run = eqx.filter_jit(lambda n, x: n(x))
    return np.concatenate(
        [np.asarray(run(network, jnp.asarray(images[i : i + 500]))) for i in range(0, len(images), 500)]
    )


def _first(parameters: Any) -> Any:
    import jax

    return jax.tree.map(lambda leaf: leaf[0], parameters)


def _correlations(student: Any, teacher: Any, images: Any) -> list[float]:
    """ρ_mean of every layer: channels over samples and positions."""
    import equinox as eqx
    import numpy as np

    from understudy.alignment import Alignment, correlate

    def flat(network: Any) -> list[Any]:
        return [f.reshape(-1, f.shape[-1]) for f in eqx.filter_jit(lambda n, x: n.hidden(x))(network, images)]

    return [Alignment(np.asarray(correlate(t, s))).mean for t, s in zip(flat(teacher), flat(student), strict=True)]


@lru_cache(maxsize=1)
def _problem(told: str) -> tuple[Any, Any, Any, Any, dict[str, float]]:
    """Images to train on and to test with, the pruned teacher, its outputs and accuracies, for settings as JSON."""
    settings = json.loads(told)
    x, y, test, labels = _images(settings)
    teacher, accuracies = _teacher(settings, x, y, test, labels)
    return x, test, teacher, _outputs(teacher, x), accuracies


def student_cell(cell: Mapping[str, Any]) -> xr.Dataset:
    """Train one student of one width: correlations by layer before and after, test loss, the teacher's accuracies.

    The teacher is trained anew once per process: with the same settings it is the same everywhere.
    """
    import jax.numpy as jnp
    import numpy as np
    import xarray as xr

    from understudy.dynamics.optimizers import adam
    from understudy.dynamics.sgd import Trainer
    from understudy.networks.convolutional import Convolutional
    from understudy.papers.alignment.costs import squared_error

    settings, seed = cell["settings"], cell["seed"]
    x, test, teacher, wanted, accuracies = _problem(json.dumps(settings, sort_keys=True))
    channels = [round(cell["over"] * k.shape[3]) for k in teacher.kernels]
    start = Convolutional.start(channels, 10, size=settings["size"], seed=seed + 1)
    trainer = Trainer(squared_error, adam(settings["rate"]), x, wanted, [seed], batch=settings["batch"])
    training = trainer.begin([start])
    for _ in range(settings["epochs"]):
        training, _ = trainer.advance(training)
    ended = _first(training.parameters)
    watched = jnp.asarray(test)[: settings["watched"]]
    gap = _outputs(ended, test) - _outputs(teacher, test)
    return xr.Dataset(
        {
            "rho": ("layer", _correlations(ended, teacher, watched)),
            "start": ("layer", _correlations(start, teacher, watched)),
            "loss": 0.5 * float(np.mean(np.sum(gap**2, axis=1))),
            "kept": ("layer", [k.shape[3] for k in teacher.kernels]),
            **accuracies,
        }
    )


def _net_of_untrained(means: Any, before: Any) -> tuple[Any, Any]:
    """What width adds at every layer beyond an untrained student's correlation: mean over seeds and its error."""
    import numpy as np

    net = (means - before)[-1] - (means - before)[0]  # seeds, layers
    error = net.std(axis=0, ddof=1) / np.sqrt(len(net)) if len(net) > 1 else np.full(net.shape[1], np.inf)
    return net.mean(axis=0), error


def _checks(overs: list[float], means: Any, before: Any, loss: Any, accuracy: float) -> list[Check]:
    """What wider students gain, at every layer and on test images."""
    import numpy as np

    net, error = _net_of_untrained(means, before)
    return [
        at_least("accuracy of the pruned teacher (chance 0.1)", accuracy, bound=0.25),
        at_least(
            f"ρ_mean at {overs[-1]:g}x less at {overs[0]:g}x, mean over seeds, every layer",
            means[-1].mean(axis=0) - means[0].mean(axis=0),
            bound=1e-9,
        ),
        at_least(
            "ρ_mean net of untrained students, widest less 1x, less two standard errors, every layer",
            net - 2 * error,
            bound=0.0,
        ),
        at_least(
            "ρ_mean from one width to the next, mean over layers",
            np.diff(means.mean(axis=1), axis=0).mean(axis=1),
            bound=1e-9,
        ),
        at_least(
            "ρ_mean gained by training at the widest, mean over layers",
            (means - before).mean(axis=1)[-1].mean(),
            bound=1e-9,
        ),
        at_least(
            "test loss at 1x over that of the widest, mean over seeds", loss[0].mean() / loss[-1].mean(), bound=1.0
        ),
    ]


def _summary(overs: list[float], means: Any, before: Any, loss: Any) -> dict[str, Any]:
    """Correlations and test losses by width, and what training and width add to the correlations."""
    gained = (means - before).mean(axis=1)
    net, error = _net_of_untrained(means, before)
    return {
        **{
            f"{o:g}x": "ρ_mean "
            + ", ".join(f"{v:.3f} ± {s:.3f}" for v, s in zip(means[i].mean(axis=0), means[i].std(axis=0), strict=True))
            + f" (at the start {', '.join(f'{v:.3f}' for v in before[i].mean(axis=0))}); test loss {loss[i].mean():.3f}"
            for i, o in enumerate(overs)
        },
        "ρ_mean gained by training": {f"{o:g}x": [float(f"{v:.3f}") for v in gained[i]] for i, o in enumerate(overs)},
        "net of untrained students, widest less 1x, by layer": [
            f"{v:.3f} ± {e:.3f}" for v, e in zip(net, error, strict=True)
        ],
    }


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    overs, seeds = settings["overs"], range(settings["seeds"])
    shared = {name: value for name, value in settings.items() if name not in ("overs", "seeds", "keep")}
    cells = [{"kind": "cifar-student", "settings": shared, "over": o, "seed": seed} for o in overs for seed in seeds]
    rows = compute(student_cell, cells, progress, keep=settings["keep"])
    shape = (len(overs), len(seeds), -1)
    # Correlations by width, seed and layer after training; a maximum over more channels is larger by itself, so those
    # of the untrained students too.
    means, before = (np.array([row[name].values for row in rows]).reshape(shape) for name in ("rho", "start"))
    loss = np.array([float(row["loss"]) for row in rows]).reshape(shape[:2])
    told = {name: float(rows[0][name]) for name in ("teacher's accuracy", "pruned and trained on")}
    kept = [int(n) for n in rows[0]["kept"].values]
    return Measurement(
        _checks(overs, means, before, loss, told["pruned and trained on"]),
        _summary(overs, means, before, loss) | {k: float(f"{v:.3g}") for k, v in told.items()},
        {"rho": means, "start": before, "loss": loss, "overs": np.array(overs)},
        notes=(
            f"Teacher {'-'.join(str(n) for n in settings['channels'])} (3 × 3 kernels, no padding) on "
            f"{settings['samples']} training images of CIFAR-10, averaged to {settings['size']} × {settings['size']}, "
            f"pruned to {'-'.join(str(n) for n in kept)} channels; students of {len(seeds)} seeds, Adam at "
            f"{settings['rate']}, {settings['epochs']} epochs. The paper: 64-64-64-64 on 32 × 32, 50,000 images. A "
            "best match among more channels is better before any training: compare with the start."
        ),
    )


def _cost(settings: Settings) -> float:
    """Multiplications of all students: channels squared, positions, images, epochs, seeds."""
    positions = sum((settings["size"] - 2 * layer) ** 2 for layer in range(1, 5))
    widths = sum(over**2 for over in settings["overs"]) * max(settings["channels"]) ** 2
    return float(widths * positions * settings["samples"] * settings["epochs"] * settings["seeds"])


def _draw(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    from understudy.plots.style import COLOURS

    data = measurement.data
    left, right = figure.subplots(1, 2)
    layers = np.arange(1, data["rho"].shape[2] + 1)
    for i, over in enumerate(data["overs"]):
        mean, spread = data["rho"][i].mean(axis=0), data["rho"][i].std(axis=0)
        left.errorbar(layers, mean, spread, fmt="o-", color=COLOURS[i], ms=4, capsize=3, label=f"{over:g}x")
        left.plot(layers, data["start"][i].mean(axis=0), ":", color=COLOURS[i], lw=1.2)
        right.plot(np.full(data["loss"].shape[1], over), data["loss"][i], "o", color=COLOURS[i])
    left.set(xlabel="layer", ylabel=r"$\rho_{mean}$", title="Alignment (dotted: at the start)", xticks=layers)
    left.legend(title="students")
    right.set(
        xlabel="times the teacher's channels",
        ylabel="½ mean ‖f* - f‖² on test images",
        title="Test loss, one point per seed",
        xscale="log",
    )
    right.set_xticks(data["overs"], [f"{o:g}" for o in data["overs"]])
    right.minorticks_off()


CLAIM = Claim(
    paper="alignment",
    id="cifar",
    where="Sec. 6.2, Fig. 13",
    statement=(
        "With a ConvNet teacher trained on CIFAR-10 and pruned to its strong channels, over-parameterisation raises "
        "ρ_mean at every layer and improves generalisation."
    ),
    paper_value="ρ_mean against training, 1x and wider (a figure)",
    measured_by=(
        "A teacher trained on labels, pruned by fan-out and trained on; students on its outputs; correlations of "
        "channels over test images and positions."
    ),
    tolerance="signs of the differences of means over seeds",
    tolerance_reason="A smaller network and fewer images than the paper's: the trend is what can be compared.",
    quick={
        "size": 16, "channels": [8, 8, 8, 8], "pruned": 0.5, "samples": 1000, "tested": 400, "watched": 100,
        "teacher_epochs": 8, "teacher_rate": 3e-3, "tuning_epochs": 3, "batch": 32, "rate": 2e-3,
        "epochs": 6, "overs": [1.0, 4.0], "seeds": 2, "keep": False,
    },
    full={
        "size": 16, "channels": [16, 16, 16, 16], "pruned": 0.5, "samples": 5000, "tested": 2000, "watched": 500,
        "teacher_epochs": 12, "teacher_rate": 2e-3, "tuning_epochs": 4, "batch": 32, "rate": 1e-3,
        "epochs": 8, "overs": [1.0, 2.0, 4.0], "seeds": 12, "keep": True,
    },
    measure=_measure,
    figure=_draw,
    cost=_cost,
)  # fmt: skip
