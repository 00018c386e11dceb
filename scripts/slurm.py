"""A real Slurm on this machine alone: `up`, `down`. Several nodes, all traffic on loopback.

One process of ours keeps it: munged, slurmctld and a slurmd for each node are its children, with
a folder, ports, key and socket of their own, so that another Slurm on this machine is not touched.
They end with it, and it ends when it is told to, or with the process that it was started for. As
root each node has its own host name and its own processes (namespaces); else all nodes share this
machine's.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "scontrol")
PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
HERE = Path(__file__).resolve().parent.parent
STATE = "state.json"
_UP_S = 60.0
_DOWN_S = 20.0
_TURN_S = 0.05
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def missing() -> str:
    """Say why no Slurm can be started here; nothing if one can, after installing it if we may."""
    if sys.platform != "linux":
        return "Slurm needs Linux"
    absent = [one for one in PROGRAMS if not _found(one)]
    if absent and os.getuid() == 0 and shutil.which("apt-get"):
        _install()
        absent = [one for one in PROGRAMS if not _found(one)]
    if absent:
        packages = " ".join(PACKAGES)
        return f"no {', '.join(absent)} here; as root: apt-get install {packages}"
    return ""


def _found(program: str) -> str:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


def _install() -> None:
    """Install the packages, whose own services are not to be started."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    install = ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *PACKAGES]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(install, env=env, check=False, **quiet).returncode:  # type: ignore[call-overload]
        for words in (["apt-get", "-qq", "update"], install):
            subprocess.run(words, env=env, check=False, **quiet)  # type: ignore[call-overload]


# --- what is written down -------------------------------------------------------------------------


class Layout:
    """Where everything of one Slurm lies, and how large it is."""

    def __init__(self, folder: Path, nodes: int, cpus: int) -> None:
        """Choose free ports."""
        self.folder, self.cpus = folder, cpus
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self.is_root = os.getuid() == 0
        self.is_apart = self.is_root and _can_be_apart()
        self.ports = _free_ports(nodes + 1)
        self.gpus: list[str] = []

    @property
    def conf(self) -> Path:
        """Return what SLURM_CONF names."""
        return self.folder / "slurm.conf"

    def write(self) -> None:
        """Write the configuration, and what it names."""
        for name in ("state", "log", "run", "munge"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        (self.folder / "munge").chmod(0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        hosts = "".join(f"127.0.1.{n} {name}\n" for n, name in enumerate(self.nodes, 1))
        host = socket.gethostname().partition(".")[0]
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n127.0.0.1 {host}\n{hosts}")
        self.gpus = self._devices()
        files = ",".join(self.gpus)
        (self.folder / "gres.conf").write_text(
            "".join(
                f"NodeName={name} Name=gpu File={files} Flags=nvidia_gpu_env\n"
                for name in self.nodes
            )
        )
        for name in self.nodes:
            (self.folder / f"spool-{name}").mkdir()
        self.conf.write_text(self._conf(host))

    def _devices(self) -> list[str]:
        """Name files that stand for GPUs, made where we may; Slurm insists on devices."""
        made = [str(self.folder / f"gpu{number}") for number in range(self.cpus)]
        try:
            for path in made:
                os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))
        except OSError:
            return ["/dev/full", "/dev/null", "/dev/urandom", "/dev/zero"]
        return made

    def _conf(self, host: str) -> str:
        d, who = self.folder, pwd.getpwuid(os.getuid()).pw_name
        head = f"""\
ClusterName=relaunch
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={self.ports[0]}
CommunicationParameters=NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket={d}/munge/socket
CredType=cred/munge
SlurmUser={who}
SlurmdUser={who}
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool-%n
SlurmctldPidFile={d}/run/slurmctld.pid
SlurmdPidFile={d}/run/slurmd-%n.pid
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd-%n.log
ProctrackType=proctrack/{"linuxproc" if self.is_root else "pgid"}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
GresTypes=gpu
KillWait=2
MinJobAge=600
"""
        nodes = "".join(
            f"NodeName={name} NodeHostname={name if self.is_apart else host} NodeAddr=127.0.1.{n}"
            f" Port={self.ports[n]} CPUs={self.cpus} RealMemory=4000 Gres=gpu:{len(self.gpus)}"
            f" Feature={'fast' if n == 1 else 'slow'},any State=UNKNOWN\n"
            for n, name in enumerate(self.nodes, 1)
        )
        every = f"node[1-{len(self.nodes)}]"
        return (
            f"{head}{nodes}"
            f"PartitionName=debug Nodes={every} Default=YES DefaultTime=60 State=UP\n"
            f"PartitionName=short Nodes={every} MaxTime=30 DefaultTime=5 State=UP\n"
        )


