"""Fig. 8: even activations on MNIST."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from understudy import activations
from understudy.activations import Activation, Smooth
from understudy.data.mnist import mnist
from understudy.dynamics.optimizers import adam
from understudy.dynamics.sgd import train
from understudy.networks import Deep
from understudy.papers.check import at_least, at_most, between
from understudy.papers.claim import Progress, Settings
from understudy.papers.measurement import Measurement

EVEN: dict[str, Any] = {
    "quartic": lambda x: (x**4,),
    "cosine": lambda x: (jnp.cos(x),),
    "bump": lambda x: (jnp.exp(-(x**2)),),
    "well": lambda x: (1 - jnp.exp(-(x**2)),),
    "flat well": lambda x: (1 - jnp.exp(-(x**4)),),
    "x tanh x": lambda x: (x * jnp.tanh(x),),
}
"""Even functions without a name in `activations`; only their values are needed here."""


def activation_of(name: str) -> Activation:
    """An activation of the figure."""
    return Smooth(name, parity="even", formula=EVEN[name]) if name in EVEN else activations.get(name)


def accuracies(name: str, settings: Settings) -> np.ndarray:
    """Test accuracy after each epoch, shape (epochs, seeds), of 784-100-100-10 networks."""
    digits = mnist()
    count = settings["samples"]
    x = digits.x_train[:count].reshape(count, -1) / 255.0
    x_test = jnp.asarray(digits.x_test.reshape(len(digits.x_test), -1) / 255.0)
    y_test = jnp.asarray(digits.y_test.astype(int))
    sigma = activation_of(name)

    def cost(network: Deep, inputs: jax.Array, labels: jax.Array) -> jax.Array:
        scores = jax.nn.log_softmax(network(inputs, sigma))
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))

    @jax.jit
    def accuracy(networks: Deep) -> jax.Array:
        return jax.lax.map(lambda n: jnp.mean((jnp.argmax(n(x_test, sigma), axis=1) == y_test) * 1.0), networks)

    seeds = list(range(settings["seeds"]))
    networks = [Deep.glorot([784, 100, 100, 10], seed=s) for s in seeds]
    runs = train(
        cost,
        networks,
        x,
        digits.y_train[:count].astype(int),
        optimizer=adam(settings["rate"]),
        batch=settings["batch"],
        epochs=settings["epochs"],
        seeds=seeds,
    )
    return np.stack([np.asarray(accuracy(parameters)) for _, parameters, _ in runs])


def even_mnist(settings: Settings, progress: Progress) -> Measurement:
    """Accuracy of each activation against ReLU's."""
    curves = {name: accuracies(name, settings) for name in progress.over(settings["activations"])}
    last = {name: float(curve[-1].mean()) for name, curve in curves.items()}
    smooth = {name: last[name] - last["relu"] for name in ("abs", "quadratic")}
    return Measurement(
        checks=[
            at_least("seeds", settings["seeds"], bound=3),
            at_least("ReLU's accuracy", last["relu"], bound=0.9),
            between("absolute value and quadratic: accuracy less ReLU's", list(smooth.values()), low=-0.03, high=0.03),
            at_most("quartic: accuracy less ReLU's", last["quartic"] - last["relu"], bound=-0.05),
        ],
        measured={
            name: f"{100 * v.mean():.2f} ± {100 * v.std():.2f} %" for name, v in ((n, c[-1]) for n, c in curves.items())
        },
        data={"names": np.array(list(curves)), "curves": np.stack(list(curves.values()))},
        notes=(
            f"784-100-100-10 with biases, Glorot-normal weights, cross-entropy, Adam at {settings['rate']}, batches of "
            f"{settings['batch']}, {settings['samples']} images, {settings['epochs']} epochs, {settings['seeds']} "
            f"seeds; the paper gives "
            "neither rate, batch nor initialisation, and '3 layer' is read as three layers of weights."
        ),
    )


def even_control(settings: Settings, progress: Progress) -> Measurement:
    """Two bounded activations that differ at 0 only: x² and x⁴ there. The quartic also grows without bound."""
    curves = {name: accuracies(name, settings) for name in progress.over(("relu", "well", "flat well", "quartic"))}
    last = {name: curve[-1] for name, curve in curves.items()}
    gap = {name: float(value.mean() - last["relu"].mean()) for name, value in last.items()}
    return Measurement(
        checks=[
            at_least("ReLU's accuracy", float(last["relu"].mean()), bound=0.85),
            between("1 - exp(-x²): accuracy less ReLU's", gap["well"], low=-0.03, high=0.03),
            at_most("1 - exp(-x⁴), bounded and flat at 0: accuracy less ReLU's", gap["flat well"], bound=-0.05),
            at_most("x⁴, unbounded and flat at 0: accuracy less ReLU's", gap["quartic"], bound=-0.05),
        ],
        measured={name: f"{100 * v.mean():.2f} ± {100 * v.std():.2f} %" for name, v in last.items()},
        data={"names": np.array(list(curves)), "curves": np.stack(list(curves.values()))},
        notes=f"As even-mnist, with {settings['samples']} images, {settings['epochs']} epochs, {settings['seeds']} seeds.",
    )


def draw_even_mnist(measurement: Measurement, figure: Any) -> None:
    """Test accuracy against epochs: means and single seeds."""
    axes = figure.subplots()
    for i, (name, curve) in enumerate(zip(measurement.data["names"], measurement.data["curves"], strict=True)):
        epochs = np.arange(1, len(curve) + 1)
        look = ("o-", "s--")[i // 7]  # seven colours
        axes.plot(epochs, 100 * curve.mean(axis=1), look, color=f"C{i}", label=str(name), ms=4)
        axes.plot(epochs, 100 * curve, color=f"C{i}", lw=0.6, alpha=0.5)
    axes.set(xlabel="epoch", ylabel="test accuracy (%)", title="784-100-100-10 on MNIST, Adam")
    axes.set_xticks(range(1, len(measurement.data["curves"][0]) + 1, max(1, len(measurement.data["curves"][0]) // 10)))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
