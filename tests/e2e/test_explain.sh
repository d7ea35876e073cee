#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `heaptap explain` on programs whose heap is known: every arena as malloc_info() has it, what a real malloc_trim(0)
# returns, rows that add up to RSS, the cause; and the process is the same after it was read. timeout: 1800
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init explain
build_c heaps || { not_ok build "heaps.c"; e2e_end; }

. "$e2e_dir/explain_lib.sh"
planted_all
# the same with huge pages, of which malloc returns none in part
planted trim 'cause == "trimmable" and near(row("trimmable"), 100000 * 1008, 0.05)' GLIBC_TUNABLES=glibc.malloc.hugetlb=1

start env GLIBC_TUNABLES=glibc.malloc.hugetlb=2 "$bin/heaps" live "$work/info.xml"
explain -p "$target" -f json
judge "hugetlb=2: not believed" - - 'row("live") < MiB and not arenas[0]["is_proved"] and "malloc has" in text and "could not be verified" in text'
finish_target
start "$bin/heaps" mapped "$work/info.xml"
explain -p "$target" -f json
judge "mapped: not malloc's" - - 'cause == "anonymous" and near(row("anonymous"), 32 * MiB) and row("live") < 65536'
finish_target
start "$bin/heaps" torn "$work/info.xml"
explain -p "$target" -f json
judge "torn: glibc's heap, which could not be read" - - \
	'cause == "brk" and j["glibc"] is None and "main arena at 0x" in j["glibc_why_not"] and "glibc\x27s malloc could not be read (its main arena" in text and "runtime" not in text'
explain -p "$target"
[ $status = 0 ] && tr '\n' ' ' <"$work/out" | grep -q "The heap of glibc's malloc could not be read (its main arena at 0x" &&
	ok "torn: the text says why" || not_ok "torn: the text says why" "status $status" "$work/out" "$work/err"
kill_target

# what is not malloc's, and what is besides it
# cause HOW EXPRESSION
cause() {
	local parent
	start env -C "$work" "$bin/heaps" "$1" /dev/null || not_ok "cause: $1" "it did not start" "$work/target.err"
	parent=$target
	[ "$1" != child ] || target=$(pgrep -P "$parent")
	explain -p "$target" -f json
	judge "cause: $1" - - "$2"
	target=$parent
	kill_target
}
cause pool 'cause == "live" and "live malloc blocks (" in text and " and anonymous memory" in text'
cause code 'cause == "code" and near(row("code"), 32 * MiB)'
cause memfd 'cause == "shared" and near(row("shared"), 32 * MiB)'
cause shared 'cause == "shared" and near(row("shared"), 32 * MiB)'
cause file 'cause == "files" and row("files") > 32 * MiB and "heaps.data" in text'
cause data 'cause == "data" and near(row("data"), 32 * MiB, 0.02)'
cause stacks 'cause == "stacks" and row("stacks") > 200 * 256 * 1024 and "200 threads have a stack" in text and j["dead_thread_stacks"] == 0'
cause ended 'cause == "dead_stacks" and "threads that have ended" in text and j["dead_thread_stacks"] == 4000 and "pthread_join" in text'
cause mmapped 'cause == "live" and "in 40 large blocks" in text'
cause child 'cause == "forked" and near(row("live"), 200000 * 208)'
if grep -qE '\[(always|madvise)\]' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null; then
	start "$bin/heaps" huge "$work/info.xml"
	explain -p "$target" -f json
	judge "huge pages" - - 'cause == "huge_pages" and near(j["huge_page_zero_bytes"], j["huge_page_bytes"], 0.03)'
	finish_target
fi
start "$bin/heaps" busy "$work/info.xml"
explain -p "$target" -f json
judge "busy: two threads allocate meanwhile" - - \
	'all(a["is_proved"] for a in arenas) and near(total("live_blocks"), 201024, 0.005, 0) and
		near(total("live_bytes"), 200000 * 208 + 1024 * 1531, 0.02, 0) and abs(row("moved")) <= 0.02 * rss'
finish_target
# What it costs is the reader's CPU time, 5 times of that of a quiet heap at most: it never follows chunks for ever.
# cost HOW: in ms
cost() {
	start "$bin/heaps" "$1" "$work/info.xml"
	python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=open("'"$work/out"'", "w"), check=True, timeout=60)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(int((used.ru_utime + used.ru_stime) * 1000))' "$heaptap" explain -f json -p "$target" 2>"$work/err"
	status=$?
	finish_target
}
cost live >"$work/quiet"
cost rush >"$work/rush"
judge "two threads allocate 3,000,000 times a second" - - \
	'near(total("live_blocks"), 201024, 0.01, 0) and near(total("live_bytes"), 200000 * 208 + 1024 * 1531, 0.05, 0)'
