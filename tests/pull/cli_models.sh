#!/usr/bin/env bash
# Models by name: drey list, show and rm, -m NAME and -d NAME, and what drey inspect begins with.
#   cli_models.sh DREY MAKE_TOY
. "$(dirname "$0")/../cli/shell.sh"
store=$tmp/the\ models
mkdir "$store"
export DREY_MODELS=$store XDG_CACHE_HOME=$tmp/cache HOME=$tmp
cd "$tmp" # no model is in this folder

# 1. An empty folder, and one that is not there.
ends 0 "$drey" list
has "$tmp/err" "no models in .*drey pull"
[ ! -s "$tmp/out" ] || wrong "an empty list: $(cat "$tmp/out")"
ends 0 env DREY_MODELS="$tmp/none" "$drey" list
refused 1 "no model big; drey pull" "$drey" run -m big -p a

# 2. The list.
"$make_toy" "$store/Big-7B-Q4_K_M.gguf" 6
"$make_toy" "$store/big-0.5b-q8_0.gguf" 4
"$make_toy" "$store/small.gguf" 4
cp "$store/small.gguf" "$store/split-00001-of-00002.gguf"
echo more >"$store/split-00002-of-00002.gguf"
echo text >"$store/broken.gguf"
touch "$store/small.gguf.drey-medusa" "$store/note.txt" "$store/.hidden.gguf" "$store/x.gguf.part" \
    "$store/small.gguf.eagle.gguf" "$store/.small.gguf.ok"
ends 0 "$drey" list
has "$tmp/out" "^NAME +SIZE +TYPE +PARAMS +CONTEXT +DRAFT +WITH +USED" "^Big-7B-Q4_K_M +[0-9.]+K " \
    "^small +[0-9.]+K .* heads, EAGLE +-" "^split " "^broken .* broken"
[ "$(wc -l <"$tmp/out")" = 6 ] || wrong "drey list: $(cat "$tmp/out")"
ends 0 "$drey" list -q
[ "$(cat "$tmp/out")" = "$(printf '%s\n' Big-7B-Q4_K_M big-0.5b-q8_0 broken small split)" ] ||
    wrong "drey list -q: $(cat "$tmp/out")"
ends 0 "$drey" list --json "$tmp/json"
cd "$root"
holds "drey list --json" "$tmp/json" "len(models) == 5" "'error' in models[2]" \
    "models[0]['name'] == 'Big-7B-Q4_K_M' and models[0]['runs'] and models[0]['parameters'] > 1000" \
    "models[4]['files'] == 2" "models[4]['bytes'] == models[3]['bytes'] + 5"
cd "$tmp"
rm "$store"/split* "$store/broken.gguf"

# 3. Names.
printf 'The quick brown' >p
for name in Big-7B-Q4_K_M big-7b-q4_k_m.gguf big-7 big:7b Big:Q4_K_M hf.co/OWNER/Big-7B-Q4_K_M-GGUF OWNER/big-7b:q4_k_m \
    https://huggingface.co/OWNER/big-7B "$store/Big-7B-Q4_K_M.gguf"; do
    ends 0 "$drey" run -m "$name" -f p -n 4 -q -d none
    [ -s "$tmp/out" ] || wrong "-m $name wrote nothing"
done
has <("$drey" list) "^Big-7B.* now$"
refused 2 "\"big\" may mean Big-7B-Q4_K_M, big-0.5b-q8_0: write more" "$drey" run -m big -f p
refused 1 "no model bigger; drey list shows .*Big-7B-Q4_K_M, big-0.5b-q8_0, small.*drey pull" "$drey" run -m bigger -f p
refused 1 "is no file here; drey pull OWNER/bigger fetches it" "$drey" run -m hf.co/OWNER/bigger -f p
refused 1 "no model bigger; drey list" "$drey" run -m small -d bigger -f p
refused 1 "no model smoll; did you mean small?" "$drey" show smoll
refused 1 "did you mean Big-7B-Q4_K_M?" "$drey" show BIG7
refused 1 "no file $store/smalll.gguf; did you mean $store/small.gguf?" "$drey" show "$store/smalll.gguf"
refused 1 "no file ./small.gguf; did you mean small?" "$drey" show ./small.gguf
refused 1 "./small" "$drey" run -m ./small -f p
ends 0 "$drey" run -m big-7 -d small -f p -n 4
has "$tmp/err" "draft"
cp "$store/small.gguf" Big-7B-Q4_K_M.gguf # an existing path always wins
printf 'no model' >small
refused 1 "small" "$drey" tokenize -m small <p
rm small Big-7B-Q4_K_M.gguf
ends 0 "$drey" tokenize -m small <p
ends 0 "$drey" prepare big-0.5b -q
[ -s "$store/big-0.5b-q8_0.gguf.drey" ] || wrong "prepare NAME wrote elsewhere"
ends 0 "$drey" quantize big-0.5b "$tmp/q.gguf" Q8_0 --allow-requantize -q
refused 2 "is read" "$drey" bench disk -m small --json "$store/small.gguf"

