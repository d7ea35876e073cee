# SPDX-License-Identifier: MIT
"""Memory of the C library, asked for by a function of Python."""
import ctypes
import time

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
held = []


def planted_python(size):
    held.append(libc.malloc(size))
    if len(held) > 1000:
        libc.free(held.pop(0))


def fill(cnt):
    for i in range(cnt):
        planted_python(1000 + i % 1000)


fill(1000)
print("READY", flush=True)
while True:
    fill(50)
    time.sleep(0.005)
