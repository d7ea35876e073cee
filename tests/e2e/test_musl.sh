#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# musl: its malloc family, dynamic and static.
. "$(dirname "$0")/lib.sh"
e2e_init musl

was_built family-musl || have musl-gcc || skip_all "musl-gcc is not installed"
headers=-idirafter/usr/include
CC=musl-gcc OUT=family-musl build_c family $headers || { not_ok build "family.c with musl"; e2e_end; }
lossless "dynamic" -- "$bin/family-musl"
exact_launched "dynamic, started" -- "$bin/family-musl"
exact "dynamic, 8 threads" -- env E2E_THREADS=8 "$bin/family-musl"
CC=musl-gcc OUT=family-musl-static build_c family $headers -static &&
	exact "static" -- "$bin/family-musl-static"
no_losses "static: no losses"
CC=musl-gcc OUT=threads-musl-static build_c threads $headers -static &&
	exact "static, race" -- env E2E_MODE=race E2E_THREADS=4 "$bin/threads-musl-static"
CC=musl-gcc OUT=family-musl-static-pie build_c family $headers -static-pie &&
	exact "static-pie" -- "$bin/family-musl-static-pie"
e2e_end
