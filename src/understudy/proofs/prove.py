"""From a point in double precision to a theorem about the exact critical point near it."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from understudy.proofs.balls import Ball, Matrix, ball, decimal, matrix, precision
from understudy.proofs.biased_enclosure import BiasedEnclosure
from understudy.proofs.enclosure import Enclosure, Evaluation
from understudy.proofs.frame import Frame, frame_of, teacher_coordinates, teacher_means
from understudy.proofs.inertia import Signs, signs_of
from understudy.proofs.kernels import KinkError
from understudy.proofs.krawczyk import NotProvedError, Zero, augmented, polish, verify_zero
from understudy.proofs.named import NoKernelError, accuracy_of, parity_of
from understudy.proofs.proof import NoProof, Proof
from understudy.proofs.quadrature import CostlyError
from understudy.proofs.shares import Shares, find_shares, flat_directions, merge, spread
from understudy.proofs.symmetries import are_transversal, outside_components, tangents
from understudy.tasks.exact_form import ExactForm, NoExactFormError
from understudy.tasks.task import Task

BITS = 192
DIGITS = 45
"""Of the center, after the point."""

DIFFERENCE = 1e-7
"""How far the task's loss may be from that of its exact form, relative to the teacher's energy. The difference is due
to rounding and to the way to the critical point."""


def prove(task: Task, parameters: Any, *, radius: float = 1e-20) -> Proof | NoProof:
    """Prove that an exact critical point lies near a point, what kind it is, and between which numbers its loss is.

    Newton's method in multiple precision, Krawczyk's test in ball arithmetic for existence and uniqueness across the
    continuous symmetries, Sylvester's and Gershgorin's theorems for the signs of the Hessian's eigenvalues.

    **Arguments**

    - `parameters`: one network or its flat vector, at a critical point to rounding.
    - `radius`: wanted half-width of the box in which the critical point is unique, relative to the largest coordinate.

    Returns a `Proof`, or a `NoProof` whose `reason` says what failed: degenerate, too wide, kink, no closed form.

    >>> import numpy as np, understudy as us
    >>> task = us.Sphere(np.eye(2), width=2, activation="hermite:6")
    >>> prove(task, np.eye(2)).kind
    'strict minimum'
    """
    vector = task.flatten(parameters)
    if vector.ndim != 1:
        raise ValueError(f"prove takes one point at a time; received a batch of shape {vector.shape}.")
    network = task.unflatten(vector)
    try:
        form = task.exact_form()
        incoming = np.asarray(network.incoming)
        outgoing = np.asarray(network.outgoing).reshape(form.width, -1)
        bias, offset = _biases(form, network)
        with precision(BITS):
            given = Given(incoming, bias, outgoing, offset)
            return _prove(form, given, radius, lambda: float(task.loss(vector)))
    except (NoExactFormError, NoKernelError, NotProvedError, KinkError, CostlyError) as error:
        return NoProof(str(error).rstrip("."))


class Given(NamedTuple):
    """The weights of a point: `bias` (n, 1) or (n, 0), `offset` (m,) or (0,) where they are not trained."""

    incoming: np.ndarray
    bias: np.ndarray
    outgoing: np.ndarray
    offset: np.ndarray


def _biases(form: ExactForm, network: Any) -> tuple[np.ndarray, np.ndarray]:
    """Trained biases, for inputs of mean zero, and the trained offset."""
    if not form.trains_bias:
        return np.zeros((form.width, 0)), np.zeros(0)
    bias = np.asarray(network.bias)
    if form.mean is not None:
        bias = bias + np.asarray(network.incoming) @ form.mean
    return bias[:, None], np.asarray(network.offset).reshape(-1)


def _prove(form: ExactForm, given: Given, radius: float, loss: Callable[[], float]) -> Proof:
    incoming, bias, outgoing, offset = given
    shares = find_shares(form, np.concatenate([incoming, bias], axis=1), outgoing)
    if shares is not None and any(float(s) == 0 for s in shares.share):
        raise NotProvedError("degenerate: students with one incoming vector, of which one has no outgoing weight")
    single = form
    if shares is not None:
        if form.fixed_bias is not None:
            raise NotProvedError("students with one incoming vector and fixed biases are not merged")
        first = [shares.neuron.index(c) for c in range(shares.width)]
        bias = bias[first]
        incoming, outgoing = merge(shares, incoming, outgoing)
        single = replace(form, width=shares.width)
    frame, inside = frame_of(form, incoming)
    trained = form.fixed_outgoing is None
    inside = np.concatenate([inside, bias], axis=1)
    units = (_unit(inside), _unit(outgoing) if trained else "1")
    enclosure = _enclosure(single, frame, units)
    start = inside / float(units[0])
    if trained:
        start = np.concatenate([start, outgoing / float(units[1])], axis=1)
    start = np.concatenate([start.ravel(), offset / float(units[1])])
    scale = float(np.abs(start).max())
    polished = polish(enclosure, frame, start, accuracy_of(form) * scale)
    texts = [decimal(x, DIGITS) for x in polished]
    center = [ball(t) for t in texts]
    zero = verify_zero(enclosure, frame, center, radius * scale)
    inertia, zeros = _inertia(form, enclosure, frame, shares, center, zero)
    energy = float((abs(zero.loss) + abs(enclosure.constant)).abs_upper())
    measured = loss()
    if not abs(float(zero.loss) - measured) <= DIFFERENCE * energy:
        raise NotProvedError(
            f"the task's loss is {measured:.9g} and that of its exact form {float(zero.loss):.9g}: they are not the "
            "same problem"
        )
    lower, upper = outward(zero.loss, 1e-32 * energy)
    step = enclosure.inputs + enclosure.outputs
    return Proof(
        form=form,
        frame=frame,
        center=tuple(tuple(texts[i : i + step]) for i in range(0, len(texts), step)),
        units=units,
        radius=_short(zero.radius),
        error=_short(zero.error),
        index=inertia.negative,
        zeros=zeros,
        positives=inertia.positive,
        lower=lower,
        upper=upper,
        shares=shares,
        distance=max(abs(float(x) - s) for x, s in zip(center, start, strict=True)),
    )


def _enclosure(form: ExactForm, frame: Frame, units: tuple[str, str]) -> Enclosure | BiasedEnclosure:
    teachers = teacher_coordinates(form, frame)
    if not form.biased:
        return Enclosure(form, teachers, units)
    return BiasedEnclosure(form, teachers, teacher_means(form.incoming, form.teacher_bias, form.mean), units)


def _unit(weights: np.ndarray) -> str:
    """The power of ten next to the largest weight."""
    largest = float(np.abs(weights).max(initial=0.0))
    exponent = round(math.log10(largest)) if largest > 0 else 0
    return f"1e{exponent}" if exponent else "1"


def _inertia(
    form: ExactForm,
    enclosure: Enclosure | BiasedEnclosure,
    frame: Frame,
    shares: Shares | None,
    center: list[Ball],
    zero: Zero,
) -> tuple[Signs, int]:
    """Signs of all eigenvalues, and how many vanish: those along symmetries and along shares."""
    over, flat, hessian = zero.over, tangents(enclosure, frame, center), zero.jacobian
    box = [c + ball(0, zero.radius.abs_upper()) for c in center]
    if shares is not None:
        parity = parity_of(form.activation)
        enclosure = replace(enclosure, form=form)
        center, box = (spread(shares, x, enclosure.inputs, parity) for x in (center, box))
        over, along = enclosure.evaluate(box), flat_directions(shares, enclosure.inputs, enclosure.size, parity)
        flat, moved = (_beside(tangents(enclosure, frame, x), along) for x in (center, box))
        if not are_transversal(moved, flat):
            raise NotProvedError("degenerate: symmetries and shares are not independent here")
        hessian = augmented(over.hessian, flat)
    known = 0 if flat is None else flat.ncols()
    inside, across = signs_of(hessian), Signs(0, 0)
    if frame.outside:
        across = signs_of(_outside(over, enclosure, frame, center, box))  # type: ignore[assignment]
    if inside is None or across is None:
        raise NotProvedError("degenerate: an eigenvalue of the Hessian cannot be told from zero beyond its symmetries")
    zeros = known + frame.extra * frame.outside
    positive = inside.positive - known + frame.outside * (across.positive - frame.extra)
    if form.loss == "sphere":
        zeros -= form.width  # the radial directions do not exist on the sphere
    return Signs(inside.negative + frame.outside * across.negative, positive), zeros


def _outside(
    over: Evaluation, enclosure: Enclosure | BiasedEnclosure, frame: Frame, center: list[Ball], box: list[Ball]
) -> Matrix:
    """The Hessian's block on a direction outside, whose zeros along rotations into it are turned positive."""
    if not frame.extra:
        return over.outside
    here, moved = (outside_components(enclosure, frame, x) for x in (center, box))
    if not are_transversal(moved, here):
        raise NotProvedError("degenerate: the students' parts beyond the teachers' span are not independent")
    return augmented(over.outside, here)


