# heaptap - build, test, install. `make help` lists the targets.

# make has a CC of its own (cc): one that somebody gave is obeyed, ?= would keep make's.
ifeq ($(origin CC),default)
CC := gcc
endif
CLANG   ?= clang
# Ubuntu's /usr/sbin/bpftool refuses to run beside any kernel but its own: prefer the real one.
BPFTOOL ?= $(firstword $(wildcard /usr/lib/linux-tools/*/bpftool /usr/sbin/bpftool \
	/usr/local/sbin/bpftool) bpftool)
PROTOC_C ?= protoc-c
PREFIX  ?= /usr/local
VERSION := 1.0.0

ARCH := $(shell uname -m | sed 's/aarch64/arm64/')
BPF_ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
B := .build
ifdef SAN
B := .build-san
# -O2 and -O1 take much longer to compile here, and what is found needs lines, no types. At -Og gcc sees less of
# what is set and what fits.
CFLAGS ?= -Og -g1 -Wno-format-truncation -Wno-maybe-uninitialized
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
# Generated files. Other builds of the same sources (tests/tests.mk) share them.
G := $(B)/gen

# A warning is an error where changes are taken (CI=true, make lint), not for whoever builds with a
# compiler that came later.
WERROR := $(if $(filter-out 0 false,$(CI)),-Werror)
WARN := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wvla $(WERROR)
CFLAGS ?= -O2 -g
OBJCOPY ?= objcopy
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) $(SANFLAGS) -D_GNU_SOURCE -DHEAPTAP_VERSION='"$(VERSION)"' \
	-Iinclude -Iuser -I$(G)
LIBS := -lbpf -ldw -lelf -lcapstone -lprotobuf-c -liberty -lcurl -llzma -lzstd -lz -lmicrohttpd -lncursesw -ltinfo -lm -pthread

SRCS := $(filter-out user/main.c,$(wildcard user/*.c user/*/*.c))
PROTOS := user/profile/profile.proto user/serve/parca.proto user/serve/pyroscope.proto \
	user/serve/debuginfo.proto
