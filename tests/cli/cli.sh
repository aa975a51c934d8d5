#!/usr/bin/env bash
# The command on toy models: where the prompt comes from, what is printed where, stop texts, raw
# ids, statistics, signals, and the other commands.
#   cli.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
"$make_toy" "$tmp/toy.gguf" 3
"$make_toy" "$tmp/draft.gguf" 2
run=("$drey" run -m "$tmp/toy.gguf" -t 1)
prompt='The tree is not for the draft'

# 1. One prompt, three ways in; the drafts change nothing.
ends 0 "${run[@]}" -n 40 --ignore-eos -q -p "$prompt"
mv "$tmp/out" "$tmp/text"
[ -s "$tmp/text" ] || wrong "no text"
[ ! -s "$tmp/err" ] || wrong "-q is not quiet: $(cat "$tmp/err")"
printf %s "$prompt" >"$tmp/prompt"
"${run[@]}" -n 40 --ignore-eos -q -f "$tmp/prompt" >"$tmp/out"
same "-f and -p differ" "$tmp/out" "$tmp/text"
"${run[@]}" -n 40 --ignore-eos -q <"$tmp/prompt" >"$tmp/out"
same "standard input and -p differ" "$tmp/out" "$tmp/text"
for options in "-d $tmp/draft.gguf" "-d lookup" "-d lookup --policy sequence --draft-tokens 3" \
    "-d $tmp/draft.gguf --policy sequence" "-d $tmp/draft.gguf --tree 7" "--prompt-chunk 2" \
    "--cpu ref" "--io pread" "-c 100" "--memory unlimited"; do
    read -ra words <<<"$options"
    ends 0 "${run[@]}" "${words[@]}" -n 40 --ignore-eos -q -p "$prompt"
    same "another text with $options" "$tmp/out" "$tmp/text"
done

# 2. Text on standard output, the rest on standard error, numbers in the file. A policy that drafts
# whatever it costs: on a slow machine the default one may find that drafts do not pay.
"${run[@]}" -d "$tmp/draft.gguf" --policy specinfer -n 40 --ignore-eos --stats "$tmp/stats" -v -p "$prompt" \
    >"$tmp/out" 2>"$tmp/err"
same "another text with a draft and a report" "$tmp/out" "$tmp/text"
grep -qE '^toy, [0-9.]+M parameters, [0-9.]+[KM]\. In .* stays in memory.* draft' <<<"$(head -n 1 "$tmp/err")" ||
    wrong "the verdict: $(head -n 1 "$tmp/err")"
has "$tmp/err" "memory plan" pinned statistics "tokens/s" verify peak \
    "hint: the text was cut after 40 tokens \(-n\): -n 500 writes more"
# Rows have names of their own, no two of them the same.
for name in prompt "first token" text passes time memory "acceptance rate" "per position" "tokens per pass" \
    "top-k accuracy" "draft time"; do
    [ "$(grep -c "^  $name  *[0-9at]" "$tmp/err")" = 1 ] || wrong "the row \"$name\": $(cat "$tmp/err")"
