#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_debuginfo.sh - debug information for a Parca server, made of the interface and other people's
# libraries: what is wanted arrives once, names and lines and no more, whatever goes wrong on the way,
# and frames come without names from then on.
. tests/consumers/lib.sh
consumer_init debuginfo
[ "$(id -u)" = 0 ] || skip_all "needs root"
have addr2line && have readelf && have objcopy || skip_all "no binutils"
modules=$B/consumers
why=$(tests/consumers/get_modules "$modules") || skip_all "$why"
pids= planted=
clean_up() {
	for p in $pids; do kill -9 "$p" 2>/dev/null; done
	wait 2>/dev/null
	[ -z "$planted" ] || rm -f "$planted"
	rm -rf "$work"
}
trap clean_up EXIT

cat >"$work/target.c" <<'C'
#include <stdlib.h>
#include <unistd.h>
const char secret[] = "nobody else is to read this constant";
__attribute__((noinline)) void *keep_forever(size_t n)
{
	void *volatile p = malloc(n);

	return p;
}
int main(void)
{
	static void *kept[256];

	for (unsigned char i = 0;; i++) {
		free(kept[i]);
		kept[i] = keep_forever(65536 + (unsigned char)secret[i % 8]);
		usleep(5000);
	}
}
C
# target NAME [FLAG...]: a running program in $target, its file in $exe, its build id in $id
target() {
	exe=$work/$1
	shift
	${CC:-cc} -g -O1 -Wl,--build-id=sha1 -o "$exe" "$work/target.c" "$@" || exit 1
	id=$(readelf -n "$exe" | sed -nE 's/.*Build ID: ([0-9a-f]+).*/\1/p')
	run_target
}
run_target() {
	"$exe" &
	target=$!
	pids="$pids $target"
}
# backend OUT [OPTION]...: its port in $port, its process in $backend
backend() {
	local got=$1
	shift
	mkdir -p "$work/uploads"
	: >"$work/port"
	: >"$got"
	NODE_PATH=$modules/node_modules node tests/consumers/push_server.js parca 0 "$got" \
		--proto user/serve/parca.proto --uploads "$work/uploads" "$@" \
		>"$work/port" 2>"$work/backend.err" &
	backend=$!
	pids="$pids $backend"
	await 20 test -s "$work/port" || { not_ok backend "does not start" "$work/backend.err"; exit 1; }
	port=$(cat "$work/port")
}
await() {
	local i
	for ((i = 0; i < $1 * 10; i++)); do
		"${@:2}" && return 0
		sleep 0.1
	done
	return 1
}
# serve [OPTION]...: follows the target
serve() {
	: >"$work/serve.err"
	./heaptap serve --listen 127.0.0.1:0 --sharing own --rate 64k -p "$target" --push "parca+http://127.0.0.1:$port" \
		--push-interval 1s "$@" >"$work/serve.out" 2>"$work/serve.err" &
	server=$!
	pids="$pids $server"
	await 20 grep -q '^heaptap: serving' "$work/serve.err" ||
		not_ok "serve" "does not begin" "$work/serve.err"
	url=$(sed -nE 's,^heaptap: serving .* on (http://[^/]*)/.*,\1,p' "$work/serve.err")
}
# end PID: from then on it may be anybody's
end() {
	kill "$1" 2>/dev/null
	wait "$1" 2>/dev/null
	pids=" $pids "
	pids=${pids/ $1 / }
}
# calls FILE EXPRESSION: of `all`, the calls for the target's build id, and `pushes`, with `series`. Looks again only when
# the file has changed: node takes a tenth of a second to begin.
declare -A untrue=()
calls() {
	local text=()
	mapfile -d '' text <"$1"
	[ "${untrue[$id $1 $2]-}" = "-${text[*]}" ] && return 1
	ID=$id node -e '
		const lines = require("fs").readFileSync(process.argv[1], "utf8").split("\n")
			.filter(Boolean).map((l) => { try { return JSON.parse(l); } catch (e) { return {}; } });
		const all = lines.filter((l) => l.build_id === process.env.ID);
		const pushes = lines.filter((l) => l.series && l.series.length);
		const last = pushes[pushes.length - 1] || { series: [] };
		const names = last.series.flatMap((s) => s.functions);
		const bare = last.series.reduce((n, s) => n + s.bare, 0);
		const cnt = (call) => all.filter((l) => l.call === call).length;
		if (!eval(process.argv[2])) process.exit(1);
	' "$1" "$2" && return 0
	untrue[$id $1 $2]=-${text[*]}
	return 1
}
# js NAME FILE EXPRESSION: becomes true within a while
js() {
	if await "${WAIT:-30}" calls "$2" "$3"; then
		ok "$1"
	else
		grep "\"call\"" "$2" | tail -n 12 | cut -c 1-200 >"$work/js.out"
		cat "$work/serve.err" >>"$work/js.out"
		not_ok "$1" "not true: $3" "$work/js.out"
	fi
}
counted() { # NAME STATE COUNT
	metric() { curl -s -m 10 "$url/metrics" | grep -qE "^heaptap_push_debuginfo_$1\{.*\} $2$"; }
	await 20 metric "$2" "$3" && ok "$1" || {
		curl -s -m 10 "$url/metrics" | grep debuginfo >"$work/log"
		not_ok "$1" "not $3 $2" "$work/log"
	}
}
with="--debuginfo user/serve/debuginfo.proto"

