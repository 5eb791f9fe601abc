"""`python -m understudy` is the `understudy` command."""

from understudy.cli import main

if __name__ == "__main__":
    main()
