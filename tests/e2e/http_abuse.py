#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""http_abuse.py - a client that behaves badly, and says how the server took it.

    http_abuse.py HOST:PORT COMMAND [ARGUMENT]...

    malformed CNT SECONDS      CNT requests that are none, or are cut off, up to 100 at once: each is
                               answered with an error or closed; all of it within SECONDS
    slow CNT SECONDS           CNT clients that send a byte each second: ended within SECONDS
    unread CNT SECONDS PATH    CNT clients that ask for PATH and do not read: ended within SECONDS
    crowd CNT SECONDS          CNT connections that say nothing, more and more; meanwhile /healthz and /metrics
                               are answered, each time within SECONDS
    pipelined CNT              CNT requests in one piece: as many answers
    gone CNT PATH              CNT clients that ask for PATH and hang up
    statuses CODE[,CODE]:NAME...  is what NAME (in `requests`) is answered one of CODE? 0 is a closed connection.
                               Says of each that it is as it should be, or what came
    together CNT PATH PREFIX   CNT requests at the same time; the bodies go to PREFIX0 ...

Otherwise nothing is printed but what is wrong; the status tells. The seed is fixed.
"""
import random
import selectors
import socket
import sys
import time

host, port = sys.argv[1].rsplit(":", 1)
address = (host, int(port))
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def connect(timeout=20):
    s = socket.create_connection(address, timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def read_all(s):
    data = b""
    try:
        while piece := s.recv(1 << 16):
            data += piece
    except ConnectionError:
        pass
    return data


def get(path, timeout=20):
    """Status of one request; 0: closed."""
    s = connect(timeout)
    s.settimeout(timeout)
    s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % path.encode())
    data = read_all(s)
    s.close()
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.") else 0


def mutated(rng):
    data = bytearray(b"GET /debug/pprof/heap?pid=1&seconds=2 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     b"Authorization: Basic eDp5\r\nContent-Length: 0\r\n\r\n")
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 20)))
        else:
            del data[at:at + rng.randint(1, 10)]
    return bytes(data)


def bad_body(rng):
    return rng.choice([
        b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n0x1",
        b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n0x123",
        b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n0x123",
        b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n0x1\r\n",
        b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Length: 4\r\n\r\nffffffffffffffff\r\n0x1",
        b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 11\r\n\r\nno address!",
        b"PUT /etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc",
    ])


def bad_path(rng):
    return b"GET /%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % rng.choice([
        b"%", b"%2", b"%zz", b"%00", b"healthz%00", b"../../etc/passwd", b"%2e%2e/%2e%2e/etc/passwd",
        b"..%2f..%2fetc%2fpasswd", b"/etc/passwd", b"\\..\\..\\etc", b"pid/1/../../etc", b"?" * 500,
        b"debug/pprof/heap?" + b"&" * 300, b"debug/pprof/heap?seconds=%00", b"\xff\xfe\x80",
        b"pid/" + b"9" * 300 + b"/pprof/heap", b"a" * 3000, b"debug/pprof/heap?pid=0x1"])


def bad_header(rng):
    return b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n\r\n" % rng.choice([
        b"no colon", b": no name", b"A" * 5000 + b": x", b"X: " + b"y" * 40000, b"X: a\0b", b"X\0: a",
        b"X: a\rY: b", b" folded: x", b"X: a\r\n\tfolded", b"\r\n".join(b"X%d: y" % i for i in range(500)),
        b"Authorization: Basic " + b"A" * 4000, b"Authorization: Bearer", b"Host: other",
        b"Host: evil.example"])


def bad_line(rng):
    return rng.choice([
        b"GET", b"GET /", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1 x\r\n\r\n", b" GET / HTTP/1.1\r\n\r\n",
        b"\r\n" * 50, b"get / http/1.1\r\n\r\n", b"GET http:// HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"A" * 3000, b"GET /" + b"a" * 60000,
        b"GET /healthz HTTP/1.1\nHost: 127.0.0.1\n\n", b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])


def noise(rng):
    return bytes(rng.randrange(256) for _ in range(rng.randint(1, 2000)))


def malformed(cnt, seconds):
    rng = random.Random(1)
    end = time.monotonic() + seconds
    waiting = {}  # socket -> (time by which it must be over, what was sent)
    poll = selectors.DefaultSelector()
    sent_cnt = cut_cnt = 0
    makers = [mutated, bad_body, bad_path, bad_header, bad_line, noise]

    def over(s):
        poll.unregister(s)
        del waiting[s]
        s.close()

    while sent_cnt < cnt or waiting:
        if time.monotonic() > end:
            print(f"after {seconds} s {sent_cnt} of {cnt} are sent, {len(waiting)} wait")
            return 1
        while sent_cnt < cnt and len(waiting) < 100:
            data = rng.choice(makers)(rng)
            s = connect()
            sent_cnt += 1
            try:
                s.sendall(data)
                if rng.randrange(4) == 0:  # cut off, and half of those with a reset
                    if rng.randrange(2):
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    s.close()
                    cut_cnt += 1
                    continue
                s.shutdown(socket.SHUT_WR)
            except OSError:  # it has been answered already
                s.close()
                continue
            waiting[s] = (time.monotonic() + 30, data)
            poll.register(s, selectors.EVENT_READ)
        for key, _ in poll.select(0.05 if len(waiting) >= 100 or sent_cnt == cnt else 0):
            try:
                if not key.fileobj.recv(1 << 16):
                    over(key.fileobj)
            except OSError:
                over(key.fileobj)
        now = time.monotonic()
        for s, (limit, data) in list(waiting.items()):
            if now > limit:
                print(f"neither answered nor closed within 30 s: {data[:200]!r}")
                return 1
    return 0


def is_over(s):
    """Has the server closed it? What it has sent is read."""
    try:
        return not s.recv(1 << 16, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def slow(cnt, seconds):
    text = GET * 100
    begin = time.monotonic()
    clients = [connect() for _ in range(cnt)]
    for i in range(seconds):
        for s in list(clients):
            try:
                s.send(text[i:i + 1])
            except OSError:
                clients.remove(s)
        time.sleep(max(0, begin + i + 1 - time.monotonic()))
        clients = [s for s in clients if not is_over(s)]
        if not clients:
            return 0
    print(f"{len(clients)} of {cnt} still there after {seconds} s")
    return 1


def unread(cnt, seconds, path):
    clients = []
    for _ in range(cnt):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        s.connect(address)
        s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path.encode() * 20)
        clients.append(s)
    status = get("/healthz", seconds)
    for s in clients:
        s.close()
    if status == 200:
        return 0
    print(f"somebody else is answered {status}")
    return 1


def crowd(cnt, seconds):
    clients = []
    for i in range(10):
        for _ in range(cnt // 10):
            try:
                clients.append(connect(5))
            except OSError:  # the queue of the port is full
                break
        for page in "/healthz", "/metrics":
            begin = time.monotonic()
            try:
                status = get(page, seconds)
            except OSError as error:
                status = error
            took = time.monotonic() - begin
            if status != 200 or took > seconds:
                print(f"beside {len(clients)} connections {page}: {status} after {took:.1f} s")
                return 1
    for s in clients:
        s.close()
    return 0


def pipelined(cnt):
    s = connect()
    s.sendall(GET * (cnt - 1) + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    got = read_all(s).count(b"HTTP/1.1 200 ")
    if got == cnt:
        return 0
    print(f"{got} answers of {cnt}")
    return 1


def gone(cnt, path):
    for _ in range(cnt):
        s = connect()
        s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path.encode())
        s.close()
    return 0


requests = {
    "url": b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 70000 + b"\r\n\r\n",
    "headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
    "body": b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3000000\r\n\r\n" + b"0x1+" * 1000,
    "chunked": b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n0x1\r\n0\r\n\r\n",
    "no-addresses": b"POST /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 11\r\n\r\nno address!",
    "nul": b"GET /healthz%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "nul-inside": b"GET /%00/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "raw-nul": b"GET /healthz\0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "dots": b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "escaped-dots": b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "escaped-slash": b"GET /debug%2fpprof%2fheap HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "absolute": b"GET //etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "proxy": b"GET file:///etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "pid-dots": b"GET /pid/../1/pprof/heap HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "rebound": b"GET / HTTP/1.1\r\nHost: evil.example:7676\r\n\r\n",
    "delete": b"DELETE /debug/pprof/heap HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "post": b"POST /debug/pprof/heap HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\na=b",
    "put-symbol": b"PUT /pprof/symbol HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\n0x1",
    "no-host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two-hosts": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
    "get-body": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\na=b",
}


def status(codes, name):
    s = connect()
    try:
        s.sendall(requests[name])
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    data = read_all(s)
    got = data.split(b" ", 2)[1].decode() if data.startswith(b"HTTP/1.") else "0"
    if got in codes.split(",") and b"root:" not in data:
        return None
    return repr(data[:300])


def statuses(tries):
    for one in tries:
        wrong = status(*one.split(":"))
        print(f"{one} {'as it should be' if wrong is None else wrong}")
    return 0


def together(cnt, path, prefix):
    clients = [connect() for _ in range(cnt)]
    for s in clients:
        s.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % path.encode())
    for i, s in enumerate(clients):
        s.settimeout(60)
        head, _, body = read_all(s).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            print(head.decode(errors="replace"))
            return 1
        with open(f"{prefix}{i}", "wb") as out:
            out.write(body)
    return 0


commands = {
    "malformed": lambda cnt, seconds: malformed(int(cnt), int(seconds)),
    "slow": lambda cnt, seconds: slow(int(cnt), int(seconds)),
    "unread": lambda cnt, seconds, path: unread(int(cnt), int(seconds), path),
    "crowd": lambda cnt, seconds: crowd(int(cnt), int(seconds)),
    "pipelined": lambda cnt: pipelined(int(cnt)),
    "gone": lambda cnt, path: gone(int(cnt), path),
    "statuses": lambda *tries: statuses(tries),
    "together": lambda cnt, path, prefix: together(int(cnt), path, prefix),
}
sys.exit(commands[sys.argv[2]](*sys.argv[3:]))
