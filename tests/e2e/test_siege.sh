#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve beside everybody who would harm it, all at once, wave after wave: it answers, another process is
# served, and nothing grows. timeout: 4500
#
# E2E_SIEGE_SECONDS: how long (9: a wave or two of the three kinds; with TESTS_WHOLE=1 25).
. "$(dirname "$0")/lib.sh"
e2e_init siege
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"
[ -e /dev/fuse ] || skip_all "this kernel has no FUSE"

build_c family && build_c mute_fuse && build_c mute_target "-I$e2e_top/include" -Wl,-z,now && build_c costly_maps -lz &&
	build_c many_stacks || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
seconds=${E2E_SIEGE_SECONDS:-$(is_whole && echo 25 || echo 9)}
export E2E_LIFE_SECONDS=$((seconds + 900))
mkdir -m 1777 "$top/files"
mkdir "$top/bin-costly"
cp "$bin/costly_maps" "$top/bin-costly/costly"

# hostile NAME COMMAND...: one that does what it does at once
hostile() {
	local name=$1
	shift
	begin "$name" "$@"
	tell_to "$name" go
	wave+=("$name")
}
costly() { hostile "costly-$1-$2" "$top/bin-costly/costly" "$top/files" "$@"; }
begin_wave() {
	local overs=(map descriptor args) over
	over=${overs[waves % 3]}
	wave=()
	lay "$over" "mute$([ "$over" = map ] && echo ' all')"
	costly leases 9
	costly tiny 3000
	costly 0 20000000 1
	costly 1 1000000 1
	costly 2 30000000 1
	costly 5 10000000 1
	costly 9 10000000 1
	hostile many_stacks "$bin/many_stacks" 30000
}
end_wave() {
	end_fuse
	for name in mutes "${wave[@]}"; do
		end_process "$name"
		exec {in_of[$name]}>&- 2>/dev/null
	done
	rm -f "$top"/files/*
}
# what main has for itself, in kB
anon_kb() { awk '/^RssAnon/ { print $2 }' "/proc/$server/status"; }

begin heapy
serve --listen 127.0.0.1:0 --rate 1 --max-stacks 20000 --comm '^(heapy|costly|mutes|many_stacks)'
await 10 follows "${pid_of[heapy]}" || not_ok "follow" "not followed" "$top/serve.err"
work_of heapy
watch_memory &
waves=0 slowest=0 worst_ms=0 begin=$SECONDS started_at=$(date +%s)
: >"$top/refusal"
: >"$top/memory"
while [ $((SECONDS - begin)) -lt "$seconds" ]; do
	begin_wave
	answers_within 1000 4 /healthz /metrics
	[ "$longest" -gt "$slowest" ] && slowest=$longest
	answer=$(curl -s -m 60 -o "$top/profile" -w '%{http_code} %{time_total}' \
		"$url/debug/pprof/heap?pid=${pid_of[heapy]}")
	took=$(awk '{ printf "%d", $1 == 200 ? $2 * 1000 : 60000 }' <<<"$answer")
	[ "$took" -eq 60000 ] && [ ! -s "$top/refusal" ] &&
		{ echo "wave $waves: $answer, $(($(date +%s) - started_at)) s"; head -c 400 "$top/profile"; grep -E '^(Name|State)' "/proc/${pid_of[heapy]}/status"; } >"$top/refusal" 2>&1
	[ "$took" -gt "$worst_ms" ] && worst_ms=$took
	[ "$took" -gt 2500 ] && echo "wave $waves: $took ms, load $(cut -d ' ' -f 1 /proc/loadavg)" >>"$top/refusal"
	end_wave
	sleep 1
	waves=$((waves + 1))
	anon_kb >>"$top/memory"
done
[ "$slowest" -le 1000 ] && ok "$waves waves: /healthz and /metrics within $slowest ms" ||
	not_ok "/healthz and /metrics" "took $slowest ms" "$top/serve.err"
[ "$worst_ms" -le 2500 ] && ok "another process's profile within $worst_ms ms" ||
	not_ok "another process's profile" "took $worst_ms ms" "$top/refusal" "$top/serve.err"
exact_of heapy "and it is exact"
# of the first third the most, of the last one the least
awk '{ kb[NR] = $1 }
	END { third = int((NR + 2) / 3); for (i = 1; i <= third; i++) if (kb[i] > early) early = kb[i];
		late = kb[NR]; for (i = NR - third + 1; i <= NR; i++) if (kb[i] < late) late = kb[i];
		print early, late; exit !(late <= early + 16384) }' "$top/memory" >"$top/growth" &&
	ok "nothing grows: $(cat "$top/growth") kB" || not_ok "nothing grows" "$(cat "$top/growth") kB" "$top/memory"
grep 'are not in the file' "$top/serve.err" >"$top/own" && not_ok "own breakpoints" "were taken for another's" "$top/own" ||
	ok "no breakpoint of its own was taken for another's"
begin heapy-late
await 10 follows "${pid_of[heapy-late]}" || not_ok "who comes later" "not followed" "$top/serve.err"
work_of heapy-late
exact_of heapy-late "who comes later is served"
begin_wave
sleep 1
kill -USR1 "$server"
await 2 says "$top/serve.err" 'all probes are removed' && await 2 same_memory heapy-late &&
	ok "SIGUSR1 takes the probes out meanwhile" || not_ok "SIGUSR1" "not within 4 s" "$top/serve.err"
started=$SECONDS
end_server "in the middle of it"
[ $((SECONDS - started)) -le 2 ] || not_ok "SIGTERM" "took $((SECONDS - started)) s"
await 5 says "$top/most" '[0-9]'
most=$(cat "$top/most")
[ "$most" -le 300 ] && ok "all of heaptap has $most MB at most" || not_ok "memory" "$most MB" "$top/serve.err"
end_wave
await 10 same_memory heapy && ok "no probe is left" || not_ok "a probe is left" "" "$top/text"
e2e_end
