"""Counts texts that stay the same when only the way of computing them changes.

Each engine writes two texts after each prompt, one at temperature 0 and one with a seed, and is
compared with nothing but itself: its reference is its own plain decoding on one thread. drey does
this by `drey verify`. A peer's llama-server writes the reference and then the same texts with more
threads, shorter passes, without flash attention, with a draft model, with lookup, and four at the
same time; everything else is as the server has it by default.

Prompts are taken in blocks of which all engines write all ways, so that what is there so far can be
compared; a run that was ended continues with the texts that --results lacks. Texts do not depend on
what else the machine does. --show prints the tables of several such files together."""
import concurrent.futures
import contextlib
import json
import os
import subprocess

from record import table
from server import ask, running
from sides import DRAFT, HERE, TARGET, Stop, chosen, commit_of, peer_arguments, peers_of
from texts import Results, hash_of, path_of, read_prompts

PROMPTS = [f"{HERE}/scripts/bench/prompts.jsonl", f"{HERE}/cli/prompts/training_prompts.jsonl"]  # 20 and 80
REFERENCE = "no draft, one thread: the reference"  # as drey verify names it
COLUMNS = ("side version target draft way prompts n_predict greedy greedy_equal seeded seeded_equal tokens accepted "
           "greedy_text seeded_text run")
AT_ONCE, CONTEXT = 4, 2048
DRAFTED = "draft model"
TEMPERATURE, SEED = 0.8, 1


def add_arguments(p):
    peer_arguments(p, "llama-server; FOLDER=VERSION where it is in no checkout")
    p.add_argument("--results", metavar="FILE", required=True, help="CSV file to continue; --show: several, by commas")
    p.add_argument("--show", action="store_true", help="the tables of --results again; nothing is written")
    p.add_argument("--prompts", nargs="+", default=PROMPTS, metavar="FILE",
                   help="one JSON object on each line (default 100 of drey's own)")
    p.add_argument("--most", type=int, default=100, help="prompts (default 100)")
    p.add_argument("--block", type=int, default=10, help="prompts of which all ways are written in turn (default 10)")
    p.add_argument("--tokens", type=int, default=64, help="of each text (default 64)")
    p.add_argument("--target", default=TARGET, help=f"model (default {TARGET})")
    p.add_argument("--draft", default=DRAFT, help="draft model of all engines (default the 0.5B)")
    p.add_argument("--ways", help="of the peers, next to the reference; some of: " + "; ".join(ways_of(None, "", "2")))
    p.add_argument("--parts", default="drey,peers", help="drey, peers or both (default)")
    p.add_argument("--more", default="", metavar="WORDS", help="further options of drey verify, in one word")


def run(args, drey, record):
    if args.show:
        return show([r for path in args.results.split(",") for r in Results(path, COLUMNS).rows])
    parts, results = chosen(args.parts, ("drey", "peers"), "part"), Results(args.results, COLUMNS)
    peers = peers_with_versions(args, record) if "peers" in parts else []
    if args.ways:
        args.ways = chosen(args.ways, {w for p in (None, *(p for p, _ in peers)) for w in ways_of(p, "", drey.threads)},
                           "way", ";")
    prompts = [p for path in args.prompts for p in read_prompts(path)][:args.most]
    for number, prompt in enumerate(prompts, 1):
        prompt["number"] = number  # ids may be the same in two files
    failed, version = set(), commit_of(drey.program)
    for at in range(0, len(prompts), args.block):
        block = prompts[at:at + args.block]
        if "drey" in parts:
            of_drey(args, drey, results, block, version)
        for peer, of in peers:
            of_peer(args, drey, results, block, peer, of, failed)
    return show(results.rows) or bool(failed)


def row_of(args, side, version, way, prompts, draft):
    return {"side": side, "version": version, "target": os.path.basename(args.target),
            "draft": os.path.basename(args.draft) if draft else "none", "way": way, "prompts": prompts,
            "n_predict": args.tokens}


# ---- drey

