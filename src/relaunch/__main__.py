"""`python -m relaunch` is `rl`."""

from relaunch.cli.main import enter

if __name__ == "__main__":
    enter()
