"""Start the hook, step aside, and hand over to the user's own sitecustomize."""

# Python 2.7 must be able to read this file, so no annotations and no modern spelling.
# mypy: ignore-errors
# ruff: noqa: E402, UP036
import sys

try:
    import os

    _here = os.path.dirname(os.path.abspath(__file__))
    for _entry in [_p for _p in sys.path if os.path.abspath(_p or os.curdir) == _here]:
        sys.path.remove(_entry)
        sys.path_importer_cache.pop(_entry, None)
    sys.path_importer_cache.pop(_here, None)
    if os.environ.get("RELAUNCH_HOOK"):
        _file = os.path.join(os.path.dirname(_here), "hook.py")
        _names = {"__name__": "_relaunch_hook", "__file__": _file}
        if sys.version_info[0] >= 3:
            # The frozen importer keeps the compiled hook on disk; sys.modules stays as found.
            import _frozen_importlib_external as _importer

            exec(
                _importer.SourceFileLoader("_relaunch_hook", _file).get_code("_relaunch_hook"),
                _names,
            )
        else:
            with open(_file) as _source:
                exec(compile(_source.read(), _file, "exec"), _names)
        _names["start"]()
except Exception:
    pass

# Whatever the user's module does or raises is for `site` to treat, as if this file were not here;
# without one, the ImportError below is the answer `site` expects.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: F401
