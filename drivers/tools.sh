# The tools of bash code: a program `tool` (src/box/caller/main.c), and a function that tells it the
# line of the call. driver.sh and cells.sh read this file for code that has tools.
__cupel_define_tool()
{
    # It has no variable, so that none of the code's is hidden. `|| return`: under set -e the shell leaves
    # at the code's own line.
    tool()
    {
        if [[ ${BASH_SOURCE[1]-} == /usr/lib/cupel/main.sh ]]; then
            CUPEL_LINE=${BASH_LINENO[0]} /usr/lib/cupel/tool "$@" || return
        else
            /usr/lib/cupel/tool "$@" || return
        fi
    }
}

# The first message of a bash that did not wait, into __cupel_tools.
__cupel_receive_tools()
{
    local LC_ALL=C size
    builtin read -rN 16 -u "$1" size
    builtin read -rN "$((10#${size%?}))" -u "$1" __cupel_tools
    __cupel_tools=${__cupel_tools#*$'\n'}
}

# Tell the program: $1 the nonce of the cell or `-`, $2 and $3 the channel, $4 the tools.
__cupel_begin_tools()
{
    builtin printf '%s %s %s\n%s' "$1" "$2" "$3" "$4" 2>/dev/null >|/dev/shm/.cupel-tools
}

# ---- sessions ----
# A change of PATH that is not the code's.
__cupel_set_path()
{
    local REPLY _own=''
    __cupel_mark_of PATH
    [[ ${__cupel_world[PATH]-} != "$REPLY" ]] || _own=1
    PATH=$1
    __cupel_mark_of PATH
    [[ ! $_own ]] || __cupel_world[PATH]=$REPLY
}

# The cell has tools. A function of that name is the code's own, and stays.
__cupel_give_tools()
{
    __cupel_begin_tools "$__cupel_nonce" "$__cupel_out" "$__cupel_in" "$__cupel_tools"
    __cupel_calls=1
    [[ ! $__cupel_tool ]] || return 0
    builtin declare -F tool >/dev/null || __cupel_define_tool
    __cupel_tool=$(builtin declare -f tool)
    [[ :$PATH: == *:/usr/lib/cupel:* ]] || __cupel_set_path "/usr/lib/cupel:$PATH"
}

# The cell has none, but one before had: the name is free again.
__cupel_take_tools()
{
    [[ $(builtin declare -f tool) != "$__cupel_tool" || $__cupel_tool != *CUPEL_LINE* ]] || unset -f tool
    __cupel_set_path "${PATH#/usr/lib/cupel:}"
    __cupel_tool=''
}

# The end of a cell: call back what waits, and read until the engine has answered all of it. Nothing of
# an answer may be left in the channel: the next message follows.
__cupel_end_tools()
{
    /usr/lib/cupel/tool --end || { builtin trap - EXIT; builtin exit 1; }
    __cupel_calls=''
}
