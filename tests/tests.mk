# The tests. `make check` is everything but other kernels and long fuzzing; each layer has a target, and
# T= names single tests. `make quick` is what to run between two changes.
#
# Three builds of the library: $(B) plain (bpf, e2e: they measure and compare the real thing),
# $(B)-san with ASan and UBSan (unit, golden), $(B)-fuzz with libFuzzer's instrumentation. The
# generated headers are made once, in $(B).

# The longest first, so that the end is not one test's. Those that wait for servers, compilers and limits of time most of
# theirs run beside recordings in `make check`.
UNIT_SLEEPY := $(patsubst %,$(B)-san/tests/unit/test_%,symbolizer push_queue)
UNIT_LONG := $(UNIT_SLEEPY) $(patsubst %,$(B)-san/tests/unit/test_%,elf_cost growth stack_past)
UNIT := $(UNIT_LONG) $(filter-out $(UNIT_LONG),$(patsubst tests/%.c,$(B)-san/tests/%,$(wildcard tests/unit/test_*.c)))
GOLDEN := $(patsubst tests/%.c,$(B)-san/tests/%,$(wildcard tests/golden/test_*.c))
BPF_TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/bpf/test_*.c))
E2E_C := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/e2e/test_*.c))
E2E := $(sort $(filter-out tests/e2e/test_tap_torture.sh,$(wildcard tests/e2e/test_*.sh))) $(E2E_C)
# What measures overhead, or takes every processor for a while, or looks for probes that nobody else may have in, runs
# alone. What has a bound for an answer, for attaching, or for what is put back, runs beside a few others: one more at a
# time than there are processors, as most of them wait for half of theirs. Those that record with --follow (budget, hold_cost)
# stand at the beginning, because that probes all processes, and are over when one begins that looks whether a process has
# no probe (serve, mute, hostile); of first_minute these are over.
# The others run beside each other: a recording counts the same whoever else is recorded
# (test_two_recorders.sh), and one that fails beside others is run again alone. Longest first here as well.
E2E_ALONE := $(filter $(patsubst %,tests/e2e/test_%.sh,loads siege),$(E2E))
# test_kill reads in the kernel's log whether a guardian failed: it is over when test_tap, which kills guardians, begins.
# test_serve_ways has a server that probes every process for a while: none of its neighbours looks for probes or measures
# them. Those that do are over when test_serve_ways begins.
# test_tap_hostile kills guardians as well. test_tap_torture wants all processors for a minute: `make torture` runs it.
# In an order in which one or two of those that run at a time compute, and the others wait.
E2E_FEW := $(patsubst %,tests/e2e/test_%.sh,budget hold_cost kill attach_time soak tap tap_harm serve tap_guest mute hostile \
	tap_eintr tap_hostile budget_serve first_minute slow_names endless metrics serve_ways)
E2E_LONG := $(patsubst %,tests/e2e/test_%.sh,unexplained mapped_late exec_hold wrapper launch fork tap_auto costly_files serve_http \
	growth output check jit serve_select whom sampler scopes stable serve_pages serve_rows resident_rows exact_cxx scope_links \
	explain explain_classes statistics unwind foreign_tags dlopen tap_truth two_recorders huge diff_served shared_memory \
	languages top doctor serve_past exact_threads scope_rust exec scope_matrix serve_keep)
E2E_BESIDE := $(E2E_LONG) $(filter-out $(E2E_ALONE) $(E2E_FEW) $(E2E_LONG),$(E2E))
BPF_ALONE := $(B)/tests/bpf/test_races
BPF_BESIDE := $(filter-out $(BPF_ALONE),$(BPF_TESTS))
# One of these after one of those: a test of the BPF object hardly computes, it waits for the kernel.
mixed = $(subst |, ,$(join $(addsuffix |,$1),$2))
# Long forms of what `make check` does shortly, and the variables that make them long.
TORTURE := $(patsubst %,tests/e2e/test_%.sh,check costly_files exec_hold hostile kill loads mute siege statistics \
	tap_eintr tap_guest tap_harm tap_hostile tap_torture tap_truth wrapper) tests/consumers/slow_samplers.sh tests/scope/test_rust.sh
TORTURE_ENV := E2E_CHECKS=100 E2E_CHECKS_BESIDE=8 E2E_CHECK_SECONDS=30 E2E_COSTLY_SECONDS=10 E2E_HOLDS=30 E2E_HOSTILE=30 \
	E2E_KILLS=300 E2E_KILLS_BOTH=100 E2E_LOADS=50 E2E_MUTE_SECONDS=10 E2E_SIEGE_SECONDS=3600 E2E_RUNS=100 E2E_TAPS=300 \
	E2E_TAP_TOGGLES=10000 E2E_TAP_KILLS=200 E2E_TAP_RUNS=30 E2E_TAP_STOPS=50 E2E_WRAPPERS=1 \
	E2E_SECONDS=3600 E2E_STOPS=10000 E2E_TRIES=20 TESTS_WHOLE=1
