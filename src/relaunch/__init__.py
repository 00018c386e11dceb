"""relaunch gets a person to the bug in seconds."""

__version__ = "0.1.0"
