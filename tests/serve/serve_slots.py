"""Sessions that clients save, restore and erase: texts stay the same, and nothing but files in the
named folder is touched. serve_slots.py DREY FOLDER: where toy.gguf lies"""

import resource

from serve_client import *

drey, folder = sys.argv[1:]
model, kept = f"{folder}/toy.gguf", f"{folder}/slots"
prompt = "The tree is not for the draft, and the leaves are not for the root."


def ask(s, slot, text=prompt, **more):
    status, answer = s.post("/completion", dict(prompt=text, n_predict=16, id_slot=slot, ignore_eos=True, **more))
    check(status == 200, f"a text: {answer}")
    return answer["content"], answer["timings"]["cache_n"], answer["tokens_evaluated"]


def act(s, slot, action, name=None):
    return s.post(f"/slots/{slot}?action={action}", {"filename": name} if name is not None else {})


def saved_and_restored(s):
    wanted, cached, n_prompt = ask(s, 1)
    check(cached == 0, "nothing was known yet")
    status, saved = act(s, 1, "save", "one.bin")
    check(status == 200 and saved["id_slot"] == 1 and saved["filename"] == "one.bin", f"saved: {status} {saved}")
    check(saved["n_saved"] == n_prompt + 16 and saved["n_written"] == os.path.getsize(f"{kept}/one.bin") and saved["timings"]["save_ms"] >= 0, f"saved: {saved}")
    status, erased = act(s, 1, "erase")
    check(status == 200 and erased == {"id_slot": 1, "n_erased": saved["n_saved"]}, f"erased: {erased}")
    check(s.request("POST", "/slots/1?action=erase", "")[0] == 200, "erasing takes no body")
    text, cached, _ = ask(s, 1)
    check(cached == 0 and text == wanted, f"after erasing {cached} tokens are known")
    act(s, 1, "erase")
    status, restored = act(s, 0, "restore", "one.bin")
    check(status == 200 and restored["n_restored"] == saved["n_saved"] and restored["n_read"] == saved["n_written"], f"restored: {restored}")
    text, cached, _ = ask(s, 0)
    check(text == wanted and cached == n_prompt - 1, f"after restoring {cached} tokens are known")


def refused(s):
    wanted = ask(s, 0)
    for name in ("", ".", "..", ".hidden", "a/b", "../one.bin", "/etc/passwd", "a\\b", "a\nb", "x" * 256, 7, None, "a\0b", ["a"], "one.bin.partial", "a\u009b2J", "a\u202eb"):
        status, answer = s.post("/slots/0?action=save", {"filename": name})
        check(status == 400 and "name of a file" in answer["error"]["message"], f"the name {name!r}: {status} {answer}")
    check(os.listdir(kept) == ["one.bin"], f"files: {os.listdir(kept)}")
    for slot, action in (("9", "save"), ("-1", "save"), ("x", "save"), ("", "save"), ("00000", "save"), ("0/1", "save"), ("0", ""), ("0", "drop")):
        status, answer = act(s, slot, action, "two.bin")
        check(status == 400 and answer["error"]["message"].startswith(("There is no such slot", "The query takes")), f"slot {slot}, {action}: {status} {answer}")
    check(s.get("/slots/0?action=save")[0] == 405, "a GET")
    with open(f"{kept}/one.bin", "rb") as f:
        good = f.read()
    for name, content in (("none.bin", None), ("short.bin", good[:-1]), ("other.bin", b"other"), ("changed.bin", good[:300] + bytes([good[300] ^ 1]) + good[301:])):
        if content is not None:
            with open(f"{kept}/{name}", "wb") as f:
                f.write(content)
        status, answer = act(s, 0, "restore", name)
        check(status == 400 and name in answer["error"]["message"], f"restoring {name}: {status} {answer}")
    text, cached, n_prompt = ask(s, 0)
    check(text == wanted[0] and cached == n_prompt - 1, "a session was lost to a bad file")


