#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dashboard.py - the queries of the Grafana dashboard and of the alert rules, asked of a Prometheus.

  dashboard.py PROMETHEUS_URL DASHBOARD RULES METRICS_PAGE

Each query must be understood, and name metrics that METRICS_PAGE has. The panels named in WITH_DATA
must have some. Prints one line for each fault, and the number of queries last.
"""
import json
import re
import sys
import urllib.parse
import urllib.request

url, dashboard_path, rules_path, page_path = sys.argv[1:]
# With a followed process that has scopes and has allocated; two scrapes are enough.
WITH_DATA = {"In use", "95 % interval, +-", "Allocated", "Processes", "In use by process",
             "In use by scope", "In use by thread pool", "Largest scopes now", "Growth by scope",
             "Allocated by scope", "Allocated by thread pool", "Explained and what the kernel says",
             "Explained share of resident", "Fill of heaptap's tables", "Samples", "CPU", "Memory",
             "Descriptors", "Snapshots", "Versions",
             "Resident memory by kind"}
dashboard = json.load(open(dashboard_path, encoding="utf-8"))
exported = set()
for line in open(page_path, encoding="utf-8"):
    if line.startswith("# TYPE "):
        exported.add(line.split()[2])


def ask(path, **arguments):
    query = urllib.parse.urlencode(arguments)
    try:
        with urllib.request.urlopen(f"{url}{path}?{query}", timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def check_names(where, text):
    names = set(re.findall(r"heaptap_[a-z0-9_]+", text))
    for name in names - exported:
        print(f"{where}: no metric {name}")
    return bool(names)


variables = {v["name"]: v for v in dashboard["templating"]["list"]}


def filled(text):
    text = text.replace("$__rate_interval", "20s").replace("$__interval", "5s")
    for name in re.findall(r"\$\{?(\w+)\}?", text):
        if name not in variables:
            print(f"no variable ${name}: {text}")
        text = re.sub(r"\$\{?" + name + r"\b\}?", variables.get(name, {}).get("allValue", ""), text)
    return text


for variable in variables.values():
    if variable["type"] != "query":
        continue
    match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
    check_names(variable["name"], match[1])
    answer = ask("/api/v1/series", **{"match[]": filled(match[1])})
    if answer["status"] != "success" or not any(match[2] in s for s in answer["data"]):
        print(f"variable {variable['name']}: {answer}")

count, with_data = 0, set()
for panel in dashboard["panels"]:
    for target in panel.get("targets", []):
        count += 1
        where = f"panel '{panel['title']}'"
        if target["datasource"]["uid"] != "${datasource}":
            print(f"{where}: a data source of its own")
        if not check_names(where, target["expr"]):
            print(f"{where}: no metric of heaptap: {target['expr']}")
        answer = ask("/api/v1/query", query=filled(target["expr"]))
        if answer["status"] != "success":
            print(f"{where}: {target['expr']}: {answer.get('error')}")
        elif answer["data"]["result"]:
            with_data.add(panel["title"])
for title in sorted(WITH_DATA - with_data):
    print(f"panel '{title}': no data")

expressions = re.sub(r"#.*", "", open(rules_path, encoding="utf-8").read())
for rule in ask("/api/v1/rules")["data"]["groups"][0]["rules"]:
    count += 1
    check_names(f"rule {rule['name']}", rule["query"])
    if rule["health"] == "err" or rule["name"] not in expressions:
        print(f"rule {rule['name']}: {rule.get('lastError')}")
print(f"# {count} queries")
