#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stable.py - the names that others rely on, one in a line, as tests/e2e/stable.txt lists those that are promised.

  stable.py options HEAPTAP      the options of every command, as --help shows them
  stable.py json NAME FILE       the keys of a JSON answer: NAME a.b[].c
  stable.py metrics FILE         the families of /metrics, with their types
  stable.py samples FILE         the sample types of a profile, with their units
"""
import gzip
import json
import re
import subprocess
import sys

COMMANDS = "record report doctor explain top serve diff check symbolize convert version completion".split()
# Objects whose keys are data: names of labels, and of rows.
NAMED_BY_DATA = {"labels", "bytes"}


def options(heaptap):
    for command in COMMANDS:
        text = subprocess.run([heaptap, command, "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
        for line in text.splitlines():
            head = re.match(r" {2,6}(-.*?)(  |$)", line)
            for option in re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", head[1] if head else ""):
                yield f"option {command} {option}"


def keys(value, path):
    if isinstance(value, list):
        for item in value:
            yield from keys(item, path + "[]")
    elif isinstance(value, dict):
        for key, item in value.items():
            below = f"{path}.{key}" if path else key
            yield below
            if key not in NAMED_BY_DATA:
                yield from keys(item, below)


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, value) of a message of protobuf: integers, and bytes of what has a length."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def samples(path):
    with gzip.open(path) as f:
        profile = list(fields(f.read()))
    strings = [value.decode() for number, value in profile if number == 6]
    for number, value in profile:
        if number == 1:
            names = dict(fields(value))
            yield f"sample {strings[names[1]]} {strings[names[2]]}"


def metrics(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("# TYPE "):
                yield "metric " + line[len("# TYPE "):].strip()


def answers(name, path):
    with open(path, encoding="utf-8") as f:
        return (f"json {name} {key}" for key in keys(json.load(f), ""))


WHAT = {"options": options, "json": answers, "metrics": metrics, "samples": samples}
for found in sorted(set(WHAT[sys.argv[1]](*sys.argv[2:]))):
    print(found)
