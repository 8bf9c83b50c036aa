#!/bin/sh
# Usage: examples/agent.sh CUPEL. Shows the agent on the sales case: with the model that is
# configured, else with the scripted replies that ship for it. Called by `make run`; needs no key,
# no configuration and no root. Ends with 0 where the scripted task is verified, or where the live
# model has come to an end of its own.
set -u
cupel=$(realpath "${1:-build/cupel}") || exit 1
cd "$(dirname "$0")/.." || exit 1

out=build/tour/agent
mkdir -p "$out" 2>/dev/null && [ -w "$out" ] || out=$(mktemp -d) || exit 1
case=examples/sales
rm -f "$out/chart.png"

# ask [OPTION]...: the case's question, as a person would ask it.
ask() {
    echo "\$ cupel ask $* - $case/sales.csv <$case/question.txt"
    "$cupel" ask "$@" - "$case/sales.csv" <"$case/question.txt"
}

printf 'The agent: a question about a sales table, answered by code that is run and checked\n\n'
if "$cupel" models -q 2>/dev/null | grep -q '^\*'; then
    ask --why -o "$out"
    code=$?
    case $code in
    1 | 2) ;;                 # it could not be reached, or used
    0 | [3-7]) exit 0 ;;      # the model's own end
    *) exit "$code" ;;
    esac
    printf '\nThe configured model did not answer; here are the scripted replies.\n\n'
fi
ask --why --model "replay:$case/replies.jsonl" -o "$out"
code=$?
if [ "$code" -ne 0 ] || [ ! -s "$out/chart.png" ]; then
    echo "NOT as promised: exit code $code, or no chart; 'cupel doctor' says what this host lacks"
    exit 1
fi
printf '\nAs promised: an answer that is proven, the lines behind each value, and the chart in %s.\n' "$out"
