# The Bash driver: bash reads it (BASH_ENV) before the user's code, in the same shell, and it tells
# the engine about syntax errors and failing commands (PROTOCOL.md). It leaves behind an ERR trap,
# one open file and, unless the code has an ERR trap of its own, errtrace: no variable, no function.
#
# The channel moves from 3, which scripts like to use themselves, to 250. Requests (4) do not come.
unset BASH_ENV
__cupel_driver()
{
    local code=$1 said first line='' tail fd=250

    # Read without being executed: the trap turns execution off just before `.`, in a fork of this
    # shell. A second look with extglob, for code that turns it on for itself.
    if ! said=$(trap 'set -n' DEBUG; . "$code" 2>&1 >/dev/null) &&
        ! (shopt -s extglob; trap 'set -n' DEBUG; . "$code") >/dev/null 2>&1; then
        said=${said//"$code"/main.sh}
        said=${said//"${__cupel_first-}"/} # what cells.sh put before the code
        said=${said:0:4000}
        [[ $said =~ line\ ([0-9]+): ]] && line=${BASH_REMATCH[1]}
        # Only what prints, by character: bytes that are no UTF-8 would spoil the frame.
        said=${said//$'\n'/$'\x01'}
        said=${said//[^[:print:]$'\x01']/?}
        said=${said//\\/\\\\}
        said=${said//\"/\\\"}
        said=${said//$'\x01'/\\n}
        first=${said%%\\n*}
        first=${first#main.sh: line "$line": }
        tail='"column":null,"snippet":null,"traceback":"'$said'","interrupted":false}'
        builtin printf '\n{"op":"error","kind":"syntax","name":"SyntaxError","message":"%s",%s\n' \
            "$first" "\"line\":${line:-null},$tail" 2>/dev/null >&3
        exit 2
    fi

    # errtrace lets the trap see into functions. It would do the same to an ERR trap of the code's
    # own, so code that names one goes without.
    IFS= read -rd '' said <"$code"
    [[ $said =~ (^|[[:space:]])[Ee][Rr][Rr]([[:space:];]|$) ]] || set -o errtrace

    { exec 250>&3 3>&-; } 2>/dev/null || fd=3   # a low limit of open files: stay there
    exec 4<&-
    # `case`, because [[ ]] would change $? before it is told. What the trap does is not traced
    # (set -x), not heard if the channel is gone, and bash itself keeps $? and PIPESTATUS.
    builtin printf -v said '%q) builtin printf %q "$LINENO" "$?" >&%d' \
        "$code" '\n{"op":"fail","line":%d,"code":%d}\n' "$fd"
    trap "{ case \${BASH_SOURCE-} in $said;; esac; } 2>/dev/null" ERR
}
__cupel_driver "$0"
unset -f __cupel_driver
# $0 is set again after this file: the first command of the code finds it as `bash main.sh` would.
trap 'BASH_ARGV0=main.sh; trap - DEBUG' DEBUG
