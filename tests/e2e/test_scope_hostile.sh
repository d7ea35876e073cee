#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Descriptors, nodes and records that are nonsense and change while they are read: nothing crashes
# or stalls, every byte is accounted for, what could not be read is counted.
. "$(dirname "$0")/lib.sh"
e2e_init scope_hostile

build_c scope_hostile -I"$e2e_top/include" || { not_ok build scope_hostile.c; e2e_end; }
# A record read from a nonsense place may say "paused": such a block is rightly left out, and counted.
accounted() {
	local name=$1
	"$compare" sites "$work/p.pb.gz" >"$work/sites"
	paused=$(ledger paused)
	awk -v paused="$paused" '
		/^EXPECT/ { inuse += $5; alloc += $7 }
		/^SITE/ && $2 == "site_hostile" { has_inuse += $5; has_alloc += $7 }
		END {
			if (alloc - has_alloc != paused)
				print "allocated " alloc ", in the profile " has_alloc ", paused " paused
			if (has_inuse > inuse || inuse - has_inuse > paused)
				print "in use " inuse ", in the profile " has_inuse ", paused " paused
		}' "$work/target.out" "$work/sites" >"$work/differences"
	[ "$record_status$target_status" = 00 ] && [ ! -s "$work/differences" ] && ok "$name" ||
		not_ok "$name" "status $record_status, target $target_status" "$work/differences" "$work/heaptap.err"
}

for seed in ${E2E_SEEDS:-$(some 2 1 2 3)}; do
	start env E2E_SEED="$seed" E2E_MS=$(is_whole && echo 2000 || echo 800) "$bin/scope_hostile"
	record_work --rate 1
	accounted "nonsense, seed $seed"
	no_losses "nonsense, seed $seed: nothing lost"
	unreadable=$(ledger tags_unreadable)
	[ "${unreadable:-0}" -gt 0 ] && ok "nonsense, seed $seed: unreadable tags are counted" ||
		not_ok "nonsense, seed $seed: unreadable tags are counted" "count: $unreadable"
	"$heaptap" report --by scope --format json "$work/p.pb.gz" >"$work/scopes" 2>"$work/report.err" &&
		python3 - "$work/scopes" <<'P'
import json, sys

report = json.load(open(sys.argv[1]))
rows = sum(row["inuse_bytes"] for row in report["rows"] if not row["depth"])
sys.exit(0 if rows == report["total"]["inuse_bytes"] > 0 else f"rows {rows}, total {report['total']}")
P
	[ $? = 0 ] && ok "nonsense, seed $seed: scopes sum up to the total" ||
		not_ok "nonsense, seed $seed: scopes sum up to the total" "they do not" "$work/report.err" \
			"$work/scopes"
done

# A program of a later ABI: its tags are left out, which is said once, and nothing else is.
build_c scope_table -I"$e2e_top/include" || { not_ok build scope_table.c; e2e_end; }
python3 - "$bin/scope_table" "$work/later" <<'P'
import os, sys

image = bytearray(open(sys.argv[1], "rb").read())
at = image.index(bytes([128, 2]) + b"HEAPTAP\0") - 6  # the size, then the magic
assert image[at + 2] == 1
image[at + 2] = 2  # major
open(sys.argv[2], "wb").write(image)
os.chmod(sys.argv[2], 0o755)
P
start "$work/later" task 1
record_work --rate 1
"$heaptap" report --by scope --format json "$work/p.pb.gz" >"$work/scopes" 2>"$work/report.err"
said=$(grep -c "later' are left out: it has version 2.0 of the scope ABI" "$work/heaptap.err")
if [ "$record_status$target_status" = 00 ] && [ "$said" = 1 ] &&
	python3 - "$work/scopes" <<'P'
import json, sys

report = json.load(open(sys.argv[1]))
rows = {row["path"]: row["inuse_bytes"] for row in report["rows"]}
sys.exit(0 if list(rows) == ["(none)"] and rows["(none)"] == report["total"]["inuse_bytes"] > 0 else f"{rows}")
P
then
	ok "an ABI of an unknown version: said once, recorded without tags"
else
	not_ok "an ABI of an unknown version" "status $record_status, target $target_status, said $said times" \
		"$work/heaptap.err" "$work/report.err" "$work/scopes"
fi
e2e_end
