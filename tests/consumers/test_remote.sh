#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_remote.sh - the readers that fetch from a server, at `heaptap serve` and a process that leaks:
# jeprof and gperftools' pprof by their text protocol, `go tool pprof` by both. Each fetches, names
# functions (of a library that is closed, too) and subtracts what was fetched before.
. tests/consumers/lib.sh
consumer=remote
work=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-consumer-XXXXXX")
started=
trap 'for p in $started; do kill "$p" 2>/dev/null; done; wait 2>/dev/null; rm -rf "$work"' EXIT
[ "$(id -u)" = 0 ] || skip_all "needs root"
have curl || skip_all "no curl, which the readers fetch with"
have google-pprof || have jeprof || skip_all "neither google-pprof nor jeprof"
[ -x /usr/local/go/bin/go ] && PATH=$PATH:/usr/local/go/bin
export PPROF_TMPDIR=$work/saved JEPROF_TMPDIR=$work/saved HOME=${HOME:-$work}
mkdir "$work/saved"
flags="-std=gnu11 -O2 -g -D_GNU_SOURCE -Wall -fno-builtin-malloc"
if ! ${CC:-cc} $flags -o "$work/leaker" tests/consumers/leaker.c -ldl >"$work/log" 2>&1 ||
	! ${CC:-cc} $flags -DLEAKER_PLUGIN -shared -fPIC -o "$work/plugin.so" tests/consumers/leaker.c \
		>>"$work/log" 2>&1; then
	not_ok setup "the process cannot be built" "$work/log"
	exit 1
fi

# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}
declare -A pid_of in_of
# begin NAME: a leaker that waits for commands
begin() {
	mkfifo "$work/$1.in"
	"$work/leaker" "$work/plugin.so" <"$work/$1.in" >"$work/$1.out" 2>&1 &
	pid_of[$1]=$!
	started="$started $!"
	exec {in_of[$1]}>"$work/$1.in"
	until_true 20 grep -q ready "$work/$1.out" || not_ok "$1" "does not start" "$work/$1.out"
}
# tell NAME COMMAND N, and wait until it is done
tell() {
	local name=$1 before
	before=$(grep -c done "$work/$name.out")
	shift
	echo "$*" >&"${in_of[$name]}"
	has_done() { [ "$(grep -c done "$work/$name.out")" -gt "$before" ]; }
	until_true 30 has_done || not_ok "$name" "$* is not done" "$work/$name.out"
}
# serve OPTION...: in $server, at $url
serve() {
	: >"$work/serve.err" # that of the server before says that it has begun
	"$B/heaptap" serve --listen 127.0.0.1:0 --rate 1 "$@" >"$work/serve.err" 2>&1 &
	server=$!
	started="$started $!"
	until_true 30 grep -q '^heaptap: serving' "$work/serve.err" ||
		not_ok "serve $*" "does not begin" "$work/serve.err"
	url=$(sed -nE 's,^heaptap: serving .* on (http://[^/]*)/.*,\1,p' "$work/serve.err")
}
fetch() { curl -s -S --fail -m 60 "$@"; }

begin server
begin other
server_pid=${pid_of[server]}
serve -p "$server_pid"
tell server requests 30
tell server cache 20
in_use=$((30 * 1000 + 10 * 5000))
allocated=$((30 * 1000 + 20 * 5000))

# read_with READER OPTION... URL: its text in $work/out
read_with() { timeout 120 "$@" >"$work/out" 2>"$work/err" || cat "$work/err" >>"$work/out"; }
# No line of a function is an address.
named() {
	if grep -qE '^ +[0-9].* (0x)?[0-9a-f]{8,}$' "$work/out"; then
		not_ok "$1: names" "some are addresses" "$work/out"
	else
		ok "$1: names"
	fi
}

