#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Labels of other people's formats: OpenTelemetry's thread context and Polar Signals' custom labels,
# by writers made from their texts in every TLS model, and by the published crates. TESTS_WHOLE=1: of both formats each way
# to build a writer, else of one or the other.
. "$(dirname "$0")/lib.sh"
e2e_init foreign_tags

# A SPEC is key=value:site,site - the blocks of these sites have that label, all of them and no others'
# - or key=: - nobody has the key. wrong SPEC: what is not so in the profile, nothing if all is.
wrong() {
	local label=${1%:*} site
	if [ "${label#*=}" = "" ]; then
		"$compare" labels "$work/p.pb.gz" "${label%=}" | sed "s/^/somebody has $label/"
		return
	fi
	for site in $(tr , ' ' <<<"${1##*:}"); do
		grep "^EXPECT site_$site " "$work/target.out" || echo "$label: the target has no site_$site" >&2
	done >"$work/expected"
	"$compare" exact "$work/p.pb.gz" "$work/expected" --alloc --label "$label" | sed "s|^|$label: |"
}
# labels NAME SPEC...
labels() {
	local name=$1 spec
	shift
	for spec in "$@"; do wrong "$spec"; done >"$work/wrong" 2>&1
	if [ -s "$work/wrong" ]; then
		not_ok "$name: labels" "$(grep -c . "$work/wrong") differences" "$work/wrong" "$work/heaptap.err"
	else
		ok "$name: labels"
	fi
}
# labelled NAME SPEC... -- COMMAND...: attached to; every byte is there, and the labels
labelled() {
	local name=$1 specs=()
	shift
	while [ "$1" != -- ]; do
		specs+=("$1")
		shift
	done
	shift
	exact "$name" -- "$@" && labels "$name" "${specs[@]}"
}
# no_losses_of NAME COUNTER...
no_losses_of() {
	local name=$1 counter
	shift
	for counter in "$@"; do
		[ "$(ledger "$counter")" = 0 ] || { not_ok "$name" "$counter $(ledger "$counter")"; return 1; }
	done
	ok "$name"
}

# Ids of spans differ from site to site and are nobody's label.
otel=(http_route=/a:a http_method=GET:a http_route=/b:b,worker key-9=nine:b,worker http_route=/c:last
	trace_id=: span_id=: key-0=: key-1=:)
# A key that is published after the first labels, and read while the program still runs.
otel_late=("${otel[@]}" tenant=t1:late key-2=:)
custom=(user=me:a,first team=red:a gone=: k0=v0:many k9=v9:many k10=: short=s:long)

