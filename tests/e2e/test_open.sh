#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_open.sh - record --open: whose browser opens the page, and that the recording is the same where none does.
. "$(dirname "$0")/lib.sh"
e2e_init open
[ "$(id -u)" = 0 ] || skip_all "needs root"
user=65534
mkdir "$work/bin" "$work/pages"
cat >"$work/bin/xdg-open" <<END
#!/bin/sh
{
	echo "id \$(id -u) \$(id -g) \$(id -G)"
	echo "args \$# \$1"
	echo "fds \$(ls /proc/self/fd | tr '\n' ' ')"
	echo "home \$HOME"
	grep -q '<canvas id="picture"' "\$1" && echo readable
} >"$work/seen"
echo noise
echo noise >&2
case \$(cat "$work/does") in fails) exit 3 ;; stays) echo \$\$ >>"$work/seen"; exec sleep 33 ;; esac
END
chmod 755 "$work/bin/xdg-open"
chmod 711 "$work"
# opens WHAT-THE-OPENER-DOES ENV... -- ARGS: records; what the opener saw is in $work/seen
opens() {
	local does=$1 env=()
	shift
	while [ "$1" != -- ]; do
		env+=("$1")
		shift
	done
	shift
	rm -f "$work/pages"/*
	: >"$work/seen"
	chmod 666 "$work/seen"
	echo "$does" >"$work/does"
	(cd "$work/pages" && env -u DISPLAY -u WAYLAND_DISPLAY -u SUDO_UID -u SUDO_GID PATH="$work/bin:$PATH" "${env[@]}" \
		"$(command -v timeout)" 60 "${through[@]}" "$heaptap" record --rate 1 -n 0 "$@" -- "$(command -v perl)" -e '@a = map { "x" x 1000 } 1 .. 2000') \
		>"$work/out" 2>"$work/err" </dev/null
	status=$?
}
through=()
sudo=(SUDO_UID=$user SUDO_GID=$user)
# is_open NAME: the opener ran as that user alone, with the whole path of a page that this user can read, and nothing else
is_open() {
	local page
	page=$(ls "$work/pages"/*.html 2>/dev/null)
	[ $status = 0 ] && grep -qx "id $user $user $user" "$work/seen" && grep -qx "args 1 $(realpath "$page")" "$work/seen" &&
		grep -qx readable "$work/seen" && grep -q '^fds 0 1 2 3 $' "$work/seen" && [ "$(stat -c '%u %a' "$page")" = "$user 600" ] &&
		grep -q "^saved .*\.html: opened in a browser" "$work/err" && ! grep -q noise "$work/out" "$work/err" && ok "$1" ||
		not_ok "$1" "status $status" "$work/seen" "$work/err" "$work/out"
}
# stays_shut NAME WHY: the opener did not run; the page, its path and the status are those of a recording
stays_shut() {
	[ $status = 0 ] && [ ! -s "$work/seen" ] && [ -s "$work/pages/p.html" ] && grep -q "cannot open 'p.html': $2" "$work/err" &&
		grep -q "^saved p.html: open it in a browser" "$work/err" && ok "$1" || not_ok "$1" "status $status" "$work/seen" "$work/err"
}
opens works "${sudo[@]}" DISPLAY=:9 -- --open -o p.pb.gz
is_open "as the user who called sudo, beside the profile"
[ "$(stat -c %u "$work/pages/p.pb.gz")" = 0 ] && ok "the profile stays root's" || not_ok "the profile stays root's" "$(stat -c %u "$work/pages/p.pb.gz")"
grep -qx "home $(getent passwd $user | cut -d: -f6)" "$work/seen" && ok "with that user's home" || not_ok "with that user's home" "" "$work/seen"
opens works "${sudo[@]}" WAYLAND_DISPLAY=w -- --open
is_open "of the default name"
opens works "${sudo[@]}" DISPLAY=:9 -- --open --html=-page.html -o p.pb.gz
is_open "of --html, with a name like an option's"
opens stays "${sudo[@]}" DISPLAY=:9 -- --open -o p.pb.gz
is_open "a browser that stays open is not waited for"
browser=$(tail -n 1 "$work/seen")
[ "$(cat "/proc/$browser/comm")" = sleep ] && kill "$browser" && ok "and lives on" || not_ok "and lives on" "" "$work/seen"
opens works DISPLAY=:9 -- --open -o p.pb.gz
stays_shut "never as root" "heaptap starts no browser as root"
opens works SUDO_UID=0 SUDO_GID=0 DISPLAY=:9 -- --open -o p.pb.gz
stays_shut "nor for root who called sudo" "heaptap starts no browser as root"
opens works SUDO_UID=4294967296 SUDO_GID=$user DISPLAY=:9 -- --open -o p.pb.gz
stays_shut "nor for a number that wraps to root's" "heaptap starts no browser as root"
opens works "${sudo[@]}" -- --open -o p.pb.gz
stays_shut "without a display" "there is no display"
opens fails "${sudo[@]}" DISPLAY=:9 -- --open -o p.pb.gz
[ $status = 0 ] && grep -q "cannot open 'p.html': xdg-open ended with status 3" "$work/err" && grep -q "^saved p.html: open it" "$work/err" &&
	ok "an opener that fails" || not_ok "an opener that fails" "status $status" "$work/err"
through=("$(command -v env)" --ignore-signal=CHLD)
opens fails "${sudo[@]}" DISPLAY=:9 -- --open -o p.pb.gz
through=()
grep -q "xdg-open ended with status 3" "$work/err" && ok "an opener that fails, with SIGCHLD ignored" ||
	not_ok "an opener that fails, with SIGCHLD ignored" "" "$work/err"
mkdir "$work/roots" && chmod 700 "$work/roots"
opens works "${sudo[@]}" DISPLAY=:9 -- --open -o p.pb.gz --html "$work/roots/p.html"
[ $status = 0 ] && grep -q "cannot open '.*/roots/p.html': user $user may not read it" "$work/err" && ok "a folder that the user may not enter" ||
	not_ok "a folder that the user may not enter" "status $status" "$work/err"
opens works "${sudo[@]}" DISPLAY=:9 -- --open -o /dev/null
[ $status != 0 ] && grep -q "open needs --html FILE, because '/dev/null' is not a regular file" "$work/err" && [ ! -e /dev/null.html ] &&
	ok "no page beside /dev/null" || not_ok "no page beside /dev/null" "status $status" "$work/err"
mkdir "$work/none"
opens works "${sudo[@]}" DISPLAY=:9 PATH="$work/none" -- --open -o p.pb.gz
stays_shut "without xdg-open" "xdg-open cannot be run"
opens works "${sudo[@]}" DISPLAY=:9 -- -o p.pb.gz
[ $status = 0 ] && [ ! -s "$work/seen" ] && [ ! -e "$work/pages/p.html" ] && ok "without --open no page" || not_ok "without --open no page" "" "$work/seen"
e2e_end
