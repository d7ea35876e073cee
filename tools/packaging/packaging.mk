# What an operator or a distributor needs: install, uninstall, the .deb, the manifests' checks.
# tools/packaging/README.md says how each is meant.
#
# PREFIX=/usr/local and, below DESTDIR, where a distribution wants another place: SYSCONFDIR, UNITDIR;
# below PREFIX: ZSHDIR.

P := tools/packaging
# A prefix of its own has a configuration of its own; /usr has none but the system's.
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
UNITDIR ?= $(PREFIX)/lib/systemd/system
ZSHDIR ?= share/zsh/site-functions
LIBDIR ?= $(PREFIX)/lib
BINDIR := $(PREFIX)/bin
DOCDIR := $(PREFIX)/share/doc/heaptap
MANDIR := $(PREFIX)/share/man
CONFIG := $(SYSCONFDIR)/heaptap/serve.toml
# Configuration and what others read heaptap with: examples, beside the documentation.
EXAMPLES := $(wildcard $(P)/serve.toml $(P)/Containerfile $(P)/kubernetes/*.yaml \
	tools/grafana/*.json tools/grafana/*.yml tools/grafana/*.yaml tools/grafana/*.rules)
MAN := $(wildcard user/man/*.[1-8])
# Where each shell looks for what it completes, below PREFIX.
COMPLETIONS := bash:share/bash-completion/completions/heaptap zsh:$(ZSHDIR)/_heaptap \
	fish:share/fish/vendor_completions.d/heaptap.fish
completion_path = $(PREFIX)/$(lastword $(subst :, ,$1))
man_path = $(MANDIR)/man$(subst .,,$(suffix $1))/$(notdir $1)
FILL = sed -e 's,@PREFIX@,$(PREFIX),g' -e 's,@BINDIR@,$(BINDIR),g' \
	-e 's,@SYSCONFDIR@,$(SYSCONFDIR),g' -e 's,@VERSION@,$(VERSION),g'

.PHONY: install install-files uninstall deb release check-packaging

# A configuration that is there is somebody's: it stays as it is.
install: $(B)/heaptap sampler install-files ## into PREFIX (/usr/local), under DESTDIR
	install -D -m 644 $(SAMPLER).so $(DESTDIR)$(LIBDIR)/$(notdir $(SAMPLER)).so
	install -D -m 644 $(SAMPLER).a $(DESTDIR)$(LIBDIR)/$(notdir $(SAMPLER)).a
	install -D -m 644 tools/sampler/README.md $(DESTDIR)$(DOCDIR)/sampler.md

# All but the sampler, which programs load: of the program that is built.
install-files: $(B)/heaptap
	install -D -m 755 $(B)/heaptap $(DESTDIR)$(BINDIR)/heaptap
	$(foreach m,$(MAN),install -D -m 644 $m $(DESTDIR)$(call man_path,$m) &&) true
	$(foreach c,$(COMPLETIONS),install -d $(DESTDIR)$(dir $(call completion_path,$c)) && \
		$(B)/heaptap completion $(firstword $(subst :, ,$c)) > $(DESTDIR)$(call completion_path,$c) && \
		chmod 644 $(DESTDIR)$(call completion_path,$c) &&) true
	install -D -m 644 include/heaptap/scope.h $(DESTDIR)$(PREFIX)/include/heaptap/scope.h
	install -d $(DESTDIR)$(PREFIX)/share/pkgconfig $(DESTDIR)$(UNITDIR) \
		$(DESTDIR)$(DOCDIR)/examples $(DESTDIR)$(SYSCONFDIR)/heaptap
	$(FILL) $(P)/heaptap.pc.in > $(DESTDIR)$(PREFIX)/share/pkgconfig/heaptap.pc
	$(FILL) $(P)/heaptap.service > $(DESTDIR)$(UNITDIR)/heaptap.service
	chmod 644 $(DESTDIR)$(PREFIX)/share/pkgconfig/heaptap.pc $(DESTDIR)$(UNITDIR)/heaptap.service
	install -m 644 LICENSE $(P)/README.md .github/STABLE.md $(DESTDIR)$(DOCDIR)/
	$(if $(EXAMPLES),install -m 644 $(EXAMPLES) $(DESTDIR)$(DOCDIR)/examples/)
	test -e $(DESTDIR)$(CONFIG) || test ! -e $(P)/serve.toml || \
		install -m 644 $(P)/serve.toml $(DESTDIR)$(CONFIG)

# The configuration goes only when nobody has changed it.
uninstall: ## what install put there
	rm -f $(DESTDIR)$(BINDIR)/heaptap $(foreach m,$(MAN),$(DESTDIR)$(call man_path,$m)) \
		$(foreach c,$(COMPLETIONS),$(DESTDIR)$(call completion_path,$c)) \
		$(DESTDIR)$(PREFIX)/include/heaptap/scope.h $(DESTDIR)$(LIBDIR)/$(notdir $(SAMPLER)).so \
		$(DESTDIR)$(LIBDIR)/$(notdir $(SAMPLER)).a \
		$(DESTDIR)$(PREFIX)/share/pkgconfig/heaptap.pc $(DESTDIR)$(UNITDIR)/heaptap.service
	rm -rf $(DESTDIR)$(DOCDIR)
	! cmp -s $(P)/serve.toml $(DESTDIR)$(CONFIG) || rm -f $(DESTDIR)$(CONFIG)
	-rmdir --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/include/heaptap \
		$(DESTDIR)$(SYSCONFDIR)/heaptap 2>/dev/null

deb: ## a package for this Debian, in .build/deb
	@tools/setup.sh build deb
	$(P)/build-deb $(VERSION) $(B)/deb

release: ## all files of a version, with checksums, an SBOM and notes: .build-dist/release (root)
	@tools/setup.sh build dist rpm deb packaging
	@$(P)/release check $(VERSION)
	$(SUB_MAKE) rpm
	$(SUB_MAKE) deb
	@$(P)/release make $(VERSION) $(DIST) $(B)/deb

check-packaging: ## the .deb: built, installed, removed, under a real systemd; the image; a release (root)
	@tools/setup.sh build dist rpm deb packaging kernels
	$(SUB_MAKE) all
	$(SUB_MAKE) rpm
	@tests/run $(sort $(wildcard tests/packaging/test_*.sh tests/packaging/slow_*.sh))
