# The Bash driver: bash reads it (BASH_ENV) before the user's code, in the same shell. It reports
# syntax errors and failing commands to the engine (PROTOCOL.md). It leaves behind an ERR trap,
# one open file and, unless the code has its own ERR trap, errtrace: no variable, no function.
#
# The channel moves from 3, which scripts often use themselves, to 250. Requests (4) do not come: only
# code with tools keeps it, as 251, for their answers, and leaves the function `tool` behind.
unset BASH_ENV
__cupel_driver()
{
    local code=$1 said first line='' tail fd=250 back=251 here=${BASH_SOURCE%/*}

    # Parse without executing: the trap turns execution off just before `.`, in a fork of this
    # shell. A second try uses extglob, for code that turns it on itself.
    if ! said=$(trap 'set -n' DEBUG; . "$code" 2>&1 >/dev/null) &&
        ! (shopt -s extglob; trap 'set -n' DEBUG; . "$code") >/dev/null 2>&1; then
        said=${said//"$code"/main.sh}
        said=${said//"${__cupel_first-}"/} # the commands that cells.sh put before the code
        said=${said:0:4000}
        [[ $said =~ line\ ([0-9]+): ]] && line=${BASH_REMATCH[1]}
        # Printable characters only: bytes that are not UTF-8 would break the frame.
        said=${said//$'\n'/$'\x01'}
        said=${said//[^[:print:]$'\x01']/?}
        said=${said//\\/\\\\}
        said=${said//\"/\\\"}
        said=${said//$'\x01'/\\n}
        first=${said%%\\n*}
        first=${first#main.sh: line "$line": }
        tail='"column":null,"snippet":null,"traceback":"'$said'","interrupted":false}'
        builtin printf '\036{"op":"error","kind":"syntax","name":"SyntaxError","message":"%s",%s\n' \
            "$first" "\"line\":${line:-null},$tail" 2>/dev/null >&3
        exit 2
    fi

    # errtrace lets the trap see into functions. It would do the same to the code's own ERR trap,
    # so code that names one goes without.
    IFS= read -rd '' said <"$code"
    [[ $said =~ (^|[[:space:]])[Ee][Rr][Rr]([[:space:];]|$) ]] || set -o errtrace

    { exec 250>&3 3>&-; } 2>/dev/null || fd=3   # a low limit of open files: keep 3
    # __cupel_given: the tools of a bash that did not wait come as a message.
    if [[ ${__cupel_tools+x} || ${__cupel_given-} ]]; then
        . "$here/tools.sh"
        [[ ${__cupel_tools+x} ]] || __cupel_receive_tools 4
        { exec 251<&4 4<&-; } 2>/dev/null || back=4
        __cupel_begin_tools - "$fd" "$back" "$__cupel_tools"
        __cupel_define_tool
        PATH=$here:$PATH # for programs that start others
        unset -f __cupel_{receive,begin,give,take,end}_tools __cupel_define_tool __cupel_set_path
        unset __cupel_tools __cupel_given
    else
        exec 4<&-
    fi

    # A seeded run (src/box/seed/seed.c): random numbers, and the start of its clock.
    if [[ -e ${BASH_SOURCE%/*}/seed ]]; then
        if ((EPOCHSECONDS < 1735689600 || EPOCHSECONDS >= 1735689600 + 30 * 86400)); then
            echo 'the clock of this box cannot be fixed: its programs do not load seed.so' >&2
            exit 125
        fi
        RANDOM=$(<"${BASH_SOURCE%/*}/seed")
        builtin printf '\001\0\0\0\0\0\0\0' 1<>/dev/shm/.cupel-clock
    fi
    # `case`, because [[ ]] would change $? before it is read. The trap is not traced (set -x),
    # its errors are hidden if the channel is gone, and bash itself keeps $? and PIPESTATUS.
    builtin printf -v said '%q) builtin printf %q "$LINENO" "$?" >&%d' \
        "$code" '\036{"op":"fail","line":%d,"code":%d}\n' "$fd"
    trap "{ case \${BASH_SOURCE-} in $said;; esac; } 2>/dev/null" ERR
}
__cupel_driver "${BASH_SOURCE%/*}/main.sh"
unset -f __cupel_driver
# $0 is set again after this file: the first command of the code finds it like `bash main.sh`.
trap 'BASH_ARGV0=main.sh; trap - DEBUG' DEBUG
