#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_manifests.py - what a schema does not know of the Kubernetes manifests; TAP on stdout.

	check_manifests.py UNIT CONFIG_OUT MANIFEST...

UNIT is the systemd unit, whose capabilities the container must have, no more and no less. The
configuration in the ConfigMap is left in CONFIG_OUT. With the package kubernetes-validate each object
is also held against the published schemas.
"""
import re
import sys

import yaml

try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

unit, config_out, *paths = sys.argv[1:]
failed = False


def check(name, holds, why="it is not so"):
    global failed
    if holds:
        print(f"ok - manifests: {name}")
    else:
        print(f"not ok - manifests: {name}: {why}")
        failed = True


def check_schema(title, thing):
    if thing["apiVersion"] not in ("v1", "apps/v1"):
        return  # not of Kubernetes itself
    if not kubernetes_validate:
        print(f"ok - manifests: {title} # SKIP kubernetes-validate is not installed")
        return
    version = kubernetes_validate.latest_version()
    try:
        kubernetes_validate.validate(thing, version, strict=True)
        check(f"{title}: schema of {version}", True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as e:
        check(f"{title}: schema of {version}", False, str(getattr(e, "message", e)))


things = [t for p in paths for t in yaml.safe_load_all(open(p, encoding="utf-8"))]
for thing in things:
    check_schema(f"{thing['kind']} {thing['metadata']['name']}", thing)

by_kind = {t["kind"]: t for t in things}
pod = by_kind["DaemonSet"]["spec"]["template"]
spec = pod["spec"]
container = spec["containers"][0]
security = container["securityContext"]
unit_caps = re.search(r"^CapabilityBoundingSet=(.*)$", open(unit, encoding="utf-8").read(), re.M)
# Files of root's are uid 0's own: it only has to read those of others.
wanted = sorted(c.removeprefix("CAP_").replace("DAC_OVERRIDE", "DAC_READ_SEARCH")
                for c in unit_caps.group(1).split())
check("the capabilities are the unit's, as far as uid 0 needs them", sorted(security["capabilities"]["add"]) == wanted)
check("all others are dropped", security["capabilities"]["drop"] == ["ALL"])
check("not privileged, nothing written but in volumes",
      not security["privileged"] and security["readOnlyRootFilesystem"]
      and not security["allowPrivilegeEscalation"])
check("sees the host's processes, has no rights in the API",
      spec["hostPID"] and spec["automountServiceAccountToken"] is False)
for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
    check(f"{probe} asks the page that needs no token",
          container[probe]["httpGet"]["path"] == "/healthz")
volumes = {v["name"]: v for v in spec["volumes"]}
mounts = {m["name"]: m for m in container["volumeMounts"]}
check("every volume is mounted, every mount has one", volumes.keys() == mounts.keys())
check("the token is its owner's alone", volumes["token"]["secret"]["defaultMode"] == 0o400)
check("requests and limits", all(r in container["resources"][k] for k in ("requests", "limits")
                                 for r in ("cpu", "memory")))
labels = pod["metadata"]["labels"].items()
check("the selectors find the pods",
      by_kind["DaemonSet"]["spec"]["selector"]["matchLabels"].items() <= labels
      and by_kind["PodMonitor"]["spec"]["selector"]["matchLabels"].items() <= labels)
endpoint = by_kind["PodMonitor"]["spec"]["podMetricsEndpoints"][0]
check("the monitor's port is the container's",
      endpoint["port"] in [p["name"] for p in container["ports"]])
check("the monitor has the token",
      endpoint["authorization"]["credentials"]["name"] == volumes["token"]["secret"]["secretName"])
config = by_kind["ConfigMap"]["data"]["serve.toml"]
port = container["ports"][0]["containerPort"]
check("the configuration's port and token are the pod's",
      f":{port}\"" in config and mounts["token"]["mountPath"] in config)
with open(config_out, "w", encoding="utf-8") as f:
    f.write(config)
sys.exit(failed)
