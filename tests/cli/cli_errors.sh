#!/usr/bin/env bash
# Bad input, one case each: one clear sentence on standard error that says what is wrong or what to
# do, nothing on standard output, and the right exit code. Broken models are made from a toy.
#   cli_errors.sh DREY MAKE_TOY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: cli_errors.sh DREY MAKE_TOY} make_toy=${2:?usage: cli_errors.sh DREY MAKE_TOY}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
# refused CODE PATTERN WORD...: the command drey WORD... with an empty standard input
refused() {
    local code=$1 pattern=$2 got=0
    shift 2
    timeout 300 "$drey" "$@" </dev/null >"$tmp/out" 2>"$tmp/err" || got=$?
    if [ $got != "$code" ] || [ "$(wc -l <"$tmp/err")" != 1 ] || [ -s "$tmp/out" ] ||
        ! grep -qE "^drey: .*$pattern" "$tmp/err"; then
        echo "cli_errors: drey $*"
        echo "  exit code $got, expected $code and one line with \"$pattern\":"
        head -n 5 "$tmp/err" | sed 's/^/  /'
        failed=1
    fi
}
toy=$tmp/toy.gguf
"$make_toy" "$toy"
variant() { # NAME SED_SCRIPT: a toy with other bytes, of the same length
    LC_ALL=C sed "$2" "$toy" >"$tmp/$1.gguf"
    if cmp -s "$toy" "$tmp/$1.gguf" || [ "$(wc -c <"$toy")" != "$(wc -c <"$tmp/$1.gguf")" ]; then
        echo "cli_errors: the toy $1 could not be made"
        exit 1
    fi
}

# The command line.
refused 2 "unknown command \"fly\"" fly
refused 2 "bench what.* machine, disk, kernels, model" bench
refused 2 "unknown option --fast; see drey run --help" run -m "$toy" --fast
refused 2 "-m MODEL.gguf" run -p hello
refused 2 "-p and -f contradict" run -m "$toy" -p hello -f "$toy"
refused 2 "--memory takes a size" run -m "$toy" -p hello --memory 2GB
refused 2 "--cpu takes .*ref.* not \"abacus\"" run -m "$toy" -p hello --cpu abacus
refused 2 "\"gpu\" is no unit; there are cpu" run -m "$toy" -p hello --units gpu
refused 2 "have 2 threads together, not 1; .* \\(-t\\)" run -m "$toy" -p hello --units cpu+cpu -t 1
refused 2 "the prompt is empty" run -m "$toy" -p ""
refused 2 "standard output is for the text" run -m "$toy" -p hello --stats -
refused 2 "drey inspect takes no -m" inspect -m "$toy"
refused 2 "name a model to prepare" prepare

# Nothing is written over what is read, over a model, or twice.
cp "$toy" "$tmp/kept.gguf"
ln "$toy" "$tmp/link.gguf"
echo '{"prompt": "x"}' >"$tmp/prompts"
refused 2 "--json would write over .*, which is read" plan -m "$toy" --no-measure --json "$tmp/link.gguf"
refused 2 "--stats would write over" run -m "$toy" -f "$tmp/prompts" -n 1 --stats "$tmp/prompts"
refused 2 "--json would write over" train exit -m "$toy" --prompts "$tmp/prompts" --json "$tmp/prompts"
refused 2 "--json would write over" tune -m "$toy" --prompts "$tmp/prompts" --json "$tmp/prompts"
echo '{"id": "x"}' >"$tmp/odd"
refused 1 "line 1 of .* is no prompt" tune -m "$toy" -d none --prompts "$tmp/odd"
: >"$tmp/empty"
refused 1 "holds no prompt" tune -m "$toy" -d none --prompts "$tmp/empty"
refused 2 "--output would write over" report "$tmp/prompts" -o "$tmp/prompts"
refused 2 "--output and --json name one file" train exit -m "$toy" -o "$tmp/one" --json "$tmp/one"
refused 2 "--stats and --trace name one file" run -m "$toy" -p x --trace "$tmp/prompts" --stats "$tmp/prompts"
refused 2 "is a model, or a file beside one; name another" plan -m "$toy" --no-measure --json "$tmp/kept.gguf"
refused 2 "is a model, or a file beside one; name another" run -m "$toy" -p x -n 1 --stats "$tmp/kept.gguf"
"$drey" prepare "$toy" -q -o "$tmp/sidecar"
refused 2 "is a model, or a file beside one; name another" run -m "$toy" -p x -n 1 --stats "$tmp/sidecar"
refused 2 "holds no heads; name another" train medusa -m "$toy" -o "$tmp/kept.gguf"
cmp "$toy" "$tmp/kept.gguf"
"$drey" plan -m "$toy" --no-measure --json /dev/null >"$tmp/out"

