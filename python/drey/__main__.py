"""python -m drey: the command."""
import os
import sys

from ._command import command_path

if __name__ == "__main__":
    command = command_path()
    os.execv(command, [command, *sys.argv[1:]])
