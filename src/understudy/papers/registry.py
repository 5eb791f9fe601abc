"""The papers, and where their claims are written."""

import difflib
import importlib
from dataclasses import dataclass

from understudy.papers.claim import Claim


class UnknownNameError(ValueError):
    """A paper or claim that does not exist was asked for."""


@dataclass(frozen=True)
class Paper:
    """One paper: its handle, its reference, and the module whose ``CLAIMS`` are its claims."""

    handle: str
    title: str
    authors: str
    module: str = ""

    @property
    def module_name(self) -> str:
        """The module of the claims: ``understudy.papers.`` and the handle with underscores, by default."""
        return self.module or f"understudy.papers.{self.handle.replace('-', '_')}"


PAPERS: dict[str, Paper] = {
    paper.handle: paper
    for paper in (
        Paper(
            "copy-average",
            "Should Under-parameterized Student Networks Copy or Average Teacher Weights?",
            "Şimşek, Bendjeddou, Gerstner, Brea",
        ),
        Paper(
            "few-neurons",
            "Towards a Complete Theory of Neural Networks with Few Neurons",
            "anonymous, under review",
        ),
        Paper(
            "alignment",
            "Over-parameterization as a Catalyst for Better Generalization of Deep ReLU Network",
            "Tian",
        ),
        Paper(
            "tight-balance",
            "Gradient Flow Dynamics of Teacher-Student Distillation with the Squared Loss",
            "Ottlik",
        ),
        Paper(
            "attraction-repulsion",
            "Feature Learning in L2-regularized DNNs: Attraction/Repulsion and Sparsity",
            "Jacot, Golikov, Hongler, Gabriel",
        ),
        Paper(
            "online",
            "One-pass SGD of soft committee machines in large dimensions (1995 and 2019)",
            "Saad, Solla; Goldt, Advani, Saxe, Krzakala, Zdeborová",
        ),
        Paper("landscape", "The landscape beyond the papers: what Understudy measured itself", "Understudy"),
        Paper("promises", "What Understudy itself promises", "Understudy"),
    )
}


def find_paper(handle: str) -> Paper:
    """The paper of that handle."""
    if handle not in PAPERS:
        raise UnknownNameError(_unknown("paper", handle, list(PAPERS)))
    return PAPERS[handle]


def claims_of(handle: str) -> tuple[Claim, ...]:
    """The paper's claims, in order; none if it has no module yet. Imports that module."""
    paper = find_paper(handle)
    try:
        module = importlib.import_module(paper.module_name)
    except ModuleNotFoundError as error:
        if error.name == paper.module_name:
            return ()
        raise  # the module exists, and something it needs does not
    claims = tuple(module.CLAIMS)
    seen: set[str] = set()
    for claim in claims:
        if claim.paper != handle:
            raise ValueError(f"{paper.module_name}.CLAIMS has {claim.id!r} of paper {claim.paper!r}, not {handle!r}")
        if claim.id in seen:
            raise ValueError(f"{paper.module_name}.CLAIMS has two claims named {claim.id!r}; rename one")
        seen.add(claim.id)
    return claims


def find_claims(handle: str, claim: str | None = None) -> tuple[Claim, ...]:
    """All claims of a paper, or the one named; an error that lists what exists when there is none."""
    claims = claims_of(handle)
    if claim is None:
        return claims
    chosen = tuple(known for known in claims if known.id == claim)
    if not chosen:
        raise UnknownNameError(_unknown(f"claim of {handle}", claim, [known.id for known in claims]))
    return chosen


def _unknown(kind: str, received: str, known: list[str]) -> str:
    likely = difflib.get_close_matches(received, known, n=1)
    guess = f" Did you mean {likely[0]!r}?" if likely else ""
    return f"Unknown {kind}: {received!r}.{guess} There are: {', '.join(known) or 'none yet'}."
