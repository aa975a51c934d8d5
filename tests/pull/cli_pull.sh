#!/usr/bin/env bash
# drey pull, from a hub on this machine that has every fault that a network has.
#   cli_pull.sh DREY MAKE_TOY
. "$(dirname "$0")/../cli/shell.sh"
for tool in curl python3 sha256sum; do
    command -v $tool >/dev/null || { echo "skipped: no $tool" && exit 77; }
done

hub=$tmp/hub models=$tmp/models
mkdir -p "$hub/some/toy-GGUF" "$hub/some/two-GGUF" "$hub/some/none-GGUF"
"$make_toy" "$hub/some/toy-GGUF/toy-Q4_K_M.gguf" 60
cp "$hub/some/toy-GGUF/toy-Q4_K_M.gguf" "$hub/some/two-GGUF/toy-Q8_0.gguf"
cp "$hub/some/toy-GGUF/toy-Q4_K_M.gguf" "$hub/some/two-GGUF/toy-IQ4_XS.gguf"
echo text >"$hub/some/none-GGUF/README.md"
python3 tests/pull/faulty_hub.py "$hub" "$tmp/port" &
server=$!
trap 'kill $server; rm -rf "$tmp"' EXIT
for _ in $(seq 100); do
    [ -s "$tmp/port" ] && break
    sleep 0.1
done
url=http://127.0.0.1:$(cat "$tmp/port")
export HF_ENDPOINT=$url DREY_MODELS=$models no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
unset HF_TOKEN http_proxy
toy=$hub/some/toy-GGUF/toy-Q4_K_M.gguf here=$models/toy-Q4_K_M.gguf

faults() { echo "$*" >"$hub/faults"; }
pulled() { # WHAT: all of it is there, and nothing else
    same "$1" "$toy" "$here"
    [ "$(ls -A "$models")" = toy-Q4_K_M.gguf ] || wrong "$1 left $(find "$models" -type f -printf "%f ")"
    rm -f "$here"
}
nothing() { # WHAT: no model under its name, no headers
    [ ! -e "$here" ] || wrong "$1: a model is there"
    [ -z "$(find "$models" -name '.headers*')" ] || wrong "$1 left headers"
}
until_there() { # FILE
    for _ in $(seq 200); do
        [ -s "$1" ] && break
        sleep 0.1
    done
}
interrupted() { # leaves a part, and is ended by Ctrl-C
    local code=0 pull
    faults stall=60
    env --default-signal=INT "$drey" pull some/toy-GGUF >"$tmp/out" 2>"$tmp/err" &
    pull=$!
    until_there "$here.part"
    kill -INT $pull
    wait $pull || code=$?
    [ $code = 130 ] || wrong "Ctrl-C: exit code $code: $(cat "$tmp/err")"
    [ -s "$here.part" ] || wrong "Ctrl-C removed what had come"
    nothing "Ctrl-C"
    faults
}

# 1. The plan comes first; the path is what is printed last.
faults
ends 0 "$drey" pull some/toy-GGUF
has "$tmp/out" "budget" "^$here$"
has "$tmp/err" "^next: drey (chat|run) -m toy-Q4_K_M( |$)"
rm "$here"
ends 0 "$drey" pull some/toy-GGUF --memory 300M -o "$tmp/a place"
has "$tmp/err" "^next: drey (chat|run) -m '$tmp/a place/toy-Q4_K_M.gguf' --memory 300M"
ends 0 "$drey" pull some/toy-GGUF
pulled "a name"
ends 0 "$drey" pull some/toy-GGUF --dry-run --memory 300M
has "$tmp/out" "budget"
nothing "--dry-run"
for name in some/toy-GGUF:q4_k_m some/toy-GGUF/toy-Q4_K_M.gguf "$url/some/toy-GGUF/resolve/main/toy-Q4_K_M.gguf" \
    "$url/some/toy-GGUF/blob/main/toy-Q4_K_M.gguf?download=true" hf.co/some/toy-GGUF:Q4_K_M \
    huggingface.co/some/toy-GGUF https://hf.co/some/toy-GGUF "$url/some/toy-GGUF" "$url/some/toy-GGUF:Q4_K_M" \
    https://huggingface.co/some/toy-GGUF/tree/main https://www.huggingface.co/some/toy-GGUF/ \
    "https://huggingface.co/some/toy-GGUF/blob/main/toy%2dQ4_K_M.gguf?download=true#x" \
    HF.CO/some/toy-GGUF/resolve/main/toy-Q4_K_M.gguf hf.co/some/toy-GGUF/toy-Q4_K_M.gguf; do
    ends 0 "$drey" pull "$name" -q
    [ "$(cat "$tmp/out")" = "$here" ] || wrong "$name: $(cat "$tmp/out")"
    pulled "$name"
