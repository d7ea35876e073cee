#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the commands say of a command line: which command, what is wrong, what was meant, and where the
# options are listed. Version and help, wherever they are asked for. Needs no privileges.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init command_line

run() {
	timeout 20 "$heaptap" "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
}
# wrong COMMAND SENTENCE ARGS...: exactly this, and where to look; nothing on stdout
wrong() {
	local command=$1 sentence=$2
	shift 2
	printf 'heaptap: error: %s\nTry '"'heaptap $command--help'"'.\n' "$sentence" >"$work/want"
	run "$@"
	[ $status = 2 ] && [ ! -s "$work/out" ] && cmp -s "$work/want" "$work/err" && ok "$*: $sentence" ||
		not_ok "$*" "status $status" "$work/want" "$work/err"
}

for command in record report doctor explain top serve diff check symbolize convert; do
	case $command in
	record) long=duration typo=duratoin letter=d flag=quiet ;;
	report) long=sort typo=srot letter=s flag=fold-repeated ;;
	diff) long=format typo=formta letter=f flag=fold-repeated ;;
	check) long=duration typo=duratoin letter=d flag=quiet ;;
	symbolize) long=output typo=outptu letter=o flag=debuginfod ;;
	convert) long=value typo=valeu letter=t flag=force ;;
	top) long=interval typo=intevral letter=i flag=help ;;
	doctor) long=pid typo=pdi letter=p flag=json ;;
	explain) long=format typo=formta letter=f flag=verbose ;;
	serve) long=rate typo=raet letter=r flag=all ;;
	esac
	wrong "$command " "$command: unknown option '--$typo': did you mean --$long?" $command --$typo 1
	wrong "$command " "$command: unknown option '--no-such-thing'" $command --no-such-thing
	wrong "$command " "$command: unknown option '-y'" $command -y
	wrong "$command " "$command: option '--$long' needs a value" $command --$long
	wrong "$command " "$command: option '-$letter' needs a value" $command -$letter
	wrong "$command " "$command: option '--$flag' takes no value" $command --$flag=1
	for ask in --version -V; do
		run $command $ask
		[ $status = 0 ] && grep -qx "heaptap [0-9.]*" "$work/out" && [ ! -s "$work/err" ] &&
			ok "$command $ask" || not_ok "$command $ask" "status $status" "$work/out" "$work/err"
	done
	run $command --help
	cp "$work/out" "$work/help"
	[ $status = 0 ] && grep -q "^usage: heaptap $command " "$work/help" && grep -q -- "-V, --version" "$work/help" &&
		[ "$(awk '{ if (length > n) n = length } END { print n }' "$work/help")" -le 100 ] &&
		ok "$command --help" || not_ok "$command --help" "status $status" "$work/help"
	# the options that --help lists are those that the manual explains
	sed -nE 's/^ +(-., )?(--[a-z-]+).*/\2/p' "$work/help" | sort -u >"$work/told"
	awk '/^\.SH EXAMPLES/ { exit } /^\.T[PQ]/ { getline; gsub(/\\-/, "-"); while (match($0, /--[a-z][a-z-]*/)) {
		print substr($0, RSTART, RLENGTH); $0 = substr($0, RSTART + RLENGTH) } }' \
		"$e2e_top/user/man/heaptap-$command.1" | sort -u >"$work/explained"
	comm -3 "$work/told" "$work/explained" >"$work/differ"
	[ -s "$work/told" ] && [ ! -s "$work/differ" ] && ok "$command: --help and the manual have the same options" ||
		not_ok "$command: --help and the manual have the same options" "help only, manual only:" "$work/differ"
	run help $command
	cmp -s "$work/help" "$work/out" && ok "help $command" || not_ok "help $command" "differs" "$work/out"
