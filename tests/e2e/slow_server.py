#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""slow_server.py SOCKET FOLDER: stands for a heaptap serve whose answers a test times.

/metrics: of process 7, which holds N MiB in the N-th answer. The third waits until FOLDER/go is there. Where there is
FOLDER/huge, an answer never ends. What was asked and answered is in FOLDER/log.
"""
import os
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler

folder = sys.argv[2]
asked = 0


def log(text):
    with open(os.path.join(folder, "log"), "a") as f:
        f.write(text + "\n")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        log(f"asked {asked}")
        while asked == 3 and not os.path.exists(os.path.join(folder, "go")):
            time.sleep(0.02)
        self.send_response(200)
        self.end_headers()
        if os.path.exists(os.path.join(folder, "huge")):
            try:
                while True:
                    self.wfile.write(b"\n" * (1 << 20))
            except OSError:
                return
        self.wfile.write(f'heaptap_inuse_bytes{{pid="7",comm="slow"}} {asked << 20}\n'.encode())
        log(f"answered {asked}")

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass


socketserver.UnixStreamServer(sys.argv[1], Handler).serve_forever()
