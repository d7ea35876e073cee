#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_roots.sh - the one executable in roots where nothing fits: an empty one, a userland of musl, an older Debian; and
# in those of ROOTS (folders with the root of any distribution: an unpacked image). What it records there has names.
# timeout: 1800
. tests/dist/lib.sh
dist_init roots
build_holder "$work/holder" ${CC:-gcc} || { not_ok setup "the workload" "$work/log"; dist_end; }

## nothing but the executable: no libc, no /etc, no /dev, no /tmp; the process is outside
root=$work/empty
new_root "$root"
"$work/holder" 60 &
target=$!
pids="$pids $target"
inside "$root" /heaptap record --max-overhead off --rate 1 -d 3s -o - -p $target >"$work/empty.pb.gz" 2>"$work/log" &&
	ok "empty root: a process outside is recorded" || not_ok "empty root: a process outside is recorded" "it is not" "$work/log"
names "empty root: functions, lines" "$work/empty.pb.gz" 'site_of_holder .*holder.c:[0-9]+'
inside "$root" /heaptap doctor -p $target >"$work/doctor" 2>&1
has "empty root: doctor" "$work/doctor" "heaptap can record this process: yes" "holder"
# serve, asked by a curl that is outside
enter "$root" /heaptap serve --listen 127.0.0.1:0 --max-overhead off --rate 1 -p $target >"$work/serve.err" 2>&1 &
serve=$!
pids="$pids $serve"
await 30 grep -q '^heaptap: serving' "$work/serve.err"
url=$(sed -nE 's,^heaptap: serving .* on (http://[^/]*)/.*,\1,p' "$work/serve.err")
sleep 2
curl -s -m 20 "$url/debug/pprof/heap?pid=$target" >"$work/served.pb.gz" 2>"$work/log"
names "empty root: serve" "$work/served.pb.gz" 'site_of_holder'
curl -s -m 20 "$url/metrics" >"$work/metrics"
has "empty root: metrics, of the scope" "$work/metrics" "heaptap_.*pid=\"$target\"" 'scope="Holder"'
kill $serve $target
wait $serve $target 2>/dev/null
"$one" report --by scope "$work/empty.pb.gz" >"$work/scopes" 2>&1
has "empty root: scopes" "$work/scopes" Holder

# recorded NAME ROOT REGEX COMMAND...: from its first allocation on, in that root; of the holder exactly what it holds
recorded() {
	local what=$1 root=$2 regex=$3
	if inside "$root" /heaptap record --rate 1 -n 0 -o - -- "${@:4}" >"$work/p.pb.gz" 2>"$work/log"; then
		names "$what" "$work/p.pb.gz" "$regex"
		[ "$4" != /holder ] || has "$what: exactly" "$work/report" '985 KiB \(exact\) .*1.00k objects'
	else
		not_ok "$what" "status $?" "$work/log"
	fi
}

## musl, its loader and a program: nothing of glibc
if have musl-gcc && build_holder "$work/holder-musl" musl-gcc; then
	root=$work/musl
	new_root "$root"
	loader=$(readelf -lW "$work/holder-musl" | sed -nE 's/.*interpreter: (.*)\]/\1/p')
	mkdir -p "$root/$(dirname "$loader")"
	cp -L "$loader" "$root$loader"
	cp "$work/holder-musl" "$root/holder"
	recorded "musl" "$root" 'site_of_holder .*holder.c:[0-9]+' /holder
else
	skip musl "no musl-gcc"
fi

## Debian 11: glibc 2.31, its own perl
if have debootstrap; then
	root=$work/bullseye
	debian_root "$root" bullseye
	new_root "$root"
	rm -f "$root/dev/null"
	recorded "Debian 11, glibc 2.31: its perl" "$root" 'Perl_|perl' perl -e 'push @a, "x" x 1000 for 1 .. 2000'
else
	skip "Debian 11" "no debootstrap"
fi

## whatever the tester has
for root in ${ROOTS:-}; do
	label=$( (. "$root/etc/os-release" && echo "$PRETTY_NAME") 2>/dev/null || basename "$root")
	[ -d "$root" ] || { not_ok "$root" "is no folder"; continue; }
	if [ -e "$root/heaptap" ] && ! [ -e "$root/.heaptap-test" ]; then
		not_ok "$label" "there is a /heaptap"
		continue
	fi
	: >"$root/.heaptap-test"
	mkdir -p "$root/proc" "$root/sys"
	cp "$one" "$root/heaptap"
	if [ -x "$root/holder" ]; then
		recorded "$label: its /holder" "$root" 'site_of_holder' /holder
	else
		recorded "$label: its shell" "$root" '[0-9] (KiB|MiB|B) ' /bin/sh -c \
			'i=0; while [ $i -lt 3000 ]; do a="$a$i "; i=$((i+1)); done'
	fi
	inside "$root" /heaptap doctor >"$work/doctor" 2>&1
	has "$label: doctor" "$work/doctor" "heaptap can record on this machine"
	rm -f "$root/heaptap" "$root/.heaptap-test"
done
dist_end
