#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""judge.py - does anything grow? For `make soak`.

    judge.py SAMPLES WARMUP_SECONDS [NAME=ALLOWANCE...]     TAP on stdout, status 1 when one grows
    judge.py --test

SAMPLES has a line "SECONDS NAME VALUE" per reading. What comes before WARMUP_SECONDS does not count.
The rest is cut into ten windows (some may be empty), whose medians a single odd reading cannot move. The trend is the
median of the slopes between all pairs of windows (Theil and Sen); what it adds from the first
window to the last is the growth. A value grows when that is more than its allowance and the last
three windows are all above the first three. ALLOWANCE is a number, or a part of the median ("3%").
"""
import statistics
import sys

WINDOWS = 10
WINDOWS_LEAST = 5 # with readings in them


def medians(points, begin, end):
    width = (end - begin) / WINDOWS
    found = []
    for i in range(WINDOWS):
        values = [v for t, v in points if begin + i * width <= t < begin + (i + 1) * width]
        if values:
            found.append((begin + (i + 0.5) * width, statistics.median(values)))
    return found


def growth(windows):
    """What the trend adds over all windows."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0])
              for i, a in enumerate(windows) for b in windows[i + 1:]]
    return statistics.median(slopes) * (windows[-1][0] - windows[0][0])


def grows(windows, allowed):
    values = [v for _, v in windows]
    return growth(windows) > allowed and min(values[-3:]) > max(values[:3])


def allowance(text, windows):
    if text.endswith('%'):
        return float(text[:-1]) / 100 * statistics.median(v for _, v in windows)
    return float(text)


def read(path):
    series = {}
    with open(path, encoding='ascii') as lines:
        for line in lines:
            seconds, name, value = line.split()
            series.setdefault(name, []).append((float(seconds), float(value)))
    return series


def judge(path, warmup, allowances):
    series = read(path)
    bad = 0
    for name in sorted(series):
        points = [p for p in series[name] if p[0] >= warmup]
        windows = medians(points, warmup, points[-1][0] + 0.001) if points else []
        if len(windows) < WINDOWS_LEAST:
            print(f'not ok - soak: {name}: {len(windows)} windows only')
            bad += 1
            continue
        allowed = allowance(allowances.get(name, allowances.get('*', '0')), windows)
        is_bad = grows(windows, allowed)
        bad += is_bad
        print(f'{"not ok" if is_bad else "ok"} - soak: {name}: {windows[0][1]:.15g} at first, '
              f'{windows[-1][1]:.15g} at last, trend {growth(windows):+.3g}, allowed '
              f'{allowed:.3g}')
    return bad


def test():
    flat = [(t, 100 + t % 7) for t in range(600)]
    odd = [(t, 100 if t != 599 else 10**9) for t in range(600)]
    leak = [(t, 100 + t * 0.05 + t % 7) for t in range(600)]
    steps = [(t, 100 + 20 * (t > 300)) for t in range(600)]
    once = [(t, 100 + 20 * (200 < t < 300)) for t in range(600)]
    for points, wanted in ((flat, False), (odd, False), (leak, True), (steps, True), (once, False)):
        assert grows(medians(points, 0, 600), 5) == wanted
    assert not grows(medians(leak, 0, 600), 40)
    print('ok - judge: knows a leak from an odd reading')
    return 0


if __name__ == '__main__':
    if sys.argv[1:] == ['--test']:
        sys.exit(test())
    sys.exit(1 if judge(sys.argv[1], float(sys.argv[2]),
                        dict(a.split('=', 1) for a in sys.argv[3:])) else 0)
