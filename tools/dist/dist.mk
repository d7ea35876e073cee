# The one executable: static, in a tarball with what belongs to it. tools/dist/README.md has the reasons.
#
# Built in a folder of its own, from libraries of its own (build-libraries), with paths that say nothing of
# this machine: the same sources and the same packages give the same bytes.

DIST := .build-dist
DIST_LIBS := $(DIST)/libs
DIST_NAME := heaptap-$(VERSION)-linux-$(ARCH)
DIST_TARBALL := $(DIST)/$(DIST_NAME).tar.gz
DIST_PREFIX_MAP := -ffile-prefix-map=$(CURDIR)=.
DIST_CFLAGS := -O2 -g -I$(DIST_LIBS)/include -ffunction-sections -fdata-sections -fstack-protector-strong \
	-D_FORTIFY_SOURCE=2 $(DIST_PREFIX_MAP)
# static-pie: a program that runs as root deserves random addresses.
DIST_LDFLAGS := -static-pie -Wl,--gc-sections -Wl,-z,relro,-z,now $(DIST)/obj/inside.o
DIST_LINK := -L$(DIST_LIBS)/lib -lbpf -ldw -lelf -lcapstone -lprotobuf-c -liberty -lcurl -lnghttp2 -lssl -lcrypto \
	-llzma -lzstd -lz -lbz2 -lmicrohttpd -lncursesw -ltinfo -lm -pthread
DIST_VARS = B=$(DIST)/obj CFLAGS='$(DIST_CFLAGS)' LDFLAGS='$(DIST_LDFLAGS)' LIBS='$(DIST_LINK)' \
	LICENCES='$(LICENCES) $(DIST)/licences.txt' CLANG='$(CLANG) $(DIST_PREFIX_MAP)'

.PHONY: dist dist-executable check-dist rpm
dist: ## one static executable that runs anywhere, in a tarball: .build-dist/heaptap-*.tar.gz
	@tools/setup.sh build dist
	@tools/dist/build-libraries $(DIST_LIBS)
	@tools/dist/licences $(DIST_LIBS) > $(DIST)/licences.tmp
	@cmp -s $(DIST)/licences.tmp $(DIST)/licences.txt || mv $(DIST)/licences.tmp $(DIST)/licences.txt
	@rm -f $(DIST)/licences.tmp $(DIST)/obj/heaptap # linked anew: make does not know when an archive has changed
	$(SUB_MAKE) $(BUILD_JOBS) $(DIST_VARS) dist-executable
	@tools/dist/pack $(DIST) $(DIST_NAME)
	@ls -l $(DIST)/heaptap $(DIST_TARBALL)

rpm: ## the one executable as an RPM, for RHEL, Fedora and SUSE: .build-dist/heaptap-*.rpm
	@tools/setup.sh build dist rpm
	$(SUB_MAKE) dist
	@tools/dist/pack-rpm $(DIST) $(DIST_NAME) $(VERSION)

# Of the sub-make, whose B is that of the build. The linker warns of what inside.c answers.
dist-executable: $(B)/inside.o
	$(SUB_MAKE) $(B)/heaptap 2>$(B)/link.log || { cat $(B)/link.log >&2; exit 1; }

$(B)/inside.o: tools/dist/inside.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# Its own tests, and of every feature one that others have: these take the program from HEAPTAP.
DIST_TESTS := $(sort $(wildcard tests/dist/slow_*.sh))
DIST_FEATURES := $(patsubst %,tests/e2e/test_%.sh,exact_c tap scopes serve_http symbolize convert top)
check-dist: ## the one executable in other roots, its features, that it is reproducible; ROOTS=: of images (root, half an hour)
	@tools/setup.sh check dist rpm packaging check-dist
	$(SUB_MAKE) $(BUILD_JOBS) all
	$(SUB_MAKE) rpm
	@HEAPTAP=$(DIST)/heaptap ROOTS='$(ROOTS)' tests/run $(DIST_TESTS) $(DIST_FEATURES)
