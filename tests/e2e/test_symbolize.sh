#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A stripped program is recorded; names, lines and inlined functions come later, by build id: from a folder in each
# layout, from /usr/lib/debug's, from a server of debuginfod that is asked only when it is said. What is of another
# build is not taken, and the numbers stay.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init symbolize
have objcopy && have strip && have python3 || skip_all "no binutils and python3"
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; e2e_cleanup' EXIT

prod=$work/prod dbg=$work/dbg
mkdir -p "$prod" "$dbg" "$work/home/.cache"
OUT=elsewhere build_c elsewhere || { not_ok build "workload"; e2e_end; }
cp "$bin/elsewhere" "$work/whole"
objcopy --only-keep-debug "$work/whole" "$work/elsewhere.debug"
strip -o "$prod/elsewhere" "$work/whole"
id=$(readelf -n "$work/whole" | sed -nE 's/.*Build ID: ([0-9a-f]+)/\1/p')
line=$(grep -n 'line: inlined_keeper' "$loads/elsewhere.c" | cut -d: -f1)
launch -q -n 0 --rate 1 -- "$prod/elsewhere"
cp "$work/p.pb.gz" "$work/bare.pb.gz"

shown() { "$heaptap" report --by stack -v "$1" 2>"$work/report.err"; }
is_named() {
	shown "$1" >"$work/shown"
	grep -qE "inlined_keeper .*elsewhere.c:$line\$" "$work/shown" && grep -q "static_site " "$work/shown"
}
is_bare() {
	shown "$1" >"$work/shown"
	grep -q "elsewhere+0x" "$work/shown" && ! grep -q "static_site" "$work/shown"
}
# symbolize ARGS...: of a copy of the bare profile, to $work/named.pb.gz
symbolize() {
	rm -f "$work/named.pb.gz"
	env -u DEBUGINFOD_URLS HOME="$work/home" XDG_CACHE_HOME= ${URLS:+DEBUGINFOD_URLS="$URLS"} timeout 60 "$heaptap" \
		symbolize -o "$work/named.pb.gz" "$@" "$work/bare.pb.gz" >"$work/out" 2>"$work/err"
	status=$?
}
named() {
	[ $status = 0 ] && is_named "$work/named.pb.gz" && [ ! -s "$work/out" ] && ok "$1" ||
		not_ok "$1" "status $status" "$work/err" "$work/shown" "$work/out"
}
bare() {
	[ $status = 0 ] && is_bare "$work/named.pb.gz" && ok "$1" || not_ok "$1" "status $status" "$work/err" "$work/shown"
}
is_bare "$work/bare.pb.gz" && ok "recorded without names" || not_ok "recorded without names" "" "$work/shown" "$work/heaptap.err"

symbolize
bare "nothing is found: it is written as it was"
grep -q "0 of [1-9][0-9]* addresses: .*elsewhere" "$work/err" && ok "and that is said" || not_ok "and that is said" "" "$work/err"
# the numbers, row by row without names
shown "$work/bare.pb.gz" | grep '^#' >"$work/before"

for place in elsewhere.debug "$prod/elsewhere.debug" ".build-id/${id:0:2}/${id:2}.debug" \
	"usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" "usr/lib/debug$prod/elsewhere.debug"; do
	rm -rf "$dbg"
	mkdir -p "$dbg/$(dirname "$place")"
	cp "$work/elsewhere.debug" "$dbg/$place"
	symbolize --debug-dir "$dbg"
	named "debug information at DIR/${place/$work/}"
done
shown "$work/named.pb.gz" | grep '^#' >"$work/after"
cmp -s "$work/before" "$work/after" && [ -s "$work/after" ] && ok "the numbers stay" ||
	not_ok "the numbers stay" "" "$work/before" "$work/after"
for place in elsewhere "$prod/elsewhere" ".build-id/${id:0:2}/${id:2}"; do
	rm -rf "$dbg"
	mkdir -p "$dbg/$(dirname "$place")"
	cp "$work/whole" "$dbg/$place"
	symbolize --debug-dir "$work/none" --debug-dir "$dbg"
	named "the program at DIR/${place/$work/}"
done

# names without lines, then lines
rm -rf "$dbg" "$work/dbg2"
mkdir -p "$dbg" "$work/dbg2"
strip -g -o "$dbg/elsewhere" "$work/whole"
cp "$work/elsewhere.debug" "$work/dbg2/"
symbolize --debug-dir "$dbg"
shown "$work/named.pb.gz" >"$work/shown"
grep -q "static_site" "$work/shown" && ! grep -q "inlined_keeper" "$work/shown" && ok "names of a symbol table" ||
	not_ok "names of a symbol table" "" "$work/shown" "$work/err"
