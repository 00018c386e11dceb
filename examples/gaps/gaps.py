"""Measures the gaps between primes: seconds to prepare, and then there is a question."""

from collections import Counter
from itertools import pairwise

LIMIT = 2_000_000


def primes_below(limit: int) -> list[int]:
    found: list[int] = []
    for number in range(2, limit):
        for prime in found:
            if prime * prime > number:
                found.append(number)
                break
            if number % prime == 0:
                break
        else:
            found.append(number)
    return found


def main() -> None:
    primes = primes_below(LIMIT)
    print(f"{len(primes)} primes below {LIMIT}")
    gaps = Counter(after - before for before, after in pairwise(primes))
    print("widest gap:", max(gaps.values()))


main()