done
## What a shell completes is what --help lists
# completes WORD...: what bash offers for the last of them, one a line, sorted
completes() {
	"$heaptap" completion bash >"$work/completion.bash"
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _heaptap
		[ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' - "$work/completion.bash" "$@" | sort
}
# offers WHAT WANT WORD...
offers() {
	local what=$1 want=$2 got
	shift 2
	got=$(completes "$@" | xargs)
	[ "$got" = "$want" ] && ok "bash: $what" || not_ok "bash: $what" "'$got', not '$want'"
}
for command in record report doctor explain top serve diff check symbolize convert; do
	"$heaptap" $command --help | sed -nE 's/^ +(-., )?(--[a-z-]+).*/\2/p' | sort -u >"$work/told"
	completes heaptap $command -- >"$work/offered"
	cmp -s "$work/told" "$work/offered" && ok "bash: the options of $command" ||
		not_ok "bash: the options of $command" "--help, offered:" "$work/told" "$work/offered"
	for shell in zsh fish; do
		run completion $shell
		missing=$(sed 's/^--//' "$work/told" | while read -r name; do
			grep -qE "(--|-l )$name(=|[^a-z-]|$)" "$work/out" || echo "$name"
		done)
		[ $status = 0 ] && [ -z "$missing" ] && ok "$shell: the options of $command" ||
			not_ok "$shell: the options of $command" "status $status, missing: $missing" "$work/out"
		if ! command -v $shell >/dev/null; then
			skip "$shell: $command" "$shell is not installed"
		elif $shell -n "$work/out" 2>"$work/err"; then
			ok "$shell: it is sound"
		else
			not_ok "$shell: it is sound" "" "$work/err"
		fi
	done
done
offers "the commands" "record report" heaptap re
offers "no value of a test's option" "" heaptap record --attach-mode ""
offers "choices" "always auto" heaptap report --color a
offers "choices behind =" "inuse" heaptap report --sort = i
offers "choices behind = alone" "alloc inuse" heaptap report --value =
offers "the shells" "bash fish zsh" heaptap completion ""
completes heaptap record -p "" | grep -qx $$ && ok "bash: process ids" || not_ok "bash: process ids" "this one is missing"
wrong "completion " "completion: which shell: bash, zsh or fish?" completion csh
wrong "completion " "completion: which shell: bash, zsh or fish?" completion
for words in "record --max" "report --f" "serve --keep"; do
	run $words 3
	[ $status = 2 ] && head -n 1 "$work/err" | grep -q "^heaptap: error: ${words% *}: option '${words#* }' is ambiguous: ${words#* }.* or ${words#* }" &&
		ok "$words: is ambiguous" || not_ok "$words: is ambiguous" "status $status" "$work/err"
done
# what is for tests only is not suggested
wrong "record " "record: unknown option '--atach-mode'" record --atach-mode perf
wrong "serve " "serve: unknown option '--atach-way'" serve --atach-way own
# an option of the program that is to be started is not ours
run record --no-such-thing -- true --version
grep -q "'--no-such-thing'" "$work/err" && ! grep -q "^heaptap [0-9]" "$work/out" && ok "options behind -- are the program's" ||
	not_ok "options behind --" "" "$work/out" "$work/err"

wrong "" "unknown command 'recrod': did you mean record?" recrod -p 1
wrong "" "unknown command 'recrod': did you mean record?" help recrod
wrong "" "unknown command 'xyz'" xyz
wrong "" "unknown command '1234': did you mean 'heaptap record -p 1234'?" 1234
wrong "" "unknown option '--verison': did you mean --version?" --verison
wrong "" "unknown option '-p': options follow a command, as in 'heaptap record -p PID'" -p 1
for ask in --version -V version; do
	run $ask
	[ $status = 0 ] && grep -qx "heaptap [0-9.]*" "$work/out" && ok "$ask" || not_ok "$ask" "status $status" "$work/out"
done
run version --licences
[ $status = 0 ] && grep -q "^MIT License" "$work/out" && grep -q "libbpf .*BSD-2-Clause" "$work/out" &&
	ok "version --licences" || not_ok "version --licences" "status $status" "$work/out" "$work/err"
wrong "version " "version: unexpected argument 'x'" version x
wrong "convert " "convert: give IN and OUT" convert x.heap
wrong "convert " "convert: unexpected argument 'c' after IN and OUT" convert a b.heap c
wrong "symbolize " "symbolize: give a FILE" symbolize
wrong "symbolize " "symbolize: unexpected argument 'b': one FILE at a time" symbolize a b
wrong "check " "check: unexpected argument '--max-growth': options go before the FILE" check x.pb.gz --max-growth 1
run --help
cp "$work/out" "$work/help"
[ $status = 0 ] && [ "$(grep -c . "$work/help")" -le 24 ] && [ "$(sed -nE 's/^  ([a-z]+) .*/\1/p' "$work/help" | head -n 3 | xargs)" = "record report doctor" ] &&
	[ "$(grep -c '\$ heaptap' "$work/help")" = 10 ] && ok "--help: what is needed first comes first, with examples" ||
	not_ok "--help" "status $status" "$work/help"
for ask in -h help; do
	run $ask
	cmp -s "$work/help" "$work/out" && ok "$ask is --help" || not_ok "$ask" "differs" "$work/out"
done
run
[ $status = 2 ] && cmp -s "$work/help" "$work/err" && [ ! -s "$work/out" ] && ok "without arguments: the same, as an error" ||
	not_ok "without arguments" "status $status" "$work/err"
e2e_end
