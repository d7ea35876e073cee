# The benchmark and its programs. Included by the Makefile; alone it is
# make -f tools/bench/bench.mk bench
ifndef BENCH_MK
BENCH_MK := 1
ifndef VERSION
include Makefile
endif

BENCH_CFLAGS = -std=gnu11 -O2 -g -D_GNU_SOURCE -fno-builtin $(WARN)
BENCH_TARGETS := $(addprefix $(B)/bench/,pairloop calibrate scopeloop scopeloop_plain \
	scope_cost user_read busy)
# Parts of the profiler by themselves: they link with it.
BENCH_PARTS := $(patsubst tools/bench/bench_%.c,$(B)/bench/bench_%,$(wildcard tools/bench/bench_*.c))

.PHONY: bench bench-programs
bench: ## what profiling costs, beside other profilers (10 minutes)
	@tools/setup.sh build bench
	$(SUB_MAKE) heaptap sampler bench-programs
	tools/bench/run

bench-programs: $(BENCH_TARGETS) $(BENCH_PARTS)

$(B)/bench/pairloop: tools/bench/pairloop.c
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $< -pthread

$(B)/bench/busy: tests/e2e/workloads/busy.c
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $< -pthread

$(B)/bench/scopeloop: tools/bench/scopeloop.c include/heaptap/scope.h
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -Iinclude -o $@ $<

# The same code to the byte, but nobody can know of its scopes.
$(B)/bench/scopeloop_plain: $(B)/bench/scopeloop
	objcopy --remove-section=.note.stapsdt $< $@

$(B)/bench/scope_cost: tools/bench/scope_cost.c include/heaptap/scope.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -D_GNU_SOURCE $(WARN) -Iinclude -o $@ $<

$(B)/bench/user_read: tools/bench/user_read.c
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $< -lbpf

$(B)/bench/calibrate: tools/bench/calibrate.c tools/bench/uprobe_link.c tools/bench/uprobe_link.h
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $(filter %.c,$^) -lbpf

$(B)/bench/bench_event_floor: tools/bench/uprobe_link.c

$(B)/bench/bench_%: tools/bench/bench_%.c $(B)/libheaptap.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter-out %.a,$^) $(B)/libheaptap.a $(LIBS)
endif