# 4. What a person asks first.
ends 0 "$drey" show big-7
has "$tmp/out" "^toy$" "^  parameters +[0-9.]+[KMB]$" "^  type +" "^  size +[0-9.]+K$" "^  context +[0-9]+ tokens$" \
    "^  layers +6, [0-9]+ wide$" "^  chat +" "^  file +.*Big-7B-Q4_K_M.gguf$" "^  memory +it stays in memory here: "
ends 0 "$drey" inspect big-7
grep -qx toy <<<"$(head -n 1 "$tmp/out")" || wrong "inspect begins with $(head -n 1 "$tmp/out")"
has "$tmp/out" "^GGUF version 3, " "^  parameters "
! grep -qE "e\+[0-9]| 1 tensors" "$tmp/out" || wrong "inspect: $(grep -E "e\+[0-9]| 1 tensors" "$tmp/out")"
refused 1 "no model bigger" "$drey" inspect bigger
refused 2 "model to show" "$drey" show

# 5. Output that nobody reads ends a command without a word.
for command in "list" "list --json -" "show big-7" "inspect big-7" "plan -m big-7 --tensors --no-measure" \
    "plan -m big-7 --no-measure -d none --json -" "bench kernels --list" "run --help"; do
    # shellcheck disable=SC2086
    { "$drey" $command 2>"$tmp/err" || true; } | true
    ! grep -q "cannot write" "$tmp/err" || wrong "$command | true: $(cat "$tmp/err")"
done

# 6. Removing: of this folder alone, after asking.
refused 2 "drey rm asks on a terminal; drey rm --force small " "$drey" rm small
refused 2 "no model of the folder" "$drey" rm --force /etc/passwd
refused 2 "no model of the folder" "$drey" rm --force "$tmp/q.gguf"
refused 2 "there is no model \.\./q" "$drey" rm --force ../q
refused 2 "may mean" "$drey" rm --force small big
refused 2 "there is no model bigger" "$drey" rm --force small bigger
refused 2 "model to remove" "$drey" rm --force
[ -e "$store/small.gguf" ] || wrong "a refused rm removed a model"
ends 0 "$drey" rm --force small big-0.5b
has "$tmp/out" "^removed small: [0-9.]+K, with what drey made for it$" "^removed big-0.5b-q8_0: "
[ "$(LC_ALL=C ls -A "$store")" = "$(printf '%s\n' .hidden.gguf Big-7B-Q4_K_M.gguf note.txt x.gguf.part)" ] ||
    wrong "rm left $(LC_ALL=C ls -A "$store")"
cp "$store/Big-7B-Q4_K_M.gguf" "$store/s-00001-of-00002.gguf"
echo more >"$store/s-00002-of-00002.gguf"
ln -s "$tmp/q.gguf" "$store/link.gguf"
ends 0 "$drey" rm --force s link -q
[ "$(LC_ALL=C ls -A "$store")" = "$(printf '%s\n' .hidden.gguf Big-7B-Q4_K_M.gguf note.txt x.gguf.part)" ] ||
    wrong "rm left $(LC_ALL=C ls -A "$store")"
[ -s "$tmp/q.gguf" ] || wrong "rm removed what a link means"
python3 "$root/tests/pull/answers.py" y "remove Big-7B-Q4_K_M (.*)? \[y/N\]" "$drey" rm big >"$tmp/out" || wrong "$(cat "$tmp/out")"
[ ! -e "$store/Big-7B-Q4_K_M.gguf" ] || wrong "rm, answered with y, removed nothing"
"$make_toy" "$store/kept.gguf" 2
python3 "$root/tests/pull/answers.py" "" "remove kept" "$drey" rm kept >"$tmp/out" || wrong "$(cat "$tmp/out")"
[ -e "$store/kept.gguf" ] || wrong "rm, answered with Enter, removed a model"
exit $failed
