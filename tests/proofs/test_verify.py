"""The checker accepts what was proved, and refuses files that were changed, field by field."""

import contextlib
import copy
import json

import numpy as np
import pytest
from tests.proofs.cases import beside_the_teacher, copies, one_average, one_relu, proved, shared, tight_balance

from understudy.proofs import BadProofFileError, load, prove, verify
from understudy.proofs.proof import digest


def test_a_proof_is_accepted_and_read_back(tmp_path):
    proof = proved()
    path = proof.save(tmp_path / "proof.json")
    found = verify(path)
    assert found.accepted
    assert found.statement == proof.statement
    again = load(path)
    assert again.content() == proof.content()
    np.testing.assert_array_equal(again.form.incoming, proof.form.incoming)


@pytest.mark.parametrize(
    "case", [tight_balance(6, 4), copies("relu"), copies("hermite:3", 3), one_average("erf", 3, 2, 5),
             one_relu(), shared(1.5), beside_the_teacher(2, 5)],
    ids=["sphere", "relu", "hermite", "erf", "gram-schmidt", "shares", "rotations"],
)  # fmt: skip
def test_every_kind_of_problem_is_checked(case, tmp_path):
    assert verify(prove(*case).save(tmp_path / "proof.json")).accepted


CHANGES = {
    "center, a number": lambda c: c["center"][0].__setitem__(0, c["center"][0][0][:14] + "7" + c["center"][0][0][15:]),
    "center, all": lambda c: c.update(center=[["0.1"] * len(row) for row in c["center"]]),
    "center, a row fewer": lambda c: c["center"].pop(),
    "units": lambda c: c["units"].update(outgoing="2"),
    "units, negative": lambda c: c["units"].update(incoming="-1"),
    "radius, too large": lambda c: c.update(radius="1e-1"),
    "radius, below the error": lambda c: c.update(radius="1e-40"),
    "error": lambda c: c.update(error="1e-60"),
    "inertia": lambda c: c["inertia"].update(negative=1, positive=39),
    "inertia, a zero": lambda c: c["inertia"].update(zero=1, positive=39),
    "kind": lambda c: c.update(kind="strict saddle"),
    "loss, lower": lambda c: c["loss"].update(lower=c["loss"]["upper"]),
    "loss, upper": lambda c: c["loss"].update(upper=c["loss"]["lower"]),
    "activation": lambda c: c["problem"].update(activation="relu", teacher_activation="relu"),
    "teacher's activation": lambda c: c["problem"].update(teacher_activation="tanh"),
    "teacher, incoming": lambda c: c["problem"]["teacher_incoming"][0].__setitem__(0, 1.0000000000000002),
    "teacher, outgoing": lambda c: c["problem"]["teacher_outgoing"][3].__setitem__(0, 0.9999999999999999),
    "teacher, one fewer": lambda c: (c["problem"]["teacher_incoming"].pop(), c["problem"]["teacher_outgoing"].pop()),
    "width": lambda c: c["problem"].update(width=3),
    "outgoing fixed": lambda c: c["problem"].update(fixed_outgoing=[[1.0]] * 4),
    "loss of the problem": lambda c: c["problem"].update(loss="sphere"),
    "repulsion": lambda c: c["problem"].update(repulsion=0.5),
    "constant": lambda c: c["problem"].update(with_constant=False),
    "frame, outside": lambda c: c["frame"].update(outside=2),
    "frame, extra": lambda c: c["frame"].update(extra=1, outside=0),
    "frame, rank": lambda c: c["frame"].update(rank=7, outside=2),
    "frame, basis": lambda c: c["frame"].update(basis="other"),
    "shares": lambda c: c.update(shares={"neuron": [0, 1, 2, 3], "sign": [1] * 4, "share": ["1", "1", "1", "0.5"]}),
    "statement": lambda c: c.update(statement=c["statement"].replace("minimum", "global minimum")),
}


@pytest.mark.parametrize("resigned", [False, True], ids=["hash kept", "hash renewed"])
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_changed_files_are_refused(change, resigned, tmp_path):
    path = proved().save(tmp_path / "proof.json")
    content = json.loads(path.read_text())
    kept = content.pop("sha256")
    changed = copy.deepcopy(content)
    CHANGES[change](changed)
    assert changed != content
    if resigned and change != "statement":  # a forger who keeps words and numbers consistent, too
        path.write_text(json.dumps({**changed, "sha256": ""}))
        with contextlib.suppress(KeyError, BadProofFileError):
            changed["statement"] = load(path).statement
    path.write_text(json.dumps({**changed, "sha256": digest(changed) if resigned else kept}))
    found = verify(path)
    assert not found.accepted
    assert found.reason
    assert str(found).startswith("Refused: ")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 3}', "\x00\x01", '{"problem": {}, "frame": 1, "shares": null}']
)
def test_files_that_are_no_proof_are_told(text, tmp_path):
    (tmp_path / "proof.json").write_text(text)
    with pytest.raises(BadProofFileError, match="proof"):
        verify(tmp_path / "proof.json")
    with pytest.raises(BadProofFileError, match="Cannot read"):
        verify(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [("share", ["3e-1", "8e-1"]), ("neuron", [0, 1]), ("sign", [1, 2]), ("sign", [1, -1]), ("share", ["1.5", "-0.5"])],
)
def test_changed_shares_are_refused(key, value, tmp_path):
    path = prove(*shared(0.3)).save(tmp_path / "proof.json")
    assert verify(path).accepted
    content = json.loads(path.read_text())
    content["shares"][key] = value
    content.pop("sha256")
    path.write_text(json.dumps({**content, "sha256": digest(content)}))
    assert not verify(path).accepted


def test_the_checker_imports_nothing_of_the_prover():
    import ast
    from pathlib import Path

    import understudy.proofs.checker as checker

    for file in Path(checker.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("understudy"):
                assert node.module.startswith("understudy.proofs.checker"), f"{file.name} imports {node.module}"


def test_a_file_with_an_unknown_format_is_told(tmp_path):
    path = proved().save(tmp_path / "proof.json")
    path.write_text(path.read_text().replace("version 1", "version 9"))
    with pytest.raises(BadProofFileError, match="version 9"):
        verify(path)