read -r quiet <"$work/quiet" && read -r rush <"$work/rush" && [ "$rush" -le $((5 * quiet)) ] &&
	ok "... and are read in $rush ms of CPU time, a quiet heap in $quiet ms" || not_ok "... and are read in time" "$rush ms, quiet $quiet ms"
start "$bin/heaps" leak "$work/info.xml"
for i in 1 2 3 4 5 6 7 8; do
	explain -p "$target" -f json
	judge "a heap that grows by 1 MB a second: $i" - - 'arenas[0]["is_proved"] and row("live") >= 200000 * 208'
done
finish_target
preload=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)
if [ -n "$preload" ]; then
	start env LD_PRELOAD="$preload" "$bin/heaps" live "$work/info.xml"
	explain -p "$target" -f json
	judge "jemalloc is not called glibc's" - - 'row("live") + row("trimmable") + row("pinned") < MiB and row("jemalloc_live") > 40 * MiB'
	finish_target
else
	skip "jemalloc is not called glibc's" "no jemalloc"
fi
# Of these two no heap is read: their memory stays with its mappings, and the text names them.
for name in mimalloc tcmalloc_minimal; do
	preload=$(ls /usr/lib/*/lib$name.so.[24] 2>/dev/null | head -n 1)
	[ -n "$preload" ] || { skip "$name: by mapping" "not installed"; continue; }
	start env LD_PRELOAD="$preload" "$bin/heaps" live "$work/info.xml"
	explain -p "$target" -f json
	judge "$name: by mapping" - - 'row("live") + row("trimmable") + row("pinned") < MiB and row("anonymous") + row("brk") > 40 * MiB'
	explain -p "$target"
	tr -s ' \n' ' ' <"$work/out" | grep -q "lib$name[^ ]* is loaded. heaptap does not read its heap" && ok "$name: said" ||
		not_ok "$name: said" "status $status" "$work/out" "$work/err"
	finish_target
done
OUT=heaps_static build_c heaps -static && {
	start "$bin/heaps_static" live "$work/info.xml"
	explain -p "$target" -f json
	judge "a static executable" - - 'cause == "live" and 200000 <= total("live_blocks") <= 200010'
	finish_target
}

# A file system that does not answer: its files are not looked at. It is of another user, as the process is.
# mute NAME PROGRAM HOW EXPRESSION
mute() {
	local folder=$work/fuse-$2
	mkdir "$folder"
	mkfifo "$folder.in"
	"$bin/mute_fuse" "$folder" "$bin/$2" <"$folder.in" >"$folder.out" 2>&1 &
	owned fuse
	exec {fuse_in}>"$folder.in"
	await 10 says "$folder.out" '^READY' || { not_ok "$1" "no file system" "$folder.out"; return; }
	start setpriv --reuid=65534 --regid=65534 --clear-groups "$folder/file" "$3" /dev/null
	echo "mute all" >&"$fuse_in"
	await 10 says "$folder.out" '^DONE'
	timeout -k 5 20 "$heaptap" explain -p "$target" -f json 2>"$work/err" </dev/null | cat >"$work/out"
	status=${PIPESTATUS[0]}
	judge "$1" - - "$4"
	echo speak >&"$fuse_in"
	finish_target
	exec {fuse_in}>&-
	await 10 is_gone "$fuse"
}
if [ -e /dev/fuse ] && have setpriv && build_c mute_fuse; then
	mute "a mute executable" heaps live 'cause == "live" and 200000 <= total("live_blocks") <= 200003'
	# of which the file's symbols would be wanted
	OUT=classes_nortti build_cxx classes -fno-rtti && mute "a mute executable with classes" classes_nortti held \
		'cause == "live" and total("live_blocks") > 65000 and not [c for c in j["classes"] if "shop" in c["name"]]'
else
	skip "a mute executable" "no /dev/fuse, or no setpriv"
fi

# Memory that is in no row, and does not come back by being read.
hugetlb=/proc/sys/vm/nr_hugepages
if grep -q '^Hugepagesize: *2048 ' /proc/meminfo && read -r had <$hugetlb && echo $((had + 2)) 2>/dev/null >$hugetlb; then
	[ "$(cat $hugetlb)" = $((had + 2)) ] && planted hugetlb 'j["hugetlb_bytes"] == 4 * MiB and near(row("live"), 200000 * 208)' ||
		skip hugetlb "no memory for two huge pages"
	echo "$had" >$hugetlb
else
	skip hugetlb "no huge pages can be had"
fi
# It gets a device for it, so only in the long form.
swap_device=
if [ "$(wc -l </proc/swaps)" = 1 ] && [ -n "${TESTS_WHOLE:-}" ]; then
	truncate -s 256M "$work/swap" && swap_device=$(losetup -f --show "$work/swap" 2>/dev/null) && mkswap "$swap_device" >/dev/null && swapon "$swap_device"
fi
if [ "$(wc -l </proc/swaps)" -gt 1 ]; then
	start "$bin/heaps" swapped /dev/null
	footprint "$target" >"$work/before"
	explain -p "$target" -f json
	footprint "$target" >"$work/after"
	judge swapped - - 'cause == "swapped" and j["swap_bytes"] > 40 * MiB and "swapped out" in text'
	grep -q '^VmSwap:[[:space:]]*[1-9]' "$work/before" && cmp -s "$work/before" "$work/after" && ok "swapped: the process is as it was" ||
		not_ok "swapped: the process is as it was" "$(diff "$work/before" "$work/after" | xargs)"
	kill_target
else
	skip swapped "there is no swap"
fi
[ -z "$swap_device" ] || { swapoff "$swap_device"; losetup -d "$swap_device"; }

# A JVM that starts maps and unmaps all the time: none makes the reader fail. TESTS_WHOLE=1: 500 of them.
starts=5 seen=0 failed=
[ -z "${TESTS_WHOLE:-}" ] || starts=500
if have java; then
	for ((i = 0; i < starts; i++)); do
		java -Xmx64m -Xshare:off -version >/dev/null 2>&1 &
		target=$!
		sleep 0.0$((RANDOM % 10))
		explain -p "$target" -f json
		if [ $status = 0 ] && said=$(python3 "$work/judge.py" "$work/out" - - True - - 2>&1); then
			seen=$((seen + 1))
		elif [ $status != 1 ] || ! grep -qE 'has (just )?ended|no process|ended, or executed' "$work/err"; then
			failed="$failed; status $status: ${said:-} $(tail -n 1 "$work/err")"
		fi
		wait "$target"
	done
	[ -z "$failed" ] && [ $seen -gt 0 ] && ok "$starts JVMs that start: $seen read, the others had ended" ||
		not_ok "$starts JVMs that start" "$seen read$failed"
else
	skip "JVMs that start" "no java"
fi

# A GiB of small blocks: what it costs
start "$bin/heaps" many "$work/info.xml" || await 60 says "$work/target.out" ^READY
said=$(python3 -c '
import json, resource, subprocess, sys
out = subprocess.run(sys.argv[1:], capture_output=True, check=True).stdout
blocks, used = json.loads(out)["glibc"]["arenas"][0]["live_blocks"], resource.getrusage(resource.RUSAGE_CHILDREN)
print(blocks, "blocks,", used.ru_utime + used.ru_stime, "s of CPU,", used.ru_maxrss, "KiB")
sys.exit(blocks < 16777216 or used.ru_utime + used.ru_stime > 1.5 or used.ru_maxrss > 16 << 10)' \
	timeout 60 "$heaptap" explain -f json -p "$target" 2>&1) && ok "a GiB of small blocks: $said" || not_ok "a GiB of small blocks" "$said"
finish_target

# The process's own mmap() does not wait for the reading: 99 of 100 take less than 1 ms. One of three tries is enough, for other
# programs make it wait, too; if it waits as long while nobody reads, that is not known.
# p99 COMMAND...: of the times while it runs, in ns, in $said
p99() {
	step begin
	"$@" >/dev/null 2>&1
	step end
	said=$(sed -n 's/^DONE \([0-9]\+\) .*/\1/p' "$work/target.out" | tail -n 1)
}
build_c map_times -pthread && start "$bin/map_times" && {
	idle=999999999 least=999999999
	for i in 1 2 3; do
		p99 sleep 0.5
		[ "${said:-$idle}" -lt $idle ] && idle=$said
		p99 timeout 60 "$heaptap" explain -f json -p "$target"
		[ "${said:-$least}" -lt $least ] && least=$said
		[ $idle -le 500000 ] && [ $least -lt 1000000 ] && break
	done
	said="of 100 mmap() and munmap() 99 take $least ns, $idle ns while nobody reads"
	if [ $idle -gt 500000 ]; then
		skip "the process maps while it is read" "the machine is too busy: $said"
	elif [ $least -lt 1000000 ]; then
		ok "the process maps while it is read: $said"
	else
		not_ok "the process maps while it is read" "$said"
	fi
	kill_target
}

