# heaptap - build, test, install. `make help` lists the targets.

CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PROTOC_C ?= protoc-c
PREFIX  ?= /usr/local
VERSION := 0.1.0

ARCH := $(shell uname -m | sed 's/aarch64/arm64/')
BPF_ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
B := .build
ifdef SAN
B := .build-san
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif

WARN := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wvla -Werror
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) $(SANFLAGS) -D_GNU_SOURCE -DHEAPTAP_VERSION='"$(VERSION)"' \
	-Iinclude -Iuser -I$(B)/gen
LIBS := -lbpf -ldw -lelf -lcapstone -lprotobuf-c -liberty -llzma -lzstd -lz -lm

SRCS := $(filter-out user/main.c,$(wildcard user/*.c user/*/*.c))
OBJS := $(SRCS:%.c=$(B)/%.o) $(B)/gen/profile.pb-c.o
BPF_OBJ := $(B)/bpf/heaptap.bpf.o
SKEL := $(B)/gen/heaptap.skel.h
GEN := $(SKEL) $(B)/gen/profile.pb-c.h

.PHONY: all help setup demo check clean install
all: heaptap

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

heaptap: $(B)/heaptap
	@cp $< $@

$(B)/heaptap: $(B)/user/main.o $(B)/libheaptap.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libheaptap.a: $(OBJS)
	@rm -f $@
	ar rcs $@ $^

# Generated headers must exist before anything is compiled the first time; after that the
# dependency files know who includes them.
$(OBJS) $(B)/user/main.o: | $(GEN)

$(B)/user/%.o: user/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/gen/profile.pb-c.h $(B)/gen/profile.pb-c.c &: user/format/profile.proto
	@mkdir -p $(B)/gen
	$(PROTOC_C) --proto_path=user/format --c_out=$(B)/gen profile.proto

$(B)/gen/profile.pb-c.o: $(B)/gen/profile.pb-c.c
	$(CC) -std=gnu11 $(CFLAGS) $(SANFLAGS) -I$(B)/gen -c -o $@ $<

$(BPF_OBJ): bpf/heaptap.bpf.c $(wildcard bpf/*.bpf.h) include/heaptap/abi.h
	@mkdir -p $(@D)
	$(CLANG) -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -Wall -Werror \
		-Wno-unused-function -Iinclude -Ivmlinux/$(ARCH) -c -o $@.tmp $<
	$(BPFTOOL) gen object $@ $@.tmp
	@rm -f $@.tmp

$(SKEL): $(BPF_OBJ)
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< name heaptap_bpf > $@.tmp
	@mv $@.tmp $@

clean: ## remove everything that was built
	rm -rf .build .build-san heaptap

-include $(OBJS:.o=.d) $(B)/user/main.d
-include tests/tests.mk
