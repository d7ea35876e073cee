# SPDX-License-Identifier: MIT
# lib.sh - a kernel of Debian's in a machine of its own, and what is told from in there. Sourced, with
# these set: $work (a folder), $initramfs, $seconds and $boot_seconds (limits for one program and for
# the boot), $qemu_pid (empty; whoever sources this kills it at its end).
#
# What is told comes by the second serial port: TAP between lines "@@ kernel RELEASE up SECONDS",
# "@@ begin PROGRAM", "@@ end STATUS FROM TO PROGRAM", "@@ done SECONDS".

vmlinuz_of() { # DEB
	local image=$work/boot/vmlinuz-$(basename "$1" .deb)
	if [[ ! -s $image ]]; then
		dpkg-deb --fsys-tarfile "$1" | tar -xO --wildcards './boot/vmlinuz-*' >"$image.tmp"
		mv "$image.tmp" "$image"
	fi
	echo "$image"
}

boot() { # VMLINUZ SERIAL CONSOLE: returns when the machine is off, or was switched off
	local deadline=$((SECONDS + boot_seconds)) seen=0 size
	# One thread for all CPUs: with one each, a CPU may still run the breakpoint that another one
	# has just taken out of the kernel's own text (static keys), and 6.12 died of it.
	local accel=${VM_ACCEL:-tcg,thread=single} cpu=max
	[[ $accel == kvm ]] && cpu=host
	: >"$2"
	qemu-system-x86_64 -accel "$accel" -cpu "$cpu" -smp "${VM_CPUS:-2}" -m "${VM_MEMORY:-3072}" \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$1" -initrd "$initramfs" \
		-append "console=ttyS0 quiet loglevel=5 panic=-1 mitigations=off tsc=unstable nmi_watchdog=0" \
		-serial "file:$3" -serial "file:$2" </dev/null >"$3.qemu" 2>&1 &
	qemu_pid=$!
	# The clock starts again with every program that ends.
	while kill -0 "$qemu_pid" 2>/dev/null; do
		size=$(grep -c '^@@' "$2" || true)
		if (( size > seen )); then
			seen=$size
			deadline=$((SECONDS + seconds + 30))
		fi
		if (( SECONDS > deadline )); then
			kill "$qemu_pid" 2>/dev/null || true
			break
		fi
		sleep 0.2
	done
	wait "$qemu_pid" 2>/dev/null || true
	qemu_pid=
}

# Turns the second serial port's text into TAP lines "ok - KERNEL: program: test".
report() { # NAME SERIAL CONSOLE
	awk -v kernel="$1" -v limit="$seconds" '
	function line(good, name, why) {
		printf "%s - %s: %s%s\n", good ? "ok" : "not ok", kernel, name, why
	}
	{ sub(/\r$/, "") }
	/^@@ kernel / { kernel = $3; up = $5; next }
	/^@@ begin / { program = $3; short = program; sub(/.*\//, "", short)
		tests = bad = 0; plan = -1; running = 1; next }
	/^@@ end / {
		running = 0
		seconds = $5 - $4
		if ($3 == 124 || $3 == 137 || $3 == 143)
			line(0, short, ": timeout after " limit " s or killed (status " $3 ")")
		else if (plan >= 0 && tests != plan)
			line(0, short, ": " tests " tests, but its plan says " plan)
		else if ($3 != 0 && !bad)
			line(0, short, ": exit status " $3)
		else if (!tests)
			line(1, short, "")
		printf "# %s: %s took %.1f s\n", kernel, short, seconds
		next
	}
	/^@@ done/ { finished = 1; next }
	/^1\.\.[0-9]+/ { plan = substr($1, 4) + 0; next }
	/^(not )?ok( |$)/ {
		good = $1 == "ok"
		sub(/^(not )?ok */, ""); sub(/^[0-9]+ */, ""); sub(/^- */, "")
		tests++
		if ($0 ~ /# (TODO|SKIP)/) good = 1 # cmocka says "not ok" for a skipped test
		if (!good) bad++
		line(good, short ": " $0, "")
		next
	}
	/^#/ { print "# " kernel ": " short ": " substr($0, 2); next }
	NF { print "#   " kernel ": " short ": " $0 }
	END {
		if (running) line(0, short, ": the machine died or hung in it")
		else if (!up) line(0, "boot", ": no sign of life")
		else if (!finished) line(0, "shutdown", ": the machine stopped before the end")
		else printf "# %s: booted in %s s\n", kernel, up
	}' "$2"
	local bad='WARNING: CPU|BUG:|Oops|Kernel panic|soft lockup|rcu.*stall|general protection'
	if grep -aqE "$bad" "$3"; then
		echo "not ok - $1: kernel log: $(grep -aE -m1 "$bad" "$3" | tr -d '\r')"
	elif grep -q '^@@ kernel' "$2"; then
		echo "ok - $1: the kernel's log is clean"
	fi
}
