# The programs of tools/bench; included by the Makefile, or used alone: make -f tools/bench/bench.mk
B ?= .build
BENCH_WARN := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wvla -Werror
BENCH_CFLAGS := -std=gnu11 -O2 -g -D_GNU_SOURCE -fno-builtin $(BENCH_WARN)

.PHONY: bench bench-programs
bench-programs: $(B)/bench/pairloop $(B)/bench/calibrate $(B)/bench/timed

$(B)/bench/pairloop: tools/bench/pairloop.c
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $< -pthread

$(B)/bench/timed: tools/bench/timed.c
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $<

$(B)/bench/calibrate: tools/bench/calibrate.c tools/bench/uprobe_link.c tools/bench/uprobe_link.h
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $(filter %.c,$^) -lbpf
