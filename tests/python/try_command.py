"""The command drey of the Python package: it is among the environment's programs, python -m drey
is the same, and models come by it from a hub on this machine.
    try_command.py FOLDER      (FOLDER has target.gguf, and gets hub and models)"""
import os
import shutil
import subprocess
import sys
import threading
import time

import drey
from drey._command import _Parts, command_path

folder = sys.argv[1]
target, models = folder + "/target.gguf", folder + "/models"
HUB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../pull/faulty_hub.py")
common = {"draft": None, "memory": "200M", "threads": 1, "context": 512}


def output(*command):
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def the_same_command():
    program = command_path()
    assert os.path.dirname(program) == os.path.dirname(sys.executable), program
    version = output(program, "--version")
    assert version.split()[1] == drey.version() and output(sys.executable, "-m", "drey", "--version") == version


def pulled():
    shutil.copy(target, folder + "/hub/some/toy-GGUF/toy-Q4_K_M.gguf")
    path = drey.Model.pull("some/toy-GGUF:Q4_K_M")
    assert path == models + "/toy-Q4_K_M.gguf", path
    with open(path, "rb") as a, open(target, "rb") as b:
        assert a.read() == b.read()
    os.rename(path, models + "/other.gguf")
    for name in ("other", "OTHER.gguf", "oth"):
        with drey.Model(name, **common) as model:
            assert model.info.path == models + "/other.gguf"
    said = refusal(drey.IOFailure, lambda: drey.Model("nothing", **common))
    assert "other" in said and "drey pull" in said, said
    seen = []
    told = {"progress": lambda *what: seen.append(what), **common}
    with drey.Model.from_pretrained("some/toy-GGUF", "*Q4_K_M*", **told) as model:
        assert model.info.path == path and model.complete("One", max_tokens=2) and seen
    elsewhere = folder + "/elsewhere"
    with drey.Model.from_pretrained("some/toy-GGUF", "toy-Q4_K_M.gguf", folder=elsewhere, **common) as model:
        assert model.info.path == elsewhere + "/toy-Q4_K_M.gguf"
    shutil.copy(models + "/other.gguf", models + "/other-2.gguf")
    assert "other-2" in refusal(drey.UsageError, lambda: drey.Model("oth", **common))
    for name, kind in (("some/none-GGUF", drey.Error), ("nonsense", drey.UsageError)):
        said = refusal(kind, lambda name=name: drey.Model.pull(name))
        assert "drey:" not in said and len(said) > 10, said


def a_function_that_fails():
    """Checks that what it raises stops a download, and is raised by pull."""
    parts, stopped = folder + "/parts", threading.Event()
    os.makedirs(parts)
    watch = _Parts(parts, lambda what, done, total: 1 / 0, stopped.set)
    for name, text in (("a.gguf.part", "abc"), ("a.gguf.part.of", "10 version")):
        with open(parts + "/" + name, "w") as file:
            file.write(text)
        os.utime(parts + "/" + name, (time.time() + 60, time.time() + 60))
    assert stopped.wait(60)
    watch.end()
    assert isinstance(watch.failed, ZeroDivisionError), watch.failed


def refusal(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("no %s" % kind.__name__)


the_same_command()
a_function_that_fails()
os.makedirs(folder + "/hub/some/toy-GGUF")
os.makedirs(folder + "/hub/some/none-GGUF")
hub = subprocess.Popen([sys.executable, HUB, folder + "/hub", folder + "/port"])
try:
    for _ in range(100):
        if os.path.exists(folder + "/port"):
            break
        time.sleep(0.1)
    with open(folder + "/port") as port:
        os.environ.update(HF_ENDPOINT="http://127.0.0.1:" + port.read().strip(), DREY_MODELS=models,
                          no_proxy="127.0.0.1")
    for name in ("HF_TOKEN", "http_proxy"):
        os.environ.pop(name, None)
    pulled()
finally:
    hub.kill()