def _can_be_apart() -> bool:
    words = ["unshare", "--uts", "--pid", "--mount", "--fork", "--mount-proc", "true"]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody listens at, all held at once so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


# --- the keeper -----------------------------------------------------------------------------------


class Keeper:
    """Starts the daemons, starts a node again that was lost and is to come back, ends them all."""

    def __init__(self, layout: Layout) -> None:
        """Nothing runs yet."""
        self.layout = layout
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.env = {
            "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
            "SLURM_CONF": str(layout.conf),
            "HOME": os.environ.get("HOME", "/"),
            "LC_ALL": "C.UTF-8",
        }

    def start(self) -> str:
        """Start everything; returns why it does not come up."""
        d = self.layout.folder
        munge = d / "munge"
        self._start(
            "munged", "--foreground", "--force", f"--key-file={munge}/key",
            f"--socket={munge}/socket", f"--pid-file={d}/run/munged.pid",
            f"--log-file={d}/log/munged.log", f"--seed-file={munge}/seed", "--num-threads=4",
        )  # fmt: skip
        if not _until(lambda: (munge / "socket").exists() or self._dead("munged"), 10.0):
            return "munged makes no socket"
        self._start("slurmctld", "-D", "-c", "-f", str(self.layout.conf))
        for name in self.layout.nodes:
            self._start_node(name)
        want = len(self.layout.nodes)
        _until(lambda: self._idle() == want or self._dead("slurmctld"), _UP_S)
        if self._idle() == want:
            return ""
        return f"{self._idle()} of {want} nodes came up\n{self._logs()}"

    def _start(self, name: str, *words: str) -> None:
        with open(self.layout.folder / "log" / f"{name}.out", "ab") as log:
            self.children[name] = subprocess.Popen(
                [_found(name) or name, *words],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=_die_with_parent,
            )  # fmt: skip

    def _start_node(self, name: str) -> None:
        d, conf = self.layout.folder, self.layout.conf
        slurmd = f"{_found('slurmd')} -D -f {conf} -N {name}"
        words = slurmd.split()
        if self.layout.is_apart:
            inner = f"mount --bind {d}/hosts /etc/hosts && hostname {name} && exec {slurmd}"
            words = ["unshare", "--uts", "--pid", "--mount", "--fork", "--kill-child",
                     "--mount-proc", "sh", "-c", inner]  # fmt: skip
        with open(d / "log" / f"{name}.out", "ab") as log:
            self.children[name] = subprocess.Popen(
                words, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=_die_with_parent,
            )  # fmt: skip

    def _dead(self, name: str) -> bool:
        return self.children[name].poll() is not None

    def _idle(self) -> int:
        words = ["sinfo", "--noheader", "--Node", "--partition=debug", "--format=%T"]
        try:
            done = subprocess.run(words, env=self.env, capture_output=True, timeout=10, check=False)
        except subprocess.TimeoutExpired:
            return 0
        return done.stdout.split().count(b"idle")

    def _logs(self) -> str:
        lines = []
        for path in sorted((self.layout.folder / "log").iterdir()):
            tail = path.read_text(errors="replace").splitlines()[-4:]
            lines += [f"== {path.name}", *tail]
        return "\n".join(lines)

    def save(self) -> None:
        """Write down who runs."""
        state = {
            "keeper": os.getpid(),
            "born": _born(os.getpid()),
            "conf": str(self.layout.conf),
            "nodes": self.layout.nodes,
            "apart": self.layout.is_apart,
            "pids": {name: child.pid for name, child in self.children.items()},
        }
        path = self.layout.folder / STATE
        path.with_suffix(".part").write_text(json.dumps(state))
        path.with_suffix(".part").replace(path)

    def keep(self, while_pid: int) -> None:
        """Stay until we are told to end, or that process is gone."""
        over: list[int] = []
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, lambda number, _: over.append(number))
        born = _born(while_pid) if while_pid else ""
        while not over and (not while_pid or _born(while_pid) == born):
            time.sleep(_TURN_S)
            for name in self.layout.nodes:
                if self._dead(name) and not (self.layout.folder / "run" / f"lost-{name}").exists():
                    self._start_node(name)
                    self.save()
            _reap({child.pid for child in self.children.values()})

    def stop(self) -> None:
        """Cancel all jobs, so that their steps end, then end everybody at once: nothing is kept."""
        if "slurmctld" in self.children and not self._dead("slurmctld"):
            for words in (["scancel", "--quiet", f"--user={os.getuid()}"],):
                try:
                    subprocess.run(words, env=self.env, capture_output=True, timeout=5, check=False)
                except subprocess.TimeoutExpired:
                    pass
            _until(lambda: not self._jobs(), 3.0)
        for child in self.children.values():
            if child.poll() is None:
                os.kill(child.pid, signal.SIGKILL)
        for child in self.children.values():
            child.wait()
        _end_adopted()
        shutil.rmtree(self.layout.folder, ignore_errors=True)

    def _jobs(self) -> bool:
        try:
            words = ["squeue", "--noheader"]
            done = subprocess.run(words, env=self.env, capture_output=True, timeout=5, check=False)
        except subprocess.TimeoutExpired:
            return True
        return bool(done.stdout.strip())


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(_TURN_S)
    return True


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _born(pid: int) -> str:
    """Return when a process began; with its pid, that names it. Nothing when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _reap(ours: set[int]) -> None:
    """Collect what daemons of ours left to us."""
    for pid in _children():
        if pid not in ours:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def _children() -> list[int]:
    found = []
    for tasks in Path(f"/proc/{os.getpid()}/task").iterdir():
        found += [int(word) for word in (tasks / "children").read_text().split()]
    return found


def _end_adopted() -> None:
    """End what the daemons left to us, until nothing is left: steps, and what they ran."""
    for _ in range(200):
        pids = _children()
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


# --- the commands ---------------------------------------------------------------------------------


def up(folder: Path, *, nodes: int, cpus: int, while_pid: int = 0) -> str:
    """Start one and wait until its nodes are idle; returns why it did not come up."""
    why = missing()
    if why:
        return why
    if running(folder):
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    near, far = os.pipe()
    words = [sys.executable, __file__, "keep", "--dir", str(folder), "--nodes", str(nodes),
             "--cpus", str(cpus), "--while", str(while_pid), "--tell", str(far)]  # fmt: skip
    # Not our child: it is to outlive us, and to be nobody's when it ends.
    middle = os.fork()
    if middle == 0:
        try:
            os.setsid()
            os.close(near)
            with open(os.devnull, "r+b") as nothing:
                subprocess.Popen(
                    words, stdin=nothing, stdout=nothing, stderr=nothing, pass_fds=[far],
                    start_new_session=True, close_fds=True,
                )  # fmt: skip
        finally:
            os._exit(0)
    os.waitpid(middle, 0)
    os.close(far)
    with os.fdopen(near, encoding="utf-8", errors="replace") as told:
        said = told.read()
    return "" if said == "ready" else said or "the keeper died"


def keep(folder: Path, *, nodes: int, cpus: int, while_pid: int, tell: int) -> None:
    """Be the keeper."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    keeper = Keeper(Layout(folder, nodes, cpus))
    said = "it could not be set up"
    try:
        keeper.layout.write()
        said = keeper.start()
        keeper.save()
    except OSError as error:
        said = str(error)
    finally:
        os.write(tell, (said or "ready").encode())
        os.close(tell)
    try:
        if not said:
            keeper.keep(while_pid)
    finally:
        keeper.stop()


