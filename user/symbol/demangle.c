/* SPDX-License-Identifier: MIT */
/*
 * demangle.c - demangles C++ and Rust linkage names, bounded.
 *
 * Promises: the answer is a malloc'ed string or NULL; stack and output are bounded for any name. A mangled name
 * of a hundred bytes can stand for gigabytes (every substitution may double what went before), so the
 * demanglers write into a bounded buffer here, and one that exceeds it is left by longjmp(). At this entry
 * point they keep their state on the stack, so that nothing leaks but, for Rust, one decoded identifier. Work
 * that is costly without printing (deep back references) is left to the CPU limit of the helper process.
 *
 * Does not: make UTF-8 of the result (the code that stores it does).
 */
#include <libiberty/demangle.h>
#include <setjmp.h>

#include "symbol/symbol.h"

/* Real names of template libraries reach 10 KiB; the parser's stack grows with the name. */
#define MANGLED_BYTES_CAP 8192
#define DEMANGLED_BYTES_CAP 65536

struct sink {
	char *text;
	size_t bytes, cap;
	jmp_buf full;
};

static void sink_write(const char *s, size_t n, void *ctx)
{
	struct sink *sink = ctx;

	if (n > DEMANGLED_BYTES_CAP - sink->bytes)
		longjmp(sink->full, 1);
	if (sink->bytes + n + 1 > sink->cap) {
		size_t cap = 2 * sink->cap + n + 256;
		char *text = realloc(sink->text, cap);

		if (!text)
			longjmp(sink->full, 1);
		sink->text = text;
		sink->cap = cap;
	}
	if (n) /* libiberty's empty pieces may be NULL */
		memcpy(sink->text + sink->bytes, s, n);
	sink->bytes += n;
	sink->text[sink->bytes] = '\0';
}

/* False: not a name of this kind, or its text exceeds the bound. */
static bool run_bounded(const char *mangled, bool is_rust, struct sink *sink)
{
	/* Without NO_RECURSE_LIMIT, C++ names over 1024 bytes are refused altogether; the length
	 * limit here bounds the recursion instead. */
	int options = DMGL_PARAMS | DMGL_ANSI;

	if (setjmp(sink->full))
		return false;
	if (is_rust)
		return rust_demangle_callback(mangled, options, sink_write, sink);
	return cplus_demangle_v3_callback(mangled, options | DMGL_NO_RECURSE_LIMIT, sink_write,
					  sink);
}

static char *run(const char *mangled, bool is_rust)
{
	struct sink sink = { 0 };

	if (!run_bounded(mangled, is_rust, &sink) || !sink.bytes) {
		free(sink.text);
		return NULL;
	}
	return sink.text;
}

static bool all_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)s[i]))
			return false;
	return n > 0;
}

/* Length of name without "@plt", "@VERSION" and LLVM's ".llvm.123"; *ret_is_plt says which. */
static size_t bare_length(const char *name, bool *ret_is_plt)
{
	const char *at = strchr(name, '@');
	const char *llvm;
	size_t n;

	*ret_is_plt = at && strcmp(at, "@plt") == 0;
	n = at ? (size_t)(at - name) : strlen(name);
	llvm = memmem(name, n, ".llvm.", 6);
	if (llvm && all_digits(llvm + 6, n - 6 - (size_t)(llvm - name)))
		n = (size_t)(llvm - name);
	return n;
}

static bool is_mangled(const char *name)
{
	return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0 ||
	       strncmp(name, "_GLOBAL_", 8) == 0;
}

static char *append(char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix) + 1;
	char *longer = realloc(text, n + m);

	if (!longer)
		return text;
	memcpy(longer + n, suffix, m);
	return longer;
}

char *demangle(const char *name)
{
	char bare[MANGLED_BYTES_CAP];
	bool is_plt;
	size_t n;
	char *text;

	/* Mach-O habits: some compilers put one more underscore in front. */
	if (strncmp(name, "__Z", 3) == 0 || strncmp(name, "__R", 3) == 0)
		name++;
	if (!is_mangled(name))
		return NULL;
	n = bare_length(name, &is_plt);
	if (n >= sizeof(bare))
		return NULL;
	memcpy(bare, name, n);
	bare[n] = '\0';
	/* Rust's old scheme is a C++ name with a hash at its end: so try Rust first. */
	text = run(bare, true);
	if (!text && bare[1] != 'R')
		text = run(bare, false);
	if (text && is_plt)
		text = append(text, "@plt");
	return text;
}