for reader in google-pprof jeprof; do
	if ! have $reader; then
		ok "$reader # SKIP not installed"
		continue
	fi
	rm -f "$work"/saved/*
	read_with $reader --text --show_bytes "$url/pprof/heap"
	expect "$reader: in use" "$work/out" "^Total: $in_use B" '^ +50000 .* 50000 .* fill_cache$' \
		'^ +3[03]000 .* 3[03]000 .* read_header \(inline\)$' '^ +0 .* 3[03]000 .* handle_request$' \
		"^ +0 .* $in_use .* main\$"
	named "$reader"
	grep -qi adjusting "$work/err" && not_ok "$reader: nothing is scaled" "it is" "$work/err"
	# A copy: what is fetched within the same second gets the same name.
	saved=$work/$reader.before
	cp "$(ls "$work"/saved/*heap | head -n 1)" "$saved"
	read_with $reader --text --inuse_objects "$url/pid/$server_pid/pprof/heap"
	expect "$reader: objects of /pid/N" "$work/out" '^Total: 4[03] objects' '^ +3[03] .* read_header' '^ +10 .* fill_cache$'
	read_with $reader --text --show_bytes --alloc_space "$url/pprof/heap"
	expect "$reader: allocated" "$work/out" "^Total: $allocated B" '^ +100000 .* fill_cache$'
	read_with $reader --text --show_bytes "$url/pprof/growth"
	expect "$reader: growth" "$work/out" "^Total: $allocated B" '^ +100000 .* fill_cache$' \
		'^ +3[03]000 .* read_header'
	# What has leaked since then.
	tell server requests 3
	read_with $reader --text --show_bytes --base="$saved" "$url/pprof/heap"
	expect "$reader: the difference" "$work/out" '^Total: 3000 B' '^ +3000 .* read_header'
	grep -qE 'fill_cache' "$work/out" &&
		not_ok "$reader: the difference" "there is more in it" "$work/out"
	# The addresses are those of the process: what was fetched can be read with the program itself.
	read_with $reader --text --show_bytes "$work/leaker" "$saved"
	expect "$reader: the file and the program" "$work/out" '^ +50000 .* fill_cache$' \
		'^ +[03]0* .* handle_request$'
	in_use=$((in_use + 3000))
	allocated=$((allocated + 3000))
done

# A library that is not mapped any more has its names.
tell server plugin 7
tell server close 1
in_use=$((in_use + 4900))
for reader in google-pprof jeprof; do
	have $reader || continue
	read_with $reader --text --show_bytes "$url/pprof/heap"
	expect "$reader: a library that was closed" "$work/out" '^ +4900 .* 4900 .* plugin_leak$' \
		'^ +50000 .* fill_cache$'
	named "$reader: a library that was closed"
done

if have go && timeout 300 go tool pprof -h 2>&1 | grep -q -- -sample_index; then
	pprof() { read_with timeout 60 go tool pprof -top -unit=B -nodefraction=0 "$@"; }
	heap=$url/debug/pprof/heap?pid=$server_pid
	pprof "$heap"
	expect "go: in use" "$work/out" '^Type: inuse_space' "of ${in_use}B total" \
		'^ +50000B .* fill_cache$' '^ +4900B .* plugin_leak$' '^ +[0-9]+B .* read_header \(inline\)$' \
		'^File: leaker$'
	named go
	pprof -sample_index=alloc_space "$heap"
	expect "go: allocated" "$work/out" '^Type: alloc_space' "of [0-9]+B total" \
		'^ +100000B .* fill_cache$'
	saved=$(ls -t "$work"/saved/*.pb.gz | head -n 1)
	tell server cache 4
	pprof -diff_base="$saved" "$heap"
	expect "go: -diff_base" "$work/out" '^ +10000B .* fill_cache$' "10000B, .* of ${in_use}B total"
	pprof -base="$saved" "$heap"
	expect "go: -base" "$work/out" '^ +10000B .* fill_cache$' '10000B, 100% of 10000B total'
	# Meanwhile, when the request has begun: its connection is seen.
	printf -v port '%04X' "${url##*:}"
	is_asked() { awk -v port=":$port" '$2 ~ port && $4 == "01" { n++ } END { exit !n }' /proc/net/tcp; }
	pprof -seconds=3 -sample_index=alloc_space "$heap" &
	fetcher=$!
	until_true 60 is_asked || not_ok "go: seconds=3" "no request"
	sleep 0.3
	tell server cache 6
	wait $fetcher
	expect "go: seconds=3, allocated meanwhile" "$work/out" '^Type: alloc_space' \
		'^Duration: [34](\.[0-9]*)?s' '^ +30000B +100% .* fill_cache$' 'of 30000B total'
	in_use=$((in_use + 10000 + 15000))
	delta=$(ls -t "$work"/saved/*.pb.gz | head -n 1)
	read_with go tool pprof -top -unit=B -nodefraction=0 -sample_index=inuse_space "$delta"
	expect "go: seconds=3, in use at its end" "$work/out" "of ${in_use}B total" \
		'^ +4900B .* plugin_leak$'
	pprof "$url/debug/pprof/heap?pid=1"
	expect "go: an error is told" "$work/out" 'process 1 is not tracked'
	# Go reads the text protocol as well. Names from the server, not from the file on this disk.
	pprof -symbolize=remote "$url/pid/$server_pid/pprof/heap"
	expect "go: the text protocol" "$work/out" '^ +75000B .* fill_cache$' \
		'^ +[0-9]+B .* handle_request--read_header$'
else
	ok "go # SKIP no go tool pprof"
fi

# what they are made of
fetch "$url/pprof/symbol" >"$work/out"
expect "symbol: there are some" "$work/out" '^num_symbols: [1-9]'
base=$(awk '/leaker$/ { split($1, a, "-"); print a[1]; exit }' "/proc/$server_pid/maps")
vaddr=$(nm "$work/leaker" | awk '$3 == "fill_cache" { print $1 }')
printf -v addr '0x%x' $((16#$base + 16#$vaddr + 8))
fetch -d "$addr+0x1+0xffffffffffffffff" "$url/pid/$server_pid/pprof/symbol" >"$work/out"
expect "symbol: an address" "$work/out" "^$addr"$'\t''fill_cache$' '^0x1'$'\t''\[unknown\]' '^0xffffffffffffffff'
fetch "$url/pprof/cmdline" | tr '\0' ' ' >"$work/out"
expect "cmdline" "$work/out" "^$work/leaker $work/plugin.so \$"
fetch "$url/debug/pprof/heap?debug=1&pid=$server_pid" >"$work/text.heap"
"$B/heaptap" report --format collapsed "$work/text.heap" >"$work/out" 2>&1
expect "debug=1: text with names" "$work/out" 'main;fill_cache [0-9]+$' 'handle_request;read_header [0-9]+$'

# Of two one has to be named.
kill -TERM $server
wait $server
serve -p "$server_pid" -p "${pid_of[other]}"
curl -s -m 60 "$url/pprof/heap" >"$work/out"
expect "two processes: which one" "$work/out" "/pid/PID/pprof/heap" "tracked:.* $server_pid" \
	"tracked:.* ${pid_of[other]}"
tell other requests 1
fetch "$url/pid/${pid_of[other]}/pprof/heap" >"$work/out"
expect "two processes: the one that is named" "$work/out" '^heap profile: +1: +1000 \['
kill -TERM $server
wait $server
consumer_end
