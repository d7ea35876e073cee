# SPDX-License-Identifier: MIT
"""The loss ledger of a profile, read without a protobuf library."""
import gzip
from pathlib import Path


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields_of(data):
    """(number, value) of every field of a protobuf message; bytes for length-delimited ones."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def ledger_of(path):
    """The "ledger: NAME NUMBER" and "counters: NAME=NUMBER ..." comments of a pprof file (string_table = 6,
    comment = 13). What is 0 is not there."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    strings, comments = [], []
    for number, value in fields_of(data):
        if number == 6:
            strings.append(value)
        elif number == 13 and isinstance(value, int):
            comments.append(value)
        elif number == 13:
            at = 0
            while at < len(value):
                index, at = varint(value, at)
                comments.append(index)
    ledger = {}
    for index in comments:
        words = strings[index].decode(errors="replace").split()
        if words[:1] == ["counters:"]:
            pairs = [word.partition("=")[::2] for word in words[1:]]
        elif len(words) >= 3 and words[0] == "ledger:":
            pairs = [(words[1], words[2])]
        else:
            continue
        for name, value in pairs:
            try:
                ledger[name] = float(value)
            except ValueError:
                pass
    return ledger
