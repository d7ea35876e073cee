#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Scopes of a Rust program: a tokio server with a task per connection, some of which leak; every
# scope and every task to the byte, attached in each mode, started, stripped; and a Rust library
# that a running python3 loads while it is recorded. timeout: 600
. "$(dirname "$0")/lib.sh"
e2e_init scope_rust

was_built scope-tokio || have cargo || skip_all "cargo is not installed"
if ! was_built scope-tokio && ! bash "$loads/scope_tokio/build" "$bin" >"$work/build.log" 2>&1; then
	grep -qE "^error(\[|:).*(compile|linking)" "$work/build.log" && { not_ok build scope_tokio "$work/build.log"; e2e_end; }
	skip_all "cargo cannot build it: $(grep -m1 error "$work/build.log")"
fi
have python3 || skip_all "python3 is not installed"

# scopes_are NAME: the rows of the report are what the program says
scopes_are() {
	local name=$1
	if [ "$record_status${target_status:-0}" != 00 ]; then
		not_ok "$name" "status $record_status, target ${target_status:-}" "$work/heaptap.err" "$work/target.err"
		return
	fi
	"$heaptap" report --by scope --top 0 --format json "$work/p.pb.gz" >"$work/by_scope" 2>"$work/report.err" &&
		"$heaptap" report --by instance --top 0 --format json "$work/p.pb.gz" >"$work/by_instance" \
			2>>"$work/report.err" &&
		python3 - "$work" "${SLACK_BYTES:-0}" >"$work/differences" 2>&1 <<'P'
import json, sys

work, slack = sys.argv[1], int(sys.argv[2])


def differs(found, value):
    """Numbers may be too large by the slack, which the C library takes for itself."""
    if found is None or len(found) != len(value):
        return True
    return any(not 0 <= f - v <= slack if isinstance(v, int) else f != v
               for f, v in zip(found, value))


scopes = json.load(open(work + "/by_scope"))
tasks = json.load(open(work + "/by_instance"))
found, expected = {}, {}
for row in scopes["rows"]:
    found["scope", row["path"]] = (row["inuse_bytes"], row["exclusive_inuse_bytes"],
                                   row["exclusive_inuse_objects"])
for row in tasks["rows"]:
    if row["task"] is not None:
        found["task", row["task"]] = (row["scope"], row["state"], row["inuse_bytes"],
                                      row["inuse_objects"])
for line in open(work + "/target.out"):
    word = line.split() or [""]
    if word[0] == "EXPECT_SCOPE":
        expected["scope", word[4]] = tuple(map(int, word[1:4]))
    elif word[0] == "EXPECT_INSTANCE":
        expected["task", word[1]] = (word[7], word[2], int(word[3]), int(word[4]))
for key, value in expected.items():
    if differs(found.get(key), value) and (any(value) or key in found):
        print(key, "is", found.get(key), "not", value)
for key in found.keys() - expected.keys():
    if key[0] == "task" or key[1].startswith("serve/conn"):
        print(key, "is", found[key], "and not expected")
outstanding = sum(value[2] for key, value in expected.items()
                  if key[0] == "task" and value[1] == "exited")
total = sum(row["inuse_bytes"] for row in scopes["rows"] if row["depth"] == 0)
if total != scopes["total"]["inuse_bytes"]:
    print("scopes sum up to", total, "of", scopes["total"]["inuse_bytes"])
if not 0 <= tasks["outstanding"]["inuse_bytes"] - outstanding <= slack:
    print("outstanding:", tasks["outstanding"], "not", outstanding)
if len(expected) < 19:
    print("only", len(expected), "rows expected")
P
	[ $? = 0 ] && [ ! -s "$work/differences" ] && ok "$name" ||
		not_ok "$name" "$(grep -c . "$work/differences") differences" "$work/differences" "$work/report.err"
}
scopes_attached() {
	local name=$1 program=$2
	shift 2
	if ! start "$program"; then
		not_ok "$name" "the target did not start" "$work/target.err" "$work/target.out"
		kill_target
		return
	fi
	attach --rate 1 "$@"
	work_recorded "$name"
	scopes_are "$name"
}

for mode in $e2e_modes; do
	scopes_attached "attached, $mode" "$bin/scope-tokio" --attach-mode=$mode
	no_losses "attached, $mode: no losses"
done
strip -o "$work/stripped" "$bin/scope-tokio"
scopes_attached "stripped" "$work/stripped"
launch --rate 1 -- "$bin/scope-tokio"
target_status=0
scopes_are "started"

# The library calls back into python3, which allocates, from two threads.
plugin=libscope_plugin.so
# With the crate's tests, which have the crates of others that it needs as they need them (test_rust.sh).
build_plugin() {
	CARGO_TARGET_DIR=$e2e_top/.build/rust timeout 300 cargo build -q --release --locked --example plugin -j 2 \
		--config 'profile.release.package."*".opt-level=0' --config 'profile.release.package."*".debug=0' \
		--manifest-path "$e2e_top/include/rust/heaptap-scope/Cargo.toml" &&
		cp "$e2e_top/.build/rust/release/examples/libplugin.so" "$bin/$plugin"
}
if was_built $plugin || build_plugin >"$work/build.log" 2>&1; then
	cat >"$work/loads.py" <<'P'
import ctypes, sys, threading, time

libc = ctypes.CDLL(None)
libc.malloc.argtypes = [ctypes.c_size_t]
libc.malloc.restype = ctypes.c_void_p
print("READY", flush=True)
sys.stdin.readline()
plugin = ctypes.CDLL(sys.argv[1])
time.sleep(1)  # it takes heaptap a moment to see the library


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def inside(_):
    libc.malloc(12347)


plugin.plugin_work(b"main", inside, None)
thread = threading.Thread(target=lambda: plugin.plugin_work(b"thread", inside, None))
thread.start()
thread.join()
print("DONE", flush=True)
sys.stdin.readline()
P
	start python3 "$work/loads.py" "$bin/$plugin"
	record_work --rate 1
	"$heaptap" report --by scope --top 0 --format json "$work/p.pb.gz" >"$work/by_scope" 2>"$work/report.err"
	python3 - "$work/by_scope" >"$work/differences" 2>&1 <<'P'
import json, sys

rows = {r["path"]: (r["inuse_bytes"], r["exclusive_inuse_bytes"])
        for r in json.load(open(sys.argv[1]))["rows"] if r["path"].startswith("plugin")}
wanted = {"plugin": (24694, 0)}
for thread in "main", "thread":
    wanted |= {f"plugin/{thread}": (12347, 0), f"plugin/{thread}/job": (12347, 12347)}
if rows != wanted:
    print(rows, "not", wanted)
P
	[ "$record_status$target_status" = 00 ] && [ ! -s "$work/differences" ] &&
		ok "a library that is loaded later" ||
		not_ok "a library that is loaded later" "status $record_status, target $target_status" \
			"$work/differences" "$work/heaptap.err" "$work/target.err"
else
	skip "a library that is loaded later" "cargo cannot build it: $(grep -m1 error "$work/build.log")"
fi
e2e_end
