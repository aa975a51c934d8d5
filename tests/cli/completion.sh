#!/usr/bin/env bash
# The completions that the command prints: bash's is run in bash, zsh's and fish's are read by their
# shells where those are there.
#   completion.sh DREY
set -euo pipefail
drey=${1:?usage: completion.sh DREY}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
failed=0

"$drey" --completion bash >drey.bash
# shellcheck source=/dev/null
. ./drey.bash
touch model.gguf other.txt
mkdir folder models
touch models/kept.gguf models/kept.gguf.part
export DREY_MODELS=$PWD/models
# offers "WORD..." EXPECTED: the last word of the line is completed to these, in any order
offers() {
    read -ra COMP_WORDS <<<"$1"
    [[ $1 != *" " ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _drey
    local got
    got=$(printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | sort | xargs)
    if [ "$got" != "$(tr ' ' '\n' <<<"$2" | sort | xargs)" ]; then
        echo "completion: \"$1\" gives \"$got\" and not \"$2\""
        failed=1
    fi
}
offers "drey r" "run rm report"
offers "drey --ver" "--version"
offers "drey train " "exit medusa eagle --help"
offers "drey bench k" "kernels"
offers "drey run --exit" "--exit --exit-file --exit-threshold"
offers "drey run --exit " "off fast exact"
offers "drey run --policy s" "sequence specinfer std single static"
offers "drey run --kv " "f16 q8_0"
offers "drey run --memory u" "unlimited"
offers "drey run -m mo" "model.gguf models"
offers "drey run -m " "model.gguf folder models kept.gguf"
offers "drey run -m models/" "models/kept.gguf"
offers "drey run --help s" "sampling server"
offers "drey he" "help"
offers "drey help sam" "sampling"
offers "drey quantize model.gguf out.gguf Q5_" "Q5_0 Q5_1 Q5_K_S Q5_K_M"
offers "drey chat -d m" "medusa model.gguf models mtp"
offers "drey chat --prefix-folder f" "folder"
offers "drey run --sidecar n" "none"
offers "drey run --temp " ""
offers "drey run -p " ""
offers "drey inspect m" "model.gguf models"
offers "drey inspect -" "-h --help"
offers "drey prepare --pl" "--planes"
offers "drey train medusa --ep" "--epochs"
offers "drey train exit --ep" ""
offers "drey bench model --ev" "--every"
offers "drey bench disk --ev" ""
offers "drey no-such-command -" ""

for shell in zsh fish; do
    "$drey" --completion $shell >drey.$shell
    if ! command -v $shell >/dev/null; then
        echo "not run: $shell is not installed (Debian: $shell)"
    elif ! $shell -n drey.$shell; then
        echo "completion: $shell cannot read its script"
        failed=1
    fi
done
# A shell's own words: source <(drey --completion zsh) is enough, and commands have descriptions.
# shellcheck disable=SC2016
if command -v zsh >/dev/null &&
    [ "$(zsh -f -c 'autoload -U compinit; compinit -u -D; . ./drey.zsh; print $_comps[drey]')" != _drey ]; then
    echo "completion: zsh does not complete drey after its script"
    failed=1
fi
if command -v fish >/dev/null; then
    export HOME=$PWD/user XDG_CONFIG_HOME=$PWD/user/config XDG_DATA_HOME=$PWD/user/data
    mkdir -p user
    # shellcheck disable=SC2016
    fish -c '. ./drey.fish; for line in "drey ru" "drey run -m mod" "drey run -m kep" "drey run --kv "; complete -C $line; end' >offered
    if ! grep -q "^run.continue a prompt" offered || ! grep -q '^model.gguf' offered || ! grep -q '^kept.gguf' offered ||
        grep -q '^other.txt' offered || ! grep -q '^q8_0' offered; then
        echo "completion: fish offers $(xargs <offered)"
        failed=1
    fi
fi
code=0
"$drey" --completion csh >out 2>err || code=$?
if [ $code != 2 ] || ! grep -q '^drey: error: --completion takes bash, zsh or fish$' err || [ -s out ]; then
    echo "completion: --completion csh: exit code $code, $(cat err)"
    failed=1
fi
exit $failed