def full_disk(s):
    """Nothing of a file that has no room is left, and the session stays; what is no file is
    none."""
    wanted = ask(s, 0)
    resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (8192, 8192))
    before = sorted(os.listdir(kept))
    status, answer = act(s, 0, "save", "full.bin")
    check(status == 500 and "cannot write" in answer["error"]["message"], f"a full disk: {status} {answer}")
    check(sorted(os.listdir(kept)) == before, f"left by a full disk: {os.listdir(kept)}")
    os.mkdir(f"{kept}/folder.bin")
    os.mkfifo(f"{kept}/pipe.bin")
    for name in "folder.bin", "pipe.bin":
        status, answer = act(s, 0, "restore", name)
        check(status == 400 and "regular file" in answer["error"]["message"], f"restoring {name}: {status} {answer}")
    status, answer = act(s, 0, "save", "folder.bin")
    check(status == 500 and "folder" in answer["error"]["message"], f"saving to a folder: {status} {answer}")
    text, cached, n_prompt = ask(s, 0)
    check(text == wanted[0] and cached == n_prompt - 1, "a session was lost to a full disk")


def bounded():
    """Checks the limit of all saves together, and that what killed ones have left is removed."""
    os.mkdir(small := f"{folder}/small")
    for name in "left.bin.partial", "kept.bin":
        open(f"{small}/{name}", "w").write("x" * 1000)
    size = os.path.getsize(f"{kept}/one.bin")
    s = Server(drey, model, "-d", "none", "--sessions", "1", "-c", "256", "--slot-save-path", small, "--slot-save-disk", str(3 * size)).wait_ready()
    check(os.listdir(small) == ["kept.bin"], f"left by a save that was killed: {os.listdir(small)}")
    ask(s, 0)
    codes = [act(s, 0, "save", f"f{i}")[0] for i in range(5)]
    check(codes == [200, 200, 400, 400, 400], f"saves: {codes}")
    check(act(s, 0, "save", "f0")[0] == 200, "a file that takes the place of itself")
    status, answer = act(s, 0, "save", "f9")
    check(status == 400 and "--slot-save-disk" in answer["error"]["message"], f"too much: {answer}")
    check(sorted(os.listdir(small)) == ["f0", "f1", "kept.bin"], f"files: {os.listdir(small)}")
    check(act(s, 0, "save", "f.partial")[0] == 400, "the name of a file that is being written")
    act(s, 0, "erase")
    ask(s, 0, "A")
    check(act(s, 0, "save", "short")[0] == 200, "a short one has room")
    check(s.stop() == 0, "the end of a bounded server")


def refused_at_the_start():
    open(f"{folder}/file", "w").close()
    for options, part in ((["--slot-save-path", f"{folder}/nothing"], "make it first"), (["--slot-save-path", f"{folder}/file"], "cannot be opened"),
                          (["--api-key", ""], "empty key"), (["--api-key", "a,,b"], "empty key"), (["--api-key", "a,"], "empty key"), (["--api-key", " "], "blank"),
                          (["--api-key", "a\n"], "blank")):
        for what in ["-m", model], ["--models", folder]:
            ran = subprocess.run([drey, "serve", *what, "--port", "0", "-d", "none", *options], capture_output=True, text=True, timeout=60)
            check(ran.returncode == 2 and part in ran.stderr and not ran.stdout, f"{options}: {ran.returncode} {ran.stderr}")
    ran = subprocess.run([drey, "serve", "-m", model, "--port", "0", "-d", "none", "--memory", "3M"], capture_output=True, text=True, timeout=60)
    check("too small" in ran.stderr and "(--memory); --sessions 1 or a smaller -c needs less" in ran.stderr, f"a small budget: {ran.stderr}")
    for options, warns in ((["--host", "0.0.0.0", "-q"], True), (["--host", "0.0.0.0", "--api-key", "k"], False), (["--host", "127.0.0.1"], False), ([], False)):
        s = Server(drey, model, "-d", "none", "--sessions", "1", "-c", "64", *options)
        check(s.stop() == 0 and ("anybody who reaches" in s.errors()) == warns, f"{options}: {s.errors()}")


os.mkdir(kept)
s = Server(drey, model, "-d", "none", "--sessions", "2", "-c", "256", "--slot-save-path", kept).wait_ready()
saved_and_restored(s)
refused(s)
full_disk(s)
check(s.stop() == 0, "the server's end")
s = Server(drey, model, "-d", "none", "--sessions", "1", "-c", "256").wait_ready()
status, answer = act(s, 0, "save", "one.bin")
check(status == 501 and "--slot-save-path" in answer["error"]["message"], f"without a folder: {status} {answer}")
check(s.stop() == 0, "the server's end without a folder")
bounded()
refused_at_the_start()
done()
