# fish completion for rl. Written by scripts/completions.py; do not edit.
# The words before the cursor, without rl itself; fails after -- where they are the program's.
function __rl_before
    set -l before (commandline -opc)[2..]
    contains -- -- $before; and return 1
    for word in $before
        echo -- $word
    end
    return 0
end

function __rl_first
    set -l before (__rl_before); or return 1
    test (count $before) -eq 0
end

function __rl_launch
    set -l before (__rl_before); or return 1
    test (count $before) -eq 0; or string match -q -- '-*' $before[1]; or test $before[1] = run
end

function __rl_in
    set -l before (__rl_before); or return 1
    test "$before[1..$(count $argv)]" = "$argv"
end

function __rl_at
    set -l before (__rl_before); or return 1
    test "$before" = "$argv"
end

function __rl_program
    contains -- -- (commandline -opc)
end

# After -- the words belong to the program: complete them as without rl.
function __rl_rest
    set -l words (commandline -opc)
    set -l dashes (contains -i -- -- $words)
    set -l rest (string escape -- $words[(math $dashes + 1)..]) (commandline -ct)
    complete -C "$rest"
end

# The sets that lie here, as conf@NAME; several are joined by commas.
function __rl_sets
    set -l before (string replace -rf '[^,]*$' '' -- (commandline -ct))
    for path in *@*
        printf '%s%s\n' "$before" (string replace -r '^[^@]*@' '' -- $path)
    end
end