# run_library WORKLOAD NAME CC FLAGS HEADERS SPECS: linked, and dlopened
run_library() {
	local w=$1 name=$2 cc=$3 flags=$4 headers=$5
	local -n specs=$6
	if ! CC=$cc OUT=lib$w-$name.so build_c "$w" -DLIBRARY -fPIC -shared $flags $headers; then
		not_ok "$w: library, $name" "cannot be built"
		return
	fi
	CC=$cc OUT=$w-linked-$name build_c "$w" -DLINKED $headers "$bin/lib$w-$name.so" -Wl,-rpath,"$bin" &&
		labelled "$w: library, $name" "${specs[@]}" -- "$bin/$w-linked-$name"
	CC=$cc OUT=$w-dlopen-${cc%-gcc} build_c "$w" -DDLOPEN $headers -ldl &&
		labelled "$w: library, $name, dlopened" "${specs[@]}" -- "$bin/$w-dlopen-${cc%-gcc}" "$bin/lib$w-$name.so"
}
# run_program WORKLOAD NAME CC FLAGS SPECS
run_program() {
	local w=$1 name=$2 cc=$3 flags=$4
	local -n specs=$5
	if CC=$cc OUT=$w-$name build_c "$w" $flags; then
		labelled "$w: program, $name" "${specs[@]}" -- "$bin/$w-$name"
	else
		not_ok "$w: program, $name" "cannot be built"
	fi
}
# run_pie WORKLOAD SPECS: attached to, and started
run_pie() {
	local w=$1
	run_program $w pie gcc "-pie -fPIE -rdynamic" $2
	no_losses "$w: no losses"
	no_losses_of "$w: no losses of tags" tags_unreadable tag_sources_full scopes_full
	# Not from the first instruction: heaptap finds the pointer after the program has begun.
	exact_launched "$w: program, started" -- env E2E_DELAY_MS=1500 "$bin/$w-pie"
	[ $w = otel_writer ] && labels "$w: program, started" "${otel[@]}" || labels "$w: program, started" "${custom[@]}"
}
headers=-idirafter/usr/include
# of FORMAT COMMAND WORKLOAD ARGS...: by default of that format alone
of() { [ "$1" = "$3" ] && beside "${@:2}" || again beside "${@:2}"; }
for w in otel_writer custom_labels; do
	[ $w = otel_writer ] && specs=otel_late || specs=custom
	beside run_pie $w $specs
	of otel_writer run_program $w stripped gcc "-no-pie -rdynamic -s" $specs
	of custom_labels run_program $w static gcc "-static" $specs
	have ld.lld && of custom_labels run_program $w lld gcc "-fuse-ld=lld -rdynamic" $specs
	have musl-gcc && of otel_writer run_program $w musl musl-gcc "$headers -rdynamic" $specs
	of otel_writer run_library $w gd gcc "-s" "" $specs
	of otel_writer run_library $w desc gcc "-mtls-dialect=gnu2 -s" "" $specs
	of custom_labels run_library $w ie gcc "-ftls-model=initial-exec" "" $specs
	if have musl-gcc; then
		of custom_labels run_library $w musl-gd musl-gcc "" "$headers" $specs
		of otel_writer run_library $w musl-desc musl-gcc "-mtls-dialect=gnu2" "$headers" $specs
	fi
done
together

# The same labels in the record of heaptap/scope.h.
run_program otel_writer scope gcc "-DSCOPE -I$e2e_top/include" otel

# The key names in a mapping without a file, where the kernel can name one.
start env E2E_MODE=anon "$bin/otel_writer-pie"
if says "/proc/$target/maps" OTEL_CTX; then
	kill_target
	labelled "otel_writer: key names in an anonymous mapping" "${otel_late[@]}" -- env E2E_MODE=anon "$bin/otel_writer-pie"
else
	kill_target
	skip "otel_writer: key names in an anonymous mapping" "this kernel does not name mappings"
fi

# Another version of the ABI: left alone, and said so, once.
if OUT=custom_labels-abi2 build_c custom_labels -DABI=2 -rdynamic; then
	labelled "custom labels of ABI version 2" user=: k0=: -- "$bin/custom_labels-abi2"
	[ "$(grep -c 'unknown ABI version' "$work/heaptap.err")" = 1 ] && ok "custom labels of ABI version 2: said once" ||
		not_ok "custom labels of ABI version 2: said once" "it is not" "$work/heaptap.err"
fi

# The published writers.
crate() {
	local feature=$1 program=$2
	shift 2
	if ! bash "$loads/rust_labels/build" "$feature" "$program" "$bin" >"$work/build.log" 2>&1; then
		skip "$program" "the crate cannot be fetched or built: $(grep -m1 -i error "$work/build.log")"
		return
	fi
	labelled "$program" "$@" -- "$bin/$program"
	no_losses_of "$program: no losses of tags" tags_unreadable labels_full tag_sources_full
}
again crate custom custom_labels_crate user=me:outer,again user=you:inner route=/a:inner tenant=t1:set route=/w:worker
again crate otel otel_crate http_route=/a:a http_method=GET:a http_route=/b:b http_route=/s:spans http_route=/w:worker \
	datadog.local_root_span_id=: key-0=:
e2e_end
