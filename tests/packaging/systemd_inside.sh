#!/bin/bash
# SPDX-License-Identifier: MIT
# systemd_inside.sh perf|multi - the installed package under a real systemd and cgroup v2: the unit as it is, in a
# machine of its own (slow_systemd.sh boots it), on a kernel whose uprobes are perf events or one that has
# links of many. TAP on stdout.
set -u
url=http://127.0.0.1:7676
work=$(mktemp -d)
target= target_in= since=-1h

ok() { echo "ok - $1"; }
not_ok() { # NAME WHY
	echo "not ok - $1: $2"
	{ systemctl --no-pager -l status heaptap; journalctl --no-pager -u heaptap -n 15 -o cat; } 2>&1 |
		sed 's/^/#   /' | head -n 40
}
await() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.5
	done
}
get() { curl -s -S -m 60 "$@" 2>>"$work/curl"; }
is_state() { [ "$(systemctl show -P ActiveState heaptap)" = "$1" ]; }
main_pid() { systemctl show -P MainPID heaptap; }
serves() { get -o "$work/healthz" -f "$url/healthz"; }
follows() { get "$url/metrics" | grep "^heaptap_inuse_bytes{pid=\"$target\"" >/dev/null; }
says() { journalctl -u heaptap -o cat --since "$since" | grep -E -- "$1" >/dev/null; }
held_cnt() { grep -c ^HELD "$work/out"; }
has_answered() { [ "$(held_cnt)" -ge "$answers" ]; }

# begin NAME PROPERTY...: the workload, as a service with these properties, of another user
begin() {
	local name=$1 p props=()
	shift
	for p; do props+=(-p "$p"); done
	cp -f /test/grows "/usr/local/bin/$name"
	rm -f "$work/in" "$work/out"
	mkfifo "$work/in"
	systemd-run -q --unit="$name" -p User=nobody -p "StandardInput=file:$work/in" \
		-p "StandardOutput=append:$work/out" "${props[@]}" "/usr/local/bin/$name" &
	exec {target_in}>"$work/in"
	wait $!
	await 20 grep -q READY "$work/out" || { not_ok "$name" "does not start"; return; }
	target=$(systemctl show -P MainPID "$name")
	await 30 follows && ok "$name of user nobody is followed" || not_ok "$name" "is not followed"
}
say() { # LINE: and wait until it is done; what it holds then in $held
	answers=$(($(held_cnt) + 1))
	echo "$1" >&"$target_in"
	await 30 has_answered || not_ok "$1" "no answer"
	held=$(awk '$1 == "HELD" { n = $2 } END { print n }' "$work/out")
}
holds() { # BYTES [QUERY]: what the profile says, to the byte
	get -f -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$target${2:-}" &&
		[ "$(/test/compare total "$work/p.pb.gz" 2>/dev/null | awk '{ print $2 }')" = "$1" ]
}
has_file() { ls /var/lib/heaptap/kept/$1 >"$work/files" 2>/dev/null; }

cat >/etc/heaptap/serve.toml <<'END'
comm = ['^first-']
rate = 1
max-overhead = "off"
max-overhead-host = "off"
keep-dir = "/var/lib/heaptap/kept"
END

# As Debian's kernels come: no perf events but with CAP_SYS_ADMIN.
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ] || not_ok "the kernel is Debian's" "it is not"
systemctl start heaptap
if [ "$1" = perf ]; then # before 6.6
	await 60 says 'uprobes cannot be attached.*CAP_SYS_ADMIN' && ok "without probes: it says what to do" ||
		not_ok "without probes" "it does not say what to do"
else
	await 60 serves && says 'cannot share probes: .*sysctl kernel.perf_event_paranoid=2' &&
		says 'mapping events are not available.*sysctl kernel.perf_event_paranoid=2' &&
		ok "without perf events: it serves, and says what is missing and what to do" ||
		not_ok "without perf events" "it does not serve, or does not say what to do"
fi
systemctl stop heaptap
systemctl reset-failed heaptap 2>/dev/null
sleep 1
since=$(date '+%F %T')
if [ "$1" = perf ]; then
	mkdir /etc/systemd/system/heaptap.service.d
	cat >/etc/systemd/system/heaptap.service.d/override.conf <<'END'
[Service]
CapabilityBoundingSet=CAP_SYS_ADMIN
AmbientCapabilities=CAP_SYS_ADMIN
END
	systemctl daemon-reload
else
	echo 2 >/proc/sys/kernel/perf_event_paranoid
