#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_languages.sh - PROGRAMS IN OTHER LANGUAGES in heaptap(1): each of its commands is run as it stands there, on a
# small program of that language, and what it says of what is seen holds. A runtime that is not here is skipped.
# The recordings are of 3 s, at 16 KiB.
. "$(dirname "$0")/lib.sh"
e2e_init languages

# commands_of SECTION: the lines of its example
commands_of() {
	awk -v section=".SS $1" '$0 == section { is = 1; next } /^\.S[SH]/ { is = 0 } is && /^\.EE/ { shows = 0 }
		is && shows { gsub(/\\-/, "-"); print } is && /^\.EX/ { shows = 1 }' "$e2e_top/user/man/heaptap.1"
}
# what is run in the background, with the shell that runs it
begin_line() {
	local line=${1%&}
	rm -f "$work/in"
	mkfifo "$work/in"
	(cd "$work" && exec bash -c "${line/#*&& /}" <"$work/in") >"$work/target.out" 2>&1 &
	target=$!
	exec {input}>"$work/in"
	e2e_pids="$e2e_pids $target"
	await 30 says "$work/target.out" '^READY' || not_ok "$1" "does not begin" "$work/target.out"
	case $language in Java | Node) sleep 2 ;; esac # it compiles
}
# run_line LINE: with the PID of what was begun
run_line() {
	local line=${1//PID/${target:-}}
	line=${line/heaptap record/"$heaptap" record -q -r 16k --force -o p.pb.gz}
	line=${line/-d 30s/-d 3s}
	(cd "$work" && timeout 120 bash -c "$line") >"$work/out" 2>"$work/err" </dev/null && ok "$language: $1" ||
		not_ok "$language: $1" "status $?" "$work/out" "$work/err"
}
# language NAME FILE...: its commands, in a folder with these programs
language() {
	local line
	language=$1
	shift
	for line; do cp "$loads/languages/$line" "$work/"; done
	while read -r line; do
		case $line in
		*'&& '*'&') run_line "${line% && *}" && begin_line "$line" ;;
		*'&') begin_line "$line" ;;
		*) run_line "$line" ;;
		esac
	done < <(commands_of "$language")
	[ -s "$work/p.pb.gz" ] || { not_ok "$language" "nothing was recorded" "$work/target.out"; return; }
	"$heaptap" report --by function "$work/p.pb.gz" >"$work/report" 2>&1
	"$heaptap" report --top 0 "$work/p.pb.gz" >"$work/stacks" 2>&1
}
end_language() {
	exec {input}>&-
	kill "$target" 2>/dev/null
	wait "$target" 2>/dev/null
	rm -f "/tmp/perf-$target.map"
}
# first NAME: what holds most; seen_not NAME
first() { grep -qE "^ *1 .* $1" "$work/stacks" && ok "$language: $1 holds most" || not_ok "$language: $1 holds most" "" "$work/stacks" "$work/err"; }
seen_not() { grep -q "$1" "$work/report" && not_ok "$language: $1 is not seen" "it is" "$work/report" || ok "$language: $1 is not seen"; }

java_too() {
	(cd "$work" && javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -d . "$loads/languages/Server.java") >"$work/javac" 2>&1 || { not_ok Java "javac" "$work/javac"; return; }
	language Java
	first "void Server.loadDocument()"
	seen_not "Server.parse"
	grep -q '\[B' "$work/out" && ok "Java: its heap is in the other tool" || not_ok "Java: its heap" "" "$work/out"
	end_language
}
node_too() {
	language Node server.js
	first loadDocument
	await 20 eval 'ls "$work"/*.heapsnapshot >/dev/null 2>&1' && ok "Node: its heap is written" || not_ok "Node: its heap" "" "$work/target.out"
	end_language
}
find_python() {
	local folder
	for folder in "$(dirname "$(command -v python3)")" "$HOME"/.pyenv/versions/*/bin; do
		"$folder/python3" -c 'import sys; sys.activate_stack_trampoline("perf")' 2>/dev/null && PATH=$folder:$PATH && return
	done
	return 1
}
python_too() {
	language Python server.py
	first load_document
	grep -qE " parse$" "$work/report" && ok "Python: small objects, with PYTHONMALLOC" || not_ok "Python: small objects" "" "$work/report"
	end_language
	begin_line "exec python3 server.py" # as it is without
	"$heaptap" record -q -r 16k -d 1s --force -o "$work/q.pb.gz" -p "$target" 2>"$work/err" </dev/null
	"$heaptap" report --top 0 "$work/q.pb.gz" >"$work/stacks" 2>&1
	! grep -q "load_document\| parse " "$work/stacks" && grep -q "bytearray\|ByteArray" "$work/stacks" &&
		ok "Python: without its options, functions of the interpreter" || not_ok "Python: without its options" "" "$work/stacks"
	end_language
}
go_too() {
	printf 'module server\n\ngo 1.19\n' >"$work/go.mod"
	language Go server.go
	first load_document
	seen_not "main.parse"
	grep -q 'main.parse' "$work/out" && ok "Go: its heap is in the other tool" || not_ok "Go: its heap" "" "$work/out"
	grep -q 'asmcgocall' "$work/stacks" && ok "Go: a stack ends where Go called C" || not_ok "Go: where a stack ends" "" "$work/stacks"
	end_language
}
rust_too() {
	mkdir -p "$work/src"
	cp "$loads/languages/server.rs" "$work/src/main.rs"
	printf '[package]\nname = "server"\nversion = "0.1.0"\nedition = "2021"\n' >"$work/Cargo.toml"
	language Rust
	first "[a-z]*::load_document main.rs:7"
	end_language
}
have java && have javac && have jcmd && beside java_too || skip Java "no JDK is here"
have node && node -e 0 2>/dev/null && beside node_too || skip Node "it is not here"
find_python && beside python_too || skip Python "no 3.12 or later is here"
have go || PATH=$PATH:/usr/local/go/bin
have go && [ "$(go env CGO_ENABLED)" = 1 ] && beside go_too || skip Go "it is not here, or without cgo"
have cargo && beside rust_too || skip Rust "no cargo is here"
together
e2e_end
