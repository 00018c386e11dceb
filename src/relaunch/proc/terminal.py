"""The person's terminal: its settings, its size, and whether it is ours at the moment."""

from __future__ import annotations

import fcntl
import os
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Settings = list[Any]

_IFLAG, _OFLAG, _CFLAG, _LFLAG, _CC = 0, 1, 2, 3, 6
_NO_SIZE = bytes(8)


def raw(settings: Settings) -> Settings:
    """Return `settings` with every service of the terminal off: the program's pty does them."""
    new = list(settings)
    new[_IFLAG] &= ~(
        termios.BRKINT
        | termios.IGNBRK
        | termios.ICRNL
        | termios.IGNCR
        | termios.INLCR
        | termios.INPCK
        | termios.ISTRIP
        | termios.IXON
        | termios.IXOFF
        | termios.PARMRK
    )
    new[_OFLAG] &= ~termios.OPOST
    new[_CFLAG] = (new[_CFLAG] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
    new[_LFLAG] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
    new[_CC] = list(settings[_CC])
    new[_CC][termios.VMIN] = 1
    new[_CC][termios.VTIME] = 0
    return new


def cooked(settings: Settings) -> Settings:
    """Return `settings` with the usual services on: in the background we see the shell's editor."""
    new = list(settings)
    new[_IFLAG] |= termios.BRKINT | termios.ICRNL | termios.IXON
    new[_OFLAG] |= termios.OPOST | termios.ONLCR
    new[_LFLAG] |= termios.ECHO | termios.ECHOE | termios.ICANON | termios.IEXTEN | termios.ISIG
    return new


class Terminal:
    """A terminal that is made raw while we own it, and is always given back as it was."""

    def __init__(self, fd: int) -> None:
        """Remember the settings as they are."""
        self.fd = fd
        self.settings = termios.tcgetattr(fd)
        self.is_raw = False

    def is_ours(self) -> bool:
        """Tell whether we are in the foreground: only then may it be read or changed."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return False

    def is_there(self) -> bool:
        """Tell whether it is still a terminal, and not one that was hung up."""
        try:
            termios.tcgetattr(self.fd)
        except termios.error:
            return False
        return True

    def make_raw(self) -> None:
        """Hand every key on untouched; does nothing in the background."""
        if not self.is_ours():
            return
        try:
            if not self.is_raw:
                self.settings = termios.tcgetattr(self.fd)
            # Also when we think it is raw: a shell may have changed it while we stood still.
            termios.tcsetattr(self.fd, termios.TCSANOW, raw(self.settings))
            self.is_raw = True
        except termios.error:
            pass

    def restore(self) -> None:
        """Give it back as it was; safe to call twice, and when it is gone."""
        if not self.is_raw:
            return
        self.is_raw = False
        if self.is_ours():
            try:
                termios.tcsetattr(self.fd, termios.TCSANOW, self.settings)
            except termios.error:
                pass

    def size(self) -> bytes:
        """Return rows, columns and pixels as the kernel keeps them."""
        try:
            return fcntl.ioctl(self.fd, termios.TIOCGWINSZ, _NO_SIZE)
        except OSError:
            return _NO_SIZE


def open_pty(like: Terminal, *, process_output: bool) -> tuple[int, int]:
    """Open a pty set up like the terminal `like`; return our side and the program's."""
    master, slave = os.openpty()
    settings = list(like.settings) if like.is_ours() else cooked(like.settings)
    if not process_output:
        settings[_OFLAG] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    set_size(slave, like.size())
    os.set_blocking(master, False)
    return master, slave


def set_size(fd: int, size: bytes) -> bool:
    """Give the pty a size; the kernel tells the program. True when it was another one."""
    if fcntl.ioctl(fd, termios.TIOCGWINSZ, _NO_SIZE) == size:
        return False
    fcntl.ioctl(fd, termios.TIOCSWINSZ, size)
    return True


def interrupts(master: int, typed: bytes) -> bool:
    """Tell whether what was typed holds the key that interrupts, and the program has it as such."""
    try:
        settings = termios.tcgetattr(master)
    except termios.error:
        return False
    key = settings[_CC][termios.VINTR]
    return bool(settings[_LFLAG] & termios.ISIG) and key != b"\0" and key in typed


def give_back(settings: Settings) -> None:
    """Restore our controlling terminal from a process that has no other way to it."""
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        termios.tcsetattr(fd, termios.TCSANOW, settings)
    except termios.error:
        pass
    finally:
        os.close(fd)
