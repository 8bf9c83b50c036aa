#!/bin/sh
# Usage: examples/tour.sh CUPEL. Shows the main job, and attacks that fail. Ends with 0
# where everything behaved as promised. Called by `make run`; needs no root.
set -u
cupel=$(realpath "${1:-build/cupel}") || exit 1
cd "$(dirname "$0")/.." || exit 1

out=build/tour
mkdir -p "$out" 2>/dev/null && [ -w "$out" ] || out=$(mktemp -d) || exit 1
bold= green= red= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$(printf '\033[1m') green=$(printf '\033[32m') red=$(printf '\033[31m')
    plain=$(printf '\033[0m')
fi
broken=0

title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
good() { printf '  %sas promised:%s %s\n' "$green" "$plain" "$1"; }
bad() { printf '  %sNOT as promised:%s %s\n' "$red" "$plain" "$1"; broken=1; }

# attack TITLE PROMISE EXIT_CODES PROGRAM [ARGUMENT]...: the exit code must be one of them.
# Limits that no control group holds (an ordinary user without delegation) show as a
# failing call instead, with the program's own exit code 1.
attack() {
    title "$1"
    promise=$2 codes=$3 program=examples/attacks/$4
    shift 4
    echo "\$ cupel run $program${1:+ $1}"
    TOUR_SECRET="$secret" "$cupel" run "$program" "$@" >"$out/attack" 2>&1
    code=$?
    sed 's/^/  /' "$out/attack"
    case " $codes " in
    *" $code "*) ;;
    *) bad "exit code $code is none of: $codes" && return ;;
    esac
    if grep -q -e "$secret" -e ' connected$' "$out/attack"; then
        bad "something got through the walls"
    else
        good "$promise"
    fi
}

title "The job: the five best customers of a sales table, and a chart"
echo "\$ cupel run -v -f examples/sales/sales.csv -o $out examples/top_customers.py"
rm -f "$out/top_customers.png"
if "$cupel" run -v -f examples/sales/sales.csv -o "$out" examples/top_customers.py &&
   [ -s "$out/top_customers.png" ]; then
    good "a table, a chart on disk, what it cost, and the walls that stood"
else
    bad "no table and chart came back; 'cupel doctor' says what this host lacks"
fi

secret="tour-secret-$$"
echo "$secret" >"$out/secret.txt"
attack "Attack: read a secret of the host" "nothing of the host is in the box" "0" \
    read_secrets.py "$(realpath "$out/secret.txt")"
attack "Attack: send data out" "a box has no network" "1" reach_network.py
attack "Attack: fill the memory" "stopped at 512 MiB, the host did not notice" "137 1" fill_memory.py
attack "Attack: a fork bomb" "stopped at 64 processes, none of them survived" "126 1" fork_bomb.py
rm -f "$out/secret.txt" "$out/attack"

echo
if [ "$broken" -eq 0 ]; then
    echo "${green}Everything behaved as promised.${plain} Try: $1 run 'print(1+1)'"
else
    echo "${red}Something did not behave as promised.${plain} $1 doctor may know why."
fi
exit "$broken"
