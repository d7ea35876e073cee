# The programs of tests/vm. Included by the Makefile; alone it is
# make -f tests/vm/vm.mk check-kernels
ifndef VM_MK
VM_MK := 1
ifndef VERSION
include Makefile
endif

.PHONY: vm-programs check-kernels
vm-programs: $(B)/vm/bin/test_features

$(B)/vm/bin/test_features: tests/vm/test_features.c \
		tools/bench/uprobe_link.c tools/bench/uprobe_link.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -D_GNU_SOURCE $(WARN) -o $@ $(filter %.c,$^) -lbpf

check-kernels: ## the bpf and e2e tests on Debian's 6.1 and 6.12 kernels in qemu
	@tools/setup.sh check kernels
	$(SUB_MAKE) heaptap vm-programs
	tests/vm/run
endif