PACKAGING := $(sort $(wildcard tests/packaging/test_*.sh))
CONSUMERS := $(sort $(wildcard tests/consumers/test_*.sh))
CONSUMERS_LONG := $(filter %/test_push.sh %/test_debuginfo.sh,$(CONSUMERS))
# scope.h, without heaptap: what programs publish, seen as a reader would.
SCOPE_C := $(patsubst tests/%.c,$(B)-san/tests/%,$(wildcard tests/scope/test_*.c))
SCOPE := $(SCOPE_C) $(sort $(wildcard tests/scope/test_*.sh))
FUZZ := $(patsubst tests/%.c,$(B)-fuzz/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
# The recordings of `make quick`: real ones, done in seconds.
QUICK_E2E := tests/e2e/test_exact_c.sh
STATIC := tools/check-layers tools/check-format tools/check-manuals tools/check-docs tools/check-words
# How long one parser is fuzzed by `make fuzz`.
FUZZ_SECONDS ?= 300

# As many at a time as there are processors, unless make was told how many.
JOBS := $(shell nproc 2>/dev/null || echo 2)
BUILD_JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))
# Of recordings four more: more than half of the time of one is waiting for the kernel, and programs that show something rest.
# Unit tests are one more than processors: those that measure do so in processor time.
TEST_JOBS := $(shell echo $$(($(JOBS) < 3 ? $(JOBS) + 4 : 6)))
UNIT_JOBS := $(shell echo $$(($(JOBS) + 1)))
# Those of E2E_FEW.
FEW_JOBS := $(shell echo $$(($(JOBS) < 3 ? $(JOBS) + 1 : 4)))
# What does not measure time runs beside each other (tests/run).
SCOPE_TIMED := tests/scope/test_cost.sh tests/scope/test_rust_cost.sh
SCOPE_UNTIMED := $(filter-out $(SCOPE_TIMED),$(SCOPE))
# What only computes, for a minute and a half, and has no bound of time: beside recordings, which mostly wait. test_rust builds
# first what other tests of the crate want.
IDLE := $(patsubst %,tests/scope/test_%.sh,rust languages matrix) $(patsubst %,$(B)-san/tests/unit/test_%,growth stack_past)
# libFuzzer brings its own main(); the library's objects must not.
FUZZ_SAN := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined

.PHONY: generated check check-all check-named quick check-static check-unit check-golden check-scope check-bpf check-e2e check-consumers \
	check-servers siblings check-fuzz torture fuzz lint format tests-san tests-plain tests-fuzz tests-rust

SAN_MAKE = $(SUB_MAKE) $(BUILD_JOBS) SAN=1 B=$(B)-san G=$(G)
# -O1 takes three times as long to compile, which pays for inputs by the
# million (`make fuzz`), not for the few thousand of `make check`.
FUZZ_O := -O0
FUZZ_MAKE = $(SUB_MAKE) $(BUILD_JOBS) CC=$(CLANG) B=$(B)-fuzz G=$(G) CFLAGS='$(FUZZ_O) -g1' SANFLAGS='$(FUZZ_SAN)'

ifneq ($(strip $(T)),)
# Found by tests/run, then built and run by a sub-make that gets their sources as NAMED.
check:
	@tools/setup.sh check
	+@named=$$(tests/run --which '$(T)') && \
		$(MAKE) --no-print-directory $(BUILD_JOBS) check-named NAMED="$$(echo $$named)"
else
# One run of tests/run, so that one line of counts covers everything.
check: ## set up, build, all tests but other kernels and long fuzzing; T=unit/test_estimate: that one
	@tools/setup.sh demo check
	$(SUB_MAKE) $(BUILD_JOBS) tests-rust all tests-san tests-plain tests-fuzz
	@tests/run -j$(UNIT_JOBS) $(STATIC) $(filter-out $(IDLE) $(UNIT_SLEEPY),$(SCOPE_UNTIMED) $(UNIT)) $(GOLDEN) $(FUZZ) \
		--idle $(IDLE) -j$(TEST_JOBS) --twice $(UNIT_SLEEPY) $(CONSUMERS_LONG) $(call mixed,$(E2E_BESIDE),$(BPF_BESIDE)) \
		$(filter-out $(CONSUMERS_LONG),$(CONSUMERS)) $(PACKAGING) \
		-j$(FEW_JOBS) --twice $(E2E_FEW) -j1 --twice $(SCOPE_TIMED) $(BPF_ALONE) $(E2E_ALONE)
endif

