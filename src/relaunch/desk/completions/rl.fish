# fish completion for rl. Written by scripts/completions.py; do not edit.
function __rl_before
    # The words before the cursor, without rl itself; fails after -- where they are the program's.
    set -l before (commandline -opc)[2..]
    contains -- -- $before; and return 1
    printf '%s\n' $before
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
complete -c rl -n __rl_first -a log -d 'what have I tried?'
complete -c rl -n __rl_first -a doctor -d 'what works on this machine, and what would make the rest work'
complete -c rl -n __rl_first -a completion -d 'shell completion for bash, zsh and fish'
complete -c rl -n __rl_launch -a -- -d 'then the command'
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
complete -c rl -n '__rl_in log' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in log' -s n -x -d 'how many, newest last (20)'
complete -c rl -n '__rl_in log' -l all -d 'all of them'
complete -c rl -n '__rl_in log' -l set -x -d 'only with this config set'
complete -c rl -n '__rl_in log' -l verdict -x -d 'only good, bad, unsure (as marked), passed, failed, interrupted, unstarted, killed (rl itself was) or running'
complete -c rl -n '__rl_in log' -l signature -x -d 'only failures with this in their title, or digest'
complete -c rl -n '__rl_in log' -l since -x -d 'only since 45m, 3h, 2d, 1w ago, or 2026-11-01[ 14:30]'
complete -c rl -n '__rl_in log' -l text -x -d 'only with all these words in note, mark, command, failure'
complete -c rl -n '__rl_in log' -l command -x -d 'only with all these words in the command'
complete -c rl -n '__rl_in log' -l reverse -d 'newest first'
complete -c rl -n '__rl_in log' -l json -d 'as JSON: schema relaunch/log/1'
complete -c rl -n '__rl_in log' -l color -xa 'auto always never' -d '(auto)'
complete -c rl -n '__rl_in doctor' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in doctor' -l fix -xa 'all completion emacs history inputrc nano nvim pdb vim' -d 'make this work, or `all`'
complete -c rl -n '__rl_in doctor' -l undo -d 'take the last --fix back, exactly'
complete -c rl -n '__rl_in doctor' -l force -d 'undo even what was edited since'
complete -c rl -n '__rl_in doctor' -s y -l yes -d 'do not ask before writing'
complete -c rl -n '__rl_in doctor' -l json -d 'the report as JSON'
complete -c rl -n '__rl_in completion' -s h -l help -d 'show this help message and exit'
complete -c rl -n '__rl_in completion' -a 'bash zsh fish'
