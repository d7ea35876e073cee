#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A page in a real browser, without a library: the protocol of Chromium's developer tools, through two pipes.

browser.py CHROMIUM FOLDER URL SCRIPT WIDTHxHEIGHT:light|dark|print|cpu...

Opens the page anew for each screen, runs the file SCRIPT in it, which is an expression (a promise is waited for), and prints
"WIDTHxHEIGHT:SCHEME LINE" for each line of what it gives; what the browser complains about is a line "console ...".
With "print" it is on paper, of a reader who prefers dark screens, and FOLDER/print.pdf is what a printer would get. With "cpu"
the first line is "cpu MS": the processor time of the page's thread until it was drawn, which a busy machine does not change.

browser.py CHROMIUM FOLDER

The same for each line of its input, "OUT URL SCRIPT SCREEN..." with tabs between, of the same browser: to begin one takes longer
than to look at a page. The answer is in the file OUT when it says END.
"""
import base64
import contextlib
import ctypes
import json
import os
import select
import subprocess
import sys
import time

browser, folder, *question = sys.argv[1:]
to_read, to_write = os.pipe(), os.pipe()  # its 3, its 4


def begin():
    os.dup2(to_read[0], 10)
    os.dup2(to_write[1], 11)
    os.dup2(10, 3)
    os.dup2(11, 4)
    ctypes.CDLL(None).prctl(1, 9)  # it ends with this one


process = subprocess.Popen(
    [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
     "--user-data-dir=" + folder, "about:blank"],
    close_fds=False, preexec_fn=begin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.close(to_read[0])
os.close(to_write[1])
pending, number, complaints, loaded = b"", 0, [], False


def next_message(seconds):
    global pending
    end = time.monotonic() + seconds
    while b"\0" not in pending:
        left = end - time.monotonic()
        if left <= 0 or not select.select([to_write[0]], [], [], left)[0]:
            raise SystemExit("the browser does not answer")
        part = os.read(to_write[0], 1 << 16)
        if not part:
            raise SystemExit("the browser has ended")
        pending += part
    text, pending = pending.split(b"\0", 1)
    return json.loads(text)


def note(message):
    global loaded
    method, params = message.get("method"), message.get("params", {})
    if method == "Page.loadEventFired":
        loaded = True
    elif method == "Runtime.exceptionThrown":
        complaints.append(json.dumps(params["exceptionDetails"])[:400])
    elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
        complaints.append(params["entry"]["text"][:400])
    elif method == "Page.javascriptDialogOpening":
        complaints.append("alert: " + params["message"][:400])
        call("Page.handleJavaScriptDialog", message["sessionId"], accept=True)


def call(method, session=None, **params):
    global number
    number += 1
    message = {"id": number, "method": method, "params": params}
    if session:
        message["sessionId"] = session
    os.write(to_read[1], json.dumps(message).encode() + b"\0")
    while True:
        answer = next_message(60)
        if answer.get("id") == number:
            if "error" in answer:
                raise SystemExit(f"{method}: {answer['error']}")
            return answer["result"]
        note(answer)


def look(url, script, screen):
    global loaded
    size, scheme = screen.split(":")
    width, height = map(int, size.split("x"))
    target = call("Target.createTarget", url="about:blank")["targetId"]
    session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log"):
        call(domain + ".enable", session)
    call("Emulation.setDeviceMetricsOverride", session, width=width, height=height, deviceScaleFactor=1, mobile=False)
    dark_or_light = {"print": "dark", "cpu": "light"}.get(scheme, scheme)
    call("Emulation.setEmulatedMedia", session, media="print" if scheme == "print" else "",
         features=[{"name": "prefers-color-scheme", "value": dark_or_light}])
    loaded, lines = False, []
    call("Performance.enable", session, timeDomain="threadTicks")
    call("Page.navigate", session, url=url)
    while not loaded:
        note(next_message(60))
    if scheme == "cpu":
        call("Runtime.evaluate", session, awaitPromise=True,
             expression="new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        metrics = {one["name"]: one["value"] for one in call("Performance.getMetrics", session)["metrics"]}
        lines.append(f"cpu {1000 * metrics['TaskDuration']:.0f}")
    with open(script, encoding="utf-8") as f:
        result = call("Runtime.evaluate", session, expression=f.read(), awaitPromise=True, returnByValue=True)
    if scheme == "print":
        call("Emulation.setEmulatedMedia", session, media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        with open(folder + "/print.pdf", "wb") as f:
            f.write(base64.b64decode(call("Page.printToPDF", session)["data"]))
    call("Target.closeTarget", targetId=target)
    if "exceptionDetails" in result:
        return ["error " + json.dumps(result["exceptionDetails"])[:400]]
    return lines + str(result["result"].get("value", "")).split("\n")


def answer(url, script, *screens):
    complaints.clear()
    for screen in screens:
        for line in look(url, script, screen):
            print(screen, line)
    for text in complaints:
        print("console", text)


try:
    if question:
        answer(*question)
    else:
        for line in sys.stdin:
            out, *question = line.rstrip("\n").split("\t")
            with open(out, "w", encoding="utf-8") as f, contextlib.redirect_stdout(f):
                answer(*question)
            print("END", flush=True)
finally:
    process.kill()
    process.wait()
