"""Functions that tests of the command share in Python; shell.sh has the same for the others. Their
arguments are DREY MAKE_TOY [MORE...]; they end with done()."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

drey, make_toy, *more = map(os.path.realpath, sys.argv[1:])
tmp = tempfile.mkdtemp()
atexit.register(shutil.rmtree, tmp)
n_wrong = 0


def wrong(*what):
    global n_wrong
    n_wrong += 1
    print(os.path.basename(sys.argv[0]).removesuffix(".py") + ":", *what)


def make(name, *options):
    """A toy model in the test's folder; its path."""
    path = os.path.join(tmp, name)
    subprocess.run([make_toy, path, *map(str, options)], check=True)
    return path


def done():
    sys.exit(n_wrong > 0)