def _beside(left: Matrix | None, right: Matrix) -> Matrix:
    if left is None:
        return right
    rows = [[*a, *b] for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    return matrix(len(rows), len(rows[0]), (x for row in rows for x in row))


def _short(x: Ball) -> str:
    """Two digits, rounded up."""
    exponent = math.floor(math.log10(max(float(x.abs_upper()), 1e-300))) - 1
    digits = math.ceil(float((x / ball(10) ** exponent).abs_upper()) * (1 + 1e-9))
    return f"{digits // 10}.{digits % 10}e{exponent + 1}"


def outward(x: Ball, least: float) -> tuple[str, str]:
    """Decimals on both sides of a ball, further away than its radius and than `least`."""
    size = max(float(x.rad()), least, float(x.abs_upper()) * 1e-40, 1e-60)
    digits = max(1, -math.ceil(math.log10(size)) - 1)
    unit = ball(10) ** digits
    low = int((x * unit).lower().floor().unique_fmpz()) - 1
    high = int((x * unit).upper().floor().unique_fmpz()) + 2
    return _point(low, digits), _point(high, digits)


def _point(number: int, digits: int) -> str:
    text = str(abs(number)).rjust(digits + 1, "0")
    return ("-" if number < 0 else "") + text[:-digits] + "." + text[-digits:]
