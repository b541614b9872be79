#!/usr/bin/env python3
"""Stands between a client and the server it starts, and writes down what they say.

tap.py LOG COMMAND…

Each line of LOG is `>` and what the client said, `<` and what the server said, or `=` and what happened. Signals are
passed on. When the input ends the server gets time to end by itself; LOG says if it did, and how.
"""
import os
import signal
import subprocess
import sys
import threading

log = open(sys.argv[1], "ab", buffering=0)
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def note(mark, line):
    log.write(mark + b" " + line.rstrip(b"\n") + b"\n")


def pass_on(number, _):
    note(b"=", b"signal %d" % number)
    server.send_signal(number)


def to_server():
    try:
        for line in iter(sys.stdin.buffer.readline, b""):
            note(b">", line)
            server.stdin.write(line)
            server.stdin.flush()
        note(b"=", b"end of input")
        server.stdin.close()
    except BrokenPipeError:
        note(b"=", b"the server reads no more")


def to_client():
    try:
        for line in iter(server.stdout.readline, b""):
            note(b"<", line)
            os.write(1, line)
    except BrokenPipeError:
        note(b"=", b"the client reads no more")
        server.stdout.close()


for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, pass_on)
threading.Thread(target=to_server, daemon=True).start()
writer = threading.Thread(target=to_client, daemon=True)
writer.start()
code = server.wait()
writer.join(1)
note(b"=", b"exit %d" % code)
os._exit(code if code >= 0 else 128 - code)
