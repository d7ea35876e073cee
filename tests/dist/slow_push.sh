#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_push.sh - the one executable pushes over TLS, with gRPC over HTTP/2: from roots that have nothing but certificates,
# where each family of distributions keeps them, and a nsswitch.conf and an openssl.cnf that name modules which a
# static program must not load.
# timeout: 600
. tests/dist/lib.sh
dist_init push
have node && have openssl || skip_all "no node and openssl"
modules=${B:-.build}/consumers
why=$(tests/consumers/get_modules "$modules") || skip_all "$why"
build_holder "$work/holder" ${CC:-gcc} || { not_ok setup "the workload" "$work/log"; dist_end; }
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/cert" -days 2 -subj /CN=pushed.example \
	-addext 'subjectAltName=DNS:pushed.example' >"$work/log" 2>&1 || { not_ok setup "no certificate" "$work/log"; dist_end; }
NODE_PATH=$modules/node_modules node tests/consumers/push_server.js parca 0 "$work/arrived" \
	--proto user/serve/parca.proto --key "$work/key" --cert "$work/cert" --brief yes >"$work/port" 2>"$work/server.err" &
pids="$pids $!"
await 30 test -s "$work/port" || { not_ok setup "the server does not start" "$work/server.err"; dist_end; }
port=$(cat "$work/port")
"$work/holder" 300 &
target=$!
pids="$pids $target"

# pushes NAME ROOT [OPTION...]: something arrives
pushes() {
	local what=$1 root=$2 pid
	shift 2
	: >"$work/arrived"
	enter "$root" /heaptap serve --listen 127.0.0.1:0 --max-overhead off -p $target --push-interval 1 \
		--push "parca+https://pushed.example:$port" "$@" >"$work/serve.err" 2>&1 &
	pid=$!
	pids="$pids $pid"
	await 30 grep -q series "$work/arrived" && ok "$what" || not_ok "$what" "nothing arrives" "$work/serve.err" "$work/server.err"
	kill $pid
	wait $pid 2>/dev/null
	: >"$work/arrived"
}
new() {
	root=$work/$1
	new_root "$root"
	mkdir -p "$root/etc"
	echo "127.0.0.1 pushed.example" >"$root/etc/hosts"
}
for place in etc/ssl/certs/ca-certificates.crt etc/pki/tls/certs/ca-bundle.crt etc/ssl/ca-bundle.pem etc/ssl/cert.pem; do
	new "$(basename "$place")"
	mkdir -p "$root/$(dirname "$place")"
	cp "$work/cert" "$root/$place"
	pushes "TLS with /$place" "$root"
done
new named
cp "$work/cert" "$root/mine.pem"
pushes "TLS with --push-ca-file" "$root" --push-ca-file /mine.pem

# what would be loaded, were it heeded: a module of this machine's glibc that is not there, and a provider
new modules
mkdir -p "$root/etc/ssl/certs" "$root/usr/lib/ssl" "$root/lib/x86_64-linux-gnu"
cp "$work/cert" "$root/etc/ssl/certs/ca-certificates.crt"
printf 'passwd: sss systemd\nhosts: mymachines sss files dns\n' >"$root/etc/nsswitch.conf"
for module in sss mymachines systemd; do echo "no library" >"$root/lib/x86_64-linux-gnu/libnss_$module.so.2"; done
cat >"$root/usr/lib/ssl/openssl.cnf" <<'END'
openssl_conf = init
[init]
providers = providers
[providers]
strange = strange
[strange]
module = /usr/lib/strange.so
activate = 1
END
pushes "nsswitch.conf and openssl.cnf that name modules" "$root"
# SSL_CERT_FILE is heeded
new variable
cp "$work/cert" "$root/mine.pem"
with=SSL_CERT_FILE=/mine.pem pushes "TLS with SSL_CERT_FILE" "$root"
# a user of a root without passwd: what cannot be known is said, and nothing crashes
inside "$root" /heaptap serve --listen 127.0.0.1:0 --user somebody >"$work/log" 2>&1
[ $? = 2 ] && grep -q "there is no user 'somebody'" "$work/log" && ok "a user that is not in /etc/passwd" ||
	not_ok "a user that is not in /etc/passwd" "" "$work/log"

# nothing to trust: said at start, with what to do
new nothing
enter "$root" /heaptap serve --listen 127.0.0.1:0 -p $target --push-interval 1 --push "parca+https://pushed.example:$port" \
	>"$work/serve.err" 2>&1 &
pid=$!
pids="$pids $pid"
await 20 grep -q 'no CA certificates' "$work/serve.err" && ok "no certificates: that is said" ||
	not_ok "no certificates: that is said" "it is not" "$work/serve.err"
kill $pid
wait $pid 2>/dev/null
dist_end
