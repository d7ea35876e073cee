# The soak and the scale test. Included by the Makefile; alone it is
# make -f tools/soak/soak.mk soak
ifndef SOAK_MK
SOAK_MK := 1
ifndef VERSION
include Makefile
endif

SOAK_CFLAGS = -std=gnu11 -O1 -g -D_GNU_SOURCE $(WARN) -Iinclude
SOAK_PROGRAMS := $(addprefix $(B)/soak/,churn kernel_objects module.so past-of-many)

.PHONY: soak scale soak-programs
soak: ## SOAK_SECONDS (600) amid processes and libraries that come and go (root)
	@tools/setup.sh demo
	$(SUB_MAKE) heaptap soak-programs
	tools/soak/judge.py --test
	B=$(B) tools/soak/run

scale: ## 300 processes, 100 000 samples a second; the past of their stacks (root, 10 minutes)
	@tools/setup.sh demo
	$(SUB_MAKE) heaptap soak-programs
	B=$(B) tools/soak/scale
	B=$(B) tools/soak/past

soak-programs: $(SOAK_PROGRAMS)

$(B)/soak/churn: tools/soak/churn.c include/heaptap/scope.h
	@mkdir -p $(@D)
	$(CC) $(SOAK_CFLAGS) -o $@ $< -pthread -ldl

$(B)/soak/kernel_objects: tools/soak/kernel_objects.c
	@mkdir -p $(@D)
	$(CC) $(SOAK_CFLAGS) -o $@ $< -lbpf

$(B)/soak/past-of-many: tools/soak/past.c $(B)/libheaptap.a
	@mkdir -p $(@D)
	$(CC) $(SOAK_CFLAGS) -O2 -Iuser -o $@ $^ -lm

$(B)/soak/module.so: tools/soak/module.c
	@mkdir -p $(@D)
	$(CC) $(SOAK_CFLAGS) -shared -fPIC -o $@ $<
endif
