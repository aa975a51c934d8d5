"""A llama-server for as long as it is needed, on a port that the system chose for it."""
import contextlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from sides import Stop


@contextlib.contextmanager
def llama_server(command, env=None):
    """Starts it, yields its address, http://127.0.0.1:PORT, once it answers, and ends it.

    Port 0: a port that is looked for beforehand may be another's by the time it is opened. What the
    server took it says in its log."""
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        server = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", "0"], env=env,
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield address_of(server, log)
        finally:
            server.terminate()
            server.wait()


def address_of(server, log):
    while server.poll() is None:
        log.seek(0)
        told = re.search(r"listening on (http://127\.0\.0\.1:\d+)\b", log.read())
        if told and answers(told[1]):
            return told[1]
        time.sleep(0.1)
    log.seek(0)
    raise Stop("llama-server ended while it was loading: " + log.read()[-2000:])


def answers(address):
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
