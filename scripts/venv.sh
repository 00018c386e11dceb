#!/bin/sh
# Makes the virtual environment: venv.sh FOLDER [dev]; `dev` adds the tools of a developer.
# With uv where it is, else with pip.
set -eu
venv=$1
group=${2:+--group $2}
python=${PYTHON:-python3}

# The first python that is new enough: a plain python3 may be older than we support.
for candidate in "$python" python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        found=$candidate
        break
    fi
done
if [ -z "${found:-}" ]; then
    echo "relaunch needs Python 3.11 or later; make PYTHON=/path/to/python3.11" >&2
    exit 1
fi

if command -v uv >/dev/null 2>&1; then
    [ -x "$venv/bin/python" ] || uv venv --quiet --python "$found" "$venv"
    # shellcheck disable=SC2086  # two words, or none
    uv pip install --quiet --python "$venv/bin/python" --compile-bytecode --editable . $group
else
    [ -x "$venv/bin/python" ] || "$found" -m venv "$venv"
    pip() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
    [ -z "$group" ] || pip --upgrade 'pip>=25.1' # the first that knows --group
    # shellcheck disable=SC2086
    pip --editable . $group
fi
"$venv/bin/python" -m compileall -q src
