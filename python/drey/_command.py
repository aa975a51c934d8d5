"""The command drey, which is installed with this package: models are fetched and found by it."""
import os
import subprocess
import sys
import sysconfig
import threading
import time
from typing import Any, Callable, List, Optional

from ._errors import Error, IOFailure, NotFound, UsageError
from ._progress import Bar, ProgressFn, shows_bars


def find_command() -> Optional[str]:
    """The place where pip has put it; None: it is not there."""
    package = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.join(os.path.dirname(package), "bin"),  # pip install --target
               sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "%s_user" % os.name)]
    for folder in folders:
        path = os.path.join(folder, "drey")
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def command_path() -> str:
    """The same; UsageError: it is not there."""
    found = find_command()
    if found is None:
        raise UsageError("the command drey is not where this package was installed (%s): install drey again"
                         % sysconfig.get_path("scripts"))
    return found


def run_command(*words: str) -> str:
    """Returns what the command says on standard output; its complaint is the error."""
    done = subprocess.run([command_path(), *words], stdin=subprocess.DEVNULL, capture_output=True)
    return _answer(done.returncode, done.stdout, done.stderr)


def _answer(status: int, out: bytes, said: bytes) -> str:
    if status == 0:
        return os.fsdecode(out).strip()
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    message = lines[-1] if lines else "drey ended with status %d" % status
    for prefix in ("drey: ", "error: "):
        message = message[len(prefix):] if message.startswith(prefix) else message
    kind = UsageError if status == 2 else IOFailure if status == 1 else Error
    raise kind(message)


# ---- Models by name ----

def model_file(name: Any) -> Any:
    """A file, or the one that a name means of the models which drey pull has fetched. drey show finds it, so
    that names are those of the command (model_store_find), and says what was probably meant."""
    if not isinstance(name, (str, os.PathLike)):
        return name
    name = os.fspath(name)
    if not isinstance(name, str) or "\0" in name or os.path.exists(name):
        return name
    name = os.path.expanduser(name)  # as a shell does it
    if not find_command():
        if os.path.lexists(name):
            return name
        raise NotFound("there is no file %s" % name)
    try:
        shown = run_command("show", "--", name)
    except IOFailure as error:
        raise (error if os.path.exists(name) else NotFound(str(error))) from None
    for line in shown.splitlines():
        if line.startswith("  file "):
            return line[len("  file "):].strip()
    return name


# ---- Downloads ----

def pull(name: str, folder: Any = None, draft: bool = False, progress: Optional[ProgressFn] = None,
         verbose: bool = True) -> str:
    """drey pull. Its own bar is shown on a terminal, and one like it in a notebook, unless there is a function
    for it."""
    if not isinstance(name, str):
        raise UsageError('a model to download is "OWNER/NAME:QUANT", "OWNER/NAME/FILE.gguf" or a URL, not %.60r'
                         % (name,))
    words = ["pull", *(["--draft"] if draft else []), *(["-o", os.fspath(folder)] if folder else []), "--", name]
    shown = verbose and progress is None and bool(sys.stderr and sys.stderr.isatty())
    bar = Bar() if verbose and progress is None and not shown and shows_bars() else None
    progress = progress or bar
    child = subprocess.Popen([command_path(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=None if shown else subprocess.PIPE)
    watch = _Parts(_folder(folder), progress, child.terminate) if progress else None
    try:
        out, said = child.communicate()
    except BaseException:  # Ctrl-C: what has come is kept
        child.terminate()
        child.wait()
        raise
    finally:
        if watch:
            watch.end()
        if bar:
            bar.clear()
    if watch and watch.failed:
        raise watch.failed
    if child.returncode and shown:
        raise IOFailure("drey pull %s failed: it says why above" % name)
    lines = _answer(child.returncode, out, said or b"").splitlines()  # a plan, and the file
    for line in reversed(lines):
        if os.path.isfile(line):
            return line
    raise IOFailure("drey pull %s has named no file that is there" % name)


def _folder(folder: Any) -> str:
    if folder or os.environ.get("DREY_MODELS"):
        return os.fspath(folder) if folder else os.environ["DREY_MODELS"]
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "drey", "models")


class _Parts:
    """Reports how much has come of what a folder has as NAME.part, whose length NAME.part.of says. What the
    function raises is `failed`, and stops the download."""

    def __init__(self, folder: str, progress: ProgressFn, stop: Callable[[], None]) -> None:
        self._folder, self._progress, self._stop, self._began = folder, progress, stop, time.time()
        self.failed: Optional[BaseException] = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            done, total = self._now()
            if not total:
                continue
            try:
                self._progress("pull", done, total)
            except BaseException as error:
                self.failed = error
                self._stop()
                return

    def _now(self) -> List[int]:
        done = total = 0
        try:
            for entry in os.scandir(self._folder):
                part = entry.path[:-len(".of")]
                if entry.name.endswith(".part.of") and os.stat(part).st_mtime >= self._began:
                    with open(entry.path) as of:
                        total += int(of.read().split()[0])
                    done += os.stat(part).st_size
        except (OSError, ValueError, IndexError):
            return [0, 0]
        return [done, total]

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
