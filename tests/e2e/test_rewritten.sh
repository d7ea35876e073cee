#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that is written anew in place (cp over one that has ended: the same inode) while a
# server knows the old one: its probes are where the new one's functions begin, and nowhere else.
. "$(dirname "$0")/lib.sh"
e2e_init rewritten
. "$e2e_dir/serve_lib.sh"
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"

OUT=family-static build_c family -static || { not_ok build "family.c -static"; e2e_end; }
OUT=family-static-pie build_c family -static-pie || { not_ok build "family.c -static-pie"; e2e_end; }
serve --listen 127.0.0.1:0 --rate 1 --comm '^rewritten$'
inode=
for kind in static static-pie static; do
	mkdir -p "$work/rewritten"
	cat "$bin/family-$kind" >"$work/rewritten/rewritten" && chmod 755 "$work/rewritten/rewritten"
	[ "${inode:=$(stat -c %i "$work/rewritten/rewritten")}" = "$(stat -c %i "$work/rewritten/rewritten")" ] ||
		not_ok "$kind" "it is another inode: nothing is tested"
	begin rewritten "$work/rewritten/rewritten"
	await 20 follows "$target" || not_ok "$kind" "is not followed" "$work/serve.err"
	work_of rewritten
	sed -i "s/ family-$kind / rewritten /; s/^\(EXPECT [^ ]*\) [^ ]*/\1 rewritten/" "$work/rewritten/target.out"
	exact_of rewritten "$kind"
	tell "" # it ends
	await 20 is_gone "$target" || kill_target
	await 20 follows_not "$target" || not_ok "$kind" "is followed after its end" "$work/serve.err"
done
end_server "rewritten"
e2e_end
