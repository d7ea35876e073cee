#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# include/heaptap/TAGS.md, the specification of the tag ABI: scope.h and the BPF reader are as it says, and
# tools/check-tags accepts what scope.h makes and finds what is broken. timeout: 60
. "$(dirname "$0")/lib.sh"
e2e_init tags_spec

spec=$e2e_top/include/heaptap/TAGS.md
check_tags=$e2e_top/tools/check-tags
flags="-I$e2e_top/include"
find "$bin" -name 'tags-*' ! -newer "$e2e_top/include/heaptap/scope.h" -delete
OUT=tags-offset build_c scope_spec $flags && OUT=tags-registry build_c scope_spec $flags -DHEAPTAP_SCOPE_REGISTRY ||
	{ not_ok build scope_spec.c; e2e_end; }

# equal NAME EXPECTED HAS: files
equal() {
	[ -s "$2" ] && diff "$2" "$3" >"$work/differences" && ok "$1" ||
		not_ok "$1" "< is what must be" "$work/differences"
}

# "## Record" ... "| 8 | u64 | `instance` | ..." -> "record 8 u64 instance", sorted
sed -nE -e 's/^A slot:$/## slot/; s/^## (Nodes)$/## node/' \
	-e '/^## /{s/## //;s/.*/\L&/;h}' \
	-e '/^\| [0-9]+ \| [a-z0-9]+(\[[0-9]+\])? \| `/{G;s/^\| ([0-9]+) \| ([^ ]+) \| `([a-z_]+)` \|.*\n(.*)/\4 \1 \2 \3/p}' \
	"$spec" | grep -v '^record 24 ' | sort >"$work/spec"
"$bin/tags-registry" layout | sort >"$work/layout"
equal "the tables are the structs of scope.h" "$work/layout" "$work/spec"

sed -n '/^```$/,/^```$/p' "$spec" | grep -v '^```' >"$work/spec"
"$bin/tags-offset" bytes >"$work/bytes"
equal "the example is what scope.h writes" "$work/bytes" "$work/spec"

# The reader's structs and numbers, taken out of its source.
{
	printf '#include <linux/types.h>\n#include <stddef.h>\n#include <stdio.h>\n'
	for name in scope_desc scope_record scope_registry_slot scope_node; do
		sed -n "/^struct $name {/,/^};/p" "$e2e_top"/bpf/tags.bpf.h "$e2e_top"/bpf/intern.bpf.h
	done
	grep -hE '^#define (SCOPE_|REGISTRY_TRIES)[A-Z_]*' "$e2e_top"/bpf/tags.bpf.h "$e2e_top"/bpf/intern.bpf.h
	cat <<'C'
#define AT(type, field) printf(#type " %zu " #field "\n", offsetof(struct type, field))
int main(void)
{
	AT(scope_desc, magic), AT(scope_desc, record_bytes), AT(scope_desc, node_bytes);
	AT(scope_desc, tls_mode), AT(scope_desc, pointer_bytes), AT(scope_desc, flags);
	AT(scope_desc, tls_off), AT(scope_desc, dtv_module), AT(scope_desc, dtv_off);
	AT(scope_desc, node_cap), AT(scope_desc, node_cnt);
	printf("scope_desc %d registry_addr\nscope_desc %d chunk_addr\n", SCOPE_DESC_REGISTRY,
	       SCOPE_DESC_CHUNKS);
	AT(scope_record, scope), AT(scope_record, instance), AT(scope_record, kv);
	AT(scope_record, reserved);
	AT(scope_registry_slot, tid), AT(scope_registry_slot, record_addr);
	AT(scope_node, parent), AT(scope_node, kind), AT(scope_node, flags);
	AT(scope_node, name_addr), AT(scope_node, value_addr), AT(scope_node, name_len);
	AT(scope_node, value_len);
	return SCOPE_CHUNK_SHIFT != 12 || SCOPE_CHUNKS_CAP != 64 || REGISTRY_TRIES != 16 ||
	       SCOPE_RECORD_BYTES != 32 || SCOPE_NODE_BYTES != 32 || SCOPE_PAUSED != 1ULL << 32;
}
C
} >"$work/reader.c"
if gcc -o "$work/reader" "$work/reader.c" 2>"$work/reader.err" && "$work/reader" >"$work/reader.out"; then
	ok "the reader's numbers are those of the specification"
	{ cat "$work/layout"; echo "record 24 u64 reserved"; } |
		sed 's/^descriptor/scope_desc/; s/^record/scope_record/; s/^slot/scope_registry_slot/
			s/^node/scope_node/; s/ \([0-9]*\) [^ ]* / \1 /' | sort >"$work/all"
	sort "$work/reader.out" >"$work/has"
	comm -12 "$work/all" "$work/has" >"$work/both"
	equal "the reader's offsets are those of the specification" "$work/has" "$work/both"
