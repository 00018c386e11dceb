"""`rl tiny payload`: arrays whose values tell who they are, printed or as a file."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.errors import TinyError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

EXAMPLES = """\
Examples
  rl tiny payload '(2,3) float32'                 1, 2, 3, ...
  rl tiny payload '(3,4,5) int64' --coded         1203 is [2, 0, 3]
  rl tiny payload 'ids=(2,8) int64' 'mask=(2,8) bool' -o batch.pt
  rl tiny payload --like batch.pt --sentinel 0xDEADBEEF -o marked.pt
  rl tiny payload --adversarial                   nan, inf, -0, empty, odd texts
  rl tiny payload '(4,4) bfloat16' --random --seed 3 -o x.safetensors

A sentinel fills the memory of any dtype: `rl tiny find` finds it in dumps. Needs
neither torch nor numpy. In Python: from relaunch import payload
"""
_MOST_SHOWN = 1000
_MOST_BYTES = 1 << 32


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("spec", metavar="SPEC", nargs="*",
                        help="'(2,3) float32', or several as NAME=SPEC")  # fmt: skip
    parser.add_argument("--like", metavar="FILE", default="",
                        help="same structure, shapes, dtypes (pt, npz, json, ...)")  # fmt: skip
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--coded", action="store_true", help="digits tell the index")
    ways.add_argument("--random", action="store_true", help="normal, or whole numbers to 99")
    ways.add_argument("--adversarial", action="store_true", help="nan, inf, -0, ends of the range")
    ways.add_argument("--sentinel", metavar="HEX", default=None, help="fill memory with 0xDEADBEEF")
    parser.add_argument("--seed", metavar="N", default="0", help="of --random (0)")
    parser.add_argument("-o", "--output", metavar="FILE", default="",
                        help="npy, npz, pt, safetensors, json or bin")  # fmt: skip
    parser.add_argument("-f", "--force", action="store_true", help="replace what is there")
    parser.add_argument(
        "--json", action="store_true", help="as JSON: schema relaunch/tiny-payload/1"
    )


def main(args: Namespace) -> int:
    """Make it, and print or write it."""
    if args.command is not None:
        raise UsageError("rl tiny payload runs no command", hint="rl tiny payload --help")
    try:
        value = _made(args)
        if args.output:
            from relaunch.tiny.data.files import packed, replacing
            from relaunch.tiny.payloads.files import as_file

            data = as_file(value, args.output)
            with (
                replacing(args.output, forced=args.force, unlike=args.like) as temporary,
                packed(temporary, "") as file,
            ):
                file.write(data)
    except (ValueError, OverflowError) as error:
        raise UsageError(str(error), hint="rl tiny payload --help") from None
    _tell(value, args)
    return 0


def _made(args: Namespace) -> Any:
    from relaunch.cli.launch_options import whole_number
    from relaunch.inside.payload.offered import adversarial, resembling
    from relaunch.inside.payload.spec import read_spec
    from relaunch.inside.payload.values import made, sentinel_bytes
    from relaunch.tiny.payloads.files import read_like

    seed = whole_number(args.seed, "--seed")
    kind = next((one for one in ("coded", "random", "adversarial") if getattr(args, one)), "count")
    mark = sentinel_bytes(args.sentinel) if args.sentinel is not None else b""
    if args.like:
        if args.spec:
            raise UsageError(
                "--like has its own shapes", hint=f"rl tiny payload --like {args.like}"
            )
        return resembling(read_like(args.like), kind, seed=seed, sentinel=mark)
    if not args.spec:
        if kind == "adversarial":
            return adversarial()
        raise UsageError("which shape?", hint="rl tiny payload '(2,3) float32'")
    found: dict[str, Any] = {}
    for number, word in enumerate(args.spec):
        name, equals, text = word.rpartition("=")
        shape, dtype = read_spec(text)
        _check_size(shape, dtype.size, word)
        found[name if equals else f"array{number}" if len(args.spec) > 1 else ""] = made(
            shape, dtype, kind, seed=seed + number, sentinel=mark
        )
    return found[""] if list(found) == [""] else found


def _check_size(shape: tuple[int, ...], size: int, word: str) -> None:
    from math import prod

    if prod(shape) * size > _MOST_BYTES:
        said = f"`{word}` would have {draw.size(prod(shape) * size)}: that is no tiny payload"
        raise TinyError(said, hint="rl tiny payload '(2,3) float32'")


def _tell(value: Any, args: Namespace) -> None:
    from relaunch.tiny.payloads.files import arrays_of, plain

    arrays = arrays_of(value)
    if args.json:
        listed = [{"name": name, "shape": list(one.shape), "dtype": one.dtype.name}
                  for name, one in arrays]  # fmt: skip
        values = None if args.output else plain(value)
        told = {"arrays": listed, "out": args.output, "values": values}
        draw.say_json("tiny-payload", told)
        return
    if args.output:
        names = ", ".join(_headed(name, one) for name, one in arrays[:6])
        more = f" and {len(arrays) - 6} more" if len(arrays) > 6 else ""
        draw.say(draw.clean(f"{args.output}: {names}{more}") + "\n")
    else:
        draw.say(draw.clean(shown(value), lines=True) + "\n")
    for line in _readings(arrays, args):
        draw.remark(f"rl: {line}")


def kind_counts(args: Namespace) -> bool:
    """Tell whether the values count."""
    return not (args.random or args.adversarial)


def _headed(name: str, array: Any) -> str:
    shape = f"({', '.join(map(str, array.shape))}{',' if len(array.shape) == 1 else ''})"
    return f"{name} {shape} {array.dtype.name}".strip()


def _readings(arrays: list[tuple[str, Any]], args: Namespace) -> list[str]:
    """Say how to read the values, where they do not say it themselves."""
    from relaunch.inside.payload.values import Coded, sentinel_bytes

    said: dict[str, None] = {}
    for name, array in arrays:
        head = f"{name}: " if name and len(arrays) > 1 else ""
        if args.coded:
            said[f"{head}{Coded(array.shape, array.dtype).reading()}"] = None
        elif args.sentinel is not None:
            if array.dtype.family == "bool":
                said[f"{head}a bool has no room for a sentinel: all are true"] = None
        elif (
            kind_counts(args)
            and array.dtype.family != "bool"
            and len(array.data) > (array.dtype.limit * array.dtype.size)
        ):
            limit = array.dtype.limit
            said[f"{head}{array.dtype.name} counts to {limit:,}, then from 1 again"] = None
    lines = list(said)[:4]
    if args.sentinel is not None:
        bytes_in = sentinel_bytes(args.sentinel).hex(" ")
        lines.insert(0, f"in memory: {bytes_in}; to find it: rl tiny find {args.sentinel} FILE")
    return lines


def shown(value: Any) -> str:
    """Draw a structure: each array under a line with its name, shape and type."""
    from relaunch.inside.payload.values import Array
    from relaunch.tiny.payloads.files import arrays_of

    if isinstance(value, Array):
        return f"{_headed('', value)}\n{_array(value)}"
    blocks = [f"{_headed(name, one)}\n{_array(one)}" for name, one in arrays_of(value)]
    rest = _others(value)
    return "\n".join([*blocks, *rest])


def _others(value: Any, name: str = "") -> list[str]:
    from relaunch.inside.payload.values import Array

    if isinstance(value, Array):
        return []
    if isinstance(value, dict):
        pairs = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(str(n), one) for n, one in enumerate(value)]
    else:
        return [f"{name} {draw.clip(ascii(value), 60)}".strip()]
    return [line for key, one in pairs for line in _others(one, f"{name}.{key}".lstrip("."))]


def _array(array: Any) -> str:
    values = array.values()
    if len(values) > _MOST_SHOWN:
        head = ", ".join(_number(one, array.dtype) for one in values[:8])
        return f"[{head}, ... {len(values):,} in all]"
    texts = [_number(one, array.dtype) for one in values]
    if not array.shape:
        return texts[0]
    if len(array.shape) == 1:
        from textwrap import fill

        return fill(f"[{', '.join(texts)}]", draw.width(), subsequent_indent=" ")
    wide = max(map(len, texts), default=0)
    return _rows([text.rjust(wide) for text in texts], array.shape, 1)


def _rows(texts: list[str], shape: tuple[int, ...], depth: int) -> str:
    if len(shape) == 1:
        return "[" + ", ".join(texts) + "]"
    step = len(texts) // shape[0] if shape[0] else 0
    inner = [_rows(texts[n * step : (n + 1) * step], shape[1:], depth + 1) for n in range(shape[0])]
    between = "," + "\n" * (len(shape) - 1) + " " * depth
    return "[" + between.join(inner) + "]"


def _number(value: Any, dtype: Any) -> str:
    """Return as few digits as tell a number from its neighbours."""
    if not isinstance(value, float) or value != value:
        return str(value)
    bits = dtype.pack([value])
    for digits in range(6, 17):
        text = f"{value:.{digits}g}"
        if dtype.pack([float(text)]) == bits:
            return text
    return repr(value)
