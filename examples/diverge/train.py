"""Fits a line by gradient descent. Its learning rate is too high: find out with `rl`."""

import argparse
import os
import struct
import tomllib

LEARNING_RATE = 1.5e-2
FORMATS = {"fp32": "f", "fp16": "e"}


def rounded(value, dtype):
    """Keep a number only as exactly as the type can; one that is too large does not fit."""
    return struct.unpack(FORMATS[dtype], struct.pack(FORMATS[dtype], value))[0]


def train(points, steps, dtype):
    slope = 0.0
    for step in range(1, steps + 1):
        errors = [slope * x - y for x, y in points]
        loss = rounded(sum(error * error for error in errors) / len(points), dtype)
        if step % 10 == 0:
            print(f"step {step} loss {loss:.4g}", flush=True)
        if loss > 1e6:
            raise ValueError(f"diverged at step {step}: loss {loss:.4g}")
        gradient = sum(error * x for error, (x, _) in zip(errors, points, strict=True)) / len(
            points
        )
        slope = rounded(slope - LEARNING_RATE * gradient, dtype)
    return slope


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    steps = parser.parse_args().steps
    with open("conf/train.toml", "rb") as file:
        conf = tomllib.load(file)
    os.makedirs("cache", exist_ok=True)
    points = [(x, conf["slope"] * x) for x in range(1, 21)]
    print(f"slope {train(points, steps, conf['dtype']):.3f}")


if __name__ == "__main__":
    main()
