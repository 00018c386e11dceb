# bash completion for rl. Written by scripts/completions.py; do not edit.
_rl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb= i
    local options= words= values=
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] && { _rl_program $((i + 1)); return; }
    done
    if [[ $cur == = ]]; then cur=; prev=${COMP_WORDS[COMP_CWORD-1]}; fi
    if [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
    if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then verb=${COMP_WORDS[1]}; fi
    if ((COMP_CWORD == 1)); then words='run warm probe shapes blame stacks where py replay bisect sweep grow shrink repeat race tiny watch squeeze alloc log show diff again back mark gc trust set doctor completion'; fi
    case $verb in tiny|set)
        if ((COMP_CWORD > 2)); then verb="$verb ${COMP_WORDS[2]}"; fi ;;
    esac
    case $verb in
    ''|run)
        options='-h --help -m --note --reset --no-reset --reset-continue -s --set -n --times --timeout --hang --on-hang --until --match --exit-code --src --sections --log-level --ranked --disk --keep --memory --at-limit --memory-by --track-memory --pause-at-peak --gpu-free --gpu-by --ranks --threads --watch --slow-motion --blame --sync --sync=compare --sync=off --single --single=off --frozen --let-live --pdb --nan --who-calls --slurm --srun --env --name --unsaved --no-input -y --yes -q --quiet --json --color --'
        case $prev in
        -m|--note) values='text' ;;
        --reset) values='command' ;;
        -s|--set) values='sets' ;;
        -n|--times) values='text' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --on-hang) values='kill keep pdb' ;;
        --until) values='text' ;;
        --match) values='text' ;;
        --exit-code) values='text' ;;
        --src) values='dir' ;;
        --sections) values='text' ;;
        --log-level) values='text' ;;
        --disk) values='text' ;;
        --memory) values='text' ;;
        --at-limit) values='kill pause lift interrupt' ;;
        --memory-by) values='cgroup watch data' ;;
        --gpu-free) values='text' ;;
        --gpu-by) values='hold share' ;;
        --ranks) values='text' ;;
        --slow-motion) values='text' ;;
        --who-calls) values='text' ;;
        --srun) values='text' ;;
        --env) values='text' ;;
        --name) values='text' ;;
        --unsaved) values='ask warn refuse off' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    warm)
        options='-h --help --all --at --memory --idle --verify --watch -m --note --reset --no-reset --reset-continue --timeout --until --match --exit-code --src --pause-at-peak --let-live --pdb --nan --who-calls --slurm --srun --env --name --unsaved --no-input -y --yes -q --quiet --json --color --'
        words='status stop'
        case $prev in
        --at) values='file' ;;
        --memory) values='text' ;;
        --idle) values='text' ;;
        -m|--note) values='text' ;;
        --reset) values='command' ;;
        --timeout) values='text' ;;
        --until) values='text' ;;
        --match) values='text' ;;
        --exit-code) values='text' ;;
        --src) values='dir' ;;
        --who-calls) values='text' ;;
        --srun) values='text' ;;
        --env) values='text' ;;
        --name) values='text' ;;
        --unsaved) values='ask warn refuse off' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    probe)
        options='-h --help --if --every --first --last --before --after --break --sleep --die --log --count --who -m --note --reset --no-reset --reset-continue --timeout --hang --on-hang --until --match --exit-code --src --sections --log-level --ranked --disk --keep --memory --at-limit --memory-by --track-memory --pause-at-peak --gpu-free --gpu-by --ranks --threads --watch --slow-motion --blame --sync --sync=compare --sync=off --single --single=off --frozen --let-live --pdb --nan --who-calls --slurm --srun --env --name --unsaved --no-input -y --yes -q --quiet --json --color'
        case $prev in
        --if) values='text' ;;
        --every) values='text' ;;
        --first) values='text' ;;
        --last) values='text' ;;
        --sleep) values='text' ;;
        --log) values='text' ;;
        -m|--note) values='text' ;;
        --reset) values='command' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --on-hang) values='kill keep pdb' ;;
        --until) values='text' ;;
        --match) values='text' ;;
        --exit-code) values='text' ;;
        --src) values='dir' ;;
        --sections) values='text' ;;
        --log-level) values='text' ;;
        --disk) values='text' ;;
        --memory) values='text' ;;
        --at-limit) values='kill pause lift interrupt' ;;
        --memory-by) values='cgroup watch data' ;;
        --gpu-free) values='text' ;;
        --gpu-by) values='hold share' ;;
        --ranks) values='text' ;;
        --slow-motion) values='text' ;;
        --who-calls) values='text' ;;
        --srun) values='text' ;;
        --env) values='text' ;;
        --name) values='text' ;;
        --unsaved) values='ask warn refuse off' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    shapes)
        options='-h --help --check --dry-run --undo --also --args --line-length -m --note --reset --no-reset --reset-continue --timeout --hang --on-hang --until --match --exit-code --src --sections --log-level --ranked --disk --keep --memory --at-limit --memory-by --track-memory --pause-at-peak --gpu-free --gpu-by --ranks --threads --watch --slow-motion --blame --sync --sync=compare --sync=off --single --single=off --frozen --let-live --pdb --nan --who-calls --slurm --srun --env --name --unsaved --no-input -y --yes -q --quiet --json --color'
        case $prev in
        --also) values='command' ;;
        --line-length) values='text' ;;
        -m|--note) values='text' ;;
        --reset) values='command' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --on-hang) values='kill keep pdb' ;;
        --until) values='text' ;;
        --match) values='text' ;;
        --exit-code) values='text' ;;
        --src) values='dir' ;;
        --sections) values='text' ;;
        --log-level) values='text' ;;
        --disk) values='text' ;;
        --memory) values='text' ;;
        --at-limit) values='kill pause lift interrupt' ;;
        --memory-by) values='cgroup watch data' ;;
        --gpu-free) values='text' ;;
        --gpu-by) values='hold share' ;;
        --ranks) values='text' ;;
        --slow-motion) values='text' ;;
        --who-calls) values='text' ;;
        --srun) values='text' ;;
        --env) values='text' ;;
        --name) values='text' ;;
        --unsaved) values='ask warn refuse off' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    blame)
        options='-h --help --attach --calls --slow --by --all -m --note --reset --no-reset --reset-continue --timeout --hang --on-hang --until --match --exit-code --src --sections --log-level --ranked --disk --keep --memory --at-limit --memory-by --track-memory --pause-at-peak --gpu-free --gpu-by --ranks --threads --watch --slow-motion --sync --sync=compare --sync=off --single --single=off --frozen --let-live --pdb --nan --who-calls --slurm --srun --env --name --unsaved --no-input -y --yes -q --quiet --json --color'
        case $prev in
        --attach) values='text' ;;
        --calls) values='text' ;;
        --slow) values='text' ;;
        --by) values='shim tracer strace process' ;;
        -m|--note) values='text' ;;
        --reset) values='command' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --on-hang) values='kill keep pdb' ;;
        --until) values='text' ;;
        --match) values='text' ;;
        --exit-code) values='text' ;;
        --src) values='dir' ;;
        --sections) values='text' ;;
        --log-level) values='text' ;;
        --disk) values='text' ;;
        --memory) values='text' ;;
        --at-limit) values='kill pause lift interrupt' ;;
        --memory-by) values='cgroup watch data' ;;
        --gpu-free) values='text' ;;
        --gpu-by) values='hold share' ;;
        --ranks) values='text' ;;
        --slow-motion) values='text' ;;
        --who-calls) values='text' ;;
        --srun) values='text' ;;
        --env) values='text' ;;
        --name) values='text' ;;
        --unsaved) values='ask warn refuse off' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    stacks)
        options='-h --help --trial --job --here --slurm --all --from -l --locals --native --full --no-pause --signal --timeout --json --color'
        case $prev in
        --trial) values='text' ;;
        --job) values='text' ;;
        --from) values='file' ;;
        --signal) values='text' ;;
        --timeout) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    where)
        options='-h --help -m --note --reset --no-reset --reset-continue --timeout --hang --on-hang --until --match --exit-code --src --sections --log-level --ranked --disk --keep --memory --at-limit --memory-by --track-memory --pause-at-peak --gpu-free --gpu-by --ranks --threads --watch --slow-motion --blame --sync --sync=compare --sync=off --single --single=off --frozen --let-live --pdb --nan --who-calls --slurm --srun --env --name --unsaved --no-input -y --yes -q --quiet --json --color'
        case $prev in
        -m|--note) values='text' ;;
        --reset) values='command' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --on-hang) values='kill keep pdb' ;;
        --until) values='text' ;;
        --match) values='text' ;;
        --exit-code) values='text' ;;
        --src) values='dir' ;;
        --sections) values='text' ;;
        --log-level) values='text' ;;
        --disk) values='text' ;;
        --memory) values='text' ;;
        --at-limit) values='kill pause lift interrupt' ;;
        --memory-by) values='cgroup watch data' ;;
        --gpu-free) values='text' ;;
        --gpu-by) values='hold share' ;;
        --ranks) values='text' ;;
        --slow-motion) values='text' ;;
        --who-calls) values='text' ;;
        --srun) values='text' ;;
        --env) values='text' ;;
        --name) values='text' ;;
        --unsaved) values='ask warn refuse off' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    py)
        options='-h --help --show -m --note --reset --no-reset --reset-continue -s --set -n --times --timeout --hang --on-hang --until --match --exit-code --src --sections --log-level --ranked --disk --keep --memory --at-limit --memory-by --track-memory --pause-at-peak --gpu-free --gpu-by --ranks --threads --watch --slow-motion --blame --sync --sync=compare --sync=off --single --single=off --frozen --let-live --pdb --nan --who-calls --slurm --srun --env --name --unsaved --no-input -y --yes -q --quiet --json --color'
        case $prev in
        -m|--note) values='text' ;;
        --reset) values='command' ;;
        -s|--set) values='sets' ;;
        -n|--times) values='text' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --on-hang) values='kill keep pdb' ;;
        --until) values='text' ;;
        --match) values='text' ;;
        --exit-code) values='text' ;;
        --src) values='dir' ;;
        --sections) values='text' ;;
        --log-level) values='text' ;;
        --disk) values='text' ;;
        --memory) values='text' ;;
        --at-limit) values='kill pause lift interrupt' ;;
        --memory-by) values='cgroup watch data' ;;
        --gpu-free) values='text' ;;
        --gpu-by) values='hold share' ;;
        --ranks) values='text' ;;
        --slow-motion) values='text' ;;
        --who-calls) values='text' ;;
        --srun) values='text' ;;
        --env) values='text' ;;
        --name) values='text' ;;
        --unsaved) values='ask warn refuse off' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    replay)
        options='-h --help --frame --limit --pdb --one-liner --small --list --fresh --trust --json --color'
        words='@good @bad'
        case $prev in
        --frame) values='text' ;;
        --limit) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    bisect)
        options='-h --help --good --bad --release --deps --set --here --keep -j --jobs --slurm --srun --timeout --hang --match --env --build --build-timeout --rebuild --with --never-fails-before --always-fails-after --always-fails-before --never-fails-after --ends --confirm --confidence --budget --no-prior --no-repair --no-fork --resume --undo --log --json --color --'
        if [[ $cur != -* && ${COMP_WORDS[COMP_CWORD-2]} == --set ]]; then values=sets; fi
        case $prev in
        --good) values='text' ;;
        --bad) values='text' ;;
        --release) values='text' ;;
        --deps) values='text' ;;
        --set) values='sets' ;;
        --keep) values='text' ;;
        -j|--jobs) values='text' ;;
        --srun) values='text' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --match) values='text' ;;
        --env) values='text' ;;
        --build) values='command' ;;
        --build-timeout) values='text' ;;
        --with) values='file' ;;
        --ends) values='text' ;;
        --confirm) values='text' ;;
        --confidence) values='text' ;;
        --budget) values='text' ;;
        --undo) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    sweep)
        options='-h --help -s --set --seed --env --arg --pair --pairwise --limit -n --times -j --jobs --slurm --srun --timeout --hang --match --budget --resume --undo --log --tell-apart --json --color --'
        case $prev in
        -s|--set) values='sets' ;;
        --seed) values='text' ;;
        --env) values='text' ;;
        --arg) values='text' ;;
        --pair) values='text' ;;
        --limit) values='text' ;;
        -n|--times) values='text' ;;
        -j|--jobs) values='text' ;;
        --srun) values='text' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --match) values='text' ;;
        --budget) values='text' ;;
        --undo) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    grow)
        options='-h --help -j --jobs --slurm --srun --at --memory --disk --time --step --linear --doubling --timeout --hang --match --env --budget --resume --undo --log --json --color --'
        case $prev in
        -j|--jobs) values='text' ;;
        --srun) values='text' ;;
        --at) values='text' ;;
        --memory) values='text' ;;
        --disk) values='text' ;;
        --time) values='text' ;;
        --step) values='text' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --match) values='text' ;;
        --env) values='text' ;;
        --budget) values='text' ;;
        --undo) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    shrink)
        options='-h --help --args --env --steps --set --trial --stdin --keep -o --output --bundle --match --exit-code --also -j --jobs --slurm --srun --timeout --hang --memory --fresh --budget --resume --log --json --color'
        case $prev in
        --set) values='sets' ;;
        --trial) values='text' ;;
        --keep) values='text' ;;
        -o|--output) values='file' ;;
        --bundle) values='dir' ;;
        --match) values='text' ;;
        --exit-code) values='text' ;;
        --also) values='command' ;;
        -j|--jobs) values='text' ;;
        --srun) values='text' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --memory) values='text' ;;
        --budget) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    repeat)
        options='-h --help -j --jobs --slurm --srun --until-fail --perturb --no-forks --timeout --hang --match --env --budget --resume --undo --log --json --color'
        words='@good @bad'
        case $prev in
        -j|--jobs) values='text' ;;
        --srun) values='text' ;;
        --perturb) values='text' ;;
        --timeout) values='text' ;;
        --hang) values='text' ;;
        --match) values='text' ;;
        --env) values='text' ;;
        --budget) values='text' ;;
        --undo) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    race)
        options='-h --help --seed -n --times --from --at --in --all -j --jobs --slurm --srun --timeout --match --env --budget --resume --log --json --color'
        case $prev in
        --seed) values='text' ;;
        -n|--times) values='text' ;;
        --from) values='text' ;;
        --at) values='here any both' ;;
        --in) values='file' ;;
        -j|--jobs) values='text' ;;
        --srun) values='text' ;;
        --timeout) values='text' ;;
        --match) values='text' ;;
        --env) values='text' ;;
        --budget) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    tiny)
        options='-h --help'
        words='data payload find model tokenizer'
        ;;
    'tiny data')
        options='-h --help -n --rows -o --output --random --first --stratify --longest --shortest --per-schema --around --seed --plain --failing-when --keep-failing --images --arrays --table --format --no-header -f --force --json'
        case $prev in
        -n|--rows) values='text' ;;
        -o|--output) values='file' ;;
        --stratify) values='text' ;;
        --longest) values='text' ;;
        --shortest) values='text' ;;
        --around) values='text' ;;
        --seed) values='text' ;;
        --failing-when) values='text' ;;
        --images) values='text' ;;
        --arrays) values='text' ;;
        --table) values='text' ;;
        --format) values='jsonl json csv tsv text parquet arrow tar sqlite folder' ;;
        esac
        ;;
    'tiny payload')
        options='-h --help --like --coded --random --adversarial --sentinel --seed -o --output -f --force --json'
        case $prev in
        --like) values='file' ;;
        --sentinel) values='text' ;;
        --seed) values='text' ;;
        -o|--output) values='file' ;;
        esac
        ;;
    'tiny find')
        options='-h --help --pid --dtype -C --context --most --json'
        case $prev in
        --pid) values='text' ;;
        --dtype) values='text' ;;
        -C|--context) values='text' ;;
        --most) values='text' ;;
        esac
        ;;
    'tiny model')
        options='-h --help -o --out --layers --vocab --seed --class --python --json'
        case $prev in
        -o|--out) values='dir' ;;
        --layers) values='text' ;;
        --vocab) values='text' ;;
        --seed) values='text' ;;
        --class) values='text' ;;
        --python) values='file' ;;
        esac
        ;;
    'tiny tokenizer')
        options='-h --help -o --out --vocab --text --python --json'
        case $prev in
        -o|--out) values='dir' ;;
        --vocab) values='text' ;;
        --text) values='file' ;;
        --python) values='file' ;;
        esac
        ;;
    watch)
        options='-h --help --match --user --trial --cmd --every --times --until-end --each --sort --gpu --disk --tmux --json --color'
        case $prev in
        --match) values='text' ;;
        --user) values='text' ;;
        --trial) values='text' ;;
        --cmd) values='text' ;;
        --every) values='text' ;;
        --times) values='text' ;;
        --sort) values='text' ;;
        --disk) values='file' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    squeeze)
        options='-h --help --disk --keep --memory --at-limit --memory-by --track-memory --gpu-free --gpu-by --env -q --quiet --json --color --leave --gpu --gpu-leave --for --force'
        words='hold'
        case $prev in
        --disk) values='text' ;;
        --memory) values='text' ;;
        --at-limit) values='kill pause lift interrupt' ;;
        --memory-by) values='cgroup watch data' ;;
        --gpu-free) values='text' ;;
        --gpu-by) values='hold share' ;;
        --env) values='text' ;;
        --color) values='auto always never' ;;
        --leave) values='text' ;;
        --gpu) values='text' ;;
        --gpu-leave) values='text' ;;
        --for) values='text' ;;
        esac
        ;;
    alloc)
        options='-h --help --release --while-here --dry-run -q --quiet --json --color'
        case $prev in
        --color) values='auto always never' ;;
        esac
        ;;
    log)
        options='-h --help -n --all --set --verdict --signature --since --text --command --searches --reverse --json --color'
        case $prev in
        -n) values='text' ;;
        --set) values='sets' ;;
        --verdict) values='text' ;;
        --signature) values='text' ;;
        --since) values='text' ;;
        --text) values='text' ;;
        --command) values='text' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    show)
        options='-h --help --output --follow --stream --sections --blame --log --times --code --env --json --color'
        words='@good @bad'
        _rl_searches
        case $prev in
        --stream) values='out err reset both' ;;
        --color) values='auto always never' ;;
        esac
        ;;
    diff)
        options='-h --help --stat --patch --json --color'
        words='@good @bad'
        case $prev in
        --color) values='auto always never' ;;
        esac
        ;;
    again)
        options='-h --help --json --color'
        words='@good @bad'
        case $prev in
        --color) values='auto always never' ;;
        esac
        ;;
    back)
        options='-h --help --to --json'
        words='@good @bad'
        case $prev in
        --to) values='dir' ;;
        esac
        ;;
    mark)
        options='-h --help --name --clear --json'
        case $prev in
        --name) values='text' ;;
        esac
        ;;
    gc)
        options='-h --help --older --larger --keep-size --secrets --dry-run --json'
        case $prev in
        --older) values='text' ;;
        --larger) values='text' ;;
        --keep-size) values='text' ;;
        esac
        ;;
    trust)
        options='-h --help --show --list --remove --json'
        ;;
    set)
        options='-h --help'
        words='new ls use diff'
        ;;
    'set new')
        options='-h --help --from'
        case $prev in
        --from) values='file' ;;
        esac
        ;;
    'set ls')
        options='-h --help --json'
        ;;
    'set use')
        options='-h --help'
        if [[ $cur != -* ]]; then values=sets; fi
        ;;
    'set diff')
        options='-h --help --json'
        if [[ $cur != -* ]]; then values=sets; fi
        ;;
    doctor)
        options='-h --help --fix --undo --force -y --yes --json'
        case $prev in
        --fix) values='all completion emacs history inputrc nano nvim pdb vim' ;;
        esac
        ;;
    completion)
        options='-h --help'
        words='bash zsh fish'
        ;;
    esac
    case $values in
    '') ;;
    text) return ;;
    file|command) _rl_files; return ;;
    dir) compopt -o filenames 2>/dev/null
        while IFS= read -r i; do COMPREPLY+=("$i"); done < <(compgen -d -- "$cur"); return ;;
    sets) _rl_sets; return ;;
    *) COMPREPLY=($(compgen -W "$values" -- "$cur")); return ;;
    esac
    if [[ $cur == -* ]]; then words=$options; fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}

