#!/usr/bin/env python3
"""scripts/bench with a toy model and peers that only claim speeds: turns, medians, the better of a peer's
ways, and what is said of a side that fails.
    bench_module.py DREY MAKE_TOY"""
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import xml.dom.minidom

DREY, MAKE_TOY = map(os.path.abspath, sys.argv[1:3])
HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# $1: decode rates of the rounds without and with repacking; the n-th call of its kind gets the n-th.
PEER = """#!/bin/sh
case "$*" in
*--help*) {help} exit 0 ;;
*"-n 0"*) printf '[{{"n_prompt": 8, "n_gen": 0, "avg_ts": 80}}]'; exit 0 ;;
*-rtr*) rates="{repacked}" count="$0.repacked" ;;
*) rates="{plain}" count="$0.plain" ;;
esac
echo x >> "$count"
rate=$(echo $rates | cut -d' ' -f$(wc -l < "$count"))
printf '[{{"n_prompt": 512, "n_gen": 0, "avg_ts": 100, "build_number": 7, "build_commit": "c"}},'
printf '{{"n_prompt": 0, "n_gen": 128, "avg_ts": %s, "build_number": 7, "build_commit": "c"}}]' $rate
"""


def program(folder, text):
    os.mkdir(folder)
    path = os.path.join(folder, "llama-bench")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return folder


def bench(*words, status=0):
    done = subprocess.run([sys.executable, f"{HERE}/scripts/bench", words[0], "--drey", DREY, *words[1:]],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == status, done.stdout
    return done.stdout


def values(path):
    found = {}
    with open(path) as f:
        for row in csv.DictReader(f):
            if row["case"] != "run":
                found.setdefault((row["side"], row["metric"]), []).append(float(row["value"]))
    return found


def row_of(out, title):
    row = next(line for line in out.split("\n") if line.startswith(f"| {title} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def ratios(ours, theirs):
    each = [a / b for a, b in zip(ours, theirs)]
    return f"{statistics.median(each):.2f} (" + " ".join(f"{v:.2f}" for v in each) + ")"


def versus(folder, toy):
    plain = program(f"{folder}/plain", PEER.format(help="echo no such;", plain="50 40", repacked=""))
    both = program(f"{folder}/both", PEER.format(help="echo --run-time-repack;", plain="30 50",
                                                 repacked="45 44"))
    out = bench("versus", plain, both, "--parts", "memory", "--files", toy, "--rounds", "2", "--no-passes",
                "--csv", f"{folder}/csv")
    got = values(f"{folder}/csv")
    ours = got[("drey", "decode_tokens_per_s")]
    assert len(ours) == 2 and min(ours) > 0, got
    cells = row_of(out, "decode, tokens/s")
    assert cells[2:] == ["45", ratios(ours, (50, 40)), "44.5 repacked", ratios(ours, (45, 44))], cells
    assert ("drey", "pass_8_s") in got and ("llama.cpp", "pass_8_s") not in got
    assert "ik_llama.cpp+repack: build 7 (c)" in out, out


def against(folder, toy):
    out = bench("against", DREY, "--files", toy, "--rounds", "1", "--prompt-tokens", "8", "--decode-tokens",
                "4", "--csv", f"{folder}/csv")
    got = values(f"{folder}/csv")
    seconds = [got[(side, "pass_8_s")] for side in ("other", "drey")]  # less is better: the other above
    each = [a / b for a, b in zip(*seconds)]
    assert f"{statistics.median(each):.3f} (" in row_of(out, "pass of 8, ms")[3], out
    with open(f"{folder}/csv") as f:
        about = [row[1] for row in csv.reader(f) if row[0] == "run"]
    assert {"machine", "drey", "other"} <= set(about), about


SERVER = """#!/usr/bin/env python3
import http.server, json, sys
drafts = "-md" in sys.argv


class Answer(http.server.BaseHTTPRequestHandler):
    def answer(self, what):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(what).encode())

    def do_GET(self):
        self.answer({})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert ("prompt" in asked) == (self.path == "/completion")
        n = asked["n_predict"]
        self.answer({"timings": {"predicted_n": n, "predicted_per_second": 7 if drafts else 5,
                                 "predicted_ms": 100, "prompt_ms": 10, "draft_n": 6 * drafts,
                                 "draft_n_accepted": 4 * drafts}})


assert sys.argv[sys.argv.index("--port") + 1] == "0", "a port that another may have by now"
server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
print(f"main: server is listening on http://127.0.0.1:{server.server_port} - starting", file=sys.stderr, flush=True)
server.serve_forever()
"""


def edge(folder, toy):
    peer = program(f"{folder}/server", PEER.format(help="echo no such;", plain="1", repacked=""))
    with open(f"{peer}/llama-server", "w") as f:
        f.write(SERVER)
    os.chmod(f"{peer}/llama-server", 0o755)
    words = ["edge", peer, "--results", f"{folder}/edge", "--target", toy, "--draft", toy, "--limits", "0",
             "--per-group", "1", "--tokens", "12", "--peer-memory-tokens", "9", "--peer-drafts", "3:0"]
    out = bench(*words)
    with open(f"{folder}/edge") as f:
        rows = list(csv.DictReader(f))
    assert sorted((r["prompt"], r["side"]) for r in rows) == sorted(
        (p, s) for p in ("code-1", "chat-1") for s in ("spl", "optimal", "llama.cpp", "llama.cpp draft 3"))
    speed = {(r["prompt"], r["side"]): float(r["tokens_per_s"]) for r in rows}
    assert speed["code-1", "llama.cpp"] == 5 and speed["code-1", "llama.cpp draft 3"] == 7
    assert {r["tokens_per_pass"] for r in rows if r["side"] == "llama.cpp draft 3"} == {"2.0"}
    assert row_of(out, "llama.cpp")[1] == "5", out
    again = bench(*words)  # all is there
    assert again.count("tokens/s,") == 0 and row_of(again, "optimal") == row_of(out, "optimal"), again
    told = subprocess.run([DREY, "bench", "edge", "-m", toy, "-d", toy, "--prompts",
                           f"{HERE}/scripts/bench/prompts.jsonl", "--policies", "optimal", "--csv",
                           f"{folder}/edge", "--memory", "unlimited", "-n", "12", "-q"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    assert "| llama.cpp draft 3 | 7 |" in told, told  # drey tells of the peer, too
    name = os.path.basename(toy)
    subprocess.run([sys.executable, f"{HERE}/scripts/draw-budgets.py", f"{folder}/edge", "--target", name,
                    "--draft", name, "-o", f"{folder}/svg"], check=True)
    picture = xml.dom.minidom.parse(f"{folder}/svg")
    lines = [e.getAttribute("class") for e in picture.getElementsByTagName("polyline")]
    assert sorted(lines) == ["line a", "line a chat", "line b", "line b chat", "line c", "line c chat"], lines


def failures(folder, toy):
    broken = program(f"{folder}/broken", "#!/bin/sh\necho no luck >&2; exit 3\n")
    out = bench("versus", broken, "--parts", "memory", "--files", toy, status=1)
    assert "failed: " in out and "no luck" in out, out
    assert "no part" in bench("stream", "--parts", "sideways", status=1)
    assert "fetches models" in bench("sessions", "--models", folder, status=1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        toy = f"{folder}/toy.gguf"
        subprocess.run([MAKE_TOY, toy], check=True)
        for part in (versus, against, edge, failures):
            part(folder, toy)


if __name__ == "__main__":
    main()
