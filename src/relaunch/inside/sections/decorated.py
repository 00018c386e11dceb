"""Functions each call of which is a section; of generators it is each step that is measured."""

from __future__ import annotations

from relaunch.inside.sections.section import section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200
"""Flags of code, as `inspect` names them; its import costs more than most functions."""
_COPIED = ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__")


def decorated(function: Any, name: str, sync: bool) -> Any:
    """Return a function that does the same, and is measured."""
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & _ASYNC_GENERATOR:
        made = _async_generator(function, name, sync)
    elif flags & _COROUTINE:
        made = _coroutine(function, name, sync)
    elif flags & _GENERATOR:
        made = _generator(function, name, sync)
    else:
        made = _plain(function, name, sync)
    for one in _COPIED:
        try:
            setattr(made, one, getattr(function, one))
        except (AttributeError, TypeError):
            pass
    made.__dict__.update(getattr(function, "__dict__", {}))
    made.__dict__["__wrapped__"] = function
    return made


def _plain(function: Any, name: str, sync: bool) -> Callable[..., Any]:
    def call(*args: Any, **names: Any) -> Any:
        with section(name, sync=sync):
            return function(*args, **names)

    return call


def _coroutine(function: Any, name: str, sync: bool) -> Callable[..., Any]:
    async def call(*args: Any, **names: Any) -> Any:
        with section(name, sync=sync):
            return await function(*args, **names)

    return call


def _generator(function: Any, name: str, sync: bool) -> Callable[..., Any]:
    def call(*args: Any, **names: Any) -> Generator[Any, Any, Any]:
        steps = function(*args, **names)
        step, value = steps.send, None
        while True:
            try:
                with section(name, sync=sync):
                    given = step(value)
            except StopIteration as stop:
                return stop.value
            try:
                step, value = steps.send, (yield given)
            except GeneratorExit:
                with section(name, sync=sync):
                    steps.close()
                raise
            except BaseException as error:
                step, value = steps.throw, error

    return call


def _async_generator(function: Any, name: str, sync: bool) -> Callable[..., Any]:
    async def call(*args: Any, **names: Any) -> AsyncGenerator[Any, Any]:
        steps = function(*args, **names)
        step, value = steps.asend, None
        while True:
            try:
                with section(name, sync=sync):
                    given = await step(value)
            except StopAsyncIteration:
                return
            try:
                step, value = steps.asend, (yield given)
            except GeneratorExit:
                with section(name, sync=sync):
                    await steps.aclose()
                raise
            except BaseException as error:
                step, value = steps.athrow, error

    return call