else
	not_ok "the reader's numbers are those of the specification" "no" "$work/reader.err"
fi

# checked PROGRAM FAULT: check-tags on it; status in $status
checked() {
	start "$1" "$2" || not_ok "$2" "did not start" "$work/target.err"
	"$check_tags" "$target" >"$work/checked" 2>&1
	status=$?
	finish_target
}
# passed NAME: nothing was wrong
passed() {
	if [ "$status" = 0 ] && ! grep -q '^not ok' "$work/checked" && says "$work/checked" "# 4 paths, mode $2"; then
		ok "check-tags: $1, nothing is wrong"
	else
		grep -v '^ok' "$work/checked" >"$work/wrong"
		not_ok "check-tags: $1, nothing is wrong" "status $status" "$work/wrong"
	fi
}
checked "$bin/tags-offset" wait
passed offset 1
checked "$bin/tags-offset" dtv
passed DTV 2
checked "$bin/tags-registry" wait
passed registry 3
if unshare --pid --fork true 2>/dev/null; then
	start unshare --pid --fork --kill-child --mount-proc "$bin/tags-registry" wait
	read -r inner _ <"/proc/$target/task/$target/children"
	"$check_tags" "$inner" >"$work/checked" 2>&1
	status=$?
	finish_target
	passed "registry in a container" 3
else
	skip "check-tags: registry in a container" "no pid namespace can be made here"
fi
# each fault alone, and what the line must be about
expected() {
	case $1 in
	magic) echo '\[descriptor\] magic' ;;
	major) echo '\[descriptor\] major_version' ;;
	size) echo '\[descriptor\] descriptor_bytes' ;;
	record_size) echo '\[descriptor\] record_bytes' ;;
	node_size) echo '\[descriptor\] node_bytes' ;;
	pointer) echo '\[descriptor\] pointer_bytes' ;;
	not_ready | mode) echo '\[modes\] the mode' ;;
	tls_off) echo '\[modes\] mode 1' ;;
	dtv_module) echo '\[modes\] mode 2' ;;
	registry | registry_head) echo '\[registry\] ' ;;
	flags) echo '\[descriptor\] flags' ;;
	capacity) echo '\[descriptor\] node_cap' ;;
	count | count_zero) echo '\[descriptor\] node_cnt' ;;
	shift) echo '\[descriptor\] chunk_shift' ;;
	pid) echo '\[descriptor\] pid' ;;
	reserved) echo '\[descriptor\] reserved' ;;
	chunk | chunk_unmapped) echo "\\[nodes\\] a node's chunk" ;;
	parent) echo '\[nodes\] the parent' ;;
	kind) echo '\[nodes\] the kind' ;;
	length | empty) echo '\[nodes\] a name has' ;;
	name_addr) echo '\[nodes\] the name' ;;
	value_addr) echo '\[nodes\] the value' ;;
	node_flags) echo '\[nodes\] the flags' ;;
	tag_value) echo '\[nodes\] only labels' ;;
	*) echo "no line is known for fault $1" ;;
	esac
}
found() {
	checked "$bin/tags-offset" "$1"
	if [ "$status" = 1 ] && says "$work/checked" "^not ok - $(expected "$1")"; then
		ok "check-tags: broken $1 is found"
	else
		grep -v '^ok' "$work/checked" >"$work/wrong"
		not_ok "check-tags: broken $1 is found" "status $status" "$work/wrong"
	fi
}
for fault in $("$bin/tags-offset" faults); do
	beside found "$fault"
done
together
# a program without any
start sh -c 'echo READY; read -r line'
"$check_tags" "$target" >"$work/checked" 2>&1
status=$?
finish_target
[ "$status" = 1 ] && says "$work/checked" 'not ok - \[discovery\]' && ok "check-tags: no note" ||
	not_ok "check-tags: no note" "status $status" "$work/checked"
"$check_tags" 2147483646 >"$work/checked" 2>&1
[ $? = 2 ] && ok "check-tags: no process" || not_ok "check-tags: no process" "another status" "$work/checked"
e2e_end
