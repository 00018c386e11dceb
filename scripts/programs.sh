#!/bin/sh
# Installs the programs that tests drive, where it may; says which are missing where it may not.
# Given words, those: `programs.sh COMMAND:PACKAGE ...`.
set -eu
missing=
[ $# -gt 0 ] || set -- git:git tmux:tmux strace:strace vim:vim nvim:neovim nano:nano emacs:emacs-nox \
    zsh:zsh fish:fish cc:build-essential \
    munged:munge slurmctld:slurmctld slurmd:slurmd srun:slurm-client
for pair; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # a list of words on purpose
    if (apt-get -qq update && apt-get -qq install -y --no-install-recommends $missing) >/dev/null 2>&1
    then exit 0; fi
fi
echo "not installed:$missing; what drives them will say so" >&2
