"""Makes programs, each written twice: over many lines, and on one; under any Python, by a seed.

Not hypothesis: the same programs are made by other Pythons, which have nothing installed.
"""

from __future__ import annotations

import random

SIMPLE = [
    "x = 1",
    'y = {1: 2, "a;b": 3}',
    "z = a[1:2], a[:, None], a[::2]",
    's = "if x: y; else: z"',
    "f = lambda a, b={1: 2}: a",
    "x: int = 3",
    "x: dict[str, int]",
    "w = f\"{a!r:>{b}} {d['k;']} {{;}} {c:%H:%M}\"",
    "print(x if y else z)",
    "e = a if (lambda: b)() else lambda c: c",
    "pass",
    'assert x, "no: way; else: x"',
    "import os, sys as s",
    "from a import (b, c)",
    "match = 3",
    "case = match",
    "match.group(1)",
    "match[x]: int = 3",
    "match: int = 4",
    "case: int = 5",
    "match(a, b)",
    "type = {case: match}",
    'x = """a;\n  b: "c"\n"""',
    r"""r = r'\;' + '\\' + b'\';' + R"\";" """.strip(),
    "x = [i for i in y if i for j in i if j]",
    "print(*a, **b, c=d)",
    "x = (a\n  + b)",
    "x = a \\\n  + b",
    "x @= y",
    '"doc"',
    "...",
    "return x",
    "yield x",
    "x = y = await z",
    "raise E from e",
    "del x[1:]",
    "global q",
    "if_ = else_ = 1.5e-3",
    "x = 1_000 if 0x1f else .5",
    "naïve = 'é;ü:'",
    "print(f'{x:{w}.{p}}', end='')",
    'print(f"{x}" "else:" f\'{y}\')',
    "x = (y := 3)",
    "n = -~+1 ** 2 // 3 != 4 <= 5",
]
LOOPS = [
    "for i in range(3)",
    "for k, (v, *w) in {1: 2}.items()",
    "for f in lambda: 1, lambda a, b={1: 2}: 2",
    "while x[1:2]",
    "while (line := read()) != ''",
]
CONDITIONS = [
    "{1: 2}[1]",
    "(y := f(x)) > 3",
    "x if y else z",
    "(lambda: x)()",
    "not 'a:b;'",
    "f'{x:>3}'",
]
MANAGERS = ["open(p) as f", "open(p) as f, g()[1:2] as h", "(a as b, c as d)", "x"]
CASES = [
    "1",
    "'a:b'",
    '{"a": [x, *y], **z}',
    "(1 | 2) as q",
    "A.B | None",
    "A(x=1)",
    "[1, 2]",
    "-1",
    "x if x > 1",
]
EXCEPTS = ["", " A", " (A, B) as e", " a.b[1:2] as e"]
DECORATORS = ["@a", "@a.b(c=lambda: 1)", "@a[1:2]"]
SIGNATURES = [
    "f(a: int = 3, *b: dict[str, int], **c) -> list[int]",
    "f()",
    "f(a, /, b={1: 2}, *, c)",
]
CLASSES = ["A", "A(B, metaclass=C)"]


class Made:
    """A statement: its lines, its one line, and how many blocks that leaves open."""

    def __init__(self, lines: list[str], line: str, opened: int) -> None:
        self.lines, self.line, self.opened = lines, line, opened


def program(seed: int) -> tuple[str, str]:
    """Return a program over many lines, and on one."""
    made = _Maker(random.Random(seed)).block(depth=0)
    return "\n".join(made.lines) + "\n", made.line


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def block(self, depth: int) -> Made:
        lines: list[str] = []
        line, opened = "", 0
        for number in range(self.chance.randint(1, 3)):
            made = self.statement(depth)
            lines += made.lines
            line += (self.blanks(";" + ";" * opened) if number else "") + made.line
            opened = made.opened
        return Made(lines, line, opened)

    def statement(self, depth: int) -> Made:
        kinds = [self.loop, self.condition, self.attempt, self.manager, self.function, self.match]
        if depth > 2 or self.chance.random() < 0.5:
            text = self.chance.choice(SIMPLE)
            return Made([text], text, 0)
        return self.chance.choice(kinds)(depth)

    def loop(self, depth: int) -> Made:
        clauses = [self.chance.choice(LOOPS)]
        clauses += ["else"] if self.chance.random() < 0.3 else []
        return self.clauses(clauses, depth)

    def condition(self, depth: int) -> Made:
        words = ["if", *["elif"] * self.chance.randint(0, 2)]
        clauses = [f"{word} {self.chance.choice(CONDITIONS)}" for word in words]
        clauses += ["else"] if self.chance.random() < 0.5 else []
        return self.clauses(clauses, depth)

    def attempt(self, depth: int) -> Made:
        clauses = ["try"]
        caught = self.chance.sample(EXCEPTS[1:], self.chance.randint(0, 2))
        clauses += [f"except{what}" for what in caught]
        clauses += ["except"] if self.chance.random() < 0.3 else []
        clauses += ["else"] if len(clauses) > 1 and self.chance.random() < 0.4 else []
        clauses += ["finally"] if len(clauses) == 1 or self.chance.random() < 0.4 else []
        return self.clauses(clauses, depth)

    def manager(self, depth: int) -> Made:
        return self.clauses([f"with {self.chance.choice(MANAGERS)}"], depth)

    def function(self, depth: int) -> Made:
        kind = self.chance.choice(("def", "async def", "class", "async for", "async with"))
        if kind == "async for":
            return self.clauses(["async for a in b"], depth)
        if kind == "async with":
            return self.clauses(["async with a as b"], depth)
        signature = self.chance.choice(CLASSES if kind == "class" else SIGNATURES)
        made = self.clauses([f"{kind} {signature}"], depth)
        for _ in range(self.chance.randint(0, 2)):
            decorator = self.chance.choice(DECORATORS)
            # Two decorators without `;` would be one: `@` multiplies.
            apart = ";" if made.line[0] == "@" else self.chance.choice((";", " "))
            made = Made(
                [decorator, *made.lines], decorator + self.blanks(apart) + made.line, made.opened
            )
        return made

    def match(self, depth: int) -> Made:
        lines, line, opened = ["match x:"], "match x: ", 0
        for number in range(self.chance.randint(1, 3)):
            header = f"case {self.chance.choice(CASES)}:"
            body = self.block(depth + 2)
            lines += [f"    {header}", *indented(indented(body.lines))]
            line += (self.blanks(";" + ";" * opened) if number else "") + f"{header} {body.line}"
            opened = body.opened
        return Made(lines, line, opened + 2)

    def clauses(self, headers: list[str], depth: int) -> Made:
        lines: list[str] = []
        line, opened = "", 0
        for number, header in enumerate(headers):
            body = self.block(depth + 1)
            lines += [f"{header}:", *indented(body.lines)]
            if number:
                alone = not opened and self.chance.random() < 0.5
                line += " " if alone else self.blanks(";" + ";" * opened)
            line += f"{header}:{self.chance.choice(('', ' '))}{body.line}"
            opened = body.opened
        return Made(lines, line, opened + 1)

    def blanks(self, signs: str) -> str:
        return self.chance.choice((f"{signs} ", f" {signs} ", " ".join(signs) + " "))


def indented(lines: list[str]) -> list[str]:
    """Indent statements; what goes on in a string or a bracket stays where it is."""
    return ["    " + line for line in lines]
