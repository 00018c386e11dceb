"""The options of sbatch: which take a value, and which variables set them. Pure."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_VALUE = """
account=A acctg-freq array=a batch bb bbf begin chdir=D cluster-constraint clusters=M comment
constraint=C container container-id core-spec=S cores-per-socket cpu-freq cpus-per-gpu
cpus-per-task=c deadline delay-boot dependency=d distribution=m error=e exclude=x export export-file
extra extra-node-info=B gid gpu-bind gpu-freq gpus=G gpus-per-node gpus-per-socket gpus-per-task
gres gres-flags hint input=i job-name=J kill-on-invalid-dep licenses=L mail-type mail-user mcs-label
mem mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile=F nodelist=w nodes=N ntasks=n
ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output=o partition=p
power prefer priority profile qos=q reservation segment signal sockets-per-node switches tasks
tasks-per-node thread-spec threads-per-core time=t time-min tmp tres-bind tres-per-task uid
wait-all-nodes wckey wrap
"""
_MAYBE = "exclusive get-user-env nice no-kill=k oom-kill-step propagate"
_NONE = """
consolidate-segments contiguous help=h hold=H ignore-pbs no-requeue overcommit=O oversubscribe=s
parsable quiet=Q reboot requeue share spread-job stepmgr test-only usage use-min-nodes verbose=v
version=V wait=W
"""
_ALIASES = {"tasks": "ntasks", "tasks-per-node": "ntasks-per-node", "share": "oversubscribe"}


class Given(Record):
    """One option as it was given."""

    name: str
    value: str | None = None

    @property
    def word(self) -> str:
        """Return it as one word that every command of Slurm reads."""
        if self.value is None:
            return f"--{self.name}"
        return f"--{self.name}={self.value}"


def _table() -> tuple[dict[str, str], dict[str, str]]:
    """Return how each option takes its value, and the long names of short ones."""
    kinds: dict[str, str] = {}
    shorts: dict[str, str] = {}
    for kind, words in (("value", _VALUE), ("maybe", _MAYBE), ("none", _NONE)):
        for word in words.split():
            name, _, short = word.partition("=")
            kinds[name] = kind
            if short:
                shorts[short] = name
    return kinds, shorts


KINDS, SHORTS = _table()


def read_options(words: Sequence[str], where: str) -> list[Given]:
    """Read words as getopt_long does; UsageError for words that are no options."""
    found: list[Given] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--") and len(word) > 2:
            found.append(_long(word, rest, where))
        elif word.startswith("-") and len(word) > 1 and word != "--":
            found += _short(word, rest, where)
        else:
            raise UsageError(f"{where}: `{word}` is no option, and sbatch would refuse it")
    return found


def _long(word: str, rest: list[str], where: str) -> Given:
    name, equals, value = word[2:].partition("=")
    name = _whole_name(name, where)
    kind = KINDS.get(name)
    name = _ALIASES.get(name, name)
    if equals:
        return Given(name=name, value=value)
    if kind == "value":
        return Given(name=name, value=_next(word, rest, where))
    if kind is None and rest and not rest[0].startswith("-"):  # an option of a plugin
        return Given(name=name, value=rest.pop(0))
    return Given(name=name)


def _whole_name(name: str, where: str) -> str:
    if name in KINDS:
        return name
    like = {_ALIASES.get(one, one) for one in KINDS if one.startswith(name)}
    if len(like) > 1:
        raise UsageError(f"{where}: --{name} could be --{' or --'.join(sorted(like))}")
    return like.pop() if like else name


def _short(word: str, rest: list[str], where: str) -> list[Given]:
    """Read `-N2`, `-N 2`, and several without values in one word."""
    found = []
    at = 1
    while at < len(word):
        name = SHORTS.get(word[at])
        at += 1
        if name is None:
            raise UsageError(f"{where}: no option -{word[at - 1]} of sbatch in `{word}`")
        kind = KINDS[name]
        if kind == "none":
            found.append(Given(name=name))
            continue
        value: str | None = word[at:]
        if not value:
            value = _next(f"-{word[at - 1]}", rest, where) if kind == "value" else None
        found.append(Given(name=name, value=value))
        break
    return found


def _next(word: str, rest: list[str], where: str) -> str:
    if not rest:
        raise UsageError(f"{where}: {word} needs a value")
    return rest.pop(0)


_VARIABLES = {
    "TIMELIMIT": "time",
    "ARRAY_INX": "array",
    "MEM_PER_NODE": "mem",
    "REQ_SWITCH": "switches",
}
_SWITCHES = {
    "OVERCOMMIT",
    "NO_REQUEUE",
    "REQUEUE",
    "SPREAD_JOB",
    "USE_MIN_NODES",
    "WAIT",
    "IGNORE_PBS",
}
_UNREAD = {"WAIT4SWITCH", "DEBUG"}


def from_variables(env: Mapping[str, str]) -> list[Given]:
    """Return what the variables of sbatch ask for: more than the script, less than the words."""
    found = []
    for variable in sorted(env):
        prefix, _, name = variable.partition("_")
        if prefix != "SBATCH" or name in _UNREAD:
            continue
        option = _VARIABLES.get(name, name.lower().replace("_", "-"))
        if name in _SWITCHES:
            found.append(Given(name=option))
        elif option in KINDS:
            value = env[variable]
            is_bare = KINDS[option] == "maybe" and not value
            found.append(Given(name=option, value=None if is_bare else value))
    return found


def last_of(given: Iterable[Given], name: str) -> str | None:
    """Return the value of the option that counts: the last one."""
    found = [one.value for one in given if one.name == name]
    return found[-1] if found else None
