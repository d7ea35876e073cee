#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_speedscope.sh - speedscope itself opens what `heaptap convert` writes for it: the values, each with its total.
. tests/consumers/lib.sh
consumer_init speedscope
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip_all "no chromium"
have node || skip_all "no node"
why=$(tests/consumers/get_modules "$B/consumers") || skip_all "$why"
modules=$(realpath "$B/consumers/node_modules")

"$B/heaptap" convert "$profile" "$work/p.speedscope.json" >"$work/log" 2>&1 || { not_ok convert "it fails" "$work/log"; consumer_end; }
NODE_PATH=$modules node tests/consumers/speedscope.js "$work/p.speedscope.json" >"$work/want" 2>"$work/log" &&
	ok "as its schema wants it" || not_ok "its schema" "it is not" "$work/log"
# as its own command line program hands a file to it
printf 'speedscope.loadFileFromBase64("p.speedscope.json", "%s")\n' "$(base64 -w 0 "$work/p.speedscope.json")" >"$work/load.js"
timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --enable-unsafe-swiftshader --allow-file-access-from-files \
	--user-data-dir="$work/browser" --virtual-time-budget=8000 --dump-dom \
	"file://$modules/speedscope/dist/release/index.html#localProfilePath=$work/load.js" >"$work/page" 2>"$work/log"
sed 's/<tr /\n<tr /g' "$work/page" | sed -nE 's/^<tr title="([a-z_]*)".*<td[^>]*>([0-9][^<]*)<\/td><\/tr>.*/\1 \2/p' >"$work/shown"
awk '{ if ($2 == "none") shown = $3; else if ($3 < 1024) shown = sprintf("%.2f B", $3)
	else if ($3 < 1048576) shown = sprintf("%.2f KB", $3 / 1024); else shown = sprintf("%.2f MB", $3 / 1048576)
	print $1, shown }' "$work/want" >"$work/wanted"
[ "$(grep -c . "$work/wanted")" = 4 ] && cmp -s "$work/wanted" "$work/shown" && ok "it shows four values: $(head -n 1 "$work/shown")" ||
	not_ok "what it shows" "is not $(paste -sd, "$work/wanted")" "$work/shown" "$work/log"
grep -q "<title>[^<]* - speedscope</title>" "$work/page" && ok "its title" || not_ok "its title" "another" "$work/log"
consumer_end