# The text: the verdict before the rows, on a screen
start "$bin/heaps" arenas "$work/info.xml"
explain -p "$target"
[ $status = 0 ] && [ "$(grep -c '' "$work/out")" -le 24 ] && [ "$(awk '{ if (length > n) n = length } END { print n }' "$work/out")" -le 100 ] &&
	head -n 1 "$work/out" | grep -q "^heaps (PID $target): .* resident$" && sed -n 2p "$work/out" | grep -q 'over 37 malloc arenas' &&
	grep -q '38 of 38 arenas read and verified' "$work/out" && ok "text: fits a screen" || not_ok "text: fits a screen" "status $status" "$work/out" "$work/err"
explain -v -p "$target"
[ $status = 0 ] && [ "$(grep -cE '^0x[0-9a-f]+ ' "$work/out")" = 38 ] && ok "-v: every arena" || not_ok "-v: every arena" "status $status" "$work/out"
finish_target

# Of what was planted above
sort -u -t $'\t' -k 1,1 "$work/causes" >"$work/each"
all=$(grep -c '' "$work/each") right=$(grep -c 'right$' "$work/each")
[ "$right" -ge 18 ] && [ $((right * 10)) -ge $((all * 9)) ] && ok "the cause of $right of $all planted ones is right" ||
	not_ok "the cause of planted ones" "$right of $all, and 18 of 20 are wanted" "$work/each"

