#!/usr/bin/env python3
"""A proxy between a client and a server that logs their messages.

tap.py LOG COMMAND…

starts a server for a client that believes it started the server itself. `Tap` does the same for connections.

In a log `>` stands before what the client said, `<` before what the server said, and `=` before what happened.
"""
import os
import signal
import socket
import subprocess
import sys
import threading


def between_pipes(log, command):
    """Forwards lines and signals until the server has exited; logs its exit status."""
    log = open(log, "ab", buffering=0)
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def note(mark, line):
        log.write(mark + b" " + line.rstrip(b"\n") + b"\n")

    note(b"=", b"pid %d" % server.pid)

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
        except OSError:
            note(b"=", b"the server reads no more")

    def to_client():
        try:
            for line in iter(server.stdout.readline, b""):
                note(b"<", line)
                os.write(1, line)
        except OSError:
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


class Tap:
    """A port that forwards to another one."""

    def __init__(self, port, log):
        self.target, self.log, self.count = port, log, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            self.count += 1
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                # A server that is started again.
                self.note(b"= [%d] no server" % self.count)
                client.close()
                continue
            for mark, source, sink in ((b">", client, server), (b"<", server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                mark = b"%s [%d] " % (mark, self.count)
                threading.Thread(target=self.pump, args=(mark, source, sink), daemon=True).start()

    def pump(self, mark, source, sink):
        try:
            while data := source.recv(65536):
                self.note(mark + data)
                sink.sendall(data)
            self.note(mark.replace(mark[:1], b"=", 1) + mark[:1] + b" ended")
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # A connection that is reset on one side is closed on the other.
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def note(self, line):
        with open(self.log, "ab") as log:
            log.write(line.rstrip(b"\r\n") + b"\n")


if __name__ == "__main__":
    between_pipes(sys.argv[1], sys.argv[2:])