done
ends 0 "$drey" pull some/toy-GGUF -q -o "$tmp/an other/folder"
same "-o" "$toy" "$tmp/an other/folder/toy-Q4_K_M.gguf"
ends 0 "$drey" run -m "$tmp/an other/folder/toy-Q4_K_M.gguf" -d none -n 4 -q -p "The tree"

# 2. Names that do not say which model.
refused 1 "HTTP|404" "$drey" pull some/missing-GGUF -q
refused 2 "has no GGUF file" "$drey" pull some/none-GGUF -q
refused 2 "name one of .*toy-IQ4_XS.gguf, toy-Q8_0.gguf" "$drey" pull some/two-GGUF -q
refused 2 "name one of" "$drey" pull some/two-GGUF:Q5_K_M -q
refused 2 "OWNER/NAME" "$drey" pull "../etc/passwd" -q
refused 2 "OWNER/NAME" "$drey" pull toy -q
refused 2 "OWNER/NAME" "$drey" pull hf.co/toy -q
refused 2 "cannot be downloaded" "$drey" pull hf.co/some/toy-GGUF/blob/main/..%2f..%2fx.gguf -q
refused 2 "has an encoded NUL" "$drey" pull hf.co/some/toy-GGUF/blob/main/%00.gguf -q
refused 2 "does not end in .gguf" "$drey" pull "$url/some/none-GGUF/resolve/main/README.md" -q
refused 2 "name a model to download" "$drey" pull
refused 1 "connect" env HF_ENDPOINT=http://127.0.0.1:1 "$drey" pull some/toy-GGUF -q
nothing "refusals"

# 3. What breaks off is continued: connections, answers that say "later", parts of another run.
faults cut=200000
ends 0 "$drey" pull some/toy-GGUF -q
pulled "connections that break"
faults tries=3
ends 1 "$drey" pull some/toy-GGUF -q # the header is not asked for twice
faults
ends 0 "$drey" pull some/toy-GGUF -q
pulled "a server that is busy"
faults stall=60
ends 1 "$drey" pull some/toy-GGUF -q --timeout 1
nothing "a server that stands still"
rm "$here".*
interrupted
has "$tmp/err" "the same command continues"
: >"$hub/log"
ends 0 "$drey" pull some/toy-GGUF -q
grep -qE "bytes=[1-9][0-9]*- " "$hub/log" || wrong "it was not continued: $(cat "$hub/log")"
pulled "what another run began"

# 4. A part of a file that has changed since is of no use; nor is one that a server cannot continue.
interrupted
printf 'x' | dd of="$toy" bs=1 seek=$(($(stat -c %s "$toy") - 1)) conv=notrunc status=none
ends 0 "$drey" pull some/toy-GGUF -q
pulled "a file that has changed"
interrupted
faults nothead
ends 0 "$drey" pull some/toy-GGUF -q
pulled "a server that does not continue"

# 5. Without parts there is no plan, which is said.
faults noparts
dd if=/dev/zero of="$hub/some/none-GGUF/large.gguf" bs=1M count=6 status=none
ends 0 "$drey" pull "$url/some/none-GGUF/resolve/main/large.gguf"
has "$tmp/err" "no plan"
rm "$models/large.gguf"