# html: one page that fetches nothing, in which names are text
cp "$bin/heaps" "$work/<b>ld&\""
start "$work/<b>ld&\"" live "$work/info.xml"
explain -f html --pins -p "$target"
cat >"$work/page.py" <<'EOP'
import html.parser, sys
class Page(html.parser.HTMLParser):
    stack, tags, text, bad = [], [], {}, []
    void = {"meta", "i"}
    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if {"src", "href", "onload"} & {name for name, value in attrs} or tag in ("script", "link", "img", "b"):
            self.bad.append(self.get_starttag_text())
        self.stack.append(tag)
    def handle_data(self, data):
        self.text[self.stack[-1] if self.stack else ""] = self.text.get(self.stack[-1] if self.stack else "", "") + data
    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass
page = Page()
page.feed(open(sys.argv[1]).read())
rows = page.tags.count("tr")
ok = not page.bad and '<b>ld&"' in page.text["h1"] and "Mostly live malloc blocks" in page.text["h2"] and rows > 5 and "pre" in page.tags
print(page.bad, rows, page.text.get("h1"), page.text.get("h2"))
sys.exit(not ok)
EOP
said=$(python3 "$work/page.py" "$work/out" 2>&1) && [ $status = 0 ] && grep -q 'class="r-live" style="flex-grow:0\.[0-9]*" title="malloc: live blocks: ' "$work/out" &&
	grep -q '<td class="name">total (RSS)' "$work/out" && grep -q 'arenas read and verified' "$work/out" && ! grep -qE 'https?://|@import|url\(' "$work/out" &&
	ok "html: one page" || not_ok "html: one page" "status $status, $said" "$work/err"
finish_target

# fails NAME STATUS PATTERN ARGS...
fails() {
	local name=$1 want=$2 pattern=$3
	shift 3
	explain "$@"
	[ $status = "$want" ] && [ ! -s "$work/out" ] && grep -qE -- "$pattern" "$work/err" && ok "$name" ||
		not_ok "$name" "status $status" "$work/err" "$work/out"
}
fails "no process" 1 'there is no process 4000000' -p 4000000
fails "a kernel thread" 1 'is a kernel thread' -p "$(pgrep -o kthreadd || echo 2)"
fails "no -p" 2 'use -p PID'
fails "-p 0" 2 "'0' is not a process ID" -p 0
fails "-p -1" 2 "'-1' is not a process ID" -p -1
fails "-p 1,2" 2 "'1,2' means 2 processes; give one: -p 1, 2" -p 1,2
fails "a process without -p" 2 "unexpected argument '1'" 1
fails "another format" 2 "format" -p 1 -f xml
if have setpriv; then
	install -m 755 "$heaptap" "$work/heaptap-nobody"
	timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups "$work/heaptap-nobody" explain -p $$ >"$work/out" 2>"$work/err"
	[ $? = 1 ] && grep -q 'run heaptap as root' "$work/err" && ok "of another user: says what is missing" ||
		not_ok "of another user" "" "$work/err" "$work/out"
fi
e2e_end
