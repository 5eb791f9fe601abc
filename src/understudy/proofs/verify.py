"""Check a proof file: that it is complete, agrees with its statement, and is true, by the separate program in
`checker`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from understudy.proofs.checker.check import check
from understudy.proofs.checker.interactions import Refused
from understudy.proofs.proof import FORMAT, BadProofFileError, digest, load


@dataclass(frozen=True)
class Verification:
    """Whether a proof file was accepted, its statement, and the reason if it was refused."""

    accepted: bool
    statement: str
    reason: str = ""

    def __str__(self) -> str:
        return self.statement if self.accepted else f"Refused: {self.reason}."


def verify(path: str | Path) -> Verification:
    """Check a proof file with code that shares none of the prover's enclosures; see `understudy.proofs.checker`.

    Everything is derived again from the problem, the center and the radii in the file: the box by an interval Newton
    step, the inertia by elimination, the loss by evaluation. Raises `BadProofFileError` if the file is not a proof.
    """
    proof = load(path)
    content = json.loads(Path(path).read_text())
    said = str(content.get("statement", ""))
    if content.get("format") != FORMAT:
        raise BadProofFileError(f"{path} has format {content.get('format')!r}; this version reads {FORMAT!r}.")
    known = {key: value for key, value in content.items() if key != "sha256"}
    if content.get("sha256") != digest(known):
        return Verification(False, said, "the content does not match its hash: the file was changed")
    if json.loads(json.dumps(proof.content())) != known:
        return Verification(False, said, "the statement or a field does not follow from the others")
    try:
        check(known)
    except Refused as refusal:
        return Verification(False, said, str(refusal))
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError) as error:
        return Verification(False, said, f"the numbers do not make a problem ({error!r})")
    return Verification(True, proof.statement)
