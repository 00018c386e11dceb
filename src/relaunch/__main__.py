"""`python -m relaunch` is `rl`."""

from relaunch.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
