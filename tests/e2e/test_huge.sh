#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Allocated bytes beyond 2^63, by a few blocks of 32 TiB, often: no sum wraps, whichever way it is recorded.
. "$(dirname "$0")/lib.sh"
e2e_init huge
lib=$(ldconfig -p | awk '/libjemalloc\.so\.2 .*x86-64/ { print $NF; exit }')
[ -n "$lib" ] || skip_all "libjemalloc is not installed"
have python3 || skip_all "python3 is not installed"
build_c huge || { not_ok build "huge.c"; e2e_end; }

# 2^63 bytes are 262144 blocks
blocks=300007
# agrees FORMAT...: what the profile says to have been allocated is within 2 % of what the program says
agrees() {
	"$heaptap" report --format json "$@" "$work/p.pb.gz" >"$work/report.json" 2>>"$work/heaptap.err" &&
		python3 - "$work/report.json" "$work/target.out" <<-'EOF'
			import json, re, sys
			is_, text = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
			is_ = is_["total"]["alloc_bytes"]
			truth = float(re.search(r"^ALLOCATED (\d+)", text, re.M).group(1))
			print(f"{is_:.6g} of {truth:.6g}")
			sys.exit(not (truth > 2**63 and abs(is_ / truth - 1) < 0.02))
		EOF
}
check() {
	local name=$1
	shift
	start env LD_PRELOAD="$lib" E2E_BLOCKS=$blocks "$bin/huge"
	attach "$@"
	work_recorded "$name"
	agrees >"$work/sums" 2>&1 && ok "$name: $(<"$work/sums")" || not_ok "$name" "differs" "$work/sums" "$work/heaptap.err"
	"$heaptap" report "$work/p.pb.gz" >"$work/report.txt" 2>&1
	says "$work/report.txt" 'allocated [89]\.[0-9]* EiB' && ok "$name: text" || not_ok "$name: text" "no EiB" "$work/report.txt"
	no_losses "$name: no losses"
	[ "$(ledger sampled_bad)" = 0 ] && grep -q '^LARGEST 300$' "$work/target.out" && ok "$name: the largest blocks" ||
		not_ok "$name: the largest blocks" "are not there, or no sample: $(ledger sampled_bad)" "$work/target.out"
}
check "every allocation" --rate 1
check "samples"
[ "$(uname -m)" != x86_64 ] || check "tap" --tap=only
e2e_end
