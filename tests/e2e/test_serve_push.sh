#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve: what is pushed while other profiles are made is what is to be pushed: each lane of work has its own file.
. "$(dirname "$0")/lib.sh"
e2e_init serve_push
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"

build_c grows || { not_ok build "workload"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
seconds=${E2E_PUSH_SECONDS:-8}

# holder NAME LINE: it holds that; the bytes and blocks in held[NAME]
declare -A held
holder() {
	mkdir -p "$top/bin"
	cp "$bin/grows" "$top/bin/$1"
	begin "$1" "$top/bin/$1"
	await 10 follows "${pid_of[$1]}" || not_ok "$1" "not followed" "$top/serve.err"
	tell_to "$1" "$2"
	await 10 says "$top/$1/target.out" '^HELD' || not_ok "$1" "no answer" "$top/$1/target.out"
	held[$1]=$(awk '$1 == "HELD" { print $2, $3 }' "$top/$1/target.out" | tail -n 1)
}
# pull PATH: again and again; a line of $top/pulls for each answer
pull() {
	while [ -e "$top/pulling" ]; do
		get -f -o /dev/null "$url$1" && echo "$1" >>"$top/pulls"
	done 2>/dev/null
}

python3 "$e2e_dir/push_taker.py" "$top/pushed" >"$top/port" 2>"$top/taker.err" &
owned
await 10 says "$top/port" '^[0-9]' || not_ok "a server to push to" "does not begin" "$top/taker.err"
: >"$top/pushed"
serve --listen 127.0.0.1:0 --rate 1 --comm '^pushes-' --push "pyroscope+http://127.0.0.1:$(cat "$top/port")" --push-interval 1s
holder pushes-a "up 100 10007"
holder pushes-b "up 301 20011"
# what was begun before they held that is pushed by now
sleep 3
: >"$top/pushed"
: >"$top/pulls"
touch "$top/pulling"
for name in pushes-a pushes-b; do
	pull "/debug/pprof/heap?pid=${pid_of[$name]}" &
	owned
	pull "/debug/pprof/allocs?seconds=1&pid=${pid_of[$name]}" &
	owned
done
pull "/debug/pprof/heap" &
owned
has_enough() { [ "$(grep -c . "$top/pushed")" -ge $((2 * seconds)) ] && [ "$(grep -c . "$top/pulls")" -ge $((3 * seconds)) ]; }
await $((4 * seconds)) has_enough && ok "$(grep -c . "$top/pushed") pushes beside $(grep -c . "$top/pulls") other profiles" ||
	not_ok "pushes beside other profiles" "$(grep -c . "$top/pushed") pushes, $(grep -c . "$top/pulls") others" "$top/serve.err" "$top/taker.err"
rm "$top/pulling"
for name in pushes-a pushes-b; do
	cnt=$(grep -c "^${pid_of[$name]} " "$top/pushed")
	wrong=$(grep "^${pid_of[$name]} " "$top/pushed" | grep -cvxF "${pid_of[$name]} $name ${held[$name]}")
	[ "$cnt" -ge 2 ] && [ "$wrong" = 0 ] && ok "$cnt pushes of $name are its own: ${held[$name]}" ||
		not_ok "pushes of $name" "$wrong of $cnt are not ${held[$name]}" "$top/pushed"
done
end_server "pushes"
e2e_end