_rl_files() {
    local name
    compopt -o filenames 2>/dev/null
    while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$cur")
}

# The sets that lie here, as conf@NAME; several are joined by commas.
_rl_sets() {
    local before= last=$cur path name
    case $cur in *,*) before=${cur%,*}, last=${cur##*,} ;; esac
    for path in *@*; do
        name=${path#*@}
        if [[ -e $path && $name == "$last"* ]]; then
            printf -v name %q "$name"  # it is typed into the line
            COMPREPLY+=("$before$name")
        fi
    done
}

# What the journal has here, as search/N: numbers alone, for bash expands these words.
_rl_searches() {
    local path number folder=$(git rev-parse --git-common-dir 2>/dev/null)/relaunch
    if [[ ! -d $folder ]]; then folder=.relaunch; fi
    for path in "$folder"/searches/[0-9]*; do
        number=${path##*/}
        if [[ -d $path && $number != *[!0-9]* ]]; then words+=" search/$number"; fi
    done
}

# After -- the words belong to the program: complete them as without rl.
_rl_program() {
    local cur=${COMP_WORDS[COMP_CWORD]} name
    if declare -F _comp_command_offset >/dev/null; then _comp_command_offset "$1"; return; fi
    if declare -F _command_offset >/dev/null; then _command_offset "$1"; return; fi
    if ((COMP_CWORD == $1)) && [[ $cur != */* ]]; then
        while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -c -- "$cur")
    fi
    _rl_files
}

complete -F _rl rl relaunch
