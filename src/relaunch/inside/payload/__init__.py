"""Arrays that tell who they are: `from relaunch import payload`."""