# A program under a sanitizer needs the library under that sanitizer and the generated headers; what
# records needs ./heaptap.
NAMED_SAN := $(patsubst tests/%.c,$(B)-san/tests/%,$(filter $(addprefix tests/,unit/%.c golden/%.c scope/%.c),$(NAMED)))
NAMED_FUZZ := $(patsubst tests/%.c,$(B)-fuzz/tests/%,$(filter tests/fuzz/%.c,$(NAMED)))
NAMED_PLAIN := $(patsubst tests/%.c,$(B)/tests/%,$(filter tests/bpf/%.c tests/e2e/%.c,$(NAMED)))
NAMED_ALL := $(NAMED_PLAIN) $(filter %.sh,$(NAMED))
NAMED_BESIDE := $(filter $(E2E_BESIDE) $(BPF_BESIDE),$(NAMED_ALL))
check-named: $(NAMED_PLAIN) $(if $(NAMED_SAN)$(NAMED_FUZZ),$(GEN)) \
		$(if $(filter-out tests/scope/%,$(NAMED_ALL)),all) \
		$(if $(filter %/test_soak.sh %/test_tools.sh,$(NAMED_ALL)),soak-programs)
	$(if $(NAMED_SAN),$(SAN_MAKE) $(NAMED_SAN))
	$(if $(NAMED_FUZZ),$(FUZZ_MAKE) $(NAMED_FUZZ))
	@tests/run -j$(JOBS) $(NAMED_SAN) $(NAMED_FUZZ) -j$(TEST_JOBS) $(NAMED_BESIDE) \
		-j1 $(filter-out $(NAMED_BESIDE),$(NAMED_ALL))

quick: ## static, unit, golden, some recordings (root): under a minute when built; installs nothing
	$(SUB_MAKE) $(BUILD_JOBS) all
	$(SAN_MAKE) $(UNIT) $(GOLDEN)
	@tests/run -j$(FEW_JOBS) $(UNIT_LONG) $(STATIC) $(filter-out $(UNIT_LONG),$(UNIT)) $(GOLDEN) -j1 $(QUICK_E2E)

# Each part says its own counts; all are run, whichever fails.
check-all: ## everything: check, check-dist, the long forms, 30 s of fuzzing each, other kernels if qemu is there (root, hours)
	@tools/setup.sh demo check kernels dist rpm packaging check-dist
	+@failed=; for part in 'check TESTS_WHOLE=1' check-dist torture 'fuzz FUZZ_SECONDS=30' \
		$$(command -v qemu-system-x86_64 >/dev/null && echo check-kernels); do \
		echo "== make $$part"; \
		$(MAKE) --no-print-directory $$part || failed="$$failed $${part%% *}"; \
	done; \
	[ -z "$$failed" ] || { echo "check-all: failed:$$failed" >&2; exit 1; }

check-static: ## who includes whom, format, manual pages, documents, words
	@tests/run $(STATIC)
check-unit: ## pure modules, under ASan and UBSan
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) tests-san
	@tests/run -j$(JOBS) $(UNIT)
check-golden: ## known inputs, known profiles
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) tests-san
	@tests/run -j$(JOBS) $(GOLDEN)
check-scope: ## scope.h under all compilers, linkers and ways to link
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) tests-san
	@tests/run -j$(JOBS) $(SCOPE_UNTIMED) -j1 $(SCOPE_TIMED)
check-bpf: ## the BPF object in the kernel (root)
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) all tests-plain
	@tests/run -j$(TEST_JOBS) $(BPF_BESIDE) -j1 $(BPF_ALONE)
check-e2e: ## real recordings of planted programs (root)
	@tools/setup.sh demo check
	$(SUB_MAKE) $(BUILD_JOBS) all tests-plain
	@tests/run -j$(TEST_JOBS) $(E2E_BESIDE) -j$(FEW_JOBS) $(E2E_FEW) -j1 $(E2E_ALONE)
check-consumers: ## other people's readers of our profiles (root)
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) all
	@tests/run $(CONSUMERS)
torture: ## the long forms of some tests: hundreds of kills, of recordings (root, an hour)
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) all tests-plain
	@$(TORTURE_ENV) tests/run $(TORTURE)
siblings: ## libraries, runtimes and programs from PyPI, npm, crates.io, Debian (root, network, half an hour)
	@tools/setup.sh check siblings
	$(SUB_MAKE) $(BUILD_JOBS) all
	@tests/siblings/get_siblings $(B)/siblings
	@tests/run $(sort $(wildcard tests/siblings/test_*.sh))
check-servers: ## the real Parca and Pyroscope: PARCA=, PYROSCOPE=, PROFILECLI= their programs (root)
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) all
	@tests/run tests/consumers/slow_servers.sh
