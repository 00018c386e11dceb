#!/bin/sh
# The whole cycle on copies of the examples: fail, edit, relaunch, look back, compare sets, go on warm.
set -eu
examples=$(cd "$(dirname "$0")/../examples" && pwd)
room=$(mktemp -d "${TMPDIR:-/tmp}/relaunch-demo.XXXXXX")
trap 'rl warm stop >/dev/null 2>&1 || :; cd /; rm -rf "$room"' EXIT
trap 'exit 130' INT TERM HUP
export HOME="$room/home" XDG_STATE_HOME="$room/state" XDG_CONFIG_HOME="$room/config"
export XDG_CACHE_HOME="$room/cache" XDG_DATA_HOME="$room/data" GIT_CONFIG_NOSYSTEM=1
mkdir "$HOME"
cp -R "$examples/diverge" "$examples/gaps" "$room"
cd "$room/diverge"
git init -q -b main
git -c user.name=Demo -c user.email=demo@example.org -c core.excludesFile=/dev/null add -A
git -c user.name=Demo -c user.email=demo@example.org commit -q -m "a program that diverges"
# rl comes from its own environment, the program runs in another, as on a person's machine.
rl_python=$(command -v python)
"$rl_python" -m venv --without-pip "$room/venv"
PATH="$room/venv/bin:$PATH"

failed=0
# say COMMENT...: what the person thinks.  try EXPECTED COMMAND: what they type, and its exit code.
say() { printf '\n# %s\n' "$*"; }
try() {
    expected=$1
    shift
    printf '$ %s\n' "$*"
    code=0
    sh -c "$*" </dev/null 2>&1 || code=$?
    if [ "$code" != "$expected" ]; then
        printf 'demo: exit %s where %s was expected\n' "$code" "$expected"
        failed=1
    fi
}

say "Put rl in front of what fails. The reset and the launch are one step."
try 1 "rl --reset 'rm -rf cache' -m 'does it fail at all?' -- python train.py --steps 50"
say "Change one thing, then relaunch: bare rl is the last reset, the last command, the new code."
try 0 "sed -i.bak 's/1.5e-2/5e-3/' train.py && rm train.py.bak"
try 0 "rl -m 'learning rate too high'"
try 0 "rl mark -1 good '5e-3 trains'"
say "What have I tried, and what made the difference?"
try 0 "rl log"
try 0 "rl diff 1 2"
say "The exact code of the failure, once more, while the tree keeps the fix."
try 1 "rl again 1"
say "Is it the precision? Two config sets, three runs each, one table."
try 0 "rl set new fp16 --from conf"
try 0 "sed -i.bak 's/fp32/fp16/' conf@fp16/train.toml && rm conf@fp16/train.toml.bak"
try 1 "rl -s base,fp16 -n 3 -m 'is it the precision?' -- python train.py"
cd "$room/gaps"
say "A program that prepares for seconds: the first run leaves snapshots behind."
try 0 "rl warm -- python gaps.py"
say "Not the largest count, the widest gap: go on from just above the edit."
try 0 "sed -i.bak 's/max(gaps.values())/max(gaps)/' gaps.py && rm gaps.py.bak"
try 0 "rl warm"
try 0 "rl warm stop"
exit "$failed"
