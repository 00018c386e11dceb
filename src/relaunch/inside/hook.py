"""The part of the hook that every Python start pays for: ask to be called at exit, watch threads.

Runs inside the user's process under Python 2.7 and 3.6+, outside `sys.modules`. It imports only
what the interpreter has loaded, replaces no excepthook of `sys`, prints nothing, raises nothing.
The work is in `report.py`, loaded when there is something to say.
"""
# Python 2.7 must be able to read this file, so no annotations and no modern spelling.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN202, UP036

import os
import sys
import time

_directory = os.environ.get("RELAUNCH_HOOK", "")
_src = os.environ.get("RELAUNCH_SRC", "")
_probe = os.environ.get("RELAUNCH_PROBE", "")
_imported = os.environ.get("RELAUNCH_IMPORTED", "")
_fork = os.environ.get("RELAUNCH_FORK", "")
_held = os.environ.get("RELAUNCH_HELD", "")
_blame = os.environ.get("RELAUNCH_BLAME", "") if sys.version_info >= (3, 11) else ""
_here = os.path.dirname(os.path.abspath(__file__))
_started = time.time()
_reporter = {}
_loader = []
# What failed calls may take; older Pythons keep none.
_capture = os.environ.get("RELAUNCH_CAPTURE", "") if sys.version_info >= (3, 11) else ""
# Our own copies, because tests of the user mock these and may leave them so at exit.
_open, _read, _write, _close, _rename = os.open, os.read, os.write, os.close, os.rename
_getpid, _now, _clock = os.getpid, time.time, getattr(time, "monotonic", None)


def start():
    """Arrange to be called at exit and when a thread fails."""
    import atexit  # built into Python 3

    atexit.register(_at_exit)
    if sys.version_info >= (3, 8):
        _watch_threads()
    if _blame:
        _be_seen()
    if _fork and sys.version_info >= (3, 11):
        _be_forked()
    if _held and sys.version_info >= (3, 11):
        _be_held()
    perturbed = os.environ.get("RELAUNCH_PERTURB", "")
    if perturbed and sys.version_info >= (3, 11):
        words = perturbed.split(os.pathsep)
        _load("race.perturb").begin(words[0], words[1:], _directory)
    # Only this process is the one-liner; what it starts is not.
    if os.environ.pop("RELAUNCH_LINE", "") and sys.version_info >= (3, 8):
        _load("oneliner").start()
    if _capture:
        os.register_at_fork(after_in_child=_keep)
        words = sys.orig_argv
        if words[-1:] == ["--multiprocessing-fork"] or "loky.backend" in "".join(words[2:3]):
            _keep(None, "spawned")
    roots = os.environ.get("RELAUNCH_SRC_ROOTS")
    if roots and sys.version_info[0] >= 3:
        _guard(roots.split(os.pathsep))
    if sys.version_info >= (3, 11):
        _talk()
    executed = os.environ.get("RELAUNCH_EXECUTED", "")
    if executed and _directory and sys.version_info >= (3, 11):
        _load("executed").begin(_directory, executed.split(os.pathsep))
    limited = os.environ.get("RELAUNCH_LIMITED", "")
    if limited and sys.version_info >= (3, 11):
        words = limited.split(os.pathsep)
        _load("limited").begin(words[1], words[2:], words[0] == "track")
    hung = os.environ.get("RELAUNCH_HUNG", "")
    if hung and sys.version_info >= (3, 11):
        _load("hung").begin(hung)
    if os.environ.get("RELAUNCH_SINGLE") and sys.version_info >= (3, 11):
        _be_single(os.environ["RELAUNCH_SINGLE"])
    if _probe and sys.version_info >= (3, 11):
        _load("probe.begin").begin(_probe)
    elif _probe:
        _report()["too_old"](os.path.dirname(_probe))


def _be_single(asked):
    """Have the processes of the program be threads of this one."""

    def failed(error, who):
        _report()["failed"](error, who)
        _keep(error, who)
        _debug(error)

    try:
        _load("single.begin").begin(asked, failed)
    except Exception:
        pass


def _be_seen():
    """Have the Python line told of calls that fail; without that the program runs all the same."""
    try:
        _load("blame").begin(_blame)
    except Exception:
        pass


def _be_forked():
    """Wait until the program is wanted; what comes back is a fork, which is the program."""
    global _directory, _started, _imported
    try:
        _directory = _load("forks.serve").serve(_fork)
    except BaseException:
        os._exit(125)
    _started, _imported = _now(), ""


