# SPDX-License-Identifier: MIT
"""For the manual: bytes from malloc, and small objects, which are in arenas of Python's own."""
import time

kept = []


def load_document():
    kept.append(bytearray(20000))


def parse():
    kept.append([object() for _ in range(100)])


print("READY", flush=True)
while True:
    load_document()
    parse()
    time.sleep(0.005)
    if len(kept) > 4000:
        kept.clear()
