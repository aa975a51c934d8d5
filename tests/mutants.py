#!/usr/bin/env python3
"""Breaks one promise of README.md or ARCHITECTURE.md at a time, and shows which test sees it.

    tests/mutants.py [--build DIR] [--only WORD] [--list]

Each row of MUTANTS changes one place of a copy of the committed sources, rebuilds, and runs the
tests that should see it: "killed" is good, "SURVIVES" asks for a test. Run by hand, with half an
hour and a build that ccache helps; exits with 1 if one survives. A row whose place is not there any
more is an error: the code has changed, and so has the row.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Promise; file; what is there once; what the mutant has instead; the tests, as ctest -R takes them.
MUTANTS = [
    # The same text.
    ("the target alone decides", "src/tree/accept.c", "child < 0 || at->row_of[child] < 0", "child < 0 && (child = node + 1 < tree->n_nodes ? node + 1 : -1) < 0", "^test_accept$"),
    ("a guess without a row is not accepted", "src/tree/accept.c", "child < 0 || at->row_of[child] < 0", "child < 0", "^test_(accept|provisional|overlap)$"),
    ("only lossy policies accept what is near", "src/tree/accept.c", "rollback > 0 && i < tree->n_nodes; i++)\n        if (tree->nodes[i].parent == node && row_of[i] >= 0 &&\n            distance(s, logits, tree->nodes[i].token) < (double)rollback)", "i < tree->n_nodes; i++)\n        if (tree->nodes[i].parent == node && row_of[i] >= 0 &&\n            distance(s, logits, tree->nodes[i].token) < (double)rollback + 1)", "^test_(accept|matrix)$"),
    ("noise depends on the position", "src/sample/sampler.c", "mix(mix(seed + GOLDEN) + (uint64_t)position)", "mix(mix(seed + GOLDEN))", "^test_sampler$"),
    ("noise depends on the token", "src/sample/sampler.c", "mix(key + (uint64_t)(id + 1) * GOLDEN)", "mix(key + GOLDEN)", "^test_sampler$"),
    ("ties are decided by the id", "src/sample/sampler.c", "(a.logit == b.logit && a.id < b.id)", "(a.logit == b.logit && a.id > b.id)", "^test_sampler$"),
    ("a window hides what is before it", "src/kernel/attend.c", "        if (i == r->first_block)\n            hide_rows(r);", "        if (i < 0)\n            hide_rows(r);", "^test_(kernel_attend|pass|logits)$"),
    ("kept branches keep their ancestors", "src/state/cache.c", "c->depth[keep[i]] - n_path", "c->depth[keep[i]]", "^test_(reroot|matrix|kv)$"),
    ("a grammar binds what is written", "src/sample/sampler.c", "token >= 0 && grammar_allows(at.grammar, at.place, token)", "token >= 0", "^test_(grammar_texts|grammar_masks|json_schema)$"),
    ("drafted text is not verified text", "src/session/provisional_text.c", "if (same < p->n_shown)", "if (same > p->n_shown)", "^test_provisional_text$"),
    # Early exits.
    ("something leaves in exact", "src/session/exits/exit_watch.c", "s->state == SESSION_DECODE && has_room(s, 1) &&", "s->state == SESSION_DECODE && has_room(s, 1) && s->engine->config.exit != DREY_EXIT_EXACT &&", "^test_exits$"),
    ("paths leave in exact", "src/session/exits/exit_watch.c", "(group->n == 1 || has_part(s, DREY_PART_HYPER))", "(group->n == 1 || (has_part(s, DREY_PART_HYPER) && s->engine->config.exit != DREY_EXIT_EXACT))", "^test_hyper_tokens$"),
    ("paths leave", "src/session/exits/exit_watch.c", "(group->n == 1 || has_part(s, DREY_PART_HYPER))", "group->n == 1", "^test_hyper_tokens$"),
    ("exact replaces what differs", "src/session/exits/exit_finish.c", "        *left = token;\n", "", "^test_exits$"),
    ("exact hands out verified text alone", "src/session/turn.c", "stopped && observer->holds_back\n", "false && observer->holds_back\n", "^test_(exits|hyper_tokens)$"),
    # Drafting while weights load.
    ("nodes are drafted while a pass waits", "src/session/overlap.c", "return s->state == SESSION_DECODE && s->drafter->class->steps &&", "return false && s->drafter->class->steps &&", "^test_overlap$"),
    ("a pass that can continue is noticed", "src/session/overlap.c", "return pass_ready(((overlap_work *)user)->waits);", "return user == NULL;", "^test_overlap$"),
    ("the disk does not wait for a draft", "src/policy/slices.c", "room <= 0 || ", "", "^test_slices$"),
    # Memory.
    ("caches are in the budget", "src/plan/plan.c", "t->ring_bytes + t->kv_bytes + t->work_bytes", "t->ring_bytes + t->work_bytes", "^test_plan|^budget$"),
    ("a reserve is in the budget", "src/engine/gather.c", "slack_bytes + max_u64(cached, least_cached_bytes)", "max_u64(cached, 0)", "^test_plan|^budget$"),
    ("auto is what a group leaves", "src/os/memory.c", "least / 105 * 100", "least", "^test_memory$"),
    ("reads leave no page cache", "src/os/file.c", "posix_fadvise(f->fd, (off_t)begin, (off_t)(end - begin), POSIX_FADV_DONTNEED);", "(void)f, (void)begin, (void)end;", "^test_(file|gguf_files|stream)$"),
    ("decoding allocates nothing", "src/session/turn.c", "    int32_t root = s->n_timeline - 1;\n    if (!stopped)", "    int32_t root = s->n_timeline - 1;\n    extern void *malloc(size_t), free(void *);\n    void *volatile mutant = malloc(64);\n    free(mutant);\n    if (!stopped)", "^test_no_allocation$"),
    # Files.
    ("a sidecar of another model is refused", "src/weights/sidecar.c", ": w->header_hash != g->header_hash ? \"header\"", ": false ? \"header\"", "^test_sidecar$|^cli_prepare$"),
    ("a sidecar that is older is refused", "src/weights/sidecar.c", ": w->changed_s != g->changed_s || w->changed_ns != g->changed_ns", ": false", "^test_sidecar$|^cli_prepare$"),
    ("a session of another kind of cache is refused", "src/store/session_file.c", "if (h->origin.format != mine->format || h->origin.arithmetic != mine->arithmetic)", "if (false)", "^test_session_file$"),
    ("a damaged session is refused", "src/store/session_file.c", "h->n_bytes != sizeof *h || h->hash != header_hash(h) ||", "h->n_bytes != sizeof *h ||", "^test_session_file$|^fuzz_session_replay$"),
    ("a timeline keeps the common beginning alone", "src/session/timeline.c", "while (same < most && s->timeline[same] == ids[same])", "while (same < most)", "^test_(sessions|session_file|engine)$"),
    # Units and devices.
    ("others take over what a failed device had", "src/unit/units.c", "us->unit[us->worker[from].unit].failed)\n        return left;", "us->unit[us->worker[from].unit].failed)\n        return 0;", "^test_(units|opencl)$"),
    ("a failed device's groups may be taken", "src/unit/units.c", " || us->unit[of].failed;", ";", "^test_(units|opencl)$"),
    # The server.
    ("without the key there is no answer", "serve/net/access.c", "if (needs_key && !access_shows_key(rules, h))", "if (false && needs_key)", "^serve(_bad)?$"),
    ("foreign pages may not ask", "serve/net/access.c", "if (h->origin.text && !is_own_page(h) && !is_foreign_page_allowed(rules, h))", "if (false && is_foreign_page_allowed(rules, h) && is_own_page(h))", "^serve(_bad)?$"),
    ("foreign names of this server are refused", "serve/net/access.c", "!rules->is_unix && h->host.text && !is_our_name(rules, h->host))", "!rules->is_unix && h->host.text && !is_our_name(rules, h->host) && false)", "^serve(_bad)?$"),
]


def run(*command, stderr=subprocess.STDOUT):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True)


def programs(build, pattern):
    """The targets of these tests: for scripts all, which run what they like."""
    shown = run("ctest", "--test-dir", build, "--show-only=json-v1", "-R", pattern, stderr=None).stdout
    commands = [pathlib.Path(t["command"][0]) for t in json.loads(shown)["tests"]]
    if not commands:
        sys.exit(f"no test is called {pattern}")
    return [c.name if c.is_relative_to(build) else "all" for c in commands]


def verdict(build, pattern):
    targets = programs(build, pattern)
    made = run("ninja", "-C", build, *(["all"] if "all" in targets else targets))
    if made.returncode:
        return "does not compile", made.stdout[-600:]
    done = run("ctest", "--test-dir", build, "-R", pattern, "--timeout", "900", "--stop-on-failure")
    failed = re.findall(r"- (\S+) \(", done.stdout)
    return ("killed", ", ".join(failed)) if done.returncode else ("SURVIVES", pattern)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", help="a folder for the copy and its build, kept for the next run")
    options.add_argument("--only", default="", help="promises or files that hold this word")
    options.add_argument("--list", action="store_true", help="only name them")
    o = options.parse_args()
    rows = [m for m in MUTANTS if o.only in m[0] or o.only in m[1]]
    if o.list:
        return print("\n".join(f"{m[0]}  ({m[1]})" for m in rows))
    folder = pathlib.Path(o.build or tempfile.mkdtemp(prefix="drey-mutants-"))
    copy = folder / "drey"
    if not copy.exists():
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, copy], check=True)
    subprocess.run(["git", "-C", copy, "fetch", "-q", ROOT, "HEAD"], check=True)
    subprocess.run(["git", "-C", copy, "reset", "-q", "--hard", "FETCH_HEAD"], check=True)
    build = str(copy / "build")
    subprocess.run([copy / "scripts/build.sh", build, "-DBUILD_TESTING=ON", "-DDREY_NVCC="], check=True)
    n_bad = 0
    print("| promise | file | verdict | by |\n|---|---|---|---|")
    for promise, name, old, new, pattern in rows:
        path, began = copy / name, time.monotonic()
        text = path.read_text()
        if text.count(old) != 1:
            said, by = "NO SUCH PLACE", f"{text.count(old)} times"
        else:
            path.write_text(text.replace(old, new))
            said, by = verdict(build, pattern)
            path.write_text(text)
        n_bad += said != "killed"
        print(f"| {promise} | {name} | {said} | {by} |", flush=True)
        print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(n_bad > 0)


if __name__ == "__main__":
    main()