# 6. Other bytes than the hub describes, more of them, and what is no model.
faults wrongsum
refused 1 "not what the hub describes" "$drey" pull some/toy-GGUF -q
nothing "a wrong sum"
[ ! -e "$here.part" ] || wrong "a part with a wrong sum was kept"
faults
refused 1 "--force downloads" "$drey" pull "$url/some/none-GGUF/resolve/main/large.gguf" -q
ends 0 "$drey" pull "$url/some/none-GGUF/resolve/main/large.gguf" -q --force
rm -f "$models"/*
refused 1 "too small.*--force" "$drey" pull some/toy-GGUF --memory 1M
echo other >"$here"
refused 2 "another file; --force" "$drey" pull some/toy-GGUF -q
ends 0 "$drey" pull some/toy-GGUF -q --force
ends 0 "$drey" pull some/toy-GGUF -q
pulled "a file in place of another"

# 7. The token goes to the hub and to nobody else.
faults private
refused 1 "HF_TOKEN" "$drey" pull some/toy-GGUF -q
: >"$hub/log"
ends 0 env HF_TOKEN=secret "$drey" pull some/toy-GGUF -q
pulled "a private model"
: >"$hub/log"
ends 1 env HF_TOKEN=secret "$drey" pull "$url/some/toy-GGUF/resolve/main/toy-Q4_K_M.gguf" -q
! grep -q secret "$hub/log" || wrong "the token went to a URL"

faults elsewhere
: >"$hub/log"
ends 0 env HF_TOKEN=secret "$drey" pull some/toy-GGUF -q
grep -q "/cdn/.* -$" "$hub/log" || wrong "no other host was asked"
! grep -q "/cdn/.* Bearer" "$hub/log" || wrong "the token went to another host"
pulled "another host"
faults
refused 2 "HF_TOKEN has characters" env HF_TOKEN=$'a"\nurl = "http://127.0.0.1:1' "$drey" pull some/toy-GGUF -q
for other in file:///etc huggingface.co "-K/etc/passwd" "$url/?x"; do
    refused 2 "HF_ENDPOINT is no address" env HF_ENDPOINT="$other" "$drey" pull some/toy-GGUF -q
done
ends 0 env HF_ENDPOINT="$url/" "$drey" pull some/toy-GGUF -q
pulled "a hub with a slash at its end"

# 8. Names are strangers' words: none leads out of the folder, means other files, or steers a
# terminal. Usual ones are kept as they are.
mkdir "$tmp/victim"
echo precious >"$tmp/victim/big-Q4_K_M.gguf"
for name in 'real.gguf%3f{../victim/big}/%231-Q4_K_M.gguf' '../victim/big-Q4_K_M.gguf' '/etc/x-Q4_K_M.gguf' \
    'a//b.gguf' 'a%5cb.gguf' 'a%1b]0;b.gguf' 'a%c2%9b2Jb.gguf' 'a%e2%80%aefugg.gguf' 'a%23b.gguf' 'a%3fb.gguf'; do
    faults "name=$name"
    refused 1 "which is not downloaded" "$drey" pull some/toy-GGUF -q --force
done
faults 'name=real.gguf%3f{../victim/big}/%231-Q4_K_M.gguf'
refused 1 "which is not downloaded" "$drey" pull some/toy-GGUF -q --dry-run
[ "$(cat "$tmp/victim/big-Q4_K_M.gguf")" = precious ] || wrong "another file was written"
[ -z "$(ls -A "$models")" ] || wrong "names that are refused left $(ls -A "$models")"
refused 2 "cannot be downloaded" "$drey" pull some/toy-GGUF/../x.gguf -q
refused 2 "cannot be the name of a file" "$drey" pull "$url/some/toy-GGUF/resolve/main/..%2fx.gguf" -q
refused 2 "cannot be the name of a file" "$drey" pull "$url/some/toy-GGUF/resolve/main/%1bx.gguf" -q
for name in 'my model [v1] Q4_K_M.gguf' 'x[1-5]{a,b}-100%25 %c3%bc.gguf' "~it's+&=;@!\$,(1).gguf" 'deep/er/a%2520b.gguf'; do
    odd=$(printf '%b' "${name//%/\\x}")
    faults "name=${name// /%20}"
    : >"$hub/log"
    ends 0 "$drey" pull some/toy-GGUF -q
    same "$odd" "$toy" "$models/${odd##*/}"
    [ "$(grep -c "GET\|/cdn/" "$hub/log")" = 2 ] || wrong "$odd: $(cat "$hub/log")"
    rm "$models/${odd##*/}"
    [ -z "$(ls -A "$models")" ] || wrong "$odd left $(ls -A "$models")"
