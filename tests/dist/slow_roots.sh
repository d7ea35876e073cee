#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_roots.sh - the one executable in roots where nothing fits: an empty one, a userland of musl, an old glibc, an older
# Debian; and in those of ROOTS (folders with the root of any distribution: an unpacked image). What it records there, with
# probes and with the tap, has names.
# timeout: 1800
. tests/dist/lib.sh
dist_init roots
build_holder "$work/holder" ${CC:-gcc} || { not_ok setup "the workload" "$work/log"; dist_end; }

# tapped NAME ROOT PID: a holder by the tap; then its text is that of its files again, and it ends as ever
tapped() {
	local what="$1: the tap" root=$2 pid=$3 differs=
	pids="$pids $pid"
	await 10 grep -qs holder "/proc/$pid/comm" && sleep 1
	if inside "$root" /heaptap record --tap=only --rate 4096 -d 3s -n 0 -o - -p $pid >"$work/p.pb.gz" 2>"$work/log"; then
		names "$what" "$work/p.pb.gz" 'site_of_holder .*holder.c:[0-9]+'
		"$one" report --notes --by scope "$work/p.pb.gz" >"$work/report" 2>&1
		has "$what: its source, the scope" "$work/report" 'source: tap' 'Holder'
	else
		not_ok "$what" "status $?" "$work/log"
	fi
	python3 tests/e2e/same_text.py $pid >"$work/differs" || differs=1
	wait $pid
	[ $? = 0 ] && [ -z "$differs" ] && ok "$what: nothing is left of it" ||
		not_ok "$what: nothing is left of it" "the program failed, or its text differs" "$work/differs"
}

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
"$work/holder" 8 &
tapped "empty root" "$root" $!
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
	enter "$root" /holder 8 &
	tapped musl "$root" $!
	grep -q 'not sampled: calls to' "$work/log" && not_ok "musl: the tap sees everything" "it does not" "$work/log" ||
		ok "musl: the tap sees everything"
else
	skip musl "no musl-gcc"
fi

## glibc 2.17, that of RHEL 7, its loader and a program
if why=$(tests/consumers/get_modules "$B/dist" tests/dist/package.json); then
	mkdir "$work/unpacked"
	tar -xJf "$B/dist/node_modules/@napi-rs/cross-toolchain-x64-target-x86_64/x86_64-unknown-linux-gnu.tar.xz" -C "$work/unpacked" \
		./x86_64-unknown-linux-gnu/sysroot
	sysroot=$work/unpacked/x86_64-unknown-linux-gnu/sysroot root=$work/glibc
	new_root "$root"
	mkdir -p "$root/lib64"
	cp -L "$sysroot/lib/libc.so.6" "$sysroot/lib/ld-linux-x86-64.so.2" "$root/lib64/"
	build_holder "$root/holder" gcc --sysroot="$sysroot" -B"$sysroot/usr/lib/" -L"$sysroot/usr/lib" ||
		not_ok "glibc 2.17" "no program" "$work/log"
	inside "$root" /lib64/libc.so.6 >"$work/log" 2>&1
	has "glibc 2.17: it is that" "$work/log" 'release version 2\.17,'
	recorded "glibc 2.17" "$root" 'site_of_holder .*holder.c:[0-9]+' /holder
	enter "$root" /holder 8 &
	tapped "glibc 2.17" "$root" $!
	rm -rf "$work/unpacked"
else
	skip "glibc 2.17" "$why"
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
