#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_top.sh - heaptap top in a real terminal: what it shows of a recording, keys, sizes, a target that ends, and what
# it leaves behind.
. "$(dirname "$0")/lib.sh"
e2e_init top
. "$e2e_dir/serve_lib.sh"
have tmux || skip_all "no tmux"
build_c grows || { not_ok build "grows.c"; e2e_end; }
run_cnt=0 # each has a server of tmux of its own: one that ends takes no new session
tmux() { command tmux -S "$work/tmux$run_cnt" -f /dev/null "$@"; }
trap 'tmux kill-server 2>/dev/null; e2e_cleanup' EXIT

# run COLUMNS LINES ARGS...: heaptap top in a new terminal; ENV is what is set for it
run() {
	local columns=$1 lines=$2
	shift 2
	tmux kill-server 2>/dev/null
	run_cnt=$((run_cnt + 1))
	tmux new-session -d -c "$work" -x "$columns" -y "$lines" \
		"trap : INT; env LANG=C.UTF-8 ${ENV:-A=B} '$heaptap' top $*; echo STATUS \$?; trap '' INT; stty -a | grep -oE -- '-?(icanon|echo)\\>'; exec sleep 1000"
}
screen() { tmux capture-pane -p "$@" >"$work/screen" 2>&1; }
shows() { screen && grep -q -- "$1" "$work/screen"; }
shows_not() { screen && ! grep -q -- "$1" "$work/screen"; }
# sees NAME PATTERN...: each of them within a while
sees() {
	local name=$1 pattern
	shift
	for pattern; do
		await 10 shows "$pattern" || { not_ok "$name" "not shown: $pattern" "$work/screen"; return; }
	done
	ok "$name"
}
keys() { tmux send-keys "$@"; }
no_probe() { timeout 20 python3 -IS "$e2e_dir/same_text.py" "$target" >"$work/text"; }
# left NAME: the shell's terminal is sane, and nothing is left in the target
left() {
	sees "$1: the terminal is as it was" '^\(\^C\)*STATUS 0' '^icanon' '^echo'
	await 10 no_probe && ok "$1: no probe is left" ||
		not_ok "$1: no probe is left" "there is one" "$work/text"
}
grow() {
	tell "up $1 $2"
	await 5 says "$work/target.out" "$3" || not_ok "grow $*" "not done" "$work/target.out"
}

READY='' start "$bin/grows"
run 110 20 -p "$target" --rate 1 --interval 300ms
sees "it begins" 'grows (PID' 'IN USE .*GROWTH/min'
grow 7 1000000 7000000
sees "what is held, to the byte" 'in use 6.68 MiB' '6.68 MiB *exact .* site_up grows.c:[0-9]* *< main' 'every allocation' 'no losses'
keys Enter
sees "Enter unfolds a stack" '^ *site_up grows.c:[0-9]*$' '^ *main grows.c:[0-9]*$'
keys t
sees "threads" 'THREAD' '6.68 MiB.* grows$'
keys o
sees "scopes" 'SCOPE' '6.68 MiB.* (none)'
keys f
sees "functions" 'FUNCTION' '6.68 MiB.* site_up$'
sees "what is resident, by row" '^Resident .* MiB: live [+0-9.]* MiB'
keys /
keys -l nosuch
sees "a search" '^/nosuch_' 'no name matches'
keys Escape
sees "the search is over" '6.68 MiB.* site_up$'
keys '?'
sees "help" 'Esc .*back to the process;' 'any key but q goes back'
keys x
keys p
sees "pause" 'PAUSED'
grow 1 1000000 8000000
sleep 1
shows '6.68 MiB.* site_up$' && ok "what is shown stays so" || not_ok "what is shown stays so" "it does not" "$work/screen"
keys p
sees "it goes on" '7.63 MiB.* site_up$'
sees "growth and allocations, when there is something to compare with" 'GROWTH/min' '+[0-9.]* MiB .* site_up$'
keys Escape
sees "the process" 'COST .*RESIDENT' "$target  *7.63 MiB.* grows"
keys Enter
sees "and back, to the view that was chosen" 'FUNCTION' '7.63 MiB.* site_up$'
keys Left
sees "Left is Esc" 'COST .*RESIDENT'
keys Right
sees "Right is Enter" 'FUNCTION' '7.63 MiB.* site_up'
keys BSpace
sees "Backspace is Esc" 'COST .*RESIDENT'
keys Space
sees "Space is Enter" 'FUNCTION' '7.63 MiB.* site_up'

