"""Sockets that systemd passes, and what it hears: one of either family, for one model and for a
folder of them; several, and files that do not listen, are refused; a socket's file stays where it
is; systemd-socket-activate starts the server, where that is installed.
serve_passed.py DREY MAKE_TOY FOLDER"""
import fcntl, shutil

from serve_client import *

drey, make_toy, folder = sys.argv[1:]
OPTIONS = ["-d", "none", "-c", "256", "-t", "1", "--memory", "unlimited"]
ONE = ["-m", f"{folder}/toy.gguf", *OPTIONS]
models = f"{folder}/passed"
os.mkdir(models)
for name in "a", "b":
    subprocess.run([make_toy, f"{models}/{name}.gguf", "2"], check=True)


class Passed(Server):
    """drey serve as systemd starts it: the sockets are its files from 3 on."""

    def __init__(self, *options, sockets=(), pid="$$", n=None):
        self.log = tempfile.TemporaryFile("w+")
        self.ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = tempfile.mktemp(dir=folder)
        self.ready.bind(path)
        self.ready.settimeout(120)
        # Files of this process may have the numbers that are wanted: first out of their way.
        high = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 100) for s in sockets]
        moves = "".join(f" {3 + i}<&{fd} {fd}<&-" for i, fd in enumerate(high))
        start = f"LISTEN_PID={pid} LISTEN_FDS={len(sockets) if n is None else n} exec \"$0\" \"$@\"{moves}"
        self.process = subprocess.Popen(["bash", "-c", start, drey, "serve", *options], pass_fds=high, stderr=self.log,
                                        stdout=subprocess.PIPE, text=True, env=dict(os.environ, NOTIFY_SOCKET=path))
        for fd in high:
            os.close(fd)
        self.address = self.process.stdout.readline().strip()
        if self.address.startswith("http://"):
            self.host, port = self.address[len("http://"):].rsplit(":", 1)
            self.port = int(port)

    def says_ready(self):
        try:
            return self.ready.recv(100)
        except TimeoutError:
            return None

    def says_more(self):
        self.ready.settimeout(0)
        try:
            return self.ready.recv(100)
        except BlockingIOError:
            return None

    def refused(self, code, text):
        self.process.wait()
        check(self.process.returncode == code and text in self.errors(), f"{text}: {self.process.returncode} {self.errors()}")


def listening(path=None):
    s = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
    s.bind(path or ("127.0.0.1", 0))
    s.listen()
    return s


def ends(s, what):
    s.process.send_signal(signal.SIGTERM)
    check(s.process.wait(60) == 0, f"{what}: the end is {s.process.returncode}, {s.errors()}")
    check(s.says_more() is None, f"{what}: it says more than that it is ready")


def answers(s, what, **body):
    status, answer = s.post("/v1/completions", dict(body, prompt="a tree", max_tokens=3, ignore_eos=True))
    return check(status == 200 and answer["choices"][0]["text"], f"{what}: {status} {answer}")


def ports():
    tcp = listening()
    at = "http://127.0.0.1:%d" % tcp.getsockname()[1]
    s = Passed(*ONE, "--port", "1", sockets=[tcp])
    check(s.address == at, f"the address is {s.address}, not {at}")
    check(s.says_ready() == b"READY=1", "it is not said to be ready")
    answers(s, "a port")
    ends(s, "a port")
    # Who connects between two servers waits for the next one.
    waiting = socket.create_connection(tcp.getsockname())
    waiting.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    s = Passed("--models", models, *OPTIONS, sockets=[tcp])
    check(s.address == at and s.says_ready() == b"READY=1", f"a folder: {s.address}")
    check(waiting.recv(100).startswith(b"HTTP/1.1 200"), "who came before the server gets no answer")
    answers(s, "a folder", model="a")
    answers(s, "another model of a folder", model="b")
    ends(s, "a folder")


def files():
    path = f"{folder}/passed.sock"
    unix = listening(path)
    s = Passed(*ONE, sockets=[unix])
    check(s.address == f"unix:{path}" and s.says_ready() == b"READY=1", f"a file: {s.address}")
    answers(s, "a file")
    ends(s, "a file")
    check(os.path.exists(path), "the socket's file is gone")


def refusals():
    a, b = listening(), listening()
    Passed(*ONE, sockets=[a, b]).refused(2, "systemd passes 2 sockets")
    deaf = socket.socket(socket.AF_INET)
    deaf.bind(("127.0.0.1", 0))
    Passed(*ONE, sockets=[deaf]).refused(2, "no socket that listens")
    Passed(*ONE, sockets=[open("/dev/null")]).refused(2, "no socket that listens")
    s = Passed(*ONE, "--port", "0", sockets=[a], pid="1")  # meant for another process
    check(s.address != "http://127.0.0.1:%d" % a.getsockname()[1], "it takes a socket of another process")
    check(s.says_ready() == b"READY=1", "it is not said to be ready without a socket")
    ends(s, "no socket")


def activated():
    tool = shutil.which("systemd-socket-activate")
    if not tool:
        print("not run: a server that systemd-socket-activate starts, which is not installed (Debian: systemd)")
        return
    path = f"{folder}/activated.sock"
    p = subprocess.Popen([tool, "-l", path, drey, "serve", *ONE], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists(path):
        time.sleep(0.02)
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(120)
    while c.connect_ex(path):
        time.sleep(0.02)
    c.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    got = b""
    while piece := c.recv(65536):
        got += piece
    check(got.startswith(b"HTTP/1.1 200") and b'"toy"' in got, f"systemd-socket-activate: {got[:200]}")
    p.terminate()
    check(p.wait(60) == 0, f"systemd-socket-activate: its server ends with {p.returncode}")


ports()
files()
refusals()
activated()
done()
