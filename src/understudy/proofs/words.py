"""A proof as a short statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.proofs.proof import Proof


def statement(proof: Proof) -> str:
    """The theorem in words."""
    return " ".join([_setting(proof), _existence(proof), _nature(proof), _loss(proof)])


def _setting(proof: Proof) -> str:
    form = proof.form
    k, d = form.incoming.shape
    teacher = "" if form.teacher_activation == form.activation else f" {form.teacher_activation}"
    where = f"{_count(k, f'{teacher.strip()} teacher'.strip())} in dimension {d}"
    if form.loss == "sphere":
        loss = "squared" if form.with_constant else "correlation"
        factor = "" if form.repulsion in (0.0, 1.0) else f" with repulsion {form.repulsion!r}"
        return f"The {loss} loss{factor} of {form.width} {form.activation} students on the sphere for {where}:"
    weights = "all weights trained" if form.fixed_outgoing is None else "outgoing weights fixed"
    if form.trains_bias:
        weights = (
            "all weights, biases and the offset trained"
            if form.fixed_outgoing is None
            else ("outgoing weights fixed, biases and the offset trained")
        )
    elif form.fixed_bias is not None:
        weights += ", biases fixed"
    if form.teacher_bias is not None:
        where = where.replace(" in dimension", " with biases in dimension")
    if form.mean is not None:
        where += " and inputs with a mean"
    if form.root is not None:
        where += " and inputs with a covariance Σ (incoming weights are those of w Σ^½)"
    return f"The population loss of {_count(form.width, f'{form.activation} student')} ({weights}) for {where}:"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")


def _existence(proof: Proof) -> str:
    orbit = ", across its continuous symmetries," if proof.zeros or proof.form.loss == "sphere" else ""
    merged = ""
    if proof.shares is not None:
        merged = f" of the network with {_count(proof.shares.width, 'different neuron')}"
    units = ""
    if proof.units != ("1", "1"):
        units = f" (in units of {proof.units[0]} for incoming and {proof.units[1]} for outgoing weights)"
    return (
        f"exactly one critical point{merged}{orbit} lies within {proof.radius} of the center in each coordinate{units}."
    )


def _nature(proof: Proof) -> str:
    names = {
        "strict minimum": "It is a strict minimum",
        "minimum": "With these shares of outgoing weight it is a minimum, strict across its flat directions",
        "strict saddle": f"It is a strict saddle of index {proof.index}",
        "strict maximum": "It is a strict maximum",
    }
    flat = f", {proof.zeros} zero" if proof.zeros else ""
    why = " (all along symmetries and shares)" if proof.shares else " (all along symmetries)"
    counts = f"{proof.index} negative{flat}{why if proof.zeros else ''} and {proof.positives} positive eigenvalues"
    return f"{names[proof.kind]}: its Hessian has {counts}."


def _loss(proof: Proof) -> str:
    return f"Its loss is between {proof.lower} and {proof.upper}."