def of_drey(args, drey, results, block, version):
    """A line for each way of `drey verify` and block of prompts."""
    row = row_of(args, "drey", version, REFERENCE, f"{block[0]['number']}-{block[-1]['number']}", True)
    if results.has(row):
        return
    given, out = drey.path("prompts.jsonl"), drey.path("verify.json")
    with open(given, "w") as f:
        f.writelines(p["line"].rstrip("\n") + "\n" for p in block)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(out)
    done = subprocess.run(
        [drey.program, "verify", "-m", drey.model(args.target), "-d", path_of(drey, args.draft), "--prompts", given,
         "-n", str(args.tokens), "--temp", str(TEMPERATURE), "--seed", str(SEED), "-t", drey.threads, "--json", out,
         "-q", *args.more.split()],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if not os.path.exists(out):  # 1 with the file: texts differ
        raise Stop("drey verify failed: " + done.stderr.decode(errors="replace")[-1000:])
    with open(out) as f:
        ways = json.load(f)["ways"]
    for way in ways[1:] + ways[:1]:  # the reference, by which a block is known to be there, last
        if way.get("not_run"):
            print(f"drey, {way['way']}: not run: {way['not_run']}")
            continue
        greedy, greedy_equal = way["greedy_texts"], way["greedy_equal"]
        results.add({**row, "way": way["way"], "greedy": greedy, "greedy_equal": greedy_equal,
                     "seeded": way["texts"] - greedy, "seeded_equal": way["equal"] - greedy_equal,
                     "tokens": way["tokens"], "accepted": way["accepted"], "greedy_text": "", "seeded_text": ""})
    print(f"drey, prompts {row['prompts']}: " +
          f"{sum(w['equal'] for w in ways)} of {sum(w['texts'] for w in ways)} texts", flush=True)


# ---- The peers

def ways_of(peer, draft, threads):
    """{name: options} of a peer's server; none: of llama.cpp's, for their names. The first is the
    reference. llama.cpp drafts 3 tokens by default; the fork takes the number with the way."""
    ik = bool(peer and peer.repacks)
    drafts = {f"{DRAFTED}, up to 16 tokens": ["-md", draft, "--spec-type", "draft:n_max=16"]} if ik else {
        f"{DRAFTED}{what}": ["-md", draft, "--spec-type", "draft-simple", *most]
        for what, most in (("", []), (", up to 16 tokens", ["--spec-draft-n-max", "16"]))}
    ways = {REFERENCE: [], f"no draft, {threads} threads": ["-t", threads],
            "prompts in passes of 32 rows": ["-b", "32", "-ub", "32"],
            "no flash attention": ["-no-fa"] if ik else ["-fa", "off"], **drafts,
            "lookup": ["--spec-type", "ngram-cache"],
            f"{AT_ONCE} texts at the same time": ["-np", str(AT_ONCE), "-c", str(AT_ONCE * CONTEXT)]}
    return ways | ({"weights repacked": ["-rtr"]} if ik else {})


def peers_with_versions(args, record):
    folders = [f.split("=") for f in args.peers]
    peers = peers_of([f[0] for f in folders], args.threads, record)
    for peer in peers:
        if not peer.has("llama-server"):
            raise Stop(f"{peer.folder} has no llama-server")
    return [(peer, f[1] if len(f) > 1 else commit_of(f[0])) for peer, f in zip(peers, folders)]


def of_peer(args, drey, results, block, peer, version, failed):
    """A line for each way and prompt. A way that a peer cannot go is passed over from then on."""
    ways = ways_of(peer, drey.model(args.draft), peer.threads)
    for way in [REFERENCE, *(w for w in args.ways if w in ways)] if args.ways else ways:
        rows = {p["number"]: row_of(args, peer.name, version, way, p["number"], way.startswith(DRAFTED)) for p in block}
        lacking = [p for p in block if not results.has(rows[p["number"]])]
        if not lacking or (peer.name, way) in failed:
            continue
        try:
            # Both with the model's own template. What is named twice counts as it is named last.
            with running([f"{peer.folder}/llama-server", "-m", drey.model(args.target), "-t", "1", "-np", "1", "-c",
                          str(CONTEXT), "--jinja", *ways[way]], peer.env) as address:
                write_block(args, results, address, lacking, rows)
        except (Stop, OSError, KeyError) as error:
            failed.add((peer.name, way))
            print(f"{peer.name}, {way}: {str(error)[-300:]}", flush=True)
            continue
        done = [results.rows[-i - 1] for i in range(len(lacking))]
        if way.startswith(DRAFTED) and not any(int(r["accepted"]) for r in done):
            raise Stop(f"{peer.name} has accepted no drafted token: have its options changed (ways_of)? "
                       f"Remove these lines from {args.results}")
        print(f"{peer.name}, {way}, prompts {block[0]['number']}-{block[-1]['number']}: " + ", ".join(
            f"{sum(int(r[kind + '_equal']) for r in done)} of {len(done)} {kind}" for kind in ("greedy", "seeded")),
            flush=True)


def write_block(args, results, address, prompts, rows):
    at_once = AT_ONCE if rows[prompts[0]["number"]]["way"].startswith(f"{AT_ONCE} texts") else 1
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        pairs = pool.map(lambda p: (p, write_pair(address, p, args.tokens)), prompts)
        for prompt, pair in pairs:
            results.add({**rows[prompt["number"]], **compared(pair, results.rows, rows[prompt["number"]])})


def write_pair(address, prompt, tokens):
    """The answers with the texts after a prompt, greedy and seeded."""
    text = prompt["prompt"] or ask(address, "/apply-template", {
        "messages": [{"role": "user", "content": prompt["turn"]}]})["prompt"]
    return [ask(address, "/completion", {"prompt": text, "n_predict": tokens, "temperature": temperature, "seed": SEED,
                                         "cache_prompt": False, "return_tokens": True})
            for temperature in (0, TEMPERATURE)]


def compared(pair, rows, row):
    """Returns what a pair of texts adds to its line: whether they are those of the reference."""
    of = {"tokens": 0, "accepted": 0}
    reference = row if row["way"] == REFERENCE else next(
        r for r in rows if r["way"] == REFERENCE and r["draft"] == "none" and
        all(r[k] == str(row[k]) for k in ("side", "version", "target", "prompts", "n_predict")))
    for kind, answer in zip(("greedy", "seeded"), pair):
        # Ids where the server has them, else bytes.
        text = hash_of(answer.get("tokens") or answer["content"].encode())
        timings = answer.get("timings", {})
        of |= {kind: 1, f"{kind}_text": text, f"{kind}_equal": int(reference.get(f"{kind}_text", text) == text)}
        of["tokens"] += timings.get("predicted_n", answer.get("tokens_predicted", 0))
        of["accepted"] += timings.get("draft_n_accepted", 0)
    return of


# ---- Tables

def show(rows):
    """One for each target and length of texts; 1 if a text of drey's differs."""
    cases = dict.fromkeys((r["target"], r["n_predict"]) for r in rows)
    for target, tokens in cases:
        lines = []
        of_case = [r for r in rows if (r["target"], r["n_predict"]) == (target, tokens)]
        for key in dict.fromkeys((r["side"], r["version"]) for r in of_case):
            of_side = [r for r in of_case if (r["side"], r["version"]) == key]
            for way in sorted(dict.fromkeys(r["way"] for r in of_side), key=lambda w: w != REFERENCE):
                lines.append([" ".join(key), way, *counts([r for r in of_side if r["way"] == way])])
        drafts = sorted({r["draft"] for r in of_case} - {"none"})
        table(f"Texts that are those of the engine's own reference: {target}, {tokens} tokens, draft "
              f"{', '.join(drafts) or 'none'}", ["engine", "way", "greedy", "seeded", "tokens", "accepted"], lines)
    return int(any(r[k] != r[f"{k}_equal"] for r in rows if r["side"] == "drey" for k in ("greedy", "seeded")))


def counts(rows):
    total = lambda column: sum(int(r[column]) for r in rows)
    return [f"{total(k + '_equal')} of {total(k)}" for k in ("greedy", "seeded")] + [
        str(total("tokens")), str(total("accepted") or "-")]
