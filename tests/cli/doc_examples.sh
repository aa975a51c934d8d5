#!/usr/bin/env bash
# The examples of each command's help, of the manual page, and of README.md and the pages of docs/
# (blocks that begin with ```sh) run as they are written, on toys. Every command has one. (Those of
# docs/reference/server*.md and docs/guide/chat.md: serve_docs.py, cli_chat.sh.)
#   doc_examples.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
export XDG_STATE_HOME=$tmp/state XDG_CACHE_HOME=$tmp/cache HOME=$tmp
n_run=0
declare -A seen
: >"$tmp/all"

# What examples name.
mkdir "$tmp/bin" "$tmp/here"
coder=qwen2.5-coder
for name in big model t target $coder-1.5b-instruct-q4_k_m; do "$make_toy" "$tmp/here/$name.gguf" 6; done
for name in small d draft $coder-0.5b-instruct-q4_k_m; do "$make_toy" "$tmp/here/$name.gguf" 4; done
DREY_TEST_EXPERTS=1 "$make_toy" "$tmp/here/mixture.gguf" 3
for i in 1 2 3 4; do
    echo "{\"id\": $i, \"group\": \"a\", \"turns\": [\"The quick brown fox number $i jumps\"]}"
done >"$tmp/here/p.jsonl"
printf 'The sky is blue because the air scatters it.\n%.0s' {1..60} >"$tmp/here/wiki.txt"
cp "$tmp/here/wiki.txt" "$tmp/here/long.txt"
"$drey" run -m "$tmp/here/t.gguf" -d lookup --policy specinfer -q -n 100 --ignore-eos -p a --trace "$tmp/here/t.json" >/dev/null

python3 tests/convert/hub_folder.py "$tmp/here/t.gguf" "$tmp/here/Qwen2.5-7B-Instruct"

# The hub that models come from.
for name in Qwen/Qwen2.5-7B-Instruct-GGUF OWNER/NAME; do
    mkdir -p "$tmp/hub/$name"
    file=${name#*/}
    cp "$tmp/here/d.gguf" "$tmp/hub/$name/${file%-GGUF}-Q4_K_M.gguf"
done
python3 tests/pull/faulty_hub.py "$tmp/hub" "$tmp/port" &
hub=$!
trap 'kill $hub; rm -rf "$tmp"' EXIT
while [ ! -s "$tmp/port" ]; do sleep 0.1; done
HF_ENDPOINT=http://127.0.0.1:$(cat "$tmp/port")
export HF_ENDPOINT DREY_MODELS=$tmp/models no_proxy=127.0.0.1

echo "Hello." >"$tmp/typed" # to those that read standard input

# The command, for less than it would do by itself, where that takes long; and a server that ends
# once it listens.
cat >"$tmp/bin/drey" <<END
#!/usr/bin/env bash
set -euo pipefail
drey="$drey"
END
cat >>"$tmp/bin/drey" <<'END'
more=()
if [ "$(stat -f -c %T /var/tmp)" = tmpfs ]; then set -- "${@/#\/var\/tmp/"${drey%/*}"}"; fi # no disk
case "$1 ${2:-}" in
"train exit") more=(-n 16 --hidden 4 --prompts p.jsonl) ;;
"train medusa" | "train eagle") more=(-n 600 --epochs 1) ;;
"bench kernels") more=(--type q8_0) ;;
verify*) case " $* " in *" -n "*) ;; *) more=(-n 8) ;; esac ;;
"bench model") more=(--prompt-tokens 64 --decode-tokens 16 --contexts 0,64) ;;
serve*)
    case " $* " in *" --port "*) ;; *) more=(--port 0) ;; esac
    rm -f listens # of another server
    "$drey" "${@/#8080/0}" "${more[@]}" >listens &
    server=$!
    while [ ! -s listens ] && kill -0 $server 2>/dev/null; do sleep 0.05; done
    kill -TERM $server && wait $server
    exec cat listens
    ;;
esac
exec "$drey" "$@" "${more[@]}"
END
printf '#!/bin/sh\nexec cat\n' >"$tmp/bin/less"
chmod +x "$tmp/bin/drey" "$tmp/bin/less"

# try WHERE COMMANDS
try() {
    if [ -n "${seen[$2]-}" ]; then return; fi # another command has the same help
    seen[$2]=1
    printf '%s\n' "$2" >>"$tmp/all"
    n_run=$((n_run + 1))
    if ! (cd "$tmp/here" && PATH=$tmp/bin:$PATH bash -eo pipefail -c "$2") <"$tmp/typed" >/dev/null 2>"$tmp/err"; then
        wrong "$1: $2: $(tail -n 3 "$tmp/err")"
    fi
}

# The headings of docs/options/commands.md are commands; "bench" and "train" begin some.
mapfile -t commands < <(sed -En 's/^## ([a-z]+( [a-z]+)?).*/\1/p' docs/options/commands.md | grep -vxE 'bench|train')
for command in "${commands[@]}"; do
    read -ra words <<<"$command"
    while read -r line; do
        try "drey $command --help" "$line"
    done < <("$drey" "${words[@]}" --help | sed '1,/^example/d' | grep '^  ')
done
while read -r line; do
    try docs/reference/drey.1.in "$line"
done < <(sed -n 's/^\.Dl \$ //p' docs/reference/drey.1.in | sed 's/\\(dq/"/g')
for page in README.md docs/*/*.md docs/*/*/*.md; do
    case $page in docs/reference/server*.md | docs/guide/chat.md) continue ;; esac
    while IFS= read -r -d '' block; do
        try "$page" "$block"
    done < <(awk '/^```sh$/ { on = 1; next } /^```$/ { if (on) printf "%c", 0; on = 0; next } on' "$root/$page")
done
for command in "${commands[@]}"; do
    grep -qE "(^|[ (])drey $command( |;|\$)" "$tmp/all" || wrong "drey $command has no example"
done
if [ "${#commands[@]}" -lt 14 ] || [ $n_run -lt 16 ]; then
    wrong "only ${#commands[@]} commands and $n_run examples were found"
fi
exit $failed
