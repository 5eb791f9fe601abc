"""Install a built package into an empty environment and use it there: `python -m scripts.smoke dist`.

Source archive and wheel must fit. The core of the wheel must list the claims, and name the extra where one is missing;
with the extra `lab` the lab must answer. The environment is made in a temporary directory and knows nothing of the
checkout.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path


def run(*command: str | Path, code: int = 0, cwd: str) -> str:
    """The standard output of a command, or its messages if it must fail; another exit code ends the smoke test."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stderr if code else done.stdout  # a slow machine gets lines of progress on standard error


def the(files: list[Path]) -> Path:
    """The only one."""
    if len(files) != 1:
        sys.exit(f"One file is expected; found {', '.join(map(str, files)) or 'none'}.")
    return files[0]


def fits(command: Path, cwd: str) -> None:
    """Fit two students to three teachers: both seeds must end in a minimum."""
    fitted = json.loads(run(command, "fit", "--teacher", "3", "--student", "2", "--seeds", "2", "--json", cwd=cwd))
    kinds = {one["kind"] for one in fitted["runs"]}
    if kinds != {"minimum"}:
        sys.exit(f"Every seed of (3, 2) ends in a minimum; found {kinds}.")


def lab_answers(command: Path, cwd: str) -> None:
    """Start the lab, read its page, and end it."""
    with subprocess.Popen(
        [command, "lab", "--no-browser", "--json"], stdout=subprocess.PIPE, text=True, cwd=cwd
    ) as server:
        try:
            address = json.loads(server.stdout.readline())["address"]
            with urllib.request.urlopen(address, timeout=30) as page:
                if b"Understudy" not in page.read():
                    sys.exit("The lab's page does not name the project.")
        finally:
            server.terminate()


def main(directory: str) -> None:
    """Try the wheel and the source archive in `directory`."""
    wheel = the(sorted(Path(directory).resolve().glob("*.whl")))
    source = the(sorted(Path(directory).resolve().glob("*.tar.gz")))
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        binaries = Path(place) / "bin"
        install = (binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        command = binaries / "understudy"
        run(*install, source, cwd=place)
        fits(command, place)
        run(binaries / "python", "-m", "pip", "uninstall", "--yes", "--quiet", "understudy", cwd=place)
        run(*install, wheel, cwd=place)
        fits(command, place)
        if "copy-average" not in run(command, "claims", cwd=place):
            sys.exit("`understudy claims` does not list copy-average.")
        missing = run(command, "fit", "--out", "results", code=2, cwd=place)
        if "understudy[store,plots]" not in missing:
            sys.exit(f"A missing extra is not named: {missing}")
        run(*install, f"{wheel}[lab]", cwd=place)
        lab_answers(command, place)
    print(f"{source.name} fits, and {wheel.name} fits, lists claims and opens the lab, in an empty environment.")


if __name__ == "__main__":
    main(*sys.argv[1:])
