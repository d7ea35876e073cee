#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program whose names take longer than a page may: a page that had no time for them has them later, and nobody has to ask
# for a profile first. Its million symbols is read in more than half a second.
. "$(dirname "$0")/lib.sh"
e2e_init late-names
have curl || skip_all "curl is not installed"
. "$e2e_dir/serve_lib.sh"
build_c requests || { not_ok build "workload"; e2e_end; }

seq -f 'filler_%.0f: .byte 0' 1000000 >"$work/symbols.s"
gcc -c -o "$work/symbols.o" "$work/symbols.s" &&
	gcc -O1 -I "$e2e_dir/workloads" -I "$e2e_dir/../../include" -z noexecstack -o "$work/symbols" "$e2e_dir/workloads/requests.c" "$work/symbols.o" -lpthread 2>"$work/err" ||
	{ not_ok build "many symbols" "$work/err"; e2e_end; }
begin many "$work/symbols" 200 10 100000 20
pid=${pid_of[many]}
serve --listen 127.0.0.1:0 --rate 1k --keep-files 0 --max-overhead off --past-interval 1s -p "$pid"
await 20 follows "$pid"
has_row() { sleep 1; get -f -o "$work/page" "$url/pid/$pid/?live=0" && grep -q '<br>from ' "$work/page"; }
await 40 has_row || not_ok "a page with rows" "there is none" "$work/page" "$top/serve.err"
grep -q 'symbols+0x' "$work/page" && echo "# the first page was late"
has_names() { sleep 1; get -f -o "$work/page" "$url/pid/$pid/?live=0" && grep -q '>request_site' "$work/page" && ! grep -q 'symbols+0x' "$work/page"; }
await 30 has_names && ok "a later page has the names" || not_ok "a later page has the names" "it has not" "$work/page" "$top/serve.err"
end_server "late names"
e2e_end