def running(folder: Path) -> dict[str, object] | None:
    """Return what is known of the one that runs from a folder; None: there is none."""
    try:
        state: dict[str, object] = json.loads((folder / STATE).read_text())
    except (OSError, ValueError):
        return None
    return state if _born(int(str(state["keeper"]))) == state["born"] else None


def down(folder: Path) -> bool:
    """End the one that runs from a folder; False: there is none."""
    state = running(folder)
    if state is None:
        return False
    pid = int(str(state["keeper"]))
    os.kill(pid, signal.SIGTERM)
    if not _until(lambda: _born(pid) != state["born"], _DOWN_S):
        os.kill(pid, signal.SIGKILL)  # its children die with it
    shutil.rmtree(folder, ignore_errors=True)
    return True


def main() -> int:
    """Do what the words say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("up", "down", "keep"))
    parser.add_argument("--dir", type=Path, default=HERE / ".slurm")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=4)
    parser.add_argument("--while", dest="while_pid", type=int, default=0)
    parser.add_argument("--tell", type=int, default=-1)
    args = parser.parse_args()
    folder = args.dir.resolve()
    if args.what == "keep":
        keep(folder, nodes=args.nodes, cpus=args.cpus, while_pid=args.while_pid, tell=args.tell)
        return 0
    if args.what == "down":
        print("stopped" if down(folder) else "none is running")
        return 0
    began = time.monotonic()
    why = up(folder, nodes=args.nodes, cpus=args.cpus, while_pid=args.while_pid)
    if why:
        print(why, file=sys.stderr)
        return 1
    print(f"{args.nodes} nodes, ready in {time.monotonic() - began:.1f} s; then:", file=sys.stderr)
    print(f"export SLURM_CONF={folder}/slurm.conf")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
