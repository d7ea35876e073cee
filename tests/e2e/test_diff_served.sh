#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_diff_served.sh - moments of processes that heaptap serve follows, and profiles that it has kept, as operands of
# diff and report: by their addresses, with a token; servers that are not what they should be.
. "$(dirname "$0")/lib.sh"
e2e_init diff_served
have python3 || skip_all "python3 is not installed"
have curl || skip_all "curl is not installed"
. "$e2e_dir/serve_lib.sh"
build_c grows && build_c sites200 -lm || { not_ok build "workloads"; e2e_end; }

(umask 077 && echo "a-token-of-32-letters-0123456789" >"$top/token" && echo "another-token-of-36-letters-0123456789" >"$top/other")
dir=$top/kept
mkdir -m 700 "$dir"
begin grows "$bin/grows"
pid=${pid_of[grows]}
serve --listen 127.0.0.1:0 --rate 1 --comm '^grows$' --token-file "$top/token" --keep-dir "$dir" --max-overhead off
heap="$url/debug/pprof/heap?pid=$pid"
with_token() { curl -s -S -m 20 -f -H "Authorization: Bearer $(cat "$top/token")" "$@"; }
is_followed() { with_token -o "$top/before.pb.gz" "$heap" 2>/dev/null; }
await 20 is_followed || not_ok "follows" "does not" "$top/serve.err"

held_cnt() { grep -c ^HELD "$top/grows/target.out"; }
has_answered() { [ "$(held_cnt)" -gt "$answers" ]; }
# do_step LINE: the process does it
do_step() {
	answers=$(held_cnt)
	tell_to grows "$1"
	await 10 has_answered || not_ok "$1" "not done" "$top/grows/target.out"
}
# told NAME EXPRESSION: of the difference d in $top/out
told() {
	python3 -c "
import json
d = json.load(open('$top/out'))
rows = {r['name'].split(' < ')[0]: r for r in d['rows']}
assert $2, d" >"$top/told" 2>&1 && ok "$1" || not_ok "$1" "$2" "$top/told" "$top/err"
}
diff_of() { timeout 60 "$heaptap" diff --token-file "$top/token" -f json "$@" >"$top/out" 2>"$top/err"; }

do_step "up 100 10007"
with_token -o "$top/before.pb.gz" "$heap" || not_ok "a moment" "none"
do_step "up 209 10034"
diff_of "$top/before.pb.gz" "$heap"
told "a file and a moment: 2 MiB more" "rows['site_up']['is_significant'] and rows['site_up']['inuse_bytes_delta'] == 209 * 10034"
has_peak() {
	with_token -o "$top/peak.pb.gz" "$heap&at=peak" 2>/dev/null &&
		[ "$("$compare" total "$top/peak.pb.gz" 2>/dev/null | awk '{ print $2 }')" = $((100 * 10007 + 209 * 10034)) ]
}
await 20 has_peak || not_ok "the peak" "is not kept" "$top/serve.err"
do_step "down 209"
diff_of "$heap&at=peak" "$heap"
told "a kept profile and a moment: less" "rows['site_up']['inuse_bytes_delta'] == -209 * 10034 and d['before'].endswith('at=peak')"
timeout 20 "$heaptap" diff --token-file "$top/token" -f html -o "$top/d.html" "$heap&at=peak" "$heap" 2>"$top/err" &&
	grep -q 'at=peak' "$top/d.html" && ok "as html" || not_ok "as html" "" "$top/err"
timeout 20 "$heaptap" report --token-file "$top/token" --by function "$heap" >"$top/out" 2>"$top/err"
grep -q 'site_up' "$top/out" && ok "report of a moment" || not_ok "report of a moment" "" "$top/out" "$top/err"
# the address of the page, as it stands in the browser
for page in "$url/pid/$pid/" "$url/pid/$pid" "$url/pid/$pid/?live=0"; do
	timeout 20 "$heaptap" report --token-file "$top/token" --by function "$page" >"$top/out" 2>"$top/err"
	grep -q 'site_up' "$top/out" && ok "report of ${page#"$url"}" || not_ok "report of ${page#"$url"}" "" "$top/out" "$top/err"
done

# fails NAME SENTENCE ARGS...
fails() {
	local name=$1 sentence=$2 got
	shift 2
	timeout 30 "$heaptap" diff "$@" >"$top/out" 2>"$top/err" </dev/null
	got=$?
	[ $got = 1 ] && grep -qF -- "$sentence" "$top/err" && [ ! -s "$top/out" ] &&
		! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f]' "$top/err" && ok "$name" || not_ok "$name" "status $got" "$top/err"
}
fails "no token" "the server requires a token (--token-file FILE" "$top/before.pb.gz" "$heap"
fails "another token" "another token than that in --token-file" --token-file "$top/other" "$top/before.pb.gz" "$heap"
fails "a token that others can read" "token" --token-file "$0" "$top/before.pb.gz" "$heap"
fails "a process that is not followed" "HTTP status" --token-file "$top/token" "$top/before.pb.gz" "$url/debug/pprof/heap?pid=4194303"
fails "a page" "is not a readable profile" --token-file "$top/token" "$top/before.pb.gz" "$url/metrics"
fails "a password in the address" "must not contain a name and password" "$top/before.pb.gz" "http://a:b@127.0.0.1:1/"
fails "nobody is there" "onnect" "$top/before.pb.gz" "http://127.0.0.1:1/"
end_server "serve"

# A server of another kind: endless, with a redirection, with a hostile answer.
cat >"$top/server.py" <<'E2'
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x" * (1 << 20))
            except OSError:
                pass
        elif self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
        else:
            self.send_response(500)
            self.end_headers()
            self.wfile.write(b"\x1b[2J" + b"y" * 5000)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
E2
python3 "$top/server.py" >"$top/port" 2>/dev/null &
owned other
await 10 says "$top/port" '^[0-9]'
other_url=http://127.0.0.1:$(cat "$top/port")
fails "more than there may be" "more than 256 MiB" "$top/before.pb.gz" "$other_url/endless"
fails "a redirection" "HTTP status 302" "$top/before.pb.gz" "$other_url/elsewhere"
fails "a hostile answer" "HTTP status 500: ?[2Jyyy" "$top/before.pb.gz" "$other_url/x"
kill $other

# Recordings of one program with 200 places: what seems to have changed is chance, in one row of twenty (95 % intervals), and
# as few whether many samples or few are taken. At the default rate that depends on how busy the machine is. Of 1600 rows
# 6.5 % are that once in 400 times; of 400 rows they were once in 14. Tiny blocks would be nine hits of ten, and no samples.
for i in {1..16}; do
	E2E_LEAST=4000 timeout 60 "$heaptap" record -q --rate 64k --max-overhead off --force -o "$top/sites$i.pb.gz" -- "$bin/sites200" >/dev/null 2>"$top/err" </dev/null
	[ $((i % 2)) = 1 ] || {
		diff_of --by function "$top/sites$((i - 1)).pb.gz" "$top/sites$i.pb.gz"
		mv "$top/out" "$top/out$i"
	}
done
python3 -c "
import json
rows = [r for i in range(2, 17, 2) for r in json.load(open(f'$top/out{i}'))['rows']]
sure = sum(bool(r['is_significant']) for r in rows)
print(f'{sure} of {len(rows)} rows')
assert len(rows) >= 1560 and sure <= 0.065 * len(rows)" >"$top/told" 2>&1 && ok "the same program twice: $(cat "$top/told") seem to have changed" ||
	not_ok "the same program twice" "$(head -c 60 "$top/told")" "$top/told" "$top/err"
e2e_end
