"""Turns the words of a launcher of many processes into those of the one program it starts.

`torchrun --nproc-per-node 8 train.py` becomes `python -u train.py`, in the environment of a world
of one: what torchrun itself would give to a single rank.
"""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.inside.single.environ import WORLD_OF_ONE
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_TORCHRUN_SWITCHES = frozenset(
    ("standalone", "module", "m", "no_python", "run_path", "use_env", "virtual_local_rank", "h",
     "help")
)  # fmt: skip
_ACCELERATE_SWITCHES = frozenset(
    ("quiet", "q", "cpu", "multi_gpu", "tpu", "ipex", "use_mps_device", "enable_cpu_affinity",
     "dynamo_use_fullgraph", "dynamo_use_dynamic", "dynamo_use_regional_compilation",
     "use_deepspeed", "use_fsdp", "use_megatron_lm", "use_parallelism_config", "use_xpu",
     "same_network", "module", "m", "no_python", "tpu_cluster", "no_tpu_cluster", "tpu_use_sudo",
     "downcast_bf16", "debug", "fp8_override_linear_precision", "h", "help")
)  # fmt: skip
_DEEPSPEED_SWITCHES = frozenset(
    ("module", "no_python", "no_local_rank", "no_ssh", "no_ssh_check", "force_multi", "save_pid",
     "elastic_training", "bind_cores_to_rank", "h", "help")
)  # fmt: skip
_MPI_SWITCHES = frozenset(
    ("oversubscribe", "allow_run_as_root", "bynode", "byslot", "bind_to_core", "bind_to_none",
     "nolocal", "tag_output", "timestamp_output", "quiet", "q", "v", "verbose", "display_map",
     "display_allocation", "report_bindings", "use_hwthread_cpus", "nooversubscribe", "genvall",
     "genvnone", "envall", "envnone", "l", "prepend_rank", "prtemode", "do_not_launch")
)  # fmt: skip
_MPI_TWO = frozenset(("mca", "gmca", "prtemca", "pmixmca", "genv", "env"))
_MPI_VALUES = frozenset(
    ("n", "np", "c", "hostfile", "machinefile", "f", "host", "hosts", "H", "x", "map_by", "bind_to",
     "rank_by", "wdir", "wd", "path", "prefix", "ppn", "npernode", "N", "npersocket", "rf",
     "rankfile", "output_filename", "stdin", "genvlist", "envlist", "launcher", "rmk", "iface",
     "timeout", "tune", "cpus_per_proc", "cpus_per_rank", "perhost", "output", "s", "xterm")
)  # fmt: skip
_SRUN_VALUES = "AbcCdDeEGiJkKlLmMnNopqrRStTuUwxX"
_SRUN_SWITCHES = frozenset("EHIkKlOQsuvVXZh")
_SRUN_LONG_SWITCHES = frozenset(
    ("contiguous", "disable_status", "exact", "exclusive", "hold", "immediate", "join",
     "kill_on_bad_exit", "label", "multi_prog", "no_allocate", "no_kill", "overcommit", "overlap",
     "oversubscribe", "preserve_env", "pty", "quiet", "quit_on_interrupt", "reboot", "spread_job",
     "test_only", "unbuffered", "use_min_nodes", "verbose", "version", "wait_all_nodes", "whole")
)  # fmt: skip
_RUNNERS = frozenset(("uv", "poetry", "pdm", "hatch", "rye", "pipenv"))
_LAUNCHER_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate launch",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed": "deepspeed",
}
_MPI = frozenset(
    ("mpirun", "mpiexec", "orterun", "mpiexec.hydra", "mpirun.openmpi", "mpirun.mpich")
)

