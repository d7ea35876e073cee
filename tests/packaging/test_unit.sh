#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_unit.sh - the systemd unit: valid, well locked up, and not more than serve can bear: serve,
# with the unit's user, capabilities and view of the file system, records another user's process.
. tests/packaging/lib.sh
packaging_init unit
have systemd-analyze || skip_all "systemd-analyze is not installed"
make --no-print-directory B="$B" install PREFIX="$work/usr" >"$work/log" 2>&1 ||
	{ not_ok install "make install fails" "$work/log"; packaging_end; }
unit=$work/usr/lib/systemd/system/heaptap.service
setting() { sed -nE "s/^$1=//p" "$unit"; }

systemd-analyze verify --man=no "$unit" >"$work/verify" 2>&1
status=$?
# What the machine's other units have to say is not ours.
grep heaptap "$work/verify" >"$work/ours"
[ $status = 0 ] && [ ! -s "$work/ours" ] && ok "systemd-analyze verify" ||
	not_ok "systemd-analyze verify" "it complains" "$work/verify"
systemd-analyze security --offline=true --no-pager "$unit" >"$work/security" 2>&1
score=$(sed -nE 's/.*exposure level[^:]*: ([0-9.]+).*/\1/p' "$work/security")
if [ -n "$score" ] && awk "BEGIN { exit !($score <= 3.0) }"; then
	ok "systemd-analyze security: exposure $score of 10"
else
	not_ok "systemd-analyze security" "exposure '$score', wanted at most 3.0" "$work/security"
fi
caps=$(setting CapabilityBoundingSet)
[ -n "$caps" ] && [ "$caps" = "$(setting AmbientCapabilities)" ] &&
	ok "what is given is what can be had" || not_ok "capabilities" "two sets"
for cap in $caps; do
	grep -q "\`$cap\`" tools/packaging/README.md && ok "$cap has its reason in the README" ||
		not_ok "$cap" "tools/packaging/README.md gives no reason for it"
done

# From here on, as the unit says.
[ "$(id -u)" = 0 ] || { skip "recording" "needs root"; packaging_end; }
have setpriv && have unshare && have curl || { skip "recording" "no setpriv, unshare, curl"; packaging_end; }
target=$work/usr/target
cat >"$work/target.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	static void *volatile kept;

	for (int i = 0; i < 6000; i++) {
		kept = malloc(1 << 20);
		usleep(10000);
	}
	return !kept;
}
C
${CC:-cc} -O1 -g -o "$target" "$work/target.c" || { not_ok target "cannot be built"; packaging_end; }
# Only its own user may read it, in a folder that only its own user may enter.
mkdir "$work/private"
mv "$target" "$work/private/"
chown -R 12345:12345 "$work/private"
chmod -R go= "$work/private"
setpriv --reuid 12345 --regid 12345 --clear-groups "$work/private/target" &
target=$!
pids="$pids $target"
is_running() { [ "$(readlink /proc/$target/exe)" = "$work/private/target" ]; }
await 20 is_running || not_ok target "does not start"
rm "$work/private/target" # as an upgrade does

# locked CAPABILITIES COMMAND...: as the unit's user; nothing but /tmp can be written, and that is new
cat >"$work/locked" <<'SH'
set -e
caps=+$(tr A-Z a-z <<<"$1" | sed 's/cap_//g; s/ /,+/g')
shift
mount --make-rprivate /
mount --bind / / && mount -o remount,ro,bind / 2>/dev/null || true
mount -t tmpfs tmpfs /home
exec setpriv --reuid 61184 --regid 61184 --clear-groups --no-new-privs \
	--bounding-set "-all,$caps" --inh-caps "-all,$caps" --ambient-caps "-all,$caps" "$@"
SH
chmod 755 "$work/locked"
# The program where its user can read it.
cp ./heaptap "$work/heaptap"
chmod 755 "$work/heaptap"
(umask 077; echo "a-token-that-is-root's" >"$work/token")
fetch() { curl -s -m 60 -H "Authorization: Bearer $(cat "$work/token")" "$@"; }
serve_with() {
	: >"$work/serve.err"
	unshare -m bash "$work/locked" "$1" "$work/heaptap" serve --listen 127.0.0.1:0 \
		--token-file "$work/token" --rate 1m -p "$target" >"$work/serve.out" 2>"$work/serve.err" &
	server=$!
	pids="$pids $server"
	await 20 serves
	url=$(sed -nE 's,^heaptap: serving 1 process on (http://[^/]*)/.*,\1,p' "$work/serve.err")
	[ -n "$url" ]
}
serves() { grep -q '^heaptap: serving' "$work/serve.err" || ! kill -0 $server 2>/dev/null; }
end_server() {
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	pids=" $pids "
	pids=${pids/ $server / } # from now on it may be anybody's
}
inuse() { fetch "$url/metrics" | awk -v p="heaptap_inuse_bytes{pid=\"$target\"" 'index($0, p) == 1 { print ($NF > 1000000) }'; }
has_samples() { [ "$(inuse)" = 1 ]; }
named() { fetch -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$target" && ./heaptap report -v "$work/p.pb.gz" | grep -q main; }

if serve_with "$caps"; then
	await 20 has_samples && ok "records another user's process" ||
		not_ok "records another user's process" "no samples" "$work/serve.err"
	named && ok "and names its functions, in a deleted file that only that user could read" ||
		not_ok "and names its functions" "main is missing" "$work/serve.err"
	[ "$(curl -s -m 10 -o /dev/null -w '%{http_code}' "$url/healthz") $(curl -s -m 10 -o /dev/null \
		-w '%{http_code}' "$url/metrics")" = "200 401" ] &&
		ok "only /healthz needs no token" || not_ok "only /healthz needs no token" "not so"
	grep -E '^(CapEff|CapBnd|Uid|NoNewPrivs)' /proc/$server/status | sed 's/^/# /'
	end_server
else
	not_ok "records another user's process" "serve does not start" "$work/serve.err"
	end_server
fi
# None is there for nothing.
for cap in CAP_DAC_OVERRIDE CAP_CHECKPOINT_RESTORE; do
	without=$(tr ' ' '\n' <<<"$caps" | grep -vx "$cap" | paste -sd' ')
	if serve_with "$without" && await 10 has_samples && named; then
		not_ok "without $cap there are no names" "there are: the unit gives too much"
	else
		ok "without $cap there are no names"
	fi
	end_server
done
for cap in CAP_BPF CAP_PERFMON CAP_SYS_PTRACE; do
	without=$(tr ' ' '\n' <<<"$caps" | grep -vx "$cap" | paste -sd' ')
	if serve_with "$without" && await 1 has_samples; then
		not_ok "without $cap nothing is recorded" "it works: the unit gives too much"
	else
		ok "without $cap nothing is recorded"
	fi
	end_server
done
packaging_end
