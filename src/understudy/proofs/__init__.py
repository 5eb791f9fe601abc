"""Theorems about critical points by ball arithmetic, in files that a second program checks."""

from understudy.proofs.orders import Relation as Relation
from understudy.proofs.orders import compare as compare
from understudy.proofs.orders import same as same
from understudy.proofs.proof import BadProofFileError as BadProofFileError
from understudy.proofs.proof import NoProof as NoProof
from understudy.proofs.proof import Proof as Proof
from understudy.proofs.proof import from_document as from_document
from understudy.proofs.proof import load as load
from understudy.proofs.prove import prove as prove
from understudy.proofs.verify import Verification as Verification
from understudy.proofs.verify import verify as verify
