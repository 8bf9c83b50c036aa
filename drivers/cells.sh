# The Bash driver that waits: bash reads it as BASH_ENV, before the code is known, and it waits
# for a message on the channel (PROTOCOL.md). A `run` continues like `bash main.sh args`; cells
# run here, one after the other, at the top level of this shell. The script that bash was started
# with ($0) must lead to /dev/fd/252, where the code is placed when it arrives: an unnamed file.
#
# 1. Everything is a builtin: a cell forks and executes nothing, except for the check of its
#    syntax, and for the end of a cell with tools.
# 2. The driver's own commands begin the code's first line; they set what only the code's own
#    level can set.
# 3. To leave a cell from any depth (exit, set -e, SIGINT), the DEBUG trap turns each next command
#    into a `return`. Where bash itself exits (set -u, ${x:?}, builtin exit), the EXIT trap
#    continues in a fork of this shell, which has everything but the jobs.
unset BASH_ENV
__cupel_first='builtin eval "$__cupel_start"; '
# Then $? is the last cell's; `&&`, so that it is no failure of this one.
__cupel_cell_first=$__cupel_first'{ __cupel_give "$__cupel_status"; } 2>/dev/null && { :; } 2>/dev/null; '

# Read the next message into __cupel_words (its first line) and __cupel_fields; false at the end.
__cupel_receive()
{
    local LC_ALL=C IFS=$' \t\n' size line at=0
    __cupel_words=() __cupel_fields=()
    builtin read -rN 16 -u "$__cupel_in" size || return 1
    builtin read -rN "$((10#${size%?}))" -u "$__cupel_in" line || return 1
    builtin read -ra __cupel_words <<<"${line%%$'\n'*}"
    line=${line#*$'\n'}
    for size in "${__cupel_words[@]:5}"; do
        __cupel_fields+=("${line:at:size}")
        ((at += size, 1))
    done
}

# Put the code where bash will read it; $1 runs before it on its first line.
__cupel_place()
{
    local BASH_COMPAT=50 # or a short one would come through a pipe, which bash reads byte by byte
    __cupel_start=$1
    exec 252<<<"$__cupel_first${__cupel_fields[0]}$__cupel_pad"
}

__cupel_export()
{
    local entry
    for entry in "${__cupel_fields[@]:2 + __cupel_words[4]}"; do
        builtin export "$entry"
    done
}

# A text as the content of a JSON string: printable characters only.
__cupel_quote()
{
    local _text=${1//$'\n'/ }
    _text=${_text//[^[:print:]]/?}
    _text=${_text//\\/\\\\}
    REPLY=${_text//\"/\\\"}
}

# ---- a session ----
__cupel_out=3 __cupel_in=4 __cupel_nonce=
__cupel_main=${BASH_SOURCE%/*}/main.sh __cupel_pid=$$ __cupel_cell='' __cupel_code='' __cupel_interrupted='' __cupel_flags=''
__cupel_int='' __cupel_exit='' __cupel_status=0 __cupel_own_err='' __cupel_args='' __cupel_have=1 __cupel_names=0 __cupel_saved=''
__cupel_calls='' __cupel_tool='' # the running cell has tools; our function `tool`
declare -A __cupel_world=() __cupel_marks=() __cupel_found=()
__cupel_loop='while :; do while { __cupel_step; } 2>/dev/null; do . "$__cupel_main"; done; done'
__cupel_again='__cupel_code=$?; { __cupel_save_traps; } 2>/dev/null
( { __cupel_begin_here; } 2>/dev/null; builtin eval "$__cupel_loop" )
builtin exit'

__cupel_send()
{
    # After a separator: others may have left a line unfinished. It is no newline, at which bash
    # would write what it has so far. Without a channel the session is over.
    builtin printf '\036{%s%s\n' "${__cupel_nonce:+\"nonce\":\"$__cupel_nonce\",}" "${1#?}" >&"$__cupel_out" ||
        [[ $BASHPID != "$__cupel_pid" ]] || { builtin trap - EXIT; builtin exit 1; }
}

exit()
{
    local code=${1-$?}
    [[ $BASHPID == "$__cupel_pid" ]] || builtin exit "$code"
    if [[ ! $code =~ ^-?[0-9]+$ ]]; then
        builtin printf 'main.sh: exit: %s: numeric argument required\n' "$code" >&2
        code=2
    fi
    { __cupel_leave "$((code & 255))"; } 2>/dev/null
}

# From here on every command of the cell is a `return`, until the cell is left.
__cupel_leave()
{
    [[ $__cupel_code ]] || __cupel_code=$1
    [[ $- != *e* ]] || __cupel_flags+=e
    builtin set +e
    builtin shopt -s extdebug
    builtin trap __cupel_unwind DEBUG
}

__cupel_unwind()
{
    [[ ${FUNCNAME[1]-} == __cupel_* || ${#BASH_SOURCE[@]} -le $__cupel_depth ]] && return 0
    return 2
}

__cupel_on_interrupt()
{
    [[ $BASHPID == "$__cupel_pid" ]] || builtin exit 130
    __cupel_interrupted=1
    __cupel_leave 130
}

# A command failed: send the line of the cell, and leave the cell under set -e.
__cupel_on_error()
{
    local at=1
    while [[ ${FUNCNAME[at]-source} != source ]]; do ((at += 1)); done
    [[ ${BASH_SOURCE[at]-} != "$__cupel_main" || $__cupel_code ]] ||
        __cupel_send "{\"op\":\"fail\",\"line\":${BASH_LINENO[at - 1]},\"code\":$1}"
    [[ $- != *e* || $BASHPID != "$__cupel_pid" ]] || __cupel_leave "$1"
}

# The loop begins here: in the main script, or in the fork that continues after bash itself has
# exited, which ends the cell with that status.
__cupel_begin_here()
{
    __cupel_pid=$BASHPID __cupel_depth=${#BASH_SOURCE[@]}
    builtin trap "$__cupel_again" EXIT
}

# Save the code's traps. Their listing goes through a pipe to this shell itself, without a fork.
__cupel_save_traps()
{
    local _name _line _text
    for _name in EXIT INT; do
        _text=
        builtin trap -p "$_name" >&249
        builtin printf '\n\001\n' >&249
        while IFS= builtin read -r -u 249 _line && [[ $_line != $'\001' ]]; do _text+=$_line$'\n'; done
        case $_name$_text in
        *__cupel_*) ;;
        EXITtrap*) __cupel_exit=$_text ;;
        INT*) __cupel_int=${_text%$'\n\n'} ;;
        esac
    done
    [[ $__cupel_int == *trap* ]] || __cupel_int='builtin trap "{ __cupel_on_interrupt; } 2>/dev/null" INT'
    builtin trap '' INT
    builtin trap "$__cupel_again" EXIT
    __cupel_saved=1
}

__cupel_step()
{
    local _status=$?
    [[ ! $__cupel_code ]] || { builtin trap - DEBUG; builtin shopt -u extdebug; }
    [[ $- != *x* ]] || __cupel_flags+=x
    [[ $- != *u* ]] || __cupel_flags+=u
    builtin set +xu
    [[ $__cupel_saved ]] || __cupel_save_traps
    __cupel_saved=
    [[ ! $__cupel_cell ]] || __cupel_finish "${__cupel_code:-$_status}"
    while :; do
        [[ $__cupel_have ]] || __cupel_receive || __cupel_end
        __cupel_have= __cupel_nonce=${__cupel_words[1]-}
        case ${__cupel_words[0]-} in
        cell) ! __cupel_begin || return 0 ;;
        tools) __cupel_tools=${__cupel_fields[0]} ;;
        names) __cupel_tell_names ;;
        complete) __cupel_complete ;;
        end) __cupel_end ;;
        esac
    done
}

__cupel_finish()
{
    [[ ! $__cupel_calls ]] || __cupel_end_tools
    local _names='' _tail='"line":null,"column":null,"snippet":null,"traceback":"","interrupted":true}'
    [[ ! $__cupel_interrupted ]] || __cupel_send "{\"op\":\"error\",\"kind\":\"exception\",\
\"name\":\"Interrupted\",\"message\":\"the cell was interrupted\",$_tail"
    [[ $__cupel_names != 1 ]] || { __cupel_changes; _names=",\"names\":$REPLY"; }
    __cupel_cell='' __cupel_code='' __cupel_interrupted='' __cupel_status=$1
    __cupel_send "{\"op\":\"done\",\"exit_code\":$1$_names}"
}

# Prepare the next cell; false if it is no program, which is reported.
__cupel_begin()
{
    local _code=${__cupel_fields[0]} _stdin=${__cupel_fields[1]} _args='' _said _start
    __cupel_names=${__cupel_words[3]}
    ((__cupel_words[4])) && builtin printf -v _args ' %q' "${__cupel_fields[@]:2:__cupel_words[4]}"
    _start="builtin trap '{ __cupel_on_error \"\$?\"; } 2>/dev/null' ERR; builtin set -E; "
    # errtrace lets the trap see into functions. It would do the same to the code's own ERR trap.
    [[ ! $_code =~ (^|[[:space:]])[Ee][Rr][Rr]([[:space:];]|$) ]] || __cupel_own_err=1
    [[ ! $__cupel_own_err ]] || _start=
    [[ $_args == "$__cupel_args" ]] || _start+="builtin set --$_args; "
    __cupel_args=$_args
    __cupel_place "{ $_start$__cupel_int; ${__cupel_flags:+builtin set -$__cupel_flags; }} 2>/dev/null"
    __cupel_flags=
    if ! _said=$(builtin trap 'set -n' DEBUG; . "$__cupel_main" 2>&1) &&
        ! (builtin shopt -s extglob; builtin trap 'set -n' DEBUG; . "$__cupel_main") 2>/dev/null; then
        unset __cupel_tools
        __cupel_fail_syntax "${_said:-the code could not be placed}"
        return 1
    fi
    __cupel_export
    if [[ ${__cupel_tools+x} ]]; then
        [[ $__cupel_calls$__cupel_tool ]] || . "${__cupel_main%/*}/tools.sh"
        __cupel_give_tools
        unset __cupel_tools
    elif [[ $__cupel_tool ]]; then
        __cupel_take_tools
    fi
    if [[ ! $_stdin ]]; then
        exec 0</dev/null
    elif [[ $_stdin == *$'\n' ]]; then
        exec 0<<<"${_stdin%$'\n'}"
    else # this one must not end in a newline
        exec 0< <(builtin printf %s "$_stdin")
    fi
    [[ $__cupel_names != 1 ]] || __cupel_mark
    __cupel_cell=${__cupel_words[2]}
    [[ ! $__cupel_seeded ]] || __cupel_start_clock "$__cupel_cell"
}

# The code's next look at the clock is its cell's first (src/box/seed/seed.c).
__cupel_start_clock()
{
    local _word='' _at
    for _at in 0 8 16 24 32 40 48 56; do builtin printf -v _word '%s\\%03o' "$_word" "$(($1 >> _at & 255))"; done
    builtin printf "$_word" 1<>/dev/shm/.cupel-clock
}

# $? of the next command.
__cupel_give()
{
    return "$1"
}

__cupel_fail_syntax()
{
    local said=${1//"$__cupel_main"/main.sh} line='' text='' first
    said=${said//"$__cupel_first"/}
    [[ $said =~ line\ ([0-9]+): ]] && line=${BASH_REMATCH[1]}
    while IFS= builtin read -r first; do
        __cupel_quote "$first"
        text+=${text:+\\n}$REPLY
    done <<<"${said:0:4000}"
    first=${text%%\\n*}
    __cupel_send "{\"op\":\"error\",\"kind\":\"syntax\",\"name\":\"SyntaxError\",\"message\":\
\"${first#main.sh: line "$line": }\",\"line\":${line:-null},\"column\":null,\"snippet\":null,\
\"traceback\":\"$text\",\"interrupted\":false}"
    __cupel_status=2
    __cupel_send '{"op":"done","exit_code":2}'
}

__cupel_end()
{
    builtin trap - EXIT
    builtin eval "$__cupel_exit" 2>/dev/null
    builtin exit 0
}

# ---- names ----
# A fingerprint of a variable without a fork, shortened: enough to notice a change.
__cupel_mark_of()
{
    local -n __cupel_ref=$1
    if ((${#__cupel_ref[@]} > 1000)); then
        REPLY="${#__cupel_ref[@]} ${__cupel_ref@a}" # a change in the middle is missed
    else
        REPLY=${__cupel_ref[*]@A}
        REPLY="${#REPLY} ${REPLY:0:2000}"
    fi
}

# The code's variables and functions into __cupel_found, each with its fingerprint.
__cupel_look()
{
    local IFS=$' \t\n' - _name _line _text=
    local -a _names
    builtin set -f
    __cupel_found=()
    for _name in $(builtin compgen -v); do
        case $_name in
        BASH* | COMP_* | DIRSTACK | EPOCH* | EUID | FUNCNAME | GROUPS | HISTCMD | IFS | LINENO | OPT* | \
            PIPESTATUS | PPID | RANDOM | REPLY | SECONDS | SHELLOPTS | SRANDOM | UID | _*) continue ;;
        esac
        __cupel_mark_of "$_name"
        __cupel_found[$_name]=$REPLY
    done
    _names=()
    for _line in $(builtin declare -F); do
        [[ $_line == declare || $_line == -* || $_line == _* || $_line == exit || \
            ($_line == tool && $__cupel_tool == *CUPEL_LINE*) ]] || _names+=("$_line")
    done
    ((${#_names[@]} == 0)) || _text=$(builtin declare -f -- "${_names[@]}")
    IFS=$'\n'
    for _line in $_text; do
        [[ ! $_line =~ ^([^[:space:]]+)\ \(\)\ $ ]] || _name=${BASH_REMATCH[1]}\(\)
        __cupel_found[$_name]+=${_line:0:200}
    done
}

__cupel_mark()
{
    local _name
    __cupel_look
    __cupel_marks=()
    for _name in "${!__cupel_found[@]}"; do __cupel_marks[$_name]=${__cupel_found[$_name]}; done
}

__cupel_entry()
{
    local _name=$1 _kind=string _length _text _mark=${__cupel_found[$1]#* }
    if [[ $_name == *'()' ]]; then
        REPLY="{\"name\":\"${_name%??}\",\"type\":\"function\",\"text\":\"${_name%??} ()\"}"
        return
    fi
    local -n __cupel_ref=$_name
    _mark=${_mark%%" $_name"*} # its attributes, if any
    [[ $_mark != *=* ]] || _mark=
    case ${_mark#declare } in
    *A*) _kind=map ;;
    *a*) _kind=array ;;
    *i*) _kind=integer ;;
    esac
    case $_kind in
    map | array) _length=${#__cupel_ref[@]} _text="${__cupel_ref[*]:0:20}" ;;
    *) _length=${#__cupel_ref} _text=${__cupel_ref:0:80} ;;
    esac
    __cupel_quote "${_text:0:80}"
    REPLY="{\"name\":\"$_name\",\"type\":\"$_kind\",\"length\":$_length,\"text\":\"$REPLY\"}"
}

# The entries of the given names, as a list; the number of the rest goes to `more` of the caller.
__cupel_list()
{
    local _name _list=
    for _name; do
        if ((_room <= 0 || ${#_name} > 200)); then
            ((_more += 1))
            continue
        fi
        ((_room -= 1))
        REPLY="{\"name\":\"${_name%'()'}\"}"
        [[ ! ${__cupel_found[$_name]+x} ]] || __cupel_entry "$_name" 2>/dev/null
        _list+=${_list:+,}$REPLY
    done
    REPLY="[$_list]"
}

__cupel_changes()
{
    local _name _room=200 _more=0 _answer
    local -a _added=() _changed=() _removed=()
    __cupel_look
    for _name in "${!__cupel_found[@]}"; do
        if [[ ! ${__cupel_marks[$_name]+x} ]]; then
            _added+=("$_name")
        elif [[ ${__cupel_marks[$_name]} != "${__cupel_found[$_name]}" ]]; then
            _changed+=("$_name")
        fi
    done
    for _name in "${!__cupel_marks[@]}"; do
        [[ ${__cupel_found[$_name]+x} ]] || _removed+=("$_name")
    done
    __cupel_list "${_added[@]}"; _answer="{\"added\":$REPLY"
    __cupel_list "${_changed[@]}"; _answer+=",\"changed\":$REPLY"
    __cupel_list "${_removed[@]}"; _answer+=",\"removed\":$REPLY"
    ((_more == 0)) || _answer+=",\"more\":$_more"
    REPLY="$_answer}"
}

__cupel_tell_names()
{
    local _name _room=200 _more=0
    local -a _names=()
    __cupel_look
    for _name in "${!__cupel_found[@]}"; do
        [[ "x${__cupel_found[$_name]}" == "${__cupel_world[$_name]+x}${__cupel_world[$_name]-}" ]] ||
            _names+=("$_name")
    done
    __cupel_list "${_names[@]}"
    ((_more == 0)) || REPLY+=",\"more\":$_more"
    __cupel_send "{\"op\":\"names\",\"names\":$REPLY}"
}

# The field is the text up to the cursor.
__cupel_complete()
{
    local text=${__cupel_fields[0]} word match list='' count=0
    word=${text##*[[:space:]\"\'\$\{\(\;\&\|\<\>=]}
    local -a how=(-A function -A builtin -A keyword -A command -v)
    [[ $text != *'$'"$word" && $text != *'${'"$word" ]] || how=(-v)
    while IFS= builtin read -r match && ((count < 100)); do
        [[ $match != __cupel_* && ${#match} -le 200 && $list, != *",\"$match\","* ]] || continue
        __cupel_quote "$match"
        list+=",\"$REPLY\""
        ((count += 1))
    done < <(builtin compgen "${how[@]}" -- "$word")
    __cupel_send "{\"op\":\"complete\",\"matches\":[${list#,}],\"start\":$((${#text} - ${#word}))}"
}

# ---- start ----
__cupel_functions=(
    __cupel_receive __cupel_place __cupel_export __cupel_quote __cupel_send exit __cupel_leave
    __cupel_unwind __cupel_on_interrupt __cupel_on_error __cupel_begin_here __cupel_save_traps
    __cupel_step __cupel_finish __cupel_begin __cupel_give __cupel_fail_syntax __cupel_end __cupel_mark_of
    __cupel_look __cupel_mark __cupel_entry __cupel_list __cupel_changes __cupel_tell_names
    __cupel_complete __cupel_start_clock
)
# Bash 5.1 knows no BASH_COMPAT=50: only what no pipe can hold becomes a file.
__cupel_pad=
[[ ${BASH_VERSINFO[*]:0:2} != '5 1' ]] || builtin printf -v __cupel_pad '\n%66000s' ''
__cupel_look
for __cupel_name in "${!__cupel_found[@]}"; do
    __cupel_world[$__cupel_name]=${__cupel_found[$__cupel_name]}
done
__cupel_send '{"op":"ready"}'
__cupel_receive || builtin exit 1
unset __cupel_tools
if [[ ${__cupel_words[0]} == tools ]]; then
    __cupel_tools=${__cupel_fields[0]}
    __cupel_receive || builtin exit 1
fi
if [[ ${__cupel_words[0]} == run ]]; then
    __cupel_args=''
    ((__cupel_words[4] == 0)) || printf -v __cupel_args ' %q' "${__cupel_fields[@]:2:__cupel_words[4]}"
    __cupel_export
    __cupel_place "unset __cupel_start; exec 252<&-; BASH_ARGV0=main.sh; set --$__cupel_args"
    unset -f "${__cupel_functions[@]}"
    for __cupel_name in "${!__cupel_@}"; do
        [[ $__cupel_name == @(__cupel_first|__cupel_start|__cupel_name|__cupel_tools) ]] ||
            unset "$__cupel_name"
    done
    unset REPLY BASH_REMATCH
    . "${BASH_SOURCE%/*}/driver.sh"
    trap - DEBUG
    unset __cupel_first __cupel_name
    return 0
fi

__cupel_first=$__cupel_cell_first
__cupel_seeded=
if [[ -e ${BASH_SOURCE%/*}/seed ]]; then
    __cupel_seeded=$(<"${BASH_SOURCE%/*}/seed")
    if ((EPOCHSECONDS < 1735689600 || EPOCHSECONDS >= 1735689600 + 30 * 86400)); then
        echo 'the clock of this box cannot be fixed: its programs do not load seed.so' >&2
        builtin exit 125
    fi
    RANDOM=$__cupel_seeded
fi
{ exec 250>&3 251<&4 && exec 3>&- 4<&- && __cupel_out=250 __cupel_in=251; } 2>/dev/null
exec 249<> <(:)
# As the script, not here: an error here would only end this file.
BASH_COMPAT=50
exec 252<<<"BASH_ARGV0=main.sh; __cupel_begin_here; $__cupel_loop$__cupel_pad"
unset BASH_COMPAT