fi
systemctl start heaptap && await 60 serves && ok "systemctl start" || not_ok "systemctl start" "it does not serve"
pid=$(main_pid)
awk '/^Uid:/ { exit $2 == 0 }' "/proc/$pid/status" && ok "it is not root" || not_ok "it is not root" "it is"
wanted=$((1 << 38 | 1 << 39 | 1 << 40 | 1 << 19 | 1 << 1))
[ "$1" != perf ] || wanted=$((wanted | 1 << 21)) # sys_admin
caps=$(awk '/^CapEff:/ { print $2 }' "/proc/$pid/status")
# perfmon 38, bpf 39, checkpoint_restore 40, sys_ptrace 19, dac_override 1
[ "$caps" = "$(printf %016x $wanted)" ] &&
	ok "its capabilities are the unit's" || not_ok "its capabilities are the unit's" "$caps"

begin first-a
say "up 100 10007"
await 20 holds "$held" && ok "$held bytes, as the program says" || not_ok "in use" "not $held"
/usr/bin/heaptap report --format collapsed "$work/p.pb.gz" | grep site_up >/dev/null &&
	ok "its functions have names" || not_ok "its functions have names" "no site_up"

# reload: another selection
sed -i "s/^comm.*/comm = ['^(first|second)-']/" /etc/heaptap/serve.toml
systemctl reload heaptap && ok "systemctl reload" || not_ok "systemctl reload" "it fails"
exec {target_in}>&-
begin second-a MemoryHigh=48M MemoryMax=64M MemorySwapMax=0
echo "com = 1" >>/etc/heaptap/serve.toml
systemctl reload heaptap
await 10 says 'serve.toml:[0-9]+:.*com' && ok "an error in the configuration is in the journal" ||
	not_ok "an error in the configuration" "the journal does not name it"
sed -i '/^com = /d' /etc/heaptap/serve.toml

# its memory: over memory.high, then the OOM killer
say "up 30 1048583"
holds "$held" && ok "$held bytes before the limit" || not_ok "before the limit" "not $held"
answers=$(($(held_cnt) + 1))
echo "up 25 1048583" >&"$target_in" # memory.high slows it down for good: not waited for
await 60 has_file "*Z-$target-second_a-limit.pb.gz" && ok "over memory.high: a profile on disk" ||
	not_ok "over memory.high" "no profile of it"
[ "$(journalctl -u heaptap -o cat --since "$since" | grep -c 'second-a.service uses')" = 1 ] &&
	ok "it is told once" || not_ok "it is told once" "not so"
echo max >"/sys/fs/cgroup$(systemctl show -P ControlGroup second-a)/memory.high"
await 120 has_answered || not_ok "memory.high lifted" "it does not go on"
echo "up 40 1048583" >&"$target_in"
await 60 has_file "*Z-$target-second_a-oom.pb.gz" && ok "killed for want of memory: a profile on disk" ||
	not_ok "killed for want of memory" "no profile of it"
exec {target_in}>&-

# killed: it comes back, and nothing is left in the targets
begin first-b
kill -9 "$(main_pid)"
restarted() { [ "$(main_pid)" != 0 ] && [ "$(main_pid)" != "$pid" ] && serves; }
await 60 restarted && ok "killed: started again" || not_ok "killed: started again" "not within a minute"
await 30 follows && ok "and follows again" || not_ok "and follows again" "it does not"
# many processes of one library: the probes that they share
for i in 1 2 3 4 5 6; do
	cp /test/grows "/usr/local/bin/first-$i"
	systemd-run -q -p User=nobody sh -c \
		"while sleep 0.1; do printf 'up 500 64\ndown 500\n'; done | /usr/local/bin/first-$i >/dev/null"
done
shares() { get "$url/metrics" | grep '^heaptap_probed_processes{.*way="event"} 7$' >/dev/null; }
await 30 shares && ok "seven processes share probes" || not_ok "seven processes share probes" \
	"$(get "$url/metrics" | grep '^heaptap_probed_processes')"
systemctl stop heaptap
grep -q heaptap_ /sys/kernel/tracing/uprobe_events && not_ok "no definition is left" "there is one" ||
	ok "no definition is left"
is_state inactive && ok "systemctl stop" || not_ok "systemctl stop" "$(systemctl show -P ActiveState heaptap)"
[ "$(systemctl show -P Result heaptap)" = success ] && ok "it ended by itself, in time" ||
	not_ok "it ended by itself, in time" "$(systemctl show -P Result heaptap)"
kill -0 "$target" && ok "the target goes on" || not_ok "the target goes on" "it is gone"
journalctl -u heaptap -o cat --since "$since" | grep -iE 'warning|denied|not permitted|EPERM|EACCES' >"$work/denied" &&
	not_ok "nothing was forbidden to it" "$(head -n 1 "$work/denied")" || ok "nothing was forbidden to it"
