#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_pprof_format.sh - npm's pprof-format, a decoder that shares no code with ours, reads every
# value, label, frame and mapping.
. tests/consumers/lib.sh
consumer_init pprof_format
modules=$B/consumers
why=$(tests/consumers/get_modules "$modules") || skip_all "$why"
NODE_PATH=$modules/node_modules timeout 60 node tests/consumers/decode.js "$profile" \
	>"$work/out" 2>"$work/err" || cat "$work/err" >>"$work/out"
cat >"$work/expected" <<'END'
9,9000,3,3000|thread=main|main;load;app::parse(std::string const&)
7,700,7,700|thread=main|main;load;größe_ändern(Übergröße)
1,4096,1,4096|thread=worker-1|run;app::parse(std::string const&);libother.so+0x1234
1,1000,0,0|thread=worker-1|run;app::parse(std::string const&)
types|alloc_objects/count,alloc_space/bytes,inuse_objects/count,inuse_space/bytes
default|inuse_space
period|space/bytes 65536
time|1700000000123456789
mapping|1|/usr/bin/server|0123456789abcdef0123456789abcdef01234567|0|18446744073709551615
mapping|2|/usr/lib/libother.so|fedcba9876543210|0|18446744073709551615
comment|heaptap test profile
comment|target: PID 42 (server) /usr/bin/server
comment|ledger: live_full 0 (samples that found the live map full)
comment|ledger: missed_frees 5 (addresses that were handed out twice)
END
diff "$work/expected" "$work/out" >"$work/diff" && ok "everything is decoded" ||
	not_ok "everything is decoded" "not what was written" "$work/diff"
consumer_end
