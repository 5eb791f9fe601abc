"""Claim `cifar`: students of a convolutional teacher trained on CIFAR-10 align more when they are wider."""

from __future__ import annotations

from typing import Any

from understudy.papers.check import at_least
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _images(settings: Settings) -> tuple[Any, ...]:
    """Training and test images, averaged down to the size asked for and standardised, and labels."""
    from understudy.data.cifar import cifar10_part

    data = cifar10_part()
    size = settings["size"]
    factor = 32 // size
    found = []
    for x, count in ((data.x_train, settings["samples"]), (data.x_test, settings["tested"])):
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


def _teacher(
    settings: Settings, x: Any, y: Any, test: Any, labels: Any, progress: Progress
) -> tuple[Any, dict[str, float]]:
    """Trained on the labels, pruned to its strongest channels, trained on, and its outputs standardised on the training images."""
    import jax.numpy as jnp
    import numpy as np

    from understudy.dynamics.optimizers import adam
    from understudy.dynamics.sgd import Trainer
    from understudy.networks.convolutional import Convolutional
    from understudy.papers.alignment.channels import prune_channels
    from understudy.papers.alignment.costs import cross_entropy

    def fit(network: Any, epochs: int, low: float, high: float) -> Any:
        trainer = Trainer(cross_entropy, adam(settings["teacher_rate"]), x, y, [0], batch=settings["batch"])
        training = trainer.begin([network])
        for epoch in range(epochs):
            progress(low + (high - low) * epoch / epochs, "teacher")
            training, _ = trainer.advance(training)
        return _first(training.parameters)

    def accuracy(network: Any) -> float:
        return float(np.mean(np.argmax(_outputs(network, test), axis=1) == labels))

    whole = fit(
        Convolutional.start(settings["channels"], 10, size=settings["size"], seed=0),
        settings["teacher_epochs"],
        0.0,
        0.2,
    )
    pruned, _ = prune_channels(whole, settings["pruned"])
    teacher = fit(pruned, settings["tuning_epochs"], 0.2, 0.25)
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


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from understudy.dynamics.optimizers import adam
    from understudy.dynamics.sgd import Trainer
    from understudy.networks.convolutional import Convolutional
    from understudy.papers.alignment.costs import squared_error

    x, y, test, labels = _images(settings)
    teacher, told = _teacher(settings, x, y, test, labels, progress)
    held_out = jnp.asarray(test)
    wanted, truth = _outputs(teacher, x), _outputs(teacher, test)
    kept = [k.shape[3] for k in teacher.kernels]
    seeds = list(range(settings["seeds"]))
    rho, begun, losses = [], [], []
    for turn, over in enumerate(settings["overs"]):
        channels = [round(over * n) for n in kept]
        students = [Convolutional.start(channels, 10, size=settings["size"], seed=seed + 1) for seed in seeds]
        trainer = Trainer(
            squared_error, adam(settings["rate"]), x, wanted, seeds, batch=settings["batch"], workers=min(2, len(seeds))
        )
        training = trainer.begin(students)
        for epoch in range(settings["epochs"]):
            progress(
                0.25 + 0.75 * (turn + epoch / settings["epochs"]) / len(settings["overs"]), f"{over:g}x, epoch {epoch}"
            )
            training, _ = trainer.advance(training)
        ended = [jax.tree.map(lambda leaf, i=i: leaf[i], training.parameters) for i in range(len(seeds))]
        # A maximum over more channels is larger by itself: what the start has of it is measured too.
        begun.append([_correlations(s, teacher, held_out[: settings["watched"]]) for s in students])
        rho.append([_correlations(s, teacher, held_out[: settings["watched"]]) for s in ended])
        losses.append([0.5 * float(np.mean(np.sum((_outputs(s, test) - truth) ** 2, axis=1))) for s in ended])
    means, loss = np.array(rho), np.array(losses)  # (overs, seeds, layers), (overs, seeds)
    rise = means[-1].mean(axis=0) - means[0].mean(axis=0)
    before = np.array(begun)
    gained = (means - before).mean(axis=1)
    steps = np.diff(means.mean(axis=1), axis=0)
    checks = [
        at_least("accuracy of the pruned teacher (chance 0.1)", told["pruned and trained on"], bound=0.25),
        at_least(
            f"ρ_mean at {settings['overs'][-1]:g}x less at {settings['overs'][0]:g}x, mean over seeds, every layer",
            rise,
            bound=1e-9,
        ),
        at_least("ρ_mean from one width to the next, mean over layers", steps.mean(axis=1), bound=1e-9),
        at_least("ρ_mean gained by training at the widest, mean over layers", gained[-1].mean(), bound=1e-9),
        at_least(
            "test loss at 1x over that of the widest, mean over seeds", loss[0].mean() / loss[-1].mean(), bound=1.0
        ),
    ]
    measured = {
        **{
            f"{o:g}x": "ρ_mean "
            + ", ".join(f"{v:.3f} ± {s:.3f}" for v, s in zip(means[i].mean(axis=0), means[i].std(axis=0), strict=True))
            + f" (at the start {', '.join(f'{v:.3f}' for v in before[i].mean(axis=0))}); test loss {loss[i].mean():.3f}"
            for i, o in enumerate(settings["overs"])
        },
        "ρ_mean gained by training": {
            f"{o:g}x": [float(f"{v:.3f}") for v in gained[i]] for i, o in enumerate(settings["overs"])
        },
        **{k: float(f"{v:.3g}") for k, v in told.items()},
    }
    return Measurement(
        checks,
        measured,
        {"rho": means, "start": before, "loss": loss, "overs": np.array(settings["overs"])},
        notes=(
            f"Teacher {'-'.join(str(n) for n in settings['channels'])} (3 × 3 kernels, no padding) on {settings['samples']} images of CIFAR-10's first training batch averaged to {settings['size']} × {settings['size']}, pruned to "
            f"{'-'.join(str(n) for n in kept)} channels; students of {len(seeds)} seeds, Adam at {settings['rate']}, {settings['epochs']} epochs. The paper: 64-64-64-64 on 32 × 32, 50,000 images. "
            "A best match among more channels is better before any training: compare with the start."
        ),
    )


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
    statement="With a ConvNet teacher trained on CIFAR-10 and pruned to its strong channels, over-parameterisation raises ρ_mean at every layer and improves generalisation.",
    paper_value="ρ_mean against training, 1x and wider (a figure)",
    measured_by="A teacher trained on labels, pruned by fan-out and trained on; students on its outputs; correlations of channels over test images and positions.",
    tolerance="signs of the differences of means over seeds",
    tolerance_reason="A smaller network and fewer images than the paper's: the trend is what can be compared.",
    quick={
        "size": 16, "channels": [8, 8, 8, 8], "pruned": 0.5, "samples": 1000, "tested": 400, "watched": 100, "teacher_epochs": 8, "teacher_rate": 3e-3, "tuning_epochs": 3, "batch": 32, "rate": 2e-3,
        "epochs": 6, "overs": [1.0, 4.0], "seeds": 2,
    },
    full={
        "size": 16, "channels": [16, 16, 16, 16], "pruned": 0.5, "samples": 5000, "tested": 2000, "watched": 500, "teacher_epochs": 12, "teacher_rate": 2e-3, "tuning_epochs": 4, "batch": 32, "rate": 1e-3,
        "epochs": 8, "overs": [1.0, 2.0, 4.0], "seeds": 3,
    },
    measure=_measure,
    figure=_draw,
)  # fmt: skip
