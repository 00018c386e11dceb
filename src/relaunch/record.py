"""Frozen, keyword-only data without `dataclasses`, whose import costs more than bare Python.

To people and to mypy a `Record` is a frozen dataclass; `rl -- CMD` can afford it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        """Stand in for typing's marker, which only a type checker reads."""
        return lambda cls: cls


_MISSING: Any = object()


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base of our data: fields are the annotations, values never change after construction."""

    _fields: dict[str, Any] = {}

    def __init_subclass__(cls) -> None:
        """Collect the fields and their defaults, parents first."""
        fields = dict(cls._fields)
        for name in cls.__dict__.get("__annotations__", {}):  # noqa: RUF063  # inspect is dear
            fields[name] = cls.__dict__.get(name, _MISSING)
        cls._fields = fields

    def __init__(self, **values: Any) -> None:
        """Take exactly the declared fields."""
        mine = self.__dict__
        for name, default in self._fields.items():
            value = values.pop(name, default)
            if value is _MISSING:
                raise TypeError(f"{type(self).__name__} needs `{name}`")
            mine[name] = value
        if values:
            raise TypeError(f"{type(self).__name__} has no field `{next(iter(values))}`")

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: records are frozen."""
        raise AttributeError(f"{type(self).__name__} is frozen; use .but({name}=...)")

    def __eq__(self, other: object) -> bool:
        """Compare by type and values."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """Hash by values; only for records whose values can be hashed."""
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        """Show the fields as they would be written."""
        inner = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({inner})"

    def but(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})
