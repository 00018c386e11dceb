"""relaunch gets a person to the bug in seconds."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.inside.peek import peek as peek
else:

    def __getattr__(name: str) -> object:
        """Load what the library has when it is asked for: `import relaunch` alone loads nothing."""
        if name != "peek":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from relaunch.inside.peek import peek

        globals()[name] = peek
        return peek
