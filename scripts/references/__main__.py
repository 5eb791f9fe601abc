"""`python -m scripts.references [--workers 2] [--only NAME]` writes the file; `--check` compares it with second routes."""

import argparse

from scripts.references.cases import generate
from scripts.references.checks import check


def main() -> None:
    """Generate or check the file."""
    parser = argparse.ArgumentParser(description="Reference values of Gaussian interactions, to 30 digits.")
    parser.add_argument("--check", action="store_true", help="compare the stored file with second routes")
    parser.add_argument("--sample", type=int, default=20, help="points recomputed by --check")
    parser.add_argument("--seed", type=int, default=0, help="seed of that sample")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--only", help="recompute only the pairs with this activation")
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.sample, arguments.seed)
    else:
        generate(arguments.workers, arguments.only)


if __name__ == "__main__":
    main()