def _be_held():
    """Wait until its input is wanted; what comes back is the program, or what will be held."""
    try:
        _report()  # once, not in each fork
        _load("held.begin").begin(_held)
    except BaseException:
        os._exit(125)


def _talk():
    """Have ranks print whole lines, loggers say and torch take as much as was asked, and so on."""
    if os.environ.get("RELAUNCH_RANKED"):
        _load("ranked").begin()
    if "=" in os.environ.get("RELAUNCH_LOG", ""):
        _load("logs.watch").begin()
    if os.environ.get("RELAUNCH_GPU"):
        _load("gpu_share").begin()
    if os.environ.get("RELAUNCH_TELLS") and not os.environ.get("RELAUNCH_LIMITED"):
        _load("tells").begin()


def _load(name):
    """Return a module of ours; each process has its own, which no program sees."""
    if not _loader:
        import _frozen_importlib_external as importer

        path = os.path.join(_here, "private.py")
        names = {"__name__": "relaunch.inside.private", "__file__": path}
        exec(importer.SourceFileLoader("private", path).get_code("private"), names)
        _loader.append(names["Private"](_here))
    return _loader[0].load(name)


def _guard(roots):
    path = os.path.join(_here, "guard.py")
    names = {"__name__": "_relaunch_guard", "__file__": path}
    exec(compile(_text_of(path), path, "exec"), names)
    names["install"](roots)


def _watch_threads():
    threading = sys.modules.get("threading")
    if threading is not None:  # a .pth file was quicker than us
        threading.excepthook = _wrapped(threading.excepthook)
        return
    import _thread

    # threading takes its excepthook from here when, and if, the program imports it.
    _thread._excepthook = _wrapped(_thread._excepthook)


def _wrapped(theirs):
    def excepthook(args):
        try:
            if args.exc_type is not SystemExit:
                name = getattr(args.thread, "name", None) or "thread"
                _report()["failed"](args.exc_value, name, None, _blamed(args.exc_value, None))
                _keep(args.exc_value, name)
        except BaseException:
            pass
        told = theirs(args)
        _debug(args.exc_value)
        return told

    return excepthook


def _at_exit():
    error = None
    try:
        error = getattr(sys, "last_exc", None)
        if error is None:
            error = getattr(sys, "last_value", None)
        if error is not None:
            tb = getattr(sys, "last_traceback", None)
            _report()["failed"](error, None, tb, _blamed(error, tb))
        if _src:
            _report()["exiting"]()
        if error is not None and not hasattr(sys, "_relaunch_kept"):  # the plugin of pytest did
            _keep(error, "")
        if _imported and _directory and sys.version_info >= (3, 11):
            _load("forks.noted").write(_directory, _imported.split(os.pathsep))
    except BaseException:
        pass
    _debug(error)
    if _held and sys.version_info >= (3, 11):
        _load("held.leaving").leave()


def _blamed(error, tb):
    """Say what an error of the system may have been about, where nobody else can."""
    return _load("blame").told(error, tb) if _blame[:1] == "=" else None


def _debug(error):
    """Open the debugger where something failed, if that was asked for."""
    if error is None or "_pytest" in sys.modules or sys.version_info < (3, 11):
        return  # pytest opens one of its own
    if os.environ.get("RELAUNCH_PDB"):
        try:
            _load("probe.pause").post_mortem(error, _directory)
        except Exception:
            pass


def _keep(error=None, who=""):
    """Keep the call that failed; without one, watch this process if it was made to be a worker."""
    if not _capture:
        return
    if error is None and not who:  # called from within os.fork()
        code = sys._getframe(1).f_code
        if code.co_name not in ("_launch", "main") or "/multiprocessing/" not in code.co_filename:
            return
    hooked = _load("capture.hooked")
    hooked.called(error, who, getattr(sys, "_relaunch_reports", _directory), _capture)


def _report():
    if not _reporter:
        path = os.path.join(_here, "report.py")
        names = {"__name__": "_relaunch_report", "__file__": path}
        exec(compile(_text_of(path), path, "exec"), names)
        calls = (_open, _write, _close, _rename, _getpid, _now, _clock)
        # A process that went on from a snapshot belongs to another trial than the one it began in.
        directory = getattr(sys, "_relaunch_reports", _directory)
        names["begin"]((directory, _src, _started), calls)
        _reporter.update(names)
    return _reporter


def _text_of(path):
    fd, parts = _open(path, os.O_RDONLY), []
    try:
        while True:
            parts.append(_read(fd, 65536))
            if not parts[-1]:
                return b"".join(parts)
    finally:
        _close(fd)
