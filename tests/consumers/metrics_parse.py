#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""metrics_parse.py - a metrics page in both formats, read by Prometheus' own Python library.

  metrics_parse.py TEXT_PAGE OPENMETRICS_PAGE

The pages are of one moment, but for what a page costs itself, and what others do. Prints one line for each fault.
"""
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

OF_ITSELF = ("heaptap_cpu_seconds_total", "heaptap_resident_memory_bytes", "heaptap_open_fds",
             "heaptap_snapshot_seconds", "heaptap_snapshot_age_seconds", "heaptap_target_cgroup_usage_bytes",
             "heaptap_resident_age_seconds")


def samples(read, path):
    found = {}
    for family in read(open(path, encoding="utf-8").read()):
        if not family.documentation:
            print(f"{family.name} has no help")
        for s in family.samples:
            key = (s.name, tuple(sorted(s.labels.items())))
            if key in found:
                print(f"twice: {key}")
            found[key] = s.value
    return found


text, open_metrics = samples(read_text, sys.argv[1]), samples(read_open, sys.argv[2])
if len(text) < 50:
    print(f"only {len(text)} samples")
for key in sorted(set(text) | set(open_metrics)):
    if key[0] not in OF_ITSELF and text.get(key) != open_metrics.get(key):
        print(f"{key}: {text.get(key)} and {open_metrics.get(key)}")
