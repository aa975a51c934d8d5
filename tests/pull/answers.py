#!/usr/bin/env python3
"""Runs a command on a terminal and answers its question.
    answers.py ANSWER QUESTION COMMAND...
Types ANSWER and Enter once the pattern QUESTION is there, and writes what the command wrote. Ends
as the command does, with 1 where it did not ask."""
import os
import pty
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../cli"))
from terminal import read_some

answer, question, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
written, asked = b"", False
while piece := read_some(terminal):
    written += piece
    if not asked and re.search(question, written.decode(errors="replace")):
        asked = True
        os.write(terminal, answer.encode() + b"\n")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(written.decode(errors="replace"))
sys.exit(status if asked else 1)