# Files.
refused 1 "$tmp/none.gguf" run -m "$tmp/none.gguf" -p hello
refused 1 "$tmp/none.txt" run -m "$toy" -f "$tmp/none.txt"
refused 1 "cannot write $tmp/none/stats" run -m "$toy" -p hello --stats "$tmp/none/stats"
refused 1 "it is a folder" run -m "$toy" -p hello --stats "$tmp"
: >"$tmp/empty.gguf"
echo "This is not a model, although its name says so." >"$tmp/text.gguf"
head -c 200 "$toy" >"$tmp/short.gguf"
head -c $(($(wc -c <"$toy") - 4096)) "$toy" >"$tmp/cut.gguf"
for file in empty text short cut; do
    refused 1 "$tmp/$file.gguf" run -m "$tmp/$file.gguf" -p hello
    refused 1 "$tmp/$file.gguf" inspect "$tmp/$file.gguf"
done
refused 1 "folder|directory" run -m "$tmp" -p hello

# Models.
variant architecture 's/llama/lxama/g'
refused 1 "$tmp/architecture.gguf: .*lxama.*llama" run -m "$tmp/architecture.gguf" -p hello
variant tokenizer 's/tokenizer\.ggml\.model/tokenizer.ggml.mxdel/'
refused 1 "$tmp/tokenizer.gguf: .*tokenizer" run -m "$toy" -d "$tmp/tokenizer.gguf" -p hello
refused 1 "tokenizer" tokenize -m "$tmp/tokenizer.gguf"
variant chat 's/tokenizer\.chat_template/tokenizer.chat_templxte/'
refused 1 "chat" run -m "$tmp/chat.gguf" --chat -p hello
variant other 's/<|im_end|>/<|im_xnd|>/g'
refused 1 "im_.nd" run -m "$toy" -d "$tmp/other.gguf" -p hello
refused 1 "$tmp/empty.gguf" run -m "$toy" -d "$tmp/empty.gguf" -p hello

# Numbers that are not finite: no text, no figure, no sidecar.
for tensor in output_norm.weight blk.1.ffn_down.weight output.weight; do
    cp "$toy" "$tmp/nan.gguf"
    "$make_toy" --damage "$tmp/nan.gguf" $tensor
    refused 1 "$tmp/nan.gguf: tensor $tensor holds numbers that are not finite: the file is damaged" \
        run -m "$tmp/nan.gguf" -p hello -n 5 -q
    printf 'the quick brown fox' >"$tmp/text"
    refused 1 "$tensor holds numbers that are not finite" perplexity -m "$tmp/nan.gguf" -f "$tmp/text" -q
done
refused 1 "output.weight holds numbers that are not finite" prepare "$tmp/nan.gguf" -q

# Context and memory.
words=$(printf 'the tree %.0s' {1..40})
refused 1 "context" run -m "$toy" -p "$words" -c 16 -q
refused 1 "[0-9.]+ ?[KMG]" run -m "$toy" -p hello --memory 1M
refused 1 "[0-9.]+ ?[KMG]" plan -m "$toy" --memory 1M

# The other commands.
refused 1 "two at least" perplexity -m "$toy"
tokenize_ids() {
    printf %s "$1" | "$drey" tokenize -m "$toy" --ids >"$tmp/out" 2>"$tmp/err" && code=0 || code=$?
    if [ "$code" != 1 ] || [ -s "$tmp/out" ] || [ "$(wc -l <"$tmp/err")" != 1 ]; then
        echo "cli_errors: tokenize --ids took $1: $(cat "$tmp/err")"
        failed=1
    fi
}
for ids in '' '{}' '[1,' '["1"]' '[1.5]' '[-1]' '[99999999]' '[1e30]' '[1] [2]'; do
    tokenize_ids "$ids"
done
exit $failed
