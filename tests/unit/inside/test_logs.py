"""Loggers, in this process: lines, levels, who shows what, and what the program set up itself."""

import io
import logging
import logging.config
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaunch.cli.levels import read_levels
from relaunch.errors import UsageError
from relaunch.inside.awaited import Waiting
from relaunch.inside.logs.handler import Handler
from relaunch.inside.logs.levels import asked
from relaunch.inside.logs.logger import Logger, get_logger
from relaunch.inside.logs.watch import _pin
from relaunch.inside.ranks import rank


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Heard:
    """What came out on standard error."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._text = ""

    def getvalue(self) -> str:
        self._text += self._capsys.readouterr().err
        return self._text


@pytest.fixture
def terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Heard]:
    """A standard error of this test alone, and loggers that nobody else has."""
    for name in ("RELAUNCH_LOG", "RELAUNCH_TRIAL", "RANK", "WORLD_SIZE", "PYTEST_XDIST_WORKER",
                 "NO_COLOR", "FORCE_COLOR"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger()
    kind, handlers, level = type(root), list(root.handlers), root.level
    manager = logging.Logger.manager
    before = dict(manager.loggerDict)
    last = logging.lastResort
    yield Heard(capsys)
    root.__class__, root.handlers = kind, handlers
    root.setLevel(level)
    manager.loggerDict.clear()
    manager.loggerDict.update(before)
    logging.lastResort = last


def said(stream: Heard) -> list[str]:
    """Lines without the time."""
    return [line.partition(" ")[2] for line in stream.getvalue().splitlines()]


def test_it_is_the_logger_of_the_standard_library_ready_to_be_used(terminal):
    log = get_logger("mypkg.data")
    assert log is logging.getLogger("mypkg.data") is get_logger("mypkg.data")
    assert isinstance(log, logging.Logger)
    log.info("loaded %d rows", 3)
    log.debug("too much")
    log.warning("hm")
    assert said(terminal) == ["INFO  mypkg.data: loaded 3 rows", "WARN  mypkg.data: hm"]
    assert terminal.getvalue()[:13].replace(":", "").replace(".", "").strip().isdecimal()


def test_a_record_of_a_logger_below_another_is_written_once(terminal):
    outer, inner = get_logger("mypkg"), get_logger("mypkg.inner")
    inner.info("once")
    outer.info("mine")
    assert said(terminal) == ["INFO  mypkg.inner: once", "INFO  mypkg: mine"]


def test_nothing_is_formatted_that_is_not_said(terminal):
    class Dear:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    get_logger("mypkg").debug("%s", Dear())
    assert said(terminal) == []


def test_an_exception_comes_with_its_traceback(terminal):
    try:
        raise KeyError("lost")
    except KeyError:
        get_logger("mypkg").exception("it failed")
    lines = terminal.getvalue().splitlines()
    assert lines[0].endswith("ERROR mypkg: it failed")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "KeyError: 'lost'"


def test_words_that_do_not_fit_their_values_are_shown_as_they_are(terminal):
    logging.getLogger().handlers = []  # pytest's own would raise
    get_logger("mypkg").info("%d rows", "three")
    assert said(terminal)[0].startswith("INFO  mypkg: '%d rows' % ('three',)   (TypeError: ")


def test_a_script_is_named_by_its_file_and_not_main(terminal):
    get_logger("__main__").info("hello")
    assert said(terminal) == ["INFO  test_logs: hello"]


def test_without_a_name_it_is_that_of_the_module_that_asks(terminal):
    assert get_logger().name == __name__


def test_ranks_are_named(terminal, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    get_logger("mypkg").info("here")
    assert said(terminal) == ["[rank 2] INFO  mypkg: here"]


def test_a_rank_is_one_of_several_whoever_launched_them(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert rank() is None
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert rank() is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert rank() == 0
    monkeypatch.delenv("RANK")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "5")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "8")
    assert rank() == 5


# --- beside what the program set up itself --------------------------------------------------------


def test_root_and_handlers_of_the_program_stay_as_they_are(terminal):
    root = logging.getLogger()
    before = type(root), list(root.handlers), root.level, logging.lastResort
    get_logger("mypkg").info("x")
    assert (type(root), list(root.handlers), root.level, logging.lastResort) == before


def test_what_a_handler_on_root_shows_is_not_shown_twice(terminal):
    log = get_logger("mypkg")
    logging.getLogger().handlers = []
    logging.basicConfig(format="THEIRS %(message)s", level=logging.INFO, stream=sys.stderr)
    log.info("once")
    assert terminal.getvalue() == "THEIRS once\n"


def test_what_a_handler_on_root_leaves_out_is_shown(terminal):
    log = get_logger("mypkg")
    theirs = logging.StreamHandler(sys.stderr)
    theirs.setLevel(logging.ERROR)
    logging.getLogger().handlers = [theirs]
    log.setLevel(logging.INFO)
    log.info("not by them")
    log.error("by them")
    assert terminal.getvalue().splitlines()[1:] == ["by them"]
    assert said(terminal)[0] == "INFO  mypkg: not by them"


def test_a_handler_that_writes_a_file_does_not_keep_ours_from_the_terminal(terminal, tmp_path):
    theirs = logging.FileHandler(tmp_path / "their.log")
    logging.getLogger().handlers = [theirs]
    log = get_logger("mypkg")
    log.warning("both")
    theirs.close()
    assert said(terminal) == ["WARN  mypkg: both"]
    assert (tmp_path / "their.log").read_text() == "both\n"


def test_levels_that_the_program_sets_are_heeded_whenever_it_does(terminal):
    log = get_logger("mypkg")
    assert log.isEnabledFor(logging.INFO)
    logging.getLogger().handlers = []
    logging.basicConfig(level=logging.DEBUG, stream=io.StringIO())
    assert log.isEnabledFor(logging.DEBUG)
    log.setLevel(logging.ERROR)
    assert not log.isEnabledFor(logging.WARNING)


def test_the_programs_own_kind_of_logger_is_left_to_be_one(terminal):
    class Own(logging.Logger):
        pass

    logging.setLoggerClass(Own)
    try:
        log = get_logger("owned")
    finally:
        logging.setLoggerClass(logging.Logger)
    assert type(log) is Own
    log.info("x")
    assert said(terminal) == ["INFO  owned: x"]


def test_pytest_sees_the_records(terminal, caplog):
    with caplog.at_level(logging.DEBUG):
        get_logger("mypkg").debug("seen %d", 1)
    get_logger("mypkg").info("too")
    assert [record.getMessage() for record in caplog.records] == ["seen 1", "too"]


# --- levels that were asked for -------------------------------------------------------------------


def test_one_level_is_for_all_loggers_of_get_logger_and_wins(terminal, monkeypatch):
    monkeypatch.setenv("RELAUNCH_LOG", "debug")
    log = get_logger("mypkg")
    log.setLevel(logging.ERROR)
    log.debug("turned up")
    logging.getLogger("other").debug("not mine")
    assert said(terminal) == ["DEBUG mypkg: turned up"]


def test_a_named_level_is_for_that_logger_whoever_made_it(terminal, monkeypatch):
    monkeypatch.setenv("RELAUNCH_LOG", "error,mypkg.data=debug,other=info")
    theirs = logging.getLogger("other")
    get_logger("mypkg.data.deep").debug("deep")
    get_logger("mypkg").warning("too little")
    theirs.info("theirs")
    theirs.setLevel(logging.ERROR)
    theirs.info("still")
    assert said(terminal) == [
        "DEBUG mypkg.data.deep: deep", "INFO  other: theirs", "INFO  other: still",
    ]  # fmt: skip


def test_a_held_logger_outlives_dictconfig(terminal, monkeypatch):
    monkeypatch.setenv("RELAUNCH_LOG", "other=debug")
    get_logger("mypkg")
    other = logging.getLogger("other")
    logging.config.dictConfig({"version": 1, "loggers": {"other": {"level": "ERROR"}}})
    other.debug("still here")
    assert said(terminal) == ["DEBUG other: still here"]
    assert not other.disabled


def test_root_is_turned_up_only_when_asked_and_the_program_can_still_set_it_up(
    terminal, monkeypatch
):
    monkeypatch.setenv("RELAUNCH_LOG", "root=debug")
    root = logging.getLogger()
    root.handlers = []
    get_logger("mypkg")
    logging.getLogger("other").debug("nobody set anything up")
    logging.basicConfig(format="THEIRS %(message)s", level=logging.ERROR, stream=sys.stderr)
    logging.getLogger("other").debug("they did")
    assert said(terminal)[0] == "DEBUG other: nobody set anything up"
    assert terminal.getvalue().splitlines()[1:] == ["THEIRS they did"]


def test_odd_levels_in_the_environment_are_passed_over(monkeypatch):
    monkeypatch.setenv("RELAUNCH_LOG", "loud,a=,=debug,x.y=15, z = INFO ")
    assert asked() == {"x.y": 15, "": 10, "z": 20}


def test_levels_are_checked_before_anything_runs():
    assert read_levels(["debug", "mypkg.data=info,root=15"]) == "debug,mypkg.data=info,root=15"
    for words in (["loud"], ["mypkg="], ["=debug"], [","], [""]):
        with pytest.raises(UsageError):
            read_levels(words)


def test_logging_is_held_as_soon_as_it_is_imported(monkeypatch, terminal):
    monkeypatch.setenv("RELAUNCH_LOG", "late=debug")
    waiting = Waiting("logging", _pin)
    monkeypatch.setattr(sys, "meta_path", [waiting, *sys.meta_path])
    for name in [name for name in sys.modules if name.partition(".")[0] == "logging"]:
        monkeypatch.delitem(sys.modules, name)
    import logging as fresh

    assert fresh is not logging
    assert fresh.getLogger("late").level == 10
    assert waiting not in sys.meta_path
    assert type(fresh.__spec__.loader).__name__ == "SourceFileLoader"
    assert fresh.__loader__ is fresh.__spec__.loader


# --- where it goes --------------------------------------------------------------------------------


def test_colour_is_for_terminals_and_for_who_wants_it(terminal, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    log = get_logger("mypkg")
    log.info("a")
    monkeypatch.setenv("NO_COLOR", "1")
    log.info("b")
    first, second = stream.getvalue().splitlines()
    assert "\x1b[32mINFO " in first
    assert "\x1b" not in second


def test_the_trial_has_it_too_with_the_day(terminal, monkeypatch, tmp_path):
    monkeypatch.setenv("RELAUNCH_TRIAL", str(tmp_path))
    log = get_logger("mypkg")
    monkeypatch.setattr(log, "propagate", False)  # xdist could not pass on what pytest would catch
    log.info("kept \udcff")
    (line,) = (tmp_path / "log.txt").read_text().splitlines()
    assert line.endswith("INFO  mypkg: kept \\udcff")
    assert line[4] == line[7] == "-"


@pytest.mark.parametrize("stream", [None, "closed", "full"])
def test_a_standard_error_that_cannot_be_written_stops_nothing(terminal, monkeypatch, stream):
    if stream == "closed":
        broken: object = io.StringIO()
        broken.close()  # type: ignore[attr-defined]
    elif stream == "full":
        broken = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w", closefd=False)
    else:
        broken = None
    monkeypatch.setattr(sys, "stderr", broken)
    get_logger("mypkg").error("nobody hears it")


def test_a_real_stream_gets_each_record_by_one_write(terminal, monkeypatch, tmp_path):
    writes: list[bytes] = []

    def write(fd: int, data: bytes) -> int:
        writes.append(data)
        return os.write(fd, data)

    monkeypatch.setattr("relaunch.inside.logs.handler._write", write)
    with Path(tmp_path / "err").open("w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        file.write("before ")
        get_logger("mypkg").info("two\nlines " + "x" * 9000)
    assert len(writes) == 1
    assert (tmp_path / "err").read_text() == "before " + writes[0].decode()


def test_the_class_is_named_like_the_standard_one(terminal):
    log = get_logger("mypkg")
    assert type(log) is Logger
    assert repr(log) == "<Logger mypkg (INFO)>"
    assert [type(one) for one in log.handlers] == [Handler]
