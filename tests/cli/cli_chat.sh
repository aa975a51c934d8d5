#!/usr/bin/env bash
# drey chat on a toy: from a pipe, where answers alone go to standard output; and on a terminal,
# with Ctrl-C, pasted lines and the history. The examples of docs/guide/chat.md are run as they
# are there.
#   cli_chat.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
export XDG_STATE_HOME=$tmp/state XDG_CACHE_HOME=$tmp/cache HOME=$tmp
cd "$tmp"
"$make_toy" model.gguf 3
"$make_toy" other.gguf 4
chat=("$drey" chat -m model.gguf -t 1)
talk() { "${chat[@]}" "$@" >out 2>err; } # standard input: what is typed
# Of each answer under -v: how many tokens its prompt has, and how many of them were reused.
cat >reuses.py <<'END'
import re
def reuses(path):
    found = re.findall(r"^  prompt +(\d+) tokens?(?: \((\d+) reused\))? in", open(path, errors="replace").read(), re.M)
    return [(int(reused or 0), int(total)) for total, reused in found]
END
said() { grep -qF -- "$1" err || wrong "\"$1\" was not said: $(cat err)"; }

# The answer is the one that drey run writes, and the same again on /retry.
"$drey" run -m model.gguf -t 1 -q --chat --system "Be brief." -n 12 -p hello >wanted
printf 'hello\n/retry\n' | talk --system "Be brief." -n 12 -v || wrong "a talk from a pipe failed"
cmp -s <(cat wanted; echo; cat wanted; echo) out || wrong "another answer than drey run's"
# All but the last token of what both have in common stays: of a text that is asked for again, all
# but one.
python3 - err <<'END' || wrong "reused tokens: $(cat err)"
import sys
from reuses import reuses
first, again = reuses(sys.argv[1])
assert first[0] == 0 and again[0] == again[1] - 1, (first, again)
END

# A second message: what comes before it is there still, the prompt of the first at least.
printf 'hello\nand \\\nthen\n' | talk -n 12 -q || wrong "-q: $(cat err)"
[ ! -s err ] || wrong "-q says something: $(cat err)"
mv out both
printf 'hello\nand \\\nthen\n' | talk -n 12 -v
python3 - err <<'END' || wrong "reused tokens: $(cat err)"
import sys
from reuses import reuses
first, second = reuses(sys.argv[1])
assert second[0] >= first[1] and second[1] > second[0], (first, second)
END
cmp -s both out || wrong "-q changes answers"

