"""The front door: the numerical verdict as ever, and a proof beside it when asked for."""

import sys

import pytest
from tests.proofs.cases import default_case, tight_balance

import understudy as us


def test_a_proof_stands_beside_the_verdict():
    task, point = default_case()
    plain, certificate = us.certify(task, point), us.certify(task, point, proof=True)
    assert plain.proof is None
    assert certificate.kind == plain.kind == "minimum"
    assert certificate.proof.kind == "strict minimum"


def test_where_no_proof_is_possible_the_verdict_stays():
    certificate = us.certify(*tight_balance(4), proof=True)
    assert certificate.kind == us.certify(*tight_balance(4)).kind
    assert not certificate.proof.holds
    assert "degenerate" in certificate.proof.reason


def test_without_python_flint_the_extra_is_named(monkeypatch):
    for name in [m for m in sys.modules if m.startswith("understudy.proofs")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flint", None)
    monkeypatch.delattr(us, "proofs", raising=False)
    with pytest.raises(ImportError, match=r"understudy\[proofs\]"):
        us.certify(*default_case(), proof=True)