keys w
sees "w saves what is shown" '^saved grows-.*[.]pb[.]gz'
"$heaptap" report -f json "$work"/grows-*.pb.gz >"$work/report" 2>&1 && grep -q '"inuse_bytes":8000000' "$work/report" && ok "a profile" || not_ok "a profile" "not what was in use" "$work/report"

for size in '40 10' '20 6' '20 1' '5 3' '110 20'; do
	tmux resize-window -x "${size% *}" -y "${size#* }"
	sleep 0.5 # it looks for a new size when it draws
	screen
	case $size in
	'40 10' | '110 20') want='^7.63 MiB.*site_up' ;;
	'20 6') want='^7.63 MiB' ;;
	'20 1') want='^7.63 MiB' ;;
	*) want='' ;;
	esac
	await 5 shows "$want" && ok "resized to $size" || not_ok "resized to $size" "not shown: $want" "$work/screen"
done
keys C-c
for i in 1 2 3 4 5; do keys C-c; done # while it ends
left "Ctrl-C, and more of them"
sees "the last values stay on the terminal" '^in use 7.63 MiB.* grows (PID'

ENV='NO_COLOR=1' run 100 20 -p "$target" --rate 1 --interval 300ms --by function --sort alloc
sees "--by, --sort" 'FUNCTION' 'by allocated'
screen -e
grep -qP '\e\[([0-9;]*;)?3[0-7]m' "$work/screen" && not_ok "NO_COLOR" "there is colour" "$work/screen" || ok "NO_COLOR"
grep -qP '\e\[' "$work/screen" && ok "but titles stand out" || not_ok "titles stand out" "no attribute" "$work/screen"
keys q
left q
sees "a line is left" '^in use 0 B.*, RSS [0-9.]* MiB.* grows (PID'
ENV='TERM=no-such-terminal' run 100 20 -p "$target" --rate 1 --interval 300ms
sees "an unknown terminal gets plain text" 'grows (PID' 'IN USE .*GROWTH/min'
keys q
left "plain text"

run 100 20 -p "$target" --rate 1 --interval 300ms
sees "before a kill" 'grows (PID'
killed=$(pgrep -o -f "^$heaptap top -p $target ")
kill -9 "$killed"
await 10 is_gone "$killed" && await 10 no_probe && ok "killed: no probe is left" || not_ok "killed: no probe is left" "there is one" "$work/text" "$work/screen"

run 100 20 -p "$target" --rate 1 --interval 300ms
sees "again" 'grows (PID'
screen -e
grep -qP '\e\[([0-9;]*;)?3[0-7]m' "$work/screen" && ok "colour" || not_ok "colour" "there is none" "$work/screen"
grow 3 1000000 11000000
tell "exit 3"
sees "a target that ends" '^ENDED' '2.86 MiB .* site_up'
keys t
sees "is still looked at" '2.86 MiB .* grows$'
keys C-c
sees "and left" '^STATUS 0' '^icanon' '^echo'
exec {target_in}>&-

# A target with a hostile name.
evil=$'ev\e[31m\nil'
mkdir -p "$top/evil"
cp "$bin/grows" "$top/evil/$evil"
READY='' begin evil "$top/evil/$evil"
run 110 20 -p "${pid_of[evil]}" --rate 1 --interval 300ms --by thread
sees "a hostile name" "ev?\\[31m?il (PID ${pid_of[evil]})"
tell_to evil "up 5 1000000"
sees "what is held there" 'THREAD' '4.77 MiB .*ev?'
keys q
sees "q" '^STATUS 0' '^icanon'

# says NAME STATUS PATTERN ARGS...: in a terminal, which stays as it is
says_in_terminal() {
	local name=$1 status=$2 pattern=$3
	shift 3
	run 200 20 "$@"
	sees "$name" "$pattern" "^STATUS $status" '^icanon'
}
says_in_terminal "no process" 1 'error: record: .*99999999' -p 99999999
says_in_terminal "nothing to show" 2 'nothing to show: give -p PID'
tmux kill-server
"$heaptap" top -p 1 </dev/null >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q 'is not a terminal: .*heaptap report' "$work/err" && [ ! -s "$work/out" ] &&
	ok "no terminal" || not_ok "no terminal" "not said" "$work/err"
e2e_end