# Three turns, put together from their parts: whatever of a prompt has been computed before is not
# computed again.
reused() { sed -nE 's/^  prompt +([0-9]+ tokens?( \([0-9]+ reused\))?) in .*/\1/p' err; }
printf 'hello\nand \\\nthen\nso\n' | talk -n 12 -v
cp out three
reused >three.reused
python3 - "$drey" err <<'END' || wrong "several turns: $(cat err)"
import json, subprocess, sys
from reuses import reuses
drey = lambda *words, text=b"": subprocess.run([sys.argv[1], *words, "-m", "model.gguf"], input=text, check=True,
                                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
answers = reuses(sys.argv[2])
assert len(answers) == 3, answers
talk, computed = b"<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n", []
for message, (reused, total) in zip((b"hello", b"and \nthen", b"so"), answers):
    talk += b"<|im_start|>user\n" + message + b"<|im_end|>\n<|im_start|>assistant\n"
    ids = json.loads(drey("tokenize", "--special", text=talk))
    common = 0
    while common < min(len(computed), len(ids) - 1) and computed[common] == ids[common]:
        common += 1
    assert (reused, total) == (common, len(ids)), (reused, total, common, len(ids))
    open("talk", "wb").write(talk)
    written = list(map(int, drey("run", "-t", "1", "-q", "-n", "12", "--special", "--raw-ids", "-f", "talk").split()))
    computed = ids + written[:-1]  # the last one nobody has asked for yet
    talk += drey("tokenize", "--ids", text=json.dumps(written).encode()) + b"<|im_end|>\n"
assert common > 40, common
END

# A second try that writes nothing, as it begins with what stops it, leaves the first answer.
sampled=(--temp 1 --seed 1 -n 12)
printf 'hello\n/retry\n/save tried.2\n' | talk "${sampled[@]}" || wrong "/retry with --temp: $(cat err)"
printf 'hello\n/save tried.1\n' | talk "${sampled[@]}"
messages() { LC_ALL=C grep -aoP '\{"messages":.*?\}\]\}' "$1"; } # of a saved conversation
stop=$(python3 - "$(messages tried.1)" "$(messages tried.2)" <<'END'
import json, sys
first, second = (json.loads(note)["messages"][-1]["content"] for note in sys.argv[1:])
print(next(second[:n] for n in range(1, len(second)) if second[:n] not in first), end=".")
END
)
printf 'hello\n/retry\n/save tried.3\n' | talk "${sampled[@]}" --stop "${stop%.}" || wrong "/retry without an answer: $(cat err)"
said "the answer before stays"
said "saved 2 messages"
[ "$(messages tried.1)" = "$(messages tried.3)" ] || wrong "a second try that wrote nothing changed the conversation"

# An answer that was cut continues at its very token, so that the whole is the uncut one; without -n
# an answer has the context for it.
printf 'hello\n/more\n/save more.1\n' | talk -n 12 --temp 1 --seed 3 || wrong "/more: $(cat err)"
said "cut by n-predict: /more continues it"
printf 'hello\n/save more.2\n' | talk -n 24 --temp 1 --seed 3
[ "$(messages more.1)" = "$(messages more.2)" ] || wrong "/more: $(messages more.1) instead of $(messages more.2)"
printf 'hello\n/undo\n/more\n' | talk -n 12 && wrong "/more without an answer"
printf 'hello\n' | talk -c 100
said "cut, as the context is full: -c 200 has room for more"

# Saved and loaded it continues as if it had never ended; in another model, or damaged, it does not.
printf 'hello\n/save a talk\n' | talk -n 12 || wrong "/save: $(cat err)"
cp out first
printf '/load a talk\nand \\\nthen\n' | talk -n 12 || wrong "/load: $(cat err)"
cat first out | cmp -s - both || wrong "a loaded conversation continues in another way"
printf '/load a talk\nhello\n' | "$drey" chat -m other.gguf -t 1 -n 12 >out 2>err && wrong "another model's session was taken"
said "model"
[ -s out ] || wrong "a refused file ended the talk"
printf 'x' | dd of="a talk" bs=1 seek=2000 conv=notrunc status=none
printf '/load a talk\n' | talk -n 12 && wrong "a damaged session was taken"
printf '/load none\n' | talk && wrong "a session was loaded that is not there"

# A saved conversation that the plan of a small context has no room for is refused before it is
# read, and this one stays.
{ printf '/system ' && head -c 100000 /dev/zero | tr '\0' a && printf '\n/save long\n'; } | talk -c 20000 || wrong "/save: $(cat err)"
printf 'hello\n/load long\n/retry\n' | talk --system "Be brief." -n 12 -c 120 -v && wrong "a conversation of 100 KB was loaded"
said "the conversation in long takes"
cmp -s <(cat wanted; echo; cat wanted; echo) out || wrong "another answer after a conversation that was refused"
[[ $(reused | tail -n 1) =~ "("[1-9][0-9]*" reused" ]] || wrong "a conversation that was refused: $(reused)"
printf '/load long\n/reset\n' | talk -c 20000 || wrong "a long conversation was not loaded: $(cat err)"

# Commands.
# Settings, the last message taken back, a file in a message, a message of several lines.
printf 'hello\n/set temperature 1\n/set seed 1\n/undo\nhello\n/save set.1\n' | talk -n 12 || wrong "/set: $(cat err)"
printf 'hello\n/save set.2\n' | talk "${sampled[@]}"
[ "$(messages set.1)" = "$(messages set.2)" ] || wrong "/set or /undo: $(messages set.1)"
printf '/set temperature 1\n/set n-predict 7\n/set system Rhyme.\n/show\n' | talk || wrong "/show: $(cat err)"
for line in '^temperature  *1$' '^n-predict  *7$' '^system  *Rhyme.$' '^markdown  *on$'; do
    grep -q "$line" err || wrong "/show: $(cat err)"
done
grep -q '^\[temperature is 1\]$' err || wrong "/set says nothing: $(cat err)"
printf '/read\n' | talk || wrong "/read: $(cat err)"
printf '/set\n/set parameter temp=0.7\n/set top_k\n/set topk 3\n/set system\n/set verbose on\n/bye\nhello\n' | talk && wrong "/set topk"
for line in '^temperature  *0 (greedy' '^\[temperature is 0.7\]$' '^\[no system message\]$' '^\[verbose is on\]$' \
    'error: there is no setting topk; did you mean /set top-k 3?$'; do
    grep -q "$line" err || wrong "/set: $line: $(cat err)"
done
[ ! -s out ] || wrong "/bye does not end"
for bad in '/set markdown 1' '/set temperature hot' '/set warmth 1' '/undo' '/read no-such-file'; do
    printf '%s\n' "$bad" | talk && wrong "$bad: $(cat err)"
done
printf 'print(1)\n```\n' >a.py
printf '/read a.py\nWhat?\n"""\n/one\n\ntwo\\\n"""\n"""three"""\n/save read\n' | talk -n 12 || wrong "/read: $(cat err)"
python3 - "$(messages read)" <<'END' || wrong "/read, or triple quotes: $(messages read)"
import json, sys
said = [m["content"] for m in json.loads(sys.argv[1])["messages"] if m["role"] == "user"]
assert said == ["File a.py:\n````\nprint(1)\n```\n````\n\nWhat?", "/one\n\ntwo\\", "three"], said
END
printf 'a\0b' >a.bin
printf '/read a.bin\n' | talk && wrong "a file that is no text"
said "a.bin is no text file"

printf '/nope\n' | talk && wrong "an unknown command"
said "/help"
printf '/sav a talk\n/exit\nhello\n' | talk && wrong "an unknown command"
said "there is no command /sav; did you mean /save a talk?"
[ ! -s out ] || wrong "/exit does not end, or /sav was asked of the model"
printf '/retry\n' | talk && wrong "/retry without an answer"
printf '/stats\n' | talk && wrong "/stats without an answer"
printf '/help\n/system Be brief.\nhello\n/stats\n/budget\n/budget 64M\n/budget auto\n/reset\nhello\n/quit\nhello\n' | talk -n 12 ||
    wrong "commands: $(cat err)"
cmp -s <(cat wanted; echo; cat wanted; echo) out || wrong "commands change answers, or /quit does not end"
for part in /reset /retry "/save FILE" "/load FILE" "/system TEXT" "/budget [SIZE]" /stats /help /quit "system message is set" "tokens/s" "smallest" "a new conversation"; do said "$part"; done
printf '/budget 1M\nhello\n' | talk --system "Be brief." -n 12 && wrong "a budget that is too small"
said "budget"
! grep -qF -- "--" err || wrong "an option is named to who can give none: $(cat err)"
cmp -s <(cat wanted; echo) out || wrong "the old budget did not come back"
# Within another budget a conversation continues as if nothing had happened, and nothing of it is
# left in the cache folder.
printf 'hello\n/budget 64M\nand \\\nthen\n/budget 1M\nso\n' | talk -n 12 -v && wrong "a budget that is too small"
cmp -s three out || wrong "another budget, another answer"
reused | cmp -s three.reused - || wrong "with other budgets $(reused) instead of $(cat three.reused)"
[ -z "$(find cache -name '*session*')" ] || wrong "left in the cache folder: $(find cache)"
printf 'hello\n/budget 64M\nand \\\nthen\nso\n' | env -u HOME -u XDG_CACHE_HOME "${chat[@]}" -n 12 >out 2>err ||
    wrong "without a cache folder: $(cat err)"
cmp -s three out || wrong "another answer without a cache folder"
said "computed again: there is no cache directory"
cp other.gguf "kept model.gguf"
printf '/save kept model.gguf\n' | talk && wrong "a model that is written over"
cmp -s other.gguf "kept model.gguf" || wrong "a model was written over"
printf '/save no/folder/here\n' | talk && wrong "a folder that is not there"
said "cannot write"
! grep -qF -- "--" err || wrong "an option is named to who can give none: $(cat err)"

# What does not fit is said, and nothing is cut.
printf 'hello\n%s\nhello\n' "$(printf 'word %.0s' {1..60})" | talk -n 12 -c 120 && wrong "a message beyond the context"
said "nothing was cut"
printf 'hello\n' | talk -n 64 -c 64 || wrong "a context that is nearly full: $(cat err)"
said "nearly full"
# A message that no context holds is refused while it is read, to the end of its last line; what
# follows is another one.
{ head -c 30000000 /dev/zero | tr '\0' a && printf '\\\nmore\nhello\n'; } | talk --system "Be brief." -n 12 -c 120 -q &&
    wrong "a message of 30 MB"
said "the message has more than"
[ "$(wc -l <err)" = 1 ] || wrong "a message of 30 MB: $(cat err)"
cmp -s <(cat wanted; echo) out || wrong "another answer after a message of 30 MB"
{ printf '/system ' && head -c 1000000 /dev/zero | tr '\0' a; } | talk -c 120 -q && wrong "a system message of 1 MB"
said "the message has more than"
rm err
"${chat[@]}" -c 120 -q </dev/zero >out 2>err &
until [ -s err ] || ! kill -0 $!; do sleep 0.1; done
kill -INT $!
wait $! && wrong "a message without an end"
said "the message has more than"
# Beginnings of texts that are kept, in memory and beyond the process: the system message is not
# computed twice.
long=$(printf 'word %.0s' {1..80})
printf '/system %s\nhello\n/system short\nhello\n/system %s\nhello\n' "$long" "$long" | talk -n 8 --prefix-folder beginnings
cp out first
printf '/system %s\nhello\n' "$long" | talk -n 8 -v --prefix-folder beginnings || wrong "kept beginnings: $(cat err)"
cmp -s <(head -c "$(wc -c <out)" first) out || wrong "another text from what was kept"
said "185 tokens (184 reused)" # all but the last token
# On a disk that is full they are kept in memory alone, which is said once. A sanitizer that writes
# files cannot run under the limit.
if ! grep -qa __tsan_init "$drey"; then
    printf '/system %s\nhello\n/system short\nhello\n/system %s\nhello\n' "$long" "$long" |
        (ulimit -f 4 && talk -n 8 --prefix-folder full) || wrong "a full disk: $(cat err)"
    cmp -s first out || wrong "another text with a full disk"
    [ "$(grep -c "cannot be written to their folder" err)" = 1 ] || wrong "a full disk: $(cat err)"
    [ -z "$(find full -type f)" ] || wrong "on a full disk: $(find full)"
fi

printf 'a\0b\n' | talk && wrong "a NUL byte"
"$drey" chat -m model.gguf </dev/null >out 2>err || wrong "no message at all: $(cat err)"

# The examples of the page.
mkdir bin
ln -s "$drey" bin/drey
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/docs/guide/chat.md" >examples
[ "$(wc -l <examples)" -ge 4 ] || wrong "docs/guide/chat.md has no examples"
ln -s model.gguf big.gguf
ln -s model.gguf small.gguf
PATH=$PWD/bin:$PATH bash -e examples </dev/null >out 2>err || wrong "an example of docs/guide/chat.md: $(cat err)"
[ "$(wc -l <out)" -ge 6 ] || wrong "examples wrote too little"

if python3 -c 'import ctypes; ctypes.CDLL("libedit.so.2")' 2>/dev/null; then
    # libedit forgets the names of functions that were added to it.
    echo "leak:wcsdup" >forgotten
    LSAN_OPTIONS="suppressions=$PWD/forgotten:print_suppressions=0" python3 "$root/tests/cli/chat_terminal.py" "$drey" ||
        wrong "on a terminal"
else
    echo "not run: there is no libedit.so.2, so no line was edited"
    python3 "$root/tests/cli/chat_terminal.py" "$drey" --without-libedit || wrong "on a terminal without libedit"
fi
exit $failed
