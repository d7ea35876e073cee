# The programs of tests/vm; included by the Makefile, or used alone: make -f tests/vm/vm.mk
B ?= .build
VM_WARN := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wvla -Werror

.PHONY: vm-programs check-kernels
vm-programs: $(B)/vm/bin/test_features

$(B)/vm/bin/test_features: tests/vm/test_features.c tools/bench/uprobe_link.c tools/bench/uprobe_link.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -D_GNU_SOURCE $(VM_WARN) -o $@ $(filter %.c,$^) -lbpf

check-kernels: vm-programs ## run the bpf and e2e tests on Debian's 6.1 and 6.12 kernels in qemu
	tests/vm/run
