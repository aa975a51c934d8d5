#!/usr/bin/env bash
# Bad input, one case each: one clear sentence on standard error that says what is wrong or what to
# do, nothing on standard output, and the right exit code. Broken models are made from a toy.
#   cli_errors.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
says() { # CODE PATTERN WORD...: the command drey WORD... ends so, with a line like that
    refused "$1" "^drey: .*($2)" "$drey" "${@:3}"
}
toy=$tmp/toy.gguf
"$make_toy" "$toy"
variant() { # NAME SED_SCRIPT: a toy with other bytes, of the same length
    LC_ALL=C sed "$2" "$toy" >"$tmp/$1.gguf"
    if cmp -s "$toy" "$tmp/$1.gguf" || [ "$(wc -c <"$toy")" != "$(wc -c <"$tmp/$1.gguf")" ]; then
        wrong "the toy $1 could not be made"
    fi
}

# The command line (tests/data/refused_lines.txt has what else is refused of it).
says 2 "unknown command \"fly\"; see drey --help" fly
says 2 "did you mean: drey run -m .* --memory 2G" run -m "$toy" --memroy 2G
says 2 "no options \"nothing\": name all, or one of model" help run nothing
says 2 "name a command first" --memory 2G
says 2 "bench what.* machine, disk, kernels, model" bench
says 2 "--cpu takes .*ref.* not \"abacus\"" run -m "$toy" -p hello --cpu abacus
says 2 "\"gpu\" is no unit; there are cpu" run -m "$toy" -p hello --units gpu
says 2 "have 2 threads together, not 1; .* \\(-t\\)" run -m "$toy" -p hello --units cpu+cpu -t 1
says 2 "the prompt is empty" run -m "$toy" -p ""
says 2 "standard output is for the text" run -m "$toy" -p hello --stats -

# Nothing is written over what is read, over a model, or twice.
cp "$toy" "$tmp/kept.gguf"
ln "$toy" "$tmp/link.gguf"
echo '{"prompt": "x"}' >"$tmp/prompts"
says 2 "--json would write over .*, which is read" plan -m "$toy" --no-measure --json "$tmp/link.gguf"
says 2 "--stats would write over" run -m "$toy" -f "$tmp/prompts" -n 1 --stats "$tmp/prompts"
says 2 "--json would write over" train exit -m "$toy" --prompts "$tmp/prompts" --json "$tmp/prompts"
says 2 "--json would write over" tune -m "$toy" --prompts "$tmp/prompts" --json "$tmp/prompts"
echo '{"id": "x"}' >"$tmp/odd"
says 1 "line 1 of .* is no prompt" tune -m "$toy" -d none --prompts "$tmp/odd"
: >"$tmp/empty"
says 1 "holds no prompt" tune -m "$toy" -d none --prompts "$tmp/empty"
says 2 "--output would write over" report "$tmp/prompts" -o "$tmp/prompts"
says 2 "--output and --json name one file" train exit -m "$toy" -o "$tmp/one" --json "$tmp/one"
says 2 "--stats and --trace name one file" run -m "$toy" -p x --trace "$tmp/prompts" --stats "$tmp/prompts"
says 2 "is a model, or belongs to one; name another" plan -m "$toy" --no-measure --json "$tmp/kept.gguf"
says 2 "is a model, or belongs to one; name another" run -m "$toy" -p x -n 1 --stats "$tmp/kept.gguf"
"$drey" prepare "$toy" -q -o "$tmp/sidecar"
says 2 "is a model, or belongs to one; name another" run -m "$toy" -p x -n 1 --stats "$tmp/sidecar"
says 2 "holds no heads; name another" train medusa -m "$toy" -o "$tmp/kept.gguf"
cmp "$toy" "$tmp/kept.gguf"
"$drey" plan -m "$toy" --no-measure --json /dev/null >"$tmp/out"

# Files.
says 1 "$tmp/none.gguf" run -m "$tmp/none.gguf" -p hello
says 1 "$tmp/none.txt" run -m "$toy" -f "$tmp/none.txt"
says 1 "cannot write $tmp/none/stats" run -m "$toy" -p hello --stats "$tmp/none/stats"
says 1 "it is a folder" run -m "$toy" -p hello --stats "$tmp"
: >"$tmp/empty.gguf"
echo "This is not a model, although its name says so." >"$tmp/text.gguf"
head -c 200 "$toy" >"$tmp/short.gguf"
head -c $(($(wc -c <"$toy") - 4096)) "$toy" >"$tmp/cut.gguf"
for file in empty text short cut; do
    says 1 "$tmp/$file.gguf" run -m "$tmp/$file.gguf" -p hello
    says 1 "$tmp/$file.gguf" inspect "$tmp/$file.gguf"
done
says 1 "folder|directory" run -m "$tmp" -p hello

# Models.
variant architecture 's/llama/lxama/g'
says 1 "$tmp/architecture.gguf: .*lxama.*llama" run -m "$tmp/architecture.gguf" -p hello
variant tokenizer 's/tokenizer\.ggml\.model/tokenizer.ggml.mxdel/'
says 1 "$tmp/tokenizer.gguf: .*tokenizer" run -m "$toy" -d "$tmp/tokenizer.gguf" -p hello
says 1 "tokenizer" tokenize -m "$tmp/tokenizer.gguf"
variant chat 's/tokenizer\.chat_template/tokenizer.chat_templxte/'
says 1 "chat" run -m "$tmp/chat.gguf" --chat -p hello
variant other 's/<|im_end|>/<|im_xnd|>/g'
says 1 "im_.nd" run -m "$toy" -d "$tmp/other.gguf" -p hello
says 1 "$tmp/empty.gguf" run -m "$toy" -d "$tmp/empty.gguf" -p hello

# Numbers that are not finite: no text, no figure, no sidecar.
for tensor in output_norm.weight blk.1.ffn_down.weight output.weight; do
    cp "$toy" "$tmp/nan.gguf"
    "$make_toy" --damage "$tmp/nan.gguf" $tensor
    says 1 "$tmp/nan.gguf: tensor $tensor holds numbers that are not finite: the file is damaged" \
        run -m "$tmp/nan.gguf" -p hello -n 5 -q
    printf 'the quick brown fox' >"$tmp/text"
    says 1 "$tensor holds numbers that are not finite" perplexity -m "$tmp/nan.gguf" -f "$tmp/text" -q
done
says 1 "output.weight holds numbers that are not finite" prepare "$tmp/nan.gguf" -q

# Context and memory.
words=$(printf 'the tree %.0s' {1..40})
says 1 "context" run -m "$toy" -p "$words" -c 16 -q
says 1 "[0-9.]+ ?[KMG]" run -m "$toy" -p hello --memory 1M
says 1 "[0-9.]+ ?[KMG]" plan -m "$toy" --memory 1M

# The other commands.
says 1 "two at least" perplexity -m "$toy"
for ids in '' '{}' '[1,' '["1"]' '[1.5]' '[-1]' '[99999999]' '[1e30]' '[1] [2]'; do
    ends 1 "$drey" tokenize -m "$toy" --ids < <(printf %s "$ids")
    one_line "tokenize --ids of $ids" ''
    [ ! -s "$tmp/out" ] || wrong "tokenize --ids took $ids"
done
exit $failed
