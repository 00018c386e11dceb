# mypy: ignore-errors
import warnings

warnings.warn("at the top")


def old(n):
    warnings.warn("old is old", DeprecationWarning, stacklevel=2)
    return n + 1


def caller(n):
    value = old(n)
    return value * 2


print(old(1))
warnings.simplefilter("always")
for n in range(2):
    warnings.warn(f"number {n}", UserWarning)
print(caller(2))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    caller(3)
    print(len(caught), caught[0].lineno, caught[0].message)
warnings.filterwarnings("error", message="number")
try:
    warnings.warn("number again")
except UserWarning as error:
    print("raised", error)
warnings.filterwarnings("ignore", category=DeprecationWarning)
print(caller(4))
warnings.warn("at the end", RuntimeWarning)
