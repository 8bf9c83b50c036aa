# fish completion of cupel. Made by: cupel completion fish
function __cupel_first
    test (count (commandline -opc)) -eq 1
end
function __cupel_in
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = $argv[1]
end
complete -c cupel -f
complete -c cupel -n __cupel_first -a run -d 'run code in a box'
complete -c cupel -n __cupel_first -a languages -d 'languages, their versions and packages'
complete -c cupel -n __cupel_first -a images -d 'root file systems and their digests, computed anew'
complete -c cupel -n __cupel_first -a doctor -d 'what this host lacks, and the fix for each'
complete -c cupel -n __cupel_first -a completion -d 'what makes a shell complete cupel\'s command line'
complete -c cupel -n __cupel_first -a version -d 'the version of cupel'
complete -c cupel -n __cupel_first -a help -d 'this text, or a command\'s: cupel help run'
complete -c cupel -n '__cupel_in run' -s l -l language -x -a 'python javascript bash' -d 'python, javascript or bash'
complete -c cupel -n '__cupel_in run' -s c -l code -x -d 'run this text; operands are its arguments'
complete -c cupel -n '__cupel_in run' -s f -l file -r -F -d 'copy a file into the work directory, read-only with :ro'
complete -c cupel -n '__cupel_in run' -s o -l out -x -a '(__fish_complete_directories)' -d 'save artifacts and pictures in this folder'
complete -c cupel -n '__cupel_in run' -s t -l timeout -x -d 'wall-clock seconds'
complete -c cupel -n '__cupel_in run' -s m -l memory -x -d 'memory, for example 512M or 2G'
complete -c cupel -n '__cupel_in run' -l cpus -x -d 'processors, for example 0.5 or 2'
complete -c cupel -n '__cupel_in run' -l disk -x -d 'writable space, part of the memory'
complete -c cupel -n '__cupel_in run' -l pids -x -d 'processes and threads at one time'
complete -c cupel -n '__cupel_in run' -s e -l env -x -d 'set an environment variable'
complete -c cupel -n '__cupel_in run' -l stdin -r -F -d 'standard input of the code; - passes ours on'
complete -c cupel -n '__cupel_in run' -l profile -x -a 'baseline analysis strict' -d 'defaults: baseline, analysis or strict'
complete -c cupel -n '__cupel_in run' -l image -x -d 'root file system, see cupel images'
complete -c cupel -n '__cupel_in run' -l request -r -F -d 'a whole request as JSON; - reads ours'
complete -c cupel -n '__cupel_in run' -l json -d 'print the result as JSON and nothing else'
complete -c cupel -n '__cupel_in run' -l raw -d 'pass control characters of the code on'
complete -c cupel -n '__cupel_in run' -s v -l verbose -d 'say what the run cost and which walls stood'
complete -c cupel -n '__cupel_in run' -s q -l quiet -d 'no notes on standard error'
complete -c cupel -n '__cupel_in run' -s h -l help -d 'show this text'
complete -c cupel -n '__cupel_in run' -F
complete -c cupel -n '__cupel_in languages' -l json -d 'print JSON'
complete -c cupel -n '__cupel_in languages' -s q -l quiet -d 'no notes on standard error'
complete -c cupel -n '__cupel_in languages' -s h -l help -d 'show this text'
complete -c cupel -n '__cupel_in images' -l json -d 'print JSON'
complete -c cupel -n '__cupel_in images' -s q -l quiet -d 'no notes on standard error'
complete -c cupel -n '__cupel_in images' -s h -l help -d 'show this text'
complete -c cupel -n '__cupel_in doctor' -l json -d 'print JSON'
complete -c cupel -n '__cupel_in doctor' -s q -l quiet -d 'no notes on standard error'
complete -c cupel -n '__cupel_in doctor' -s h -l help -d 'show this text'
complete -c cupel -n '__cupel_in completion' -s h -l help -d 'show this text'
complete -c cupel -n '__cupel_in completion' -a 'bash zsh fish'
complete -c cupel -n '__cupel_in help' -a 'run languages images doctor completion version help'
