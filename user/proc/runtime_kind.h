/* SPDX-License-Identifier: MIT */
/*
 * runtime_kind.h - which runtime runs a program's code: was it started so that its functions can be seen in stacks, and
 * which part of its memory does its allocator not see? One place for what is known of runtimes.
 */
#ifndef HT_PROC_RUNTIME_KIND_H
#define HT_PROC_RUNTIME_KIND_H

#include "base/std.h"

struct reader;
struct err;
struct process_info;

enum runtime_kind {
	RUNTIME_NONE,
	RUNTIME_JAVA,
	RUNTIME_NODE,
	RUNTIME_PYTHON,
	RUNTIME_LUAJIT,
	RUNTIME_PHP,
	RUNTIME_RUBY,
	RUNTIME_BUN,
	RUNTIME_DOTNET,
	RUNTIME_MONO,
	RUNTIME_ERLANG,
	RUNTIME_GO, /* told by the program's content, not by its name */
	RUNTIME_CNT,
};

struct runtime {
	enum runtime_kind kind;
	bool has_jit; /* there is code made at run time */
	bool has_names; /* that code has names, in a map or a dump */
	bool was_told; /* it was started with the option that the words are about */
};

/* The runtime that has this file, its program or its library; decided by the name. */
enum runtime_kind runtime_of_file(const char *path);
/* Is this the CPython interpreter, or its library? */
bool runtime_is_cpython_file(const char *path);

/* Is this word in one of its arguments or environment variables? 1, 0; -EACCES: not known. */
int runtime_has_option(const struct process_info *info, const char *word);

struct runtime_words {
	const char *what; /* NULL: all is well */
	const char *advice;
};
/* Which memory it manages itself, and how that can be seen; NULL: all is malloc's. environ: as in /proc, strings with
 * their NULs; with the switch in it all is malloc's. */
void runtime_words_heap(enum runtime_kind kind, const char *environ, size_t bytes,
			struct runtime_words *ret);

/*
 * heap_kind.c: which part of a program's memory would be seen in a recording? Probes on malloc do not see the memory
 * that a runtime manages itself. The words about that, for all who report it.
 */

/* Where there is a reader (reader.h), executables are read by a job of it, behind a seal. Run a job of this kind; for
 * reader_start(). */
#define HEAP_KIND_JOB 3
int heap_kind_run_job(const void *args, size_t args_bytes, int out_fd);

struct heap_kind {
	bool is_go; /* its executable was made by Go's linker */
	bool is_static, has_names; /* of the executable: no loader; it has a symbol table */
	enum runtime_kind runtime;
	struct runtime_words own; /* the memory that the runtime manages itself, if any */
	size_t file_cnt, unread_cnt; /* mapped files with code; of those, the unreadable ones */
};

/* Of a running process. Files that cannot be read are taken for ordinary. */
void heap_kind_read(struct reader *reader, const struct process_info *info, struct heap_kind *ret);
/* Of a program that will map these files, its executable first, with our environment. */
void heap_kind_of_files(struct reader *reader, const char *const *paths, size_t cnt,
			struct heap_kind *ret);

struct heap_words {
	char what[320];
	char advice[320]; /* what to do; "" = nothing */
};

#define HEAP_KIND_LOOKED_FOR "malloc, jemalloc, tcmalloc, mimalloc, operator new"

/* No allocator is mapped: nothing can be recorded. */
void heap_words_none(const struct heap_kind *k, struct heap_words *ret);
/* An allocator is mapped, but the program keeps its data elsewhere. false: it does not. */
bool heap_words_partial(const struct heap_kind *k, struct heap_words *ret);

/*
 * jvm_attach.c: asks a running HotSpot JVM to write /tmp/perf-PID.map, as `jcmd PID Compiler.perfmap` does.
 *
 * The JVM opens its socket when it finds a file .attach_pidPID and gets a SIGQUIT. We send it neither to a
 * process that does not catch SIGQUIT, which would die, nor to a JVM that forbids attaching, which would print
 * its threads.
 */

/*
 * Write the map and wait for it: usually a tenth of a second, at most eleven seconds. 0; -ENOEXEC: the process runs no
 * HotSpot JVM; else a negative errno, and why in a sentence: -EPERM: it would not be harmless, or the JVM refuses;
 * -ETIMEDOUT, -ESRCH.
 */
int jvm_write_perfmap(struct reader *reader, const struct process_info *info, struct err *why);

#endif
