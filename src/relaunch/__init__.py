"""relaunch gets a person to the bug in seconds."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.inside.ipython import load_ipython_extension as load_ipython_extension
    from relaunch.inside.ipython import unload_ipython_extension as unload_ipython_extension
    from relaunch.inside.logs.logger import get_logger as get_logger
    from relaunch.inside.payload.offered import payload as payload
    from relaunch.inside.peek import peek as peek
    from relaunch.inside.sections.offered import section as section
else:
    _OFFERED = {
        "get_logger": "relaunch.inside.logs.logger",
        "load_ipython_extension": "relaunch.inside.ipython",
        "payload": "relaunch.inside.payload.offered",
        "peek": "relaunch.inside.peek",
        "section": "relaunch.inside.sections.offered",
        "unload_ipython_extension": "relaunch.inside.ipython",
    }

    def __getattr__(name: str) -> object:
        """Load what the library has when it is asked for: `import relaunch` alone loads nothing."""
        module = _OFFERED.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(__import__(module, fromlist=[name]), name)
        return value