done
! grep -q "with --chat" "$tmp/err" || wrong "a hint for a person without a terminal: $(cat "$tmp/err")"
! grep -q $'\033' "$tmp/err" || wrong "colours without a terminal"
holds statistics "$tmp/stats" 'finish_reason == "length"' 'generated_tokens == 40' 'prompt_tokens > 3' \
    '0 < accepted <= drafted' '0 < first_token_s <= prompt_s' 'tokens_per_pass > 1' \
    'tokens_per_s > 0' 'peak_memory_bytes > 1 << 20' '(kv, kv_lossy) == ("f16", False)' \
    '0 <= draft_share <= 1' 'not set("""version machine ceiling_tokens_per_s disk_bytes_per_s
        pinned_bytes streamed_bytes_per_pass read_bytes read_bytes_per_s stall_share verify_share
        budget_bytes decode_major_faults decode_s""".split()) - set(whole)' \
    'sum(speculation["depth_accepted"]) == sum(speculation["rank_accepted"]) == accepted' \
    'sum(speculation["passes_writing"]) == passes' 'speculation["draft_steps"] > 0'
# Without -v two lines, and how to have more of a text that was cut.
"${run[@]}" -d "$tmp/draft.gguf" --policy specinfer -n 40 --ignore-eos -p "$prompt" >"$tmp/out" 2>"$tmp/err"
grep -qzE '^40 tokens, [0-9.]+/s \(drafting guessed [0-9]+ of them\); first word after [0-9.]+ s
memory [0-9.]+M of [0-9.]+G
hint: the text was cut after 40 tokens ' <<<"$(tail -n 3 "$tmp/err")" || wrong "statistics in two lines: $(cat "$tmp/err")"
"${run[@]}" -n 40 --ignore-eos -c 20 -p "$prompt" >"$tmp/out" 2>"$tmp/err"
has "$tmp/err" "the context of 20 is full: -c 40 has room for more"
"${run[@]}" -n 40 --stop "$(head -c 6 "$tmp/text")" -p "$prompt" >"$tmp/out" 2>"$tmp/err"
! grep -q "cut after" "$tmp/err" || wrong "a text that ended by itself was cut"
# Both into one place, a file or a pipe: nothing comes between the text's words.
"${run[@]}" -d "$tmp/draft.gguf" -n 40 --ignore-eos -p "$prompt" >"$tmp/both" 2>&1
"${run[@]}" -d "$tmp/draft.gguf" -n 40 --ignore-eos -p "$prompt" 2>&1 | cat >"$tmp/piped"
for both in "$tmp/both" "$tmp/piped"; do
    python3 -c 'import sys
text, both = (open(f, "rb").read() for f in sys.argv[1:])
sys.exit(both.count(b"tokens\n" + text + b"\n40 tokens, ") != 1)' "$tmp/text" "$both" ||
        wrong "text and progress mixed: $(cat "$both")"
done
[ "$(find "$tmp" -name 'stats*' | wc -l)" = 1 ] || wrong "a temporary statistics file was left"
! grep -q lossy "$tmp/err" || wrong "f16 is called lossy"
"$make_toy" "$tmp/wide.gguf" 2 0 32 # q8_0 wants heads of 32
ends 0 "$drey" run -m "$tmp/wide.gguf" -t 1 -n 4 --kv q8_0 --stats "$tmp/stats" -p "$prompt"
has "$tmp/err" "lossy: the cache is q8_0"
[ "$(key "$tmp/stats" kv)$(key "$tmp/stats" kv_lossy)" = '"q8_0"true' ] || wrong "q8_0 is not reported"

# 3. Raw ids are the text's tokens.
"${run[@]}" -n 40 --ignore-eos -q --raw-ids -p "$prompt" >"$tmp/ids"
[ "$(grep -cE '^[0-9]+$' "$tmp/ids")" = 40 ] || wrong "--raw-ids does not print 40 ids"
{
    echo "["
    paste -sd, "$tmp/ids"
    echo "]"
} | "$drey" tokenize -m "$tmp/toy.gguf" --ids >"$tmp/out"
same "--raw-ids are not the text's" "$tmp/out" "$tmp/text"

# 4. A stop text ends the text before it and is not written.
python3 - "$tmp/text" "$tmp/stop" "$tmp/expected" <<'PYTHON'
import sys
text = open(sys.argv[1], "rb").read()
at = len(text) // 2
while True:  # whole characters: an argument of a command should be text
    try:
        stop = text[at:at + 6].decode()
        if "\0" not in stop and len(stop) > 1:
            break
    except UnicodeDecodeError:
        pass
    at += 1
    if at > len(text) - 6:
        at = 0
open(sys.argv[2], "wb").write(stop.encode())
open(sys.argv[3], "wb").write(text[:text.index(stop.encode())])
PYTHON
stop=$(cat "$tmp/stop" && echo .)
stop=${stop%.}
for options in "" "-d $tmp/draft.gguf"; do
    read -ra words <<<"$options"
    "${run[@]}" "${words[@]}" -n 40 --ignore-eos -q --stop "never to be seen" --stop "$stop" \
        --stats "$tmp/stats" -p "$prompt" >"$tmp/out"
    same "--stop $options" "$tmp/out" "$tmp/expected"
    [ "$(key "$tmp/stats" finish_reason)" = '"stop"' ] || wrong "--stop is not a stop"
done

# 5. Seeds, chat, special tokens.
sample() {
    "${run[@]}" -n 24 --ignore-eos -q -p "$prompt" --temp 1 --top-k 50 --top-p 0.95 "$@"
}
sample --seed 7 >"$tmp/out"
sample --seed 7 -d "$tmp/draft.gguf" >"$tmp/out2"
sample --seed 8 >"$tmp/out3"
same "a draft changes a sampled text" "$tmp/out" "$tmp/out2"
! cmp -s "$tmp/out" "$tmp/out3" || wrong "two seeds, one text"
chat=$'<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n'
"${run[@]}" -n 16 -q --chat --system "Be brief." -p hello --raw-ids >"$tmp/out"
"${run[@]}" -n 16 -q --special -p "$chat" --raw-ids >"$tmp/out2"
same "--chat is not the format that --special reads" "$tmp/out" "$tmp/out2"
turn=$'hello<|im_end|>\n<|im_start|>assistant\n'
"${run[@]}" -n 16 -q --chat --system "Be brief." -p "$turn" --raw-ids >"$tmp/out"
"${run[@]}" -n 16 -q --chat --system "Be brief." -p "$turn" --special --raw-ids >"$tmp/out2"
! cmp -s "$tmp/out" "$tmp/out2" || wrong "a chat's prompt ends its own turn without --special"
plain=$(printf %s "$chat" | "$drey" tokenize -m "$tmp/toy.gguf")
special=$(printf %s "$chat" | "$drey" tokenize -m "$tmp/toy.gguf" --special)
[ "${#plain}" -gt "${#special}" ] || wrong "--special reads no special tokens"
[ "$(echo "$plain" | "$drey" tokenize -m "$tmp/toy.gguf" --ids)" = "$(printf %s "$chat")" ] ||
    wrong "tokenize does not come back"

# 6. Interrupted: what was verified stays, and the numbers are written.
interrupt() { # SIGNAL
    local signal=$1
    rm -f "$tmp/stats" "$tmp/out"
    # shellcheck disable=SC2016 # evaluated there
    ends_by "$signal" '[ -s "$tmp/out" ]' "${run[@]}" -n 200000 --ignore-eos --raw-ids --stats "$tmp/stats" -p "$prompt"
    [ -f "$tmp/stats" ] || {
        wrong "SIG$signal: no statistics"
        return
    }
    [ "$(key "$tmp/stats" finish_reason)" = '"interrupted"' ] || wrong "SIG$signal: not interrupted"
    [ "$(key "$tmp/stats" generated_tokens)" = "$(wc -l <"$tmp/out")" ] ||
        wrong "SIG$signal: $(wc -l <"$tmp/out") tokens printed"
    head -n 40 "$tmp/out" | cmp -s - <(head -n "$(wc -l <"$tmp/out")" "$tmp/ids") ||
        wrong "SIG$signal: other tokens"
}
interrupt INT
interrupt TERM

# 7. A reader that goes away, a full disk.
("${run[@]}" -n 200000 --ignore-eos -q -p "$prompt" 2>"$tmp/err" || echo $? >"$tmp/code") |
    head -c 8 >/dev/null || true
[ "$(cat "$tmp/code")" = 1 ] || wrong "a closed pipe: exit code $(cat "$tmp/code")"
! grep "standard output" "$tmp/err" || wrong "a closed pipe is complained of"
code=0
"${run[@]}" -n 4 --ignore-eos -q -p "$prompt" >/dev/full 2>"$tmp/err" || code=$?
[ $code = 1 ] || wrong "a full disk: exit code $code"
has "$tmp/err" "standard output"

# 8. The other commands.
"$drey" --version >"$tmp/out"
has "$tmp/out" '^drey [0-9]+\.[0-9]+\.[0-9]+( \([0-9a-f]{7,}\))?$'
"$drey" plan -m "$tmp/toy.gguf" -d "$tmp/draft.gguf" --disk 1G/s --tensors >"$tmp/out"
has "$tmp/out" "smallest" "pinned .*blk.0.attn_q.weight"
"$make_toy" "$tmp/large.gguf" 400 # more than what a sanitizer needs room for
plan=("$drey" plan -m "$tmp/large.gguf" -d "$tmp/draft.gguf" -c 256 -t 1)
"${plan[@]}" --memory 1G --no-measure --json "$tmp/json" >"$tmp/out"
least=$(key "$tmp/json" smallest_budget_bytes) room=0
! grep -aqE '__[at]san_init' "$drey" || room=$((8 << 20)) # a sanitizer's own memory moves by megabytes
plan+=(--memory "$((least + room))")
LC_ALL=C "${plan[@]}" --json "$tmp/json" >"$tmp/out"
has "$tmp/out" '^memory plan: budget ' 'target, pinned' '^ +\[#*-+\.*\]  # pinned' \
    'disk .*\(measured\), memory' '^  without a draft, in its memory as well, about .* tokens/s' '^  with drafting about .* tokens/s on usual texts' \
    '^  with 256M more memory a pass would read .* instead of [^,]*, (and take .* instead of .*: \+[0-9]+ % speed|but be no faster: computing takes longer than reading)$'
# A page more or less of what the program has written to may be the one that makes another MiB.
tests/cli/man_keys.py Plans "$tmp/json" 2>"$tmp/err" || wrong "$(cat "$tmp/err")"
holds "plan --json" "$tmp/json" 'disk == "measured" and disk_bytes_per_s > 0 and tree_ops_per_s > 0' \
    "budget_bytes == $least + $room == more['budget_bytes'] - (256 << 20)" \
    "abs(smallest_budget_bytes - $least) <= 2**20 or bool($room)" \
    'streamed_bytes_per_pass > more["streamed_bytes_per_pass"] == 0' \
    'tree_rows == 48 and threads == 1 and context > 1' \
    'all(sum(p[k + "_bytes"] for k in """pinned draft ring target_kv draft_kv work program tokenizer
        stack queue reserve spare""".split()) == p["budget_bytes"] for p in (whole, more))' \
    'all(p["smallest_budget_bytes"] % 2**20 == 0 for p in (whole, more))' \
    'all(p["expected_tokens_per_s"] >= p["ceiling_tokens_per_s"] for p in (whole, more))' \
    'all(abs(p["passes_per_s"] * p["pass_s"] - 1) < 1e-9 for p in (whole, more))'
"${plan[@]}" --disk 2G/s --no-measure --json - >"$tmp/json" 2>"$tmp/out"
has "$tmp/out" 'disk 2.00G/s \(stated\)' 'not measured'
[ "$(key "$tmp/json" disk)" = '"stated"' ] || wrong "plan --disk is not stated"
[ "$(key "$tmp/json" memory_bytes_per_s)" = 0 ] || wrong "plan --no-measure measures"
LC_ALL=C "${plan[@]}" --no-measure >"$tmp/out"
has "$tmp/out" 'a pass reads .* on a disk of 1G/s' '\[#*-'
LC_ALL=C.UTF-8 "${plan[@]}" --no-measure >"$tmp/out"
has "$tmp/out" '\[█*▒'
"$drey" inspect "$tmp/toy.gguf" >"$tmp/out"
has "$tmp/out" "general.architecture = llama" "blk.2.ffn_up.weight"
has "$tmp/out" "drey runs this file"
for i in 1 2 3 4 5 6 7 8; do echo "$prompt $i and that is not this"; done >"$tmp/corpus"
"$drey" perplexity -m "$tmp/toy.gguf" -f "$tmp/corpus" --window 32 -t 1 >"$tmp/out" 2>"$tmp/err"
has "$tmp/out" '^perplexity [0-9]+\.[0-9]+ over [0-9]+ tokens$'
has "$tmp/err" 'window [0-9]+ of [0-9]+: perplexity'
"$drey" perplexity -m "$tmp/toy.gguf" --window 32 -t 1 -q <"$tmp/corpus" >"$tmp/out2" 2>"$tmp/err2"
same "perplexity of standard input" "$tmp/out" "$tmp/out2"
[ ! -s "$tmp/err2" ] || wrong "perplexity -q is not quiet"
"$drey" bench disk -m "$tmp/toy.gguf" --read-size 256K --json "$tmp/json" >"$tmp/out"
holds "bench disk --json" "$tmp/json" 'bytes_per_s > 0'
"$drey" bench disk -m "$tmp/toy.gguf" --sizes >"$tmp/out"
has "$tmp/out" '^reads of +128K ' '^reads of +8\.00M .* s of processor a GB' '^choose +--read-size [0-9]+K$'
"$drey" bench model -m "$tmp/toy.gguf" --prompt-tokens 16 --decode-tokens 4 -t 1 \
    --contexts 0,64,16000000 --sessions 3 --json - >"$tmp/json" 2>"$tmp/out"
has "$tmp/out" '^limits .*GB/s' '^prompt ' '^text ' '^sessions .* of 3 together' '^overhead ' '64 of context' 'are made up' \
    '^16000000 of context is left out'
holds "bench model --json -" "$tmp/json" 'sessions == 3' '-0.01 < overhead_share < 1' \
    'all(whole[k] > 0 for k in """decode_tokens_per_s session_tokens_per_s prefill_tokens_per_s
        bandwidth_share prefill_peak_share memory_bytes_per_s int8_ops_per_s float_ops_per_s
        barrier_s token_bytes position_bytes""".split())' \
    'len(t_n) == 7 and t_n[0] == 1 and all(t > 0 for t in t_n)' \
    '[(p["context"], p["rows"]) for p in passes] == [(c, 2**i) for c in (0, 64) for i in range(7)]' \
    'all(p["pass_s"] >= p["matmul_s"] > 0 and p["pass_s"] > p["attend_s"] > 0 for p in passes)' \
    'all(abs(max(p["bandwidth_share"], p["peak_share"]) - p["limit_s"] / p["pass_s"]) < 1e-6
        and p["limit_s"] > 0 for p in passes)'
"$drey" bench machine -t 1 -m "$tmp/toy.gguf" --json "$tmp/json" >"$tmp/out"
has "$tmp/out" '^limits ' '^matrices ' '^ref ' '^disk '
holds "bench machine --json" "$tmp/json" 'memory_bytes_per_s > 0 and barrier_s >= 0' \
    'disk["bytes_per_s"] > 0' 'tiers[0]["int8_ops_per_s"] > 0' 'tiers[-1]["tier"] == "ref"'
"$drey" bench kernels -t 1 --type rmsnorm --json "$tmp/json" >"$tmp/out"
holds "bench kernels --type rmsnorm" "$tmp/json" \
    '[(k["kernel"], k["what"]) for k in kernels] == [("rmsnorm", "row")]' 'kernels[0]["seconds"] > 0'
"$drey" bench kernels -t 1 --type q4_0 --json "$tmp/json" >"$tmp/out"
kernels='[k for k in kernels if k["what"] != "part"]' # of AMX, whose parts are timed alone as well
holds "bench kernels --type q4_0" "$tmp/json" \
    "[(k['what'], k['rows']) for k in ${kernels}] == [('pack', 1), ('quantise', 1)] + [
        ('dot', n) for n in (1, 2, 4, 8, 16, 32, 64, 512)] + [('planes', n) for n in (1, 8, 32) for way in 'us']" \
    "[k['shape'] for k in ${kernels}[10:]] == ['unsplit', 'joined'] * 3" \
    "all(k['bytes_per_s'] > 0 for k in ${kernels}) and all(k['peak_share'] > 0 for k in ${kernels}[2:])"
"$drey" bench kernels -t 1 --type tree --json "$tmp/json" >"$tmp/out"
holds "bench kernels --type tree" "$tmp/json" \
    '[k["kernel"] for k in kernels] == ["tree", "tree-naive", "tree-dense"] * 12' \
    'all(k["seconds"] > 0 for k in kernels) and kernels[0]["shape"] == "16 of 64, f16"'
has "$tmp/out" '^tree-dense .* times as long as tree$'
"$drey" bench kernels --list >"$tmp/out"
has "$tmp/out" '^\| type \|.* ref \|' '^\| Q4_K \|' '^\| BF16 \|'
ends 2 "$drey" bench kernels --type Q9
for command in run plan inspect tokenize perplexity train bench; do
    "$drey" $command --help >"$tmp/out"
    has "$tmp/out" "usage: drey $command"
done
exit $failed