## a stream
target plain
backend "$work/first" $with
umask 077
echo "a-token-of-the-backend" >"$work/token"
serve --push-debuginfo --push-token-file "$work/token"
js "asked, announced, sent, finished" "$work/first" 'cnt("ShouldInitiateUpload") === 1 &&
	cnt("InitiateUpload") === 1 && cnt("Upload") === 1 && cnt("MarkUploadFinished") === 1'
js "with the token" "$work/first" 'all.every((l) => l.authorization === "Bearer a-token-of-the-backend")'
js "from then on without names" "$work/first" 'bare > 0 && !names.includes("keep_forever")'
counted "it is counted" uploaded_total '[1-9][0-9]*'
got=$work/uploads/$id
readelf -SW "$got" >"$work/log" 2>&1 && ! grep -q 'Warning\|Error' "$work/log" &&
	ok "what arrived is an ELF file to readelf" ||
	not_ok "what arrived is an ELF file to readelf" "it complains" "$work/log"
addr=$(nm "$exe" | awk '$3 == "keep_forever" { print $1 }')
for file in "$exe" "$got"; do
	addr2line -f -i -e "$file" "0x$addr" >"$work/lines.$(basename "$(dirname "$file")")"
done
cmp -s "$work/lines.uploads" "$work/lines.$(basename "$work")" && grep -q target.c:[45] "$work/lines.uploads" &&
	ok "addr2line finds the same line in it" ||
	not_ok "addr2line finds the same line in it" "it does not" "$work/lines.uploads"
grep -q 'nobody else is to read' "$exe" && ! grep -q 'nobody else is to read' "$got" &&
	ok "the program's data is not in it" || not_ok "the program's data is not in it" "it is"
end $server

## once only
serve --push-debuginfo --push-token-file "$work/token"
js "after a restart it asks, and the server has it" "$work/first" 'cnt("ShouldInitiateUpload") === 2 &&
	cnt("Upload") === 1'
js "and names are left to the server at once" "$work/first" 'bare > 0 && !names.includes("keep_forever")'
counted "the server knows it" known '[1-9][0-9]*'
end $server

## without the option
serve
WAIT=20 js "nothing is asked without the option, and names are sent" "$work/first" \
	'names.includes("keep_forever") && cnt("ShouldInitiateUpload") === 2'
end $server
end $backend
rm -rf "$work/uploads"

## what a server may do
backend "$work/fails" $with --fail-call Upload:UNAVAILABLE,MarkUploadFinished:INTERNAL \
	--fail-id "$id"
serve --push-debuginfo
js "an upload that breaks off is begun again" "$work/fails" 'cnt("Upload") === 3 &&
	cnt("MarkUploadFinished") === 2 && all[all.length - 1].call === "MarkUploadFinished" &&
	all.filter((l) => l.call === "InitiateUpload").slice(1).every((l) => l.force)'
counted "it arrives" uploaded_total '[1-9][0-9]*'
end $server
end $backend
rm -rf "$work/uploads"
backend "$work/refused" $with --fail-call InitiateUpload:INVALID_ARGUMENT --fail-id "$id"
serve --push-debuginfo
js "what is refused is not tried again" "$work/refused" 'cnt("InitiateUpload") === 1 &&
	pushes.length > 2 && cnt("Upload") === 0'
js "and keeps its names" "$work/refused" 'names.includes("keep_forever")'
counted "it is counted" refused 1
end $server
end $backend
backend "$work/without"
serve --push-debuginfo
js "a server without the service is sent profiles with names" "$work/without" \
	'names.includes("keep_forever") && pushes.length > 2'
[ "$(grep -c 'takes no debug information' "$work/serve.err")" = 1 ] && ok "which is said once" ||
	not_ok "which is said once" "it is not" "$work/serve.err"
end $server
end $backend

## an object store
backend "$work/signed" $with --signed yes
serve --push-debuginfo --push-token-file "$work/token"
js "to a signed address by PUT" "$work/signed" 'cnt("PUT") === 1 && cnt("MarkUploadFinished") === 1'
js "which is not told the token" "$work/signed" \
	'all.some((l) => l.call === "PUT" && !l.headers.authorization && l.bytes > 1000)'
end $server
end $backend
rm -rf "$work/uploads"

## bounds, and a stripped program with a separate debug file
backend "$work/large" $with
serve --push-debuginfo --push-debuginfo-cap 1k
js "larger than allowed is not sent" "$work/large" 'cnt("ShouldInitiateUpload") === 1 &&
	pushes.length > 2 && cnt("InitiateUpload") === 0 && names.includes("keep_forever")'
counted "it is counted" large '[1-9][0-9]*'
end $server
end "$target"
target stripped -DOTHER=1 -Wl,-z,norelro
planted=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
if mkdir -p "$(dirname "$planted")" && objcopy --only-keep-debug "$exe" "$planted"; then
	end "$target"
	strip "$exe"
	run_target
	serve --push-debuginfo
	js "the separate debug file of a stripped program" "$work/large" 'cnt("MarkUploadFinished") === 1'
	addr2line -f -e "$work/uploads/$id" "0x$(nm "$planted" | awk '$3 == "keep_forever" { print $1 }')" \
		>"$work/lines"
	expect "and its lines" "$work/lines" '^keep_forever$' 'target.c:[45]'
	end $server
fi
end $backend
consumer_end
