#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that is executed by a link, as redis-server is a link to redis-check-rdb: what is printed calls it by the link's
# name, and the mapping of the profile keeps the file's, by which debug information is found.
. "$(dirname "$0")/lib.sh"
e2e_init called
build_c requests || { not_ok build "workload"; e2e_end; }

strip -o "$work/its-file" "$bin/requests"
ln -s its-file "$work/its-link"
start "$work/its-link" 2000 10 3000 20 || not_ok start "does not start" "$work/target.err"
await 10 says "$work/target.out" '^AT'
timeout 60 "$heaptap" record -q --max-overhead off --rate 2k -d 2s --force -o "$work/p.pb.gz" -p "$target" >"$work/out" 2>&1 ||
	not_ok record "status $?" "$work/out"
kill_target
for args in "" "--by module" "-v" "--by function" "--sort growth" "-f json" "-f collapsed"; do
	# shellcheck disable=SC2086 # some are two words
	"$heaptap" report $args "$work/p.pb.gz" 2>&1 | sed "s|$work/its-file||g" >"$work/report"
	grep -q its-link "$work/report" && ! grep -q 'its-file' "$work/report" && ok "report $args: the link's name" ||
		not_ok "report $args: the link's name" "not so" "$work/report"
done
zcat "$work/p.pb.gz" | grep -aq "$work/its-file" && ok "its mapping has the file's" || not_ok "its mapping has the file's" "not so"
"$heaptap" report "$work/p.pb.gz" -f json | grep -q "\"exe\": *\"$work/its-file\"" && ok "and so has exe" || not_ok "and so has exe" "not so"
e2e_end
