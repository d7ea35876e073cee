#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""library.py NAME - holds memory by a library, and says how much, by the library's own counter.

Prints "READY" when the library is loaded and warm; after a line of input it allocates, frees a part, and prints
"EXPECT BYTES" and "DONE"; after another line it ends. The counter is read before and after: BYTES is the difference.
Where a library has none, it is what was planted, or glibc's own sum (mallinfo2) where all of it comes from malloc; the
blocks are large then, because that sum has glibc's own bytes of each block.
"""
import ctypes
import os
import sys

name = sys.argv[1]
keep = []


def glibc_bytes():
    class Info(ctypes.Structure):
        _fields_ = [(f, ctypes.c_size_t) for f in
                    ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]
    call = ctypes.CDLL(None).mallinfo2
    call.restype = Info
    info = call()
    return info.uordblks + info.hblkhd


def pyarrow(pool):
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = pool
    import pyarrow as pa
    if pa.default_memory_pool().backend_name != pool:
        sys.exit(77)
    keep.append(pa.array(range(1000)))

    def work():
        for i in range(120):
            block = pa.allocate_buffer(500000 + i)
            if i % 2:
                keep.append(block)
        for i in range(20):
            keep.append(pa.array([i] * 20000, type=pa.int64()))
    return work, pa.total_allocated_bytes


def polars():
    import polars as pl
    keep.append(pl.DataFrame({"a": range(1000)}))

    def work():
        for i in range(5):
            keep.append(pl.select(a=pl.int_range(1000000 + i), b=pl.int_range(1000000 + i) * 2).rechunk())
    return work, lambda: sum(f.estimated_size() for f in keep)


def duckdb():
    import duckdb as dd
    con = dd.connect()
    con.execute("set threads = 2")
    con.execute("create table w as select range as a from range(1000)")
    keep.append(con)

    def work():
        con.execute("create table t as select range as a, 'text number ' || hash(range) as b from range(1000000)")
    return work, lambda: con.execute("select sum(memory_usage_bytes) from duckdb_memory()").fetchall()[0][0]


def numpy():
    import numpy as np
    keep.append(np.zeros(1000))

    def work():
        for i in range(60):
            keep.append(np.ones(100000 + i))
    return work, lambda: sum(a.nbytes for a in keep)


def orjson():
    import orjson as js
    js.loads(b'{"a": 1}')
    text = js.dumps(["x" * (3000 + i % 7) for i in range(10000)])

    def work():
        keep.append(js.loads(text))
    return work, lambda: sum(len(s) for part in keep for s in part)


def pymalloc():
    """Small objects of Python itself."""

    def work():
        keep.extend(str(i) * 8 for i in range(300000))
    return work, lambda: sum(sys.getsizeof(s) for s in keep)


def tokenizers():
    from tokenizers import Tokenizer, models
    keep.append(Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))

    def work():
        for part in range(3):
            keep.append(Tokenizer(models.WordLevel({"word" * 60 + "%d" % i: i for i in range(20000)}, unk_token="word0")))
    return work, glibc_bytes


def cryptography():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    def one():
        return Cipher(algorithms.AES(bytes(32)), modes.CBC(bytes(16))).encryptor()
    keep.append(one())

    def work():
        for i in range(20000):
            keep.append(one())
    return work, glibc_bytes


def lxml():
    from lxml import etree
    text = b"<r>" + b"".join(b"<item><name>%s %d</name></item>" % (b"text " * 300, i) for i in range(4000)) + b"</r>"
    keep.append(etree.fromstring(b"<r/>"))

    def work():
        for i in range(4):
            keep.append(etree.fromstring(text))
    return work, glibc_bytes


def pydantic():
    from pydantic_core import SchemaValidator
    schema = {"type": "list", "items_schema": {"type": "bytes"}}
    validator = SchemaValidator(schema)
    keep.append([])

    def work():
        keep.append(validator.validate_json(b"[" + b",".join(b'"' + b"y" * 4000 + b'"' for i in range(6000)) + b"]"))
    return work, lambda: sum(len(s) for part in keep for s in part)


def cdylib(path):
    """A Rust library with its own global allocator, which counts (rust/)."""
    lib = ctypes.CDLL(path)
    lib.held_bytes.restype = ctypes.c_size_t
    lib.work(1)
    return lambda: lib.work(3000), lib.held_bytes


kinds = {"pyarrow": pyarrow, "polars": polars, "duckdb": duckdb, "numpy": numpy, "orjson": orjson, "pymalloc": pymalloc,
         "tokenizers": tokenizers, "cryptography": cryptography, "lxml": lxml, "pydantic": pydantic, "cdylib": cdylib}
try:
    run, count = kinds[name](*sys.argv[2:])
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)
before = count()
print("READY", flush=True)
sys.stdin.readline()
run()
print("EXPECT", count() - before, flush=True)
print("DONE", flush=True)
sys.stdin.readline()