check-fuzz: ## every parser, a short fixed number of inputs
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) tests-fuzz
	@tests/run -j$(JOBS) $(FUZZ)
fuzz: ## every parser, FUZZ_SECONDS (300) each, from where the last run ended (.build-fuzz/corpus)
	@tools/setup.sh check
	$(SUB_MAKE) $(BUILD_JOBS) tests-fuzz FUZZ_O=-O1
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run -j$(JOBS) $(FUZZ); status=$$?; \
		echo "$$(find $(B)-fuzz/corpus -type f | wc -l) inputs are kept in $(B)-fuzz/corpus," \
			"what failed in $(B)-fuzz/found"; exit $$status

tests-san: $(GEN)
	$(SAN_MAKE) test-programs
tests-plain: $(BPF_TESTS) $(E2E_C) soak-programs
tests-fuzz: $(GEN)
ifneq ($(FUZZ),)
	$(FUZZ_MAKE) fuzz-programs
endif

# What cargo builds for the end-to-end tests, here because it can be built beside the rest (first, as
# it takes the longest); a test finds it up to date. Where cargo or a crate is missing, the test that wants it says so.
RUST_OUT := $(CURDIR)/$(B)/e2e
tests-rust:
	@mkdir -p $(RUST_OUT)
	@for build in 'rust/build' 'scope_tokio/build' \
		$(if $(TESTS_WHOLE),'rust_labels/build custom custom_labels_crate' 'rust_labels/build otel otel_crate'); do \
		MAKEFLAGS= bash tests/e2e/workloads/$$build $(RUST_OUT) >/dev/null 2>&1 || :; \
	done

# Of the sub-makes, whose B is that of their build.
.PHONY: test-programs fuzz-programs
test-programs: $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c \
	tests/golden/test_*.c tests/scope/test_*.c))
fuzz-programs: $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))

# Some two hundred programs are linked: lld needs a third of the time.
TEST_LD := $(if $(shell command -v ld.lld),-fuse-ld=lld)
# It compares its own table with and without sections: lld's .plt is known by its section only.
$(B)/tests/unit/test_unwind_table: TEST_LD :=
# What tests share that the program does not have.
$(B)/libtests.a: $(patsubst %.c,$(B)/%.o,$(wildcard tests/lib/*.c))
	@rm -f $@
	$(call say,AR,$@)
	$(Q)ar rcs $@ $^
$(B)/tests/lib/%.o: tests/lib/%.c $(B)/flags | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/fuzz/%: tests/fuzz/%.c $(B)/libtests.a $(B)/libheaptap.a $(B)/flags
	@mkdir -p $(@D)
	$(call say,TEST,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -MMD -MP -MF $@.d -o $@ $< $(B)/libtests.a $(B)/libheaptap.a $(TEST_LD) $(LIBS)

$(B)/tests/%: tests/%.c $(B)/libtests.a $(B)/libheaptap.a $(B)/flags
	@mkdir -p $(@D)
	$(call say,TEST,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(B)/libtests.a $(B)/libheaptap.a $(TEST_LD) -lcmocka $(LIBS) -pthread

-include $(wildcard $(B)/tests/*/*.d)

generated: $(GEN)

C_FILES := $(wildcard user/*.[ch] user/*/*.[ch] bpf/*.[ch] include/heaptap/*.h tests/*/*.[ch] \
	tests/*/*/*.[ch] tools/*/*.[ch])

.PHONY: lint-objects
lint-objects: $(OBJS) $(B)/user/main.o

format: ## apply .clang-format
	clang-format -i $(C_FILES)

# In a folder of its own, or the next plain make would build all of it again without -Werror.
lint: ## warnings of gcc (as errors), clang-tidy, cppcheck, clang-format, actionlint if Go is there
	@tools/setup.sh lint
	$(SUB_MAKE) $(BUILD_JOBS) WERROR=-Werror B=$(B)-lint lint-objects
	$(SUB_MAKE) generated
	clang-format --dry-run -Werror $(C_FILES)
	$(if $(shell command -v go),go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 .github/workflows/*.yml)
	@# It does not read what is generated, which the texts of pages are.
	cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr -D__x86_64__ -D_GNU_SOURCE \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		--suppress=internalAstError:user/report/report_html.c \
		--suppress=internalAstError:user/http/page_files.c \
		--library=tools/cppcheck.cfg -Iinclude -Iuser user
	@# One file each: with more, clang-tidy 14 takes a va_list of the second for uninitialized.
	printf '%s\n' $(SRCS) user/main.c | xargs -P 2 -I {} clang-tidy --quiet \
		--warnings-as-errors='*' {} -- -std=gnu11 -D_GNU_SOURCE \
		-DHEAPTAP_VERSION='"$(VERSION)"' -Iinclude -Iuser -I$(G)
