"""The front door to certificates: a verdict in double precision, and a proof if you ask for one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from understudy import points
from understudy.points import Certificate
from understudy.tasks import Task


def certify(task: Task, parameters: Any, *, proof: bool = False, **options: Any) -> Certificate:
    """Certify any point of any task; see `understudy.points.certify` for the verdict and its `options`.

    With `proof=True`, ball arithmetic tries to prove what the exact critical point next to this one is. The
    certificate's `proof` is then a `Proof`, or a `NoProof` with the reason (see `understudy.proofs.prove`; it needs
    `pip install 'understudy[proofs]'`). The numerical verdict does not change.

    >>> import numpy as np, understudy as us
    >>> task = us.Sphere(np.eye(2), width=2, activation="hermite:6")
    >>> us.certify(task, np.eye(2), proof=True).proof.kind
    'strict minimum'
    """
    certificate = points.certify(task, parameters, **options)
    if not proof:
        return certificate
    from understudy.proofs import prove

    return replace(certificate, proof=prove(task, parameters))
