# SPDX-License-Identifier: MIT
"""push_taker.py - stands in for Pyroscope: takes what is pushed, and says of each request whose it is and what it holds.

  python3 push_taker.py OUT

Prints its port. A line of OUT for each request: pid, comm, bytes in use, blocks in use; of all its series together.
"""
import gzip
import http.server
import sys


def number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message: bytes, or a number."""
    at = 0
    while at < len(data):
        key, at = number(data, at)
        if key & 7 == 2:
            size, at = number(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        elif key & 7 == 0:
            value, at = number(data, at)
            yield key >> 3, value
        else:
            at += 8 if key & 7 == 1 else 4


def values(sample):
    for name, value in fields(sample):
        if name == 2 and isinstance(value, int):
            yield value
        at = 0
        while name == 2 and not isinstance(value, int) and at < len(value):
            one, at = number(value, at)
            yield one


def add(profile, sums):
    parts = list(fields(gzip.decompress(profile)))
    texts = [value for name, value in parts if name == 6]
    types = [texts[dict(fields(value)).get(1, 0)].decode() for name, value in parts if name == 1]
    for name, value in parts:
        if name == 2:
            for what, one in zip(types, values(value)):
                sums[what] = sums.get(what, 0) + one


class Taker(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        labels, sums = {}, {}
        for _, series in fields(body):
            for name, value in fields(series):
                if name == 1:
                    pair = dict(fields(value))
                    labels[pair[1].decode()] = pair[2].decode()
                else:
                    add(dict(fields(value))[1], sums)
        with open(sys.argv[1], "a") as out:
            print(labels.get("pid"), labels.get("comm"), sums.get("inuse_space", 0), sums.get("inuse_objects", 0), file=out)
        self.send_response(200)
        self.send_header("Content-Type", "application/proto")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
print(server.server_port, flush=True)
server.serve_forever()