cp "$work/named.pb.gz" "$work/half.pb.gz"
"$heaptap" symbolize -q --debug-dir "$work/dbg2" "$work/half.pb.gz" >"$work/out" 2>"$work/err"
status=$?
[ $status = 0 ] && is_named "$work/half.pb.gz" && [ ! -s "$work/err" ] && ok "then lines, in place, with -q" ||
	not_ok "then lines, in place" "status $status" "$work/err" "$work/shown"
symbolize --debug-dir "$dbg" --debug-dir "$work/dbg2"
named "a folder with names, another with lines"
"$heaptap" symbolize -q --debug-dir "$dbg" - <"$work/half.pb.gz" >"$work/again.pb.gz" 2>"$work/err"
is_named "$work/again.pb.gz" && ok "what is known stays; through a pipe" ||
	not_ok "what is known stays; through a pipe" "" "$work/err" "$work/shown"

# another build of the same name
rm -rf "$dbg"
mkdir -p "$dbg"
${CC:-gcc} $c_flags -Wl,--build-id=0x1122334455667788 -o "$dbg/elsewhere" "$loads/elsewhere.c"
cp "$dbg/elsewhere" "$dbg/elsewhere.debug"
symbolize --debug-dir "$dbg"
bare "another build is not taken"

# no profile
echo text >"$work/text"
"$heaptap" symbolize "$work/text" >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q "is not a readable profile" "$work/err" && [ "$(cat "$work/text")" = text ] &&
	ok "what is no profile is left alone" || not_ok "what is no profile" "" "$work/err"

## debuginfod
mkdir -p "$work/www/buildid/$id"
cat >"$work/server.py" <<'END'
import http.server, os, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    pass
os.chdir(sys.argv[1])
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(s.server_port, flush=True)
s.serve_forever()
END
python3 "$work/server.py" "$work/www" >"$work/port" 2>"$work/requests" &
server=$!
await 20 test -s "$work/port"
url=http://127.0.0.1:$(cat "$work/port")
asked() { grep -c "GET" "$work/requests"; }

cp "$work/elsewhere.debug" "$work/www/buildid/$id/debuginfo"
URLS=$url symbolize
bare "nobody is asked without --debuginfod"
[ "$(asked)" = 0 ] && ok "nobody was asked" || not_ok "nobody was asked" "" "$work/requests"
URLS= symbolize --debuginfod
[ $status = 1 ] && grep -q -- "--debuginfod needs DEBUGINFOD_URLS" "$work/err" && ok "no servers: an error that says which variable" ||
	not_ok "no servers" "status $status" "$work/err"
URLS="http://127.0.0.1:1 $url" symbolize --debuginfod
named "debug information of the second server"
cache=$work/home/.cache/debuginfod_client/$id/debuginfo
cmp -s "$cache" "$work/elsewhere.debug" && ok "it is kept where debuginfod's clients look" ||
	not_ok "it is kept" "not there"
before=$(grep -c "buildid/$id" "$work/requests")
URLS=$url symbolize --debuginfod
named "the cache"
[ "$(grep -c "buildid/$id" "$work/requests")" = "$before" ] && ok "and nobody is asked again" || not_ok "asked again" "" "$work/requests"
echo damaged >"$cache"
URLS=$url symbolize --debuginfod
named "what is damaged in the cache comes again"
rm -rf "$work/home/.cache/debuginfod_client"
rm "$work/www/buildid/$id/debuginfo"
cp "$work/whole" "$work/www/buildid/$id/executable"
URLS=$url symbolize --debuginfod
named "the program, where there is no debug information"
rm -rf "$work/home/.cache"
${CC:-gcc} $c_flags -Wl,--build-id=0x1122334455667788 -o "$work/www/buildid/$id/executable" "$loads/elsewhere.c"
URLS=$url symbolize --debuginfod
bare "a server that gives another build is not believed"
cp "$work/whole" "$work/www/buildid/$id/executable"
URLS=$url symbolize --debuginfod
named "without a folder for a cache"
chmod 777 "$work/home"
URLS="http://127.0.0.1:1" symbolize --debuginfod
bare "a server that is not there"
grep -q "127.0.0.1:1: .*onnect" "$work/err" && ok "and why is said" || not_ok "and why is said" "" "$work/err"
e2e_end