_SIZES = {
    "WORLD_SIZE": {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"},
    "OMPI_COMM_WORLD_SIZE": {
        "OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
    },
    "PMI_SIZE": {"PMI_SIZE": "1", "PMI_RANK": "0"},
    "SLURM_NTASKS": {
        "SLURM_NTASKS": "1", "SLURM_NPROCS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0", "SLURM_NNODES": "1", "SLURM_TASKS_PER_NODE": "1",
    },
}  # fmt: skip
"""What tells of a larger world around us, and what it is to tell instead."""


class Collapsed(Record):
    """The one program, what its environment gets, and what was collapsed."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    said: tuple[str, ...] = ()


def collapse(
    argv: Sequence[str], env: Mapping[str, str], *, python: Callable[[Sequence[str]], str]
) -> Collapsed:
    """Take launchers off the command, one behind the other; a command without any stays as it is.

    `python(words)` names the Python in which a launcher would start the program.
    """
    front, words = _in_front(argv)
    given: dict[str, str] = {}
    said: list[str] = []
    for _ in range(4):  # `srun torchrun ...`
        launcher, rest = _launcher(words)
        if not launcher:
            break
        by_runner = any(os.path.basename(word) in _RUNNERS for word in front)
        own = "python" if by_runner else python(words)
        taken = _read(launcher, rest, own, env)
        more, words = _in_front(taken.argv)
        front = [*front, *more]
        given.update(taken.env)
        said.extend(taken.said)
    for name, instead in _SIZES.items():
        size = env.get(name, "")
        if size.isdecimal() and int(size) > 1 and name not in given:
            given.update({n: v for n, v in instead.items() if n in env or n == name})
            said.append(f"{name}={size} in the environment -> 1")
    return Collapsed(argv=(*front, *words), env=given, said=tuple(said))


def _in_front(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part `env A=1`, `nice -n 5`, `timeout 60`, `uv run` from the command behind them."""
    words, front = list(argv), []
    while words:
        name = os.path.basename(words[0])
        if name == "env":
            front.append(words.pop(0))
            while words and (words[0].startswith("-") or "=" in words[0]):
                word = words.pop(0)
                front.append(word)
                if word in ("-u", "-C") and words:
                    front.append(words.pop(0))
        elif name in ("nohup", "time", "setsid", "exec", "command", "nice", "ionice", "stdbuf"):
            front.append(words.pop(0))
            while words and words[0].startswith("-"):
                word = words.pop(0)
                front.append(word)
                takes = name in ("nice", "ionice", "stdbuf") and len(word) == 2
                if takes and words and not words[0].startswith("-"):
                    front.append(words.pop(0))
        elif name == "timeout":
            front.append(words.pop(0))
            while words and words[0].startswith("-"):
                word = words.pop(0)
                front.append(word)
                if word in ("-s", "-k") and words:
                    front.append(words.pop(0))
            front += words[:1]
            del words[:1]
        elif name in _RUNNERS and words[1:2] == ["run"]:
            front += words[:2]
            del words[:2]
            while words and words[0].startswith("--"):
                front.append(words.pop(0))
        else:
            break
    return front, words


def _launcher(words: Sequence[str]) -> tuple[str, list[str]]:
    """Say which launcher this is, and return the words behind it."""
    if not words:
        return "", []
    name = os.path.basename(words[0])
    if name == "accelerate" and words[1:2] == ["launch"]:
        return "accelerate launch", list(words[2:])
    if name == "accelerate-launch":
        return "accelerate launch", list(words[1:])
    if name in ("torchrun", "deepspeed", "srun"):
        return name, list(words[1:])
    if name in _MPI:
        return "mpirun", list(words[1:])
    if name.startswith("python") and "-m" in words[1:]:
        at = words.index("-m")
        module = words[at + 1] if at + 1 < len(words) else ""
        launcher = _LAUNCHER_MODULES.get(module, "")
        if launcher and all(word.startswith("-") for word in words[1:at]):
            if launcher != "accelerate":
                return launcher, list(words[at + 2 :])
            if words[at + 2 : at + 3] == ["launch"]:
                return "accelerate launch", list(words[at + 3 :])
    return "", []


def _read(launcher: str, words: list[str], python: str, env: Mapping[str, str]) -> Collapsed:
    if launcher in ("torchrun", "torch.distributed.launch"):
        return _torchrun(launcher, words, python, env)
    if launcher == "accelerate launch":
        return _accelerate(words, python, env)
    if launcher == "deepspeed":
        return _deepspeed(words, python)
    return _srun(words) if launcher == "srun" else _mpi(words)


def _options(
    launcher: str, words: list[str], switches: frozenset[str]
) -> tuple[dict[str, str], list[str]]:
    """Read options up to the script; `--nproc-per-node` and `--nproc_per_node` are one."""
    found: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        flag, equals, value = word.partition("=")
        name = flag.lstrip("-").replace("-", "_")
        if name in ("h", "help"):
            raise UsageError(f"`{launcher} {word}` starts no program", hint=f"{launcher} --help")
        if equals or name in switches:
            found[name] = value
        elif at < len(words):
            found[name] = words[at]
            at += 1
    if at >= len(words):
        raise UsageError(
            f"--single: no script among the words of `{launcher}`",
            hint=f"rl run --single -- {launcher} ... train.py",
        )
    return found, words[at:]


def _torchrun(launcher: str, words: list[str], python: str, env: Mapping[str, str]) -> Collapsed:
    options, script = _options(launcher, words, _TORCHRUN_SWITCHES)
    each = options.get("nproc_per_node", env.get("PET_NPROC_PER_NODE", "1"))
    nodes = options.get("nnodes", env.get("PET_NNODES", "1"))
    given = dict(WORLD_OF_ONE)
    given["TORCHELASTIC_MAX_RESTARTS"] = options.get("max_restarts", "0")
    if "role" in options:
        given["ROLE_NAME"] = options["role"]
    # As torchrun does with more than one: the same numbers come out.
    if each != "1" and "OMP_NUM_THREADS" not in env:
        given["OMP_NUM_THREADS"] = "1"
    flags = "" if launcher == "torchrun" or "use_env" in options else "--local-rank=0"
    argv = _program(options, script, env.get("PYTHON_EXEC", python), flags)
    return Collapsed(argv=argv, env=given, said=(_ranks(launcher, each, nodes),))


def _program(
    options: Mapping[str, str], script: list[str], python: str, rank_word: str = ""
) -> tuple[str, ...]:
    rank = [rank_word] if rank_word else []
    if "no_python" in options:
        return (script[0], *rank, *script[1:])
    module = ["-m"] if "module" in options or "m" in options else []
    return (python, "-u", *module, script[0], *rank, *script[1:])


def _ranks(launcher: str, each: str, nodes: str = "1") -> str:
    node_words = "" if nodes in ("1", "1:1") else f" on {nodes} nodes"
    return f"{launcher}: {each} processes{node_words} -> 1, a world of one"


_ACCELERATE_SAYS = {
    "mixed_precision": "ACCELERATE_MIXED_PRECISION",
    "gradient_accumulation_steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
    "dynamo_backend": "ACCELERATE_DYNAMO_BACKEND",
    "dynamo_mode": "ACCELERATE_DYNAMO_MODE",
}


def _accelerate(words: list[str], python: str, env: Mapping[str, str]) -> Collapsed:
    options, script = _options("accelerate launch", words, _ACCELERATE_SWITCHES)
    config = _config(options.get("config_file", ""), env)
    said = {**config, **options}
    given = dict(WORLD_OF_ONE)
    for name, variable in _ACCELERATE_SAYS.items():
        if said.get(name) not in (None, "", "null"):
            upper = variable.endswith("BACKEND")
            given[variable] = said[name].upper() if upper else said[name].strip("'\"")
    if "cpu" in options or config.get("use_cpu") == "true":
        given["ACCELERATE_USE_CPU"] = "true"
    each = said.get("num_processes", "all GPUs as")
    lines = [_ranks("accelerate launch", each, said.get("num_machines", "1"))]
    shards: list[str] = [
        name for name in ("use_deepspeed", "use_fsdp", "use_megatron_lm") if name in options
    ]
    kind = config.get("distributed_type", "").strip("'\"")
    if shards or kind in ("DEEPSPEED", "FSDP", "MEGATRON_LM"):
        lines.append(f"accelerate: {(shards or [kind])[0]} is not applied to one process")
    return Collapsed(argv=_program(options, script, python), env=given, said=tuple(lines))


def _config(path: str, env: Mapping[str, str]) -> dict[str, str]:
    """Read the plain `name: value` lines of accelerate's configuration."""
    if not path:
        cache = env.get("XDG_CACHE_HOME") or os.path.join(env.get("HOME", ""), ".cache")
        home = env.get("HF_HOME") or os.path.join(cache, "huggingface")
        path = os.path.join(home, "accelerate", "default_config.yaml")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            pairs = [line.partition(":") for line in file.read(1 << 16).splitlines()]
    except OSError:
        return {}
    return {name: value.strip() for name, colon, value in pairs if colon and name.isidentifier()}


def _deepspeed(words: list[str], python: str) -> Collapsed:
    options, script = _options("deepspeed", words, _DEEPSPEED_SWITCHES)
    each = options.get("num_gpus", options.get("num_accelerators", "all GPUs as"))
    rank = "" if "no_local_rank" in options else "--local_rank=0"
    said = _ranks("deepspeed", each, options.get("num_nodes", "1"))
    argv = _program(options, script, python, rank)
    return Collapsed(argv=argv, env=dict(WORLD_OF_ONE), said=(said,))


def _mpi(words: list[str]) -> Collapsed:
    """Read the words of mpirun; what it is given to set is set."""
    given: dict[str, str] = {}
    count = "?"
    at = 0
    while at < len(words) and words[at].startswith("-"):
        flag, equals, value = words[at].partition("=")
        at += 1
        if flag == "--":
            break
        name = flag.lstrip("-").replace("-", "_")
        if equals and name not in _MPI_TWO:
            values = [value]
        elif name in _MPI_SWITCHES:
            continue
        elif name in _MPI_TWO or name in _MPI_VALUES:
            many = 2 if name in _MPI_TWO else 1
            values = words[at : at + many]
            at += many
        else:
            raise UsageError(
                f"--single does not know mpirun's `{flag}`: does a value follow it?",
                hint=f"rl run --single -- mpirun ... {flag}=VALUE ..., or leave it out",
            )
        if name in ("n", "np", "c") and values:
            count = values[0]
        elif name in ("genv", "env") and len(values) == 2:
            given[values[0]] = values[1]
        elif name == "x" and values and "=" in values[0]:
            variable, _, text = values[0].partition("=")
            given[variable] = text
    program = words[at:]
    if ":" in program:  # several programs: the first has rank 0
        program = program[: program.index(":")]
    if not program:
        raise UsageError(
            "--single: no program among the words of `mpirun`",
            hint="rl run --single -- mpirun -n 8 python train.py",
        )
    return Collapsed(argv=tuple(program), env=given, said=(_ranks("mpirun", count),))


def _srun(words: list[str]) -> Collapsed:
    """Read the words of srun; the program runs here, not in a step of a job."""
    count, at = "?", 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        at += 1
        if word == "--":
            break
        flag, equals, value = word.partition("=")
        if word.startswith("--"):
            name = flag[2:].replace("-", "_")
            if not equals and name not in _SRUN_LONG_SWITCHES:
                value = words[at] if at < len(words) else ""
                at += 1
            count = value if name == "ntasks" else count
        elif word[1] not in _SRUN_SWITCHES and word[1] in _SRUN_VALUES:
            value = word[2:]
            if not value:
                value = words[at] if at < len(words) else ""
                at += 1
            count = value if word[1] == "n" else count
    if at >= len(words):
        raise UsageError(
            "--single: no program among the words of `srun`",
            hint="rl run --single -- srun -n 8 python train.py",
        )
    given = dict(_SIZES["SLURM_NTASKS"])
    said = f"srun: {count} tasks -> 1, on this machine"
    return Collapsed(argv=tuple(words[at:]), env=given, said=(said,))
