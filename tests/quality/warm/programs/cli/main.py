# mypy: ignore-errors
import argparse
import sys


def parser():
    made = argparse.ArgumentParser(prog="tool", description="A tool.")
    made.add_argument("--steps", type=int, default=3, help="how many")
    made.add_argument("--name", default="x")
    made.add_argument("--verbose", action="store_true")
    made.add_argument("files", nargs="*")
    return made


def run(options):
    total = 0
    for n in range(options.steps):
        total += n
        if options.verbose:
            print("step", n, total)
    return total


def main(argv=None):
    options = parser().parse_args(argv)
    print(options)
    print(options.name, options.files)
    total = run(options)
    print("total", total)
    for file in options.files:
        print("file", file)
    return 1 if total > 5 else 0


if __name__ == "__main__":
    print(sys.argv[1:])
    sys.exit(main())