complete -c rl -f
complete -c rl -n __rl_program -a '(__rl_rest)'
complete -c rl -n __rl_first -a run -d 'run it once, cleanly, and remember what was tested'
complete -c rl -n __rl_first -a warm -d 'after an edit, go on from the last place that the edit leaves as it was'
complete -c rl -n __rl_first -a replay -d 'only the call that failed, alone, with the code as it is now'
complete -c rl -n __rl_first -a log -d 'what have I tried?'
complete -c rl -n __rl_first -a show -d 'one trial: code, command, environment, outcome, output'
complete -c rl -n __rl_first -a diff -d 'what differs between two trials?'
complete -c rl -n __rl_first -a again -d 'the exact code and command of a trial, once more'
complete -c rl -n __rl_first -a back -d 'the code of a trial, beside your tree'
complete -c rl -n __rl_first -a mark -d 'your verdict on a trial: good, bad, unsure'
complete -c rl -n __rl_first -a gc -d 'forget old trials, never a marked one'
complete -c rl -n __rl_first -a set -d 'config sets: new, ls, use, diff'
complete -c rl -n __rl_first -a doctor -d 'what works on this machine, and what would make the rest work'
complete -c rl -n __rl_first -a completion -d 'shell completion for bash, zsh and fish'
complete -c rl -n __rl_launch -a -- -d 'then the command'
complete -c rl -n '__rl_in warm' -a -- -d 'then the command'
complete -c rl -n __rl_launch -s h -l help -d 'show this help message and exit'
complete -c rl -n __rl_launch -s m -l note -x -d 'what this attempt tests'
complete -c rl -n __rl_launch -l reset -xa '(__fish_complete_command)' -d 'run before the launch, as one step with it'
complete -c rl -n __rl_launch -l no-reset -d 'launch without any reset'
complete -c rl -n __rl_launch -l reset-continue -d 'launch even if a reset fails'
complete -c rl -n __rl_launch -s s -l set -xa '(__rl_sets)' -d 'config sets to run with'
complete -c rl -n __rl_launch -s n -l times -x -d 'run it N times (each set)'
complete -c rl -n __rl_launch -l timeout -x -d 'end it after 30, 5m or 2h'
complete -c rl -n __rl_launch -l until -x -d 'output that is the critical point'
complete -c rl -n __rl_launch -l match -x -d 'output that is the failure hunted'
complete -c rl -n __rl_launch -l exit-code -x -d 'exit code that is the failure'
complete -c rl -n __rl_launch -l src -xa '(__fish_complete_directories)' -d 'run against this clone\'s package, and prove it'
complete -c rl -n __rl_launch -l frozen -d 'run from a copy that edits cannot reach'
complete -c rl -n __rl_launch -l let-live -d 'let background processes outlive it'
complete -c rl -n __rl_launch -l env -x -d 'set it for this trial'
complete -c rl -n __rl_launch -l name -x -d 'name the trial, for rl show NAME'
complete -c rl -n __rl_launch -l unsaved -xa 'ask warn refuse off' -d 'what to do about unsaved editor buffers'
complete -c rl -n __rl_launch -l no-input -d 'never ask'
complete -c rl -n __rl_launch -s y -l yes -d 'run anyway, without asking'
complete -c rl -n __rl_launch -s q -l quiet -d 'no lines of rl\'s own unless something is off'
complete -c rl -n __rl_launch -l json -d 'rl\'s own lines as JSON, on standard error'
complete -c rl -n __rl_launch -l color -xa 'auto always never' -d 'colour rl\'s own lines'
complete -c rl -n '__rl_in warm' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in warm' -l all -d 'status or stop: of all projects'
complete -c rl -n '__rl_in warm' -l at -rF -d 'leave a snapshot before this line'
complete -c rl -n '__rl_in warm' -l memory -x -d 'let its snapshots take so much: 4G, or a share in percent'
complete -c rl -n '__rl_in warm' -l idle -x -d 'end its snapshots after 30m or 2h without use'
complete -c rl -n '__rl_in warm' -l verify -d 'run it cold too, and compare'
complete -c rl -n '__rl_in warm' -l watch -d 'relaunch on every save'
complete -c rl -n '__rl_in warm' -s m -l note -x -d 'what this attempt tests'
complete -c rl -n '__rl_in warm' -l reset -xa '(__fish_complete_command)' -d 'run before the launch, as one step with it'
complete -c rl -n '__rl_in warm' -l no-reset -d 'launch without any reset'
complete -c rl -n '__rl_in warm' -l reset-continue -d 'launch even if a reset fails'
complete -c rl -n '__rl_in warm' -l timeout -x -d 'end it after 30, 5m or 2h'
complete -c rl -n '__rl_in warm' -l until -x -d 'output that is the critical point'
complete -c rl -n '__rl_in warm' -l match -x -d 'output that is the failure hunted'
complete -c rl -n '__rl_in warm' -l exit-code -x -d 'exit code that is the failure'
complete -c rl -n '__rl_in warm' -l src -xa '(__fish_complete_directories)' -d 'run against this clone\'s package, and prove it'
complete -c rl -n '__rl_in warm' -l let-live -d 'let background processes outlive it'
complete -c rl -n '__rl_in warm' -l env -x -d 'set it for this trial'
complete -c rl -n '__rl_in warm' -l name -x -d 'name the trial, for rl show NAME'
complete -c rl -n '__rl_in warm' -l unsaved -xa 'ask warn refuse off' -d 'what to do about unsaved editor buffers'
complete -c rl -n '__rl_in warm' -l no-input -d 'never ask'
complete -c rl -n '__rl_in warm' -s y -l yes -d 'run anyway, without asking'
complete -c rl -n '__rl_in warm' -s q -l quiet -d 'no lines of rl\'s own unless something is off'
complete -c rl -n '__rl_in warm' -l json -d 'rl\'s own lines as JSON, on standard error'
complete -c rl -n '__rl_in warm' -l color -xa 'auto always never' -d 'colour rl\'s own lines'
complete -c rl -n '__rl_in warm' -a 'status stop'
complete -c rl -n '__rl_in replay' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in replay' -l frame -x -d 'this call: its name, or number in --list'
complete -c rl -n '__rl_in replay' -l limit -x -d 'per call tried: 2s, 1m (a tenth of the program\'s time)'
complete -c rl -n '__rl_in replay' -l pdb -d 'stop in the debugger where it fails'
complete -c rl -n '__rl_in replay' -l one-liner -d 'print a `python -c` line that fails the same'
complete -c rl -n '__rl_in replay' -l list -d 'the calls that were kept, and what is missing'
complete -c rl -n '__rl_in replay' -l fresh -d 'in a new process that imports everything itself'
complete -c rl -n '__rl_in replay' -l json -d 'as JSON: schema relaunch/replay/1'
complete -c rl -n '__rl_in replay' -l color -xa 'auto always never' -d '(auto)'
complete -c rl -n '__rl_in replay' -a '@good @bad'
complete -c rl -n '__rl_in log' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in log' -s n -x -d 'how many, newest last (20)'
complete -c rl -n '__rl_in log' -l all -d 'all of them'
complete -c rl -n '__rl_in log' -l set -xa '(__rl_sets)' -d 'only with this config set'
complete -c rl -n '__rl_in log' -l verdict -x -d 'only good, bad, unsure (as marked), passed, failed, interrupted, unstarted, killed (rl itself was) or running'
complete -c rl -n '__rl_in log' -l signature -x -d 'only failures with this in their title, or digest'
complete -c rl -n '__rl_in log' -l since -x -d 'only since 45m, 3h, 2d, 1w ago, or 2026-11-01[ 14:30]'
complete -c rl -n '__rl_in log' -l text -x -d 'only with all these words in note, mark, command, failure'
complete -c rl -n '__rl_in log' -l command -x -d 'only with all these words in the command'
complete -c rl -n '__rl_in log' -l reverse -d 'newest first'
complete -c rl -n '__rl_in log' -l json -d 'as JSON: schema relaunch/log/1'
complete -c rl -n '__rl_in log' -l color -xa 'auto always never' -d '(auto)'
complete -c rl -n '__rl_in show' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in show' -l output -d 'write what it printed, byte for byte'
complete -c rl -n '__rl_in show' -l follow -d 'with --output: go on until it ends'
complete -c rl -n '__rl_in show' -l stream -xa 'out err reset both' -d 'with --output: which (both)'
complete -c rl -n '__rl_in show' -l times -d 'with --output: when each line came'
complete -c rl -n '__rl_in show' -l code -d 'all files that differ from the commit'
complete -c rl -n '__rl_in show' -l env -d 'the environment, name by name'
complete -c rl -n '__rl_in show' -l json -d 'as JSON: schema relaunch/show/1'
complete -c rl -n '__rl_in show' -l color -xa 'auto always never' -d '(auto)'
complete -c rl -n '__rl_in show' -a '@good @bad'
complete -c rl -n '__rl_in diff' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in diff' -l stat -d 'of the code only the files and how many lines'
complete -c rl -n '__rl_in diff' -l patch -d 'the code as a patch that git apply takes'
complete -c rl -n '__rl_in diff' -l json -d 'as JSON: schema relaunch/diff/1'
complete -c rl -n '__rl_in diff' -l color -xa 'auto always never' -d '(auto)'
complete -c rl -n '__rl_in diff' -a '@good @bad'
complete -c rl -n '__rl_in again' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in again' -l json -d 'rl\'s own lines as JSON, on stderr'
complete -c rl -n '__rl_in again' -l color -xa 'auto always never' -d ''
complete -c rl -n '__rl_in again' -a '@good @bad'
complete -c rl -n '__rl_in back' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in back' -l to -xa '(__fish_complete_directories)' -d 'a new directory (../PROJECT@N)'
complete -c rl -n '__rl_in back' -l json -d 'as JSON: schema relaunch/back/1'
complete -c rl -n '__rl_in back' -a '@good @bad'
complete -c rl -n '__rl_in mark' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in mark' -l name -x -d 'call it by this name from now on'
complete -c rl -n '__rl_in mark' -l clear -d 'take verdict, text and name away'
complete -c rl -n '__rl_in mark' -l json -d 'as JSON: schema relaunch/mark/1'
complete -c rl -n '__rl_in gc' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in gc' -l older -x -d 'forget trials older than 12h, 30d, 8w'
complete -c rl -n '__rl_in gc' -l larger -x -d 'forget trials that take more than 500M, 1G each'
complete -c rl -n '__rl_in gc' -l keep-size -x -d 'forget the oldest until all trials take no more'
complete -c rl -n '__rl_in gc' -l dry-run -d 'only say what would go'
complete -c rl -n '__rl_in gc' -l json -d 'as JSON: schema relaunch/gc/1'
complete -c rl -n '__rl_in set' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_at set' -a new -d 'copy the set in place under a new name'
complete -c rl -n '__rl_in set new' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in set new' -l from -rF -d 'the file or folder that differs from set to set (repeatable'
complete -c rl -n '__rl_at set' -a ls -d 'the sets, the one in place marked'
complete -c rl -n '__rl_in set ls' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in set ls' -l json -d 'as JSON: schema relaunch/set-ls/1'
complete -c rl -n '__rl_at set' -a use -d 'put a set in place, for good'
complete -c rl -n '__rl_in set use' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in set use' -a '(__rl_sets)'
complete -c rl -n '__rl_at set' -a diff -d 'in which files and lines two sets differ'
complete -c rl -n '__rl_in set diff' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in set diff' -l json -d 'as JSON: schema relaunch/set-diff/1'
complete -c rl -n '__rl_in set diff' -a '(__rl_sets)'
complete -c rl -n '__rl_in doctor' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in doctor' -l fix -xa 'all completion emacs history inputrc nano nvim pdb vim' -d 'make this work, or `all`'
complete -c rl -n '__rl_in doctor' -l undo -d 'take the last --fix back, exactly'
complete -c rl -n '__rl_in doctor' -l force -d 'undo even what was edited since'
complete -c rl -n '__rl_in doctor' -s y -l yes -d 'do not ask before writing'
complete -c rl -n '__rl_in doctor' -l json -d 'the report as JSON'
complete -c rl -n '__rl_in completion' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in completion' -a 'bash zsh fish'