done
cp "$toy" "$hub/some/none-GGUF/an [odd] one.gguf"
faults
for name in 'an [odd] one.gguf' 'an%20%5bodd%5d%20one.gguf'; do
    ends 0 "$drey" pull "$url/some/none-GGUF/resolve/main/$name" -q
    same "$name" "$toy" "$models/an [odd] one.gguf"
    rm "$models"/*
done

# 9. No more comes than the server or the hub has said.
for fault in endless "endless nolength" "endless noparts nolength" "endless noparts"; do
    faults "$fault"
    : >"$hub/log"
    refused 1 "more than the .* bytes that were expected" "$drey" pull some/toy-GGUF -q
    for _ in $(seq 100); do # until the hub has noticed
        grep -q "too many" "$hub/log" && break
        sleep 0.1
    done
    grep -qE "^([0-9]|[12][0-9]) MiB too many" "$hub/log" || wrong "$fault: $(cat "$hub/log")"
    [ -z "$(ls -A "$models")" ] || wrong "$fault left $(ls -A "$models")"
done
interrupted
bytes=$(stat -c %s "$here.part")
faults endlessrest
refused 1 "more than the .* bytes that were expected" "$drey" pull some/toy-GGUF -q
[ "$(stat -c %s "$here.part")" = "$bytes" ] || wrong "an endless rest changed what was there"
for fault in nolength "nolength noparts"; do
    faults "$fault"
    ends 0 "$drey" pull some/toy-GGUF -q
    pulled "$fault"
done
refused 1 "does not say how long" "$drey" pull "$url/some/toy-GGUF/resolve/main/toy-Q4_K_M.gguf" -q
faults changes
refused 1 "has just changed" "$drey" pull some/toy-GGUF -q
nothing "a file that changes"
rm -f "$here".*

# 10. One process writes a file; what it starts ends with it; what it leaves is swept.
faults stall=60
"$drey" pull some/toy-GGUF -q 2>"$tmp/err1" &
first=$!
until_there "$here.part"
refused 1 "another process; wait" "$drey" pull some/toy-GGUF -q
refused 1 "another process; wait" "$drey" pull some/toy-GGUF -q --force
ends 0 "$drey" pull some/toy-GGUF -q --dry-run
curl=$(cat "/proc/$first/task/$first/children")
[ -n "$curl" ] || wrong "no curl was started"
kill -KILL $first
wait $first || true
lives() { # PID: it may have ended and not been waited for
    grep -qs "^State:.[^ZX]" "/proc/$1/status"
}
for _ in $(seq 100); do
    lives "${curl% }" || break
    sleep 0.1
done
! lives "${curl% }" || wrong "curl lives on"
[ -s "$here.part" ] || wrong "what had come is lost"
mkdir "$models/.headers-locked"
exec 9<"$models/.headers-locked" # as another process does
flock 9
faults
: >"$hub/log"
ends 0 "$drey" pull some/toy-GGUF -q
grep -qE "bytes=[1-9][0-9]*- " "$hub/log" || wrong "it was not continued: $(cat "$hub/log")"
[ -d "$models/.headers-locked" ] || wrong "another process's headers were removed"
exec 9<&-
rm "$here"
ends 0 "$drey" pull some/toy-GGUF -q
echo x >"$here.part.of" # as if it had ended just before it removed that
ends 0 "$drey" pull some/toy-GGUF -q
pulled "after a kill"

# 11. The draft that goes with a model: offered, taken along, or not. The model is here already, and
# mostly a hole; its header is all that comes.
faults
big=$hub/some/smol-GGUF/SmolLM2-Big-Q4_K_M.gguf draft=SmolLM2-135M-Instruct-Q4_K_M.gguf
drafts=$hub/bartowski/SmolLM2-135M-Instruct-GGUF
mkdir -p "${big%/*}" "$drafts" "$models"
tests/pull/family_model.py "$big" 1024 8192 9
tests/pull/family_model.py "$drafts/$draft" 256 256 1
cp --sparse=always "$big" "$models"
least=$(least "$drey" plan -m "$big" -d none --no-measure)
budget=$((${least%M} + 60))M # with some of it on the disk, and room for the draft
line="for SmolLM2: drey pull bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M, then about [0-9.]+ times as fast"
ends 0 "$drey" pull some/smol-GGUF --memory "$budget"
has "$tmp/err" "^$line$"
[ ! -e "$models/$draft" ] || wrong "a draft that nobody asked for is here"
ends 0 "$drey" plan -m SmolLM2-Big --no-measure --memory "$budget"
has "$tmp/out" "$line"
ends 0 "$drey" show smollm2-big
has "$tmp/out" "^  parameters +3[0-9]{2}M$"
! grep -q "^  draft" "$tmp/out" || wrong "in memory a draft does not pay: $(cat "$tmp/out")"
for more in "--memory $budget --no-draft" "--memory $budget -q" "--memory unlimited"; do
    # shellcheck disable=SC2086
    ends 0 "$drey" pull some/smol-GGUF $more
    ! grep -q "SmolLM2-135M" "$tmp/err" || wrong "$more: a draft is offered: $(cat "$tmp/err")"
done
tests/pull/family_model.py "$drafts/$draft" 256 256 1 other # its last token is another one
ends 0 "$drey" pull some/smol-GGUF --memory "$budget" --draft
has "$tmp/err" "draft bartowski/.* is left out: .*token 49151"
[ ! -e "$models/$draft" ] || wrong "a draft with other tokens is here"
tests/pull/family_model.py "$drafts/$draft" 256 256 1
ends 0 "$drey" pull some/smol-GGUF --memory "$budget" --draft --dry-run
has "$tmp/out" "^draft .*$draft"
[ ! -e "$models/$draft" ] || wrong "--dry-run downloaded a draft"
ends 0 "$drey" pull some/smol-GGUF -q --draft
same "--draft" "$drafts/$draft" "$models/$draft"
[ "$(cat "$tmp/out")" = "$models/${big##*/}" ] || wrong "--draft: $(cat "$tmp/out")"
for more in "" --draft; do # the folder has one
    # shellcheck disable=SC2086
    ends 0 "$drey" pull some/smol-GGUF --memory "$budget" $more
    has "$tmp/out" "^draft .*$draft"
    ! grep -q "drey pull" "$tmp/err" || wrong "a second draft is offered: $(cat "$tmp/err")"
done
same "a plan with neighbours" "$drafts/$draft" "$models/$draft"
rm "$models/$draft"
ends 0 python3 tests/pull/answers.py n "as well.*\[Y/n\]" "$drey" pull some/smol-GGUF --memory "$budget"
[ ! -e "$models/$draft" ] || wrong "n took the draft"
ends 0 python3 tests/pull/answers.py "" "as well.*\[Y/n\]" "$drey" pull some/smol-GGUF --memory "$budget"
same "Enter" "$drafts/$draft" "$models/$draft"
ends 0 "$drey" pull some/toy-GGUF --draft
has "$tmp/err" "no small model is known"
rm "$models"/*

# 12. A program that is missing.
faults
mkdir "$tmp/bin"
refused 1 "curl is not installed" env PATH="$tmp/bin" "$drey" pull some/toy-GGUF -q
exit $failed