PROTO_NAMES := $(basename $(notdir $(PROTOS)))
OBJS := $(SRCS:%.c=$(B)/%.o) $(PROTO_NAMES:%=$(B)/%.pb-c.o)
BPF_OBJ := $(G)/heaptap.bpf.o
SKEL := $(G)/heaptap.skel.h
# Files that the program carries as text: C string literals.
TEXT_FILES := $(wildcard user/report/viewer.* user/http/*.css user/http/*.js)
TEXTS := $(addprefix $(G)/,$(addsuffix .h,$(notdir $(TEXT_FILES))))
TAP_STUB := $(G)/tap_stub.h
# What `heaptap version --licences` shows; the one executable has more in it (tools/dist/dist.mk).
LICENCES := LICENSE tools/dist/libraries.txt
GEN := $(SKEL) $(PROTO_NAMES:%=$(G)/%.pb-c.h) $(TEXTS) $(TAP_STUB) $(G)/licences.h

BPF_CC = $(CLANG) -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -Wall $(WERROR) \
	-Wno-unused-function -Iinclude -Ivmlinux/$(ARCH)

# One short line for each command; V=1 shows them whole.
ifeq ($(V),1)
Q :=
say =
else
Q := @
say = @printf '%-5s %s\n' $1 $2
endif

# What a folder was built with. The file changes when the words do, and all that depends on it is then
# built again: another CC, other CFLAGS, another VERSION.
BUILT_WITH := $(strip $(CC) $(ALL_CFLAGS) : $(LDFLAGS) $(LIBS))
BPF_BUILT_WITH := $(strip $(BPF_CC) : $(BPFTOOL))
write_words = @mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$1)' > $@
.PHONY: all help setup demo picture clean sampler FORCE
all: heaptap sampler ## build ./heaptap and the sampler; plain make does that

help: ## list the targets
	@echo "usage: make [TARGET]"
	@echo "First: 'make setup' as root, once; 'make' builds ./heaptap; 'make install'."
	@echo "CC=, CFLAGS=, LDFLAGS= are obeyed; V=1 shows whole commands; with CI=true warnings are errors."
	@echo "While working: 'make quick'; one test: 'make check T=unit/test_estimate' (globs, several)."
	@echo
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

ifneq ($(file <$(B)/flags),$(BUILT_WITH))
$(B)/flags: FORCE
endif
ifneq ($(file <$(G)/flags),$(BPF_BUILT_WITH))
$(G)/flags: FORCE
endif
$(B)/flags:
	$(call write_words,$(BUILT_WITH))
$(G)/flags:
	$(call write_words,$(BPF_BUILT_WITH))

heaptap: $(B)/heaptap
	@install -m 755 $< $@

$(B)/heaptap: $(B)/user/main.o $(B)/libheaptap.a $(B)/flags
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

$(B)/libheaptap.a: $(OBJS)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)ar rcs $@ $^

# The sampler that programs preload or link: nothing of heaptap's own in it, and no sanitizer, which has a malloc of its own.
SAMPLER := $(B)/libheaptap-sampler
SAMPLER_OBJS := $(B)/tools/sampler/sampler.o $(B)/tools/sampler/entries.o
SAMPLER_CFLAGS = -std=gnu11 -O2 -g $(WARN) -Iinclude -D_GNU_SOURCE -fPIC -fno-builtin -fexceptions \
	-fvisibility=hidden -fno-semantic-interposition

sampler: $(SAMPLER).so $(SAMPLER).a

$(SAMPLER_OBJS): $(B)/%.o: %.c tools/sampler/sampler.h include/heaptap/draw.h $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(SAMPLER_CFLAGS) -c -o $@ $<

$(SAMPLER).so: $(SAMPLER_OBJS)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-z,defs -Wl,-soname,$(@F) $(LDFLAGS) -o $@ $^

$(SAMPLER).a: $(SAMPLER_OBJS)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)ar rcs $@ $^

# Generated headers must exist before anything is compiled the first time; after that the
# dependency files know who includes them.
$(OBJS) $(B)/user/main.o: | $(GEN)

$(B)/user/%.o: user/%.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

vpath %.proto user/profile user/serve
$(G)/%.pb-c.h $(G)/%.pb-c.c &: %.proto
	@mkdir -p $(G)
	$(call say,PROTO,$<)
	$(Q)$(PROTOC_C) --proto_path=$(<D) --c_out=$(G) $(<F)

vpath %.html user/report
vpath %.css user/report:user/http
vpath %.js user/report:user/http
$(TEXTS): $(G)/%.h: %
	@mkdir -p $(G)
	@sed 's/[\\"]/\\&/g; s/^/"/; s/$$/\\n"/' $< >$@

# The part of the tap that runs in other processes: one flat piece that needs nothing, as bytes of a C array.
TAP_STUB_CFLAGS = -std=gnu11 -O2 $(WARN) -Iinclude -Iuser -ffreestanding -fPIC -fvisibility=hidden -mgeneral-regs-only \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fno-jump-tables -fcf-protection=none \
	-DTAP_HEADER_BYTES=18504
$(TAP_STUB): user/tap/stub/slow.c user/tap/stub/entry.S user/tap/tap_layout.h user/tap/stub/stub.ld \
		include/heaptap/abi.h include/heaptap/draw.h $(G)/flags
	@mkdir -p $(G)
	$(call say,TAP,$@)
	$(Q)$(CC) $(TAP_STUB_CFLAGS) -c -o $(G)/tap_slow.o user/tap/stub/slow.c
	$(Q)$(CC) $(TAP_STUB_CFLAGS) -c -o $(G)/tap_entry.o user/tap/stub/entry.S
	$(Q)$(LD) -T user/tap/stub/stub.ld -o $(G)/tap_stub.elf $(G)/tap_entry.o $(G)/tap_slow.o \
		$$($(CC) -print-libgcc-file-name)
	$(Q)$(OBJCOPY) -O binary -j .stub $(G)/tap_stub.elf $(G)/tap_stub.bin
	@od -An -v -tx1 $(G)/tap_stub.bin | sed 's/ \(..\)/0x\1,/g' >$@

# Packed: the texts of all libraries are half a megabyte.
$(G)/licences.h: $(LICENCES)
	@mkdir -p $(G)
	@{ echo 'static const uint8_t licences_gz[] = {'; cat $^ | gzip -9n | od -An -v -tu1 | \
		sed -E 's/ *([0-9]+)/\1,/g'; echo '};'; } >$@.tmp && mv $@.tmp $@

$(B)/%.pb-c.o: $(G)/%.pb-c.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 $(CFLAGS) $(SANFLAGS) -I$(G) -c -o $@ $<

$(BPF_OBJ): bpf/heaptap.bpf.c $(wildcard bpf/*.bpf.h) include/heaptap/abi.h include/heaptap/variance.h \
		$(G)/flags
	@mkdir -p $(@D)
	$(call say,BPF,$<)
	$(Q)$(BPF_CC) -c -o $@.tmp $<
	$(Q)$(BPFTOOL) gen object $@ $@.tmp
	@rm -f $@.tmp

$(SKEL): $(BPF_OBJ)
	@mkdir -p $(@D)
	$(call say,SKEL,$@)
	@echo '/* NOLINTBEGIN : generated */' > $@.tmp
	$(Q)$(BPFTOOL) gen skeleton $< name heaptap_bpf >> $@.tmp
	@echo '/* NOLINTEND */' >> $@.tmp
	@mv $@.tmp $@

setup: ## install what the build needs (Debian, Ubuntu, Fedora; root)
	@tools/setup.sh build

# What is for more than the program itself installs what it needs, then builds: in sub-makes, because
# what is found and generated depends on what set-up just installed.
SUB_MAKE = +@$(MAKE) --no-print-directory

demo: ## set up, build, record a real program, show the top, leave demo.pb.gz (root)
	@tools/setup.sh demo
	$(SUB_MAKE) all
	@tools/demo.sh

picture: ## .github/page.png, the page of a process that README.md shows (root)
	@tools/setup.sh demo check
	$(SUB_MAKE) all
	@tools/demo.sh picture

clean: ## remove everything that was built
	rm -rf .build .build-* heaptap

-include $(OBJS:.o=.d) $(B)/user/main.d
include tests/tests.mk
include tests/vm/vm.mk
include tools/bench/bench.mk
include tools/dist/dist.mk
include tools/packaging/packaging.mk
include tools/soak/soak.mk
