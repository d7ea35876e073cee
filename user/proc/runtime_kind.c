/* SPDX-License-Identifier: MIT */
/* runtime_kind.c - see runtime_kind.h. */
#include "proc/runtime_kind.h"

#include "base/names.h"
#include "proc/proc_text.h"
#include "proc/process.h"

static int is_in_file(const struct process_info *info, const char *file, const char *word)
{
	FILE *f = proc_fopen(info->live_tid, "%s", file);
	char *text = NULL;
	int found = 0;
	size_t room = 0;

	if (!f)
		return -EACCES;
	while (!found && getdelim(&text, &room, '\0', f) > 0)
		found = strstr(text, word) != NULL;
	free(text);
	fclose(f);
	return found;
}

/* Variables add to the arguments: JAVA_TOOL_OPTIONS, NODE_OPTIONS. */
int runtime_has_option(const struct process_info *info, const char *word)
{
	int in_arguments = is_in_file(info, "cmdline", word);

	return in_arguments == 1 ? 1 : is_in_file(info, "environ", word);
}

/*
 * Runtimes by the names of their files, and the memory that they manage themselves. A name ends there, or is followed by
 * a version ("php8.2", "libruby-3.1.so.3.1"): by what `rest` has characters for.
 */
static const struct {
	enum runtime_kind kind;
	const char *name, *rest;
} files[] = {
	{ RUNTIME_JAVA, "libjvm.so", "" },
	{ RUNTIME_NODE, "node", "js" },
	{ RUNTIME_NODE, "libnode.so", ".0123456789" },
	{ RUNTIME_NODE, "deno", "" },
	{ RUNTIME_LUAJIT, "luajit", "-.0123456789abet" },
	{ RUNTIME_LUAJIT, "libluajit-", "-.0123456789so" },
	{ RUNTIME_PHP, "php", ".0123456789" },
	{ RUNTIME_PHP, "php-fpm", ".0123456789" },
	{ RUNTIME_PHP, "php-cgi", ".0123456789" },
	{ RUNTIME_PHP, "libphp", ".0123456789so" },
	{ RUNTIME_RUBY, "ruby", ".0123456789" },
	{ RUNTIME_RUBY, "libruby", "-.0123456789so" },
	{ RUNTIME_BUN, "bun", "" },
	{ RUNTIME_DOTNET, "libcoreclr.so", "" },
	{ RUNTIME_MONO, "mono-sgen", "" },
	{ RUNTIME_MONO, "libmonosgen-", "-.0123456789so" },
	{ RUNTIME_ERLANG, "beam", ".smp" },
};

static const struct {
	const char *what, *advice;
	const char *key, *values[3]; /* the switch, in the environment */
} heaps[RUNTIME_CNT] = {
	[RUNTIME_JAVA] = { .what = "Java's objects are in the JVM's own heap: only native memory (JNI, buffers, the JVM itself) is seen",
			   .advice =
				   "for objects: jcmd PID GC.class_histogram, or a recording of JFR" },
	[RUNTIME_NODE] = { .what = "JavaScript's objects are in V8's own heap: only native memory (Buffers, add-ons, V8 itself) is seen",
			   .advice =
				   "for objects: a heap snapshot (node --heapsnapshot-signal=SIGUSR2), or --heap-prof" },
	[RUNTIME_PYTHON] = { .what = "CPython keeps small objects (up to 512 bytes) in its own arenas: they are not seen",
			     .advice =
				     "to see them: start it with PYTHONMALLOC=malloc in its environment",
			     .key = "PYTHONMALLOC=",
			     .values = { "malloc", "malloc_debug" } },
	[RUNTIME_LUAJIT] = { .what = "LuaJIT keeps Lua's objects in its own arenas: only native memory is seen",
			     .advice = "to see them: build LuaJIT with LUAJIT_USE_SYSMALLOC" },
	[RUNTIME_PHP] = { .what = "PHP keeps a script's data in its own heap (the Zend allocator): it is not seen",
			  .advice = "to see it: start it with USE_ZEND_ALLOC=0 in its environment",
			  .key = "USE_ZEND_ALLOC=",
			  .values = { "0" } },
	[RUNTIME_RUBY] = { .what = "Ruby keeps objects in its own pages: only their memory outside (long "
				   "strings, arrays, extensions) is seen",
			   .advice =
				   "for objects: ObjectSpace.trace_object_allocations_start and ObjectSpace.dump_all (require 'objspace')" },
	[RUNTIME_BUN] = { .what = "JavaScript's objects are in JavaScriptCore's own heap: they are not seen",
			  .advice = "for objects: Bun.generateHeapSnapshot()" },
	[RUNTIME_DOTNET] = { .what = ".NET's objects are in the runtime's own heap: only native memory is seen",
			     .advice = "for objects: dotnet-gcdump collect -p PID" },
	[RUNTIME_MONO] = { .what = ".NET's objects are in Mono's own heap: only native memory is seen",
			   .advice = "for objects: mono --profile=log:alloc, and mprof-report" },
	[RUNTIME_GO] = { .what = "a Go program: only memory that C code allocates (cgo) is seen, not Go's own heap",
			 .advice =
				 "use its own pprof: go tool pprof http://HOST:PORT/debug/pprof/heap (net/http/pprof), or runtime/pprof" },
	[RUNTIME_ERLANG] = { .what = "Erlang keeps its processes' data in carriers of its own: it is not seen",
			     .advice =
				     "to see it: start it with erl +Mea min, or ERL_ZFLAGS='+Mea min' in its environment",
			     .key = "ERL_ZFLAGS=",
			     .values = { "+Mea min" } },
};

bool runtime_is_cpython_file(const char *path)
{
	static const char lib[] = "libpython", program[] = "python";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (!strncmp(name, lib, sizeof(lib) - 1))
		return isdigit((unsigned char)name[sizeof(lib) - 1]);
	if (strncmp(name, program, sizeof(program) - 1) != 0)
		return false;
	name += sizeof(program) - 1;
	return !name[strspn(name, "0123456789.")];
}

enum runtime_kind runtime_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_CNT(files); i++) {
		const char *rest = name + strlen(files[i].name);

		if (begins(name, files[i].name) && !rest[strspn(rest, files[i].rest)])
			return files[i].kind;
	}
	return runtime_is_cpython_file(path) ? RUNTIME_PYTHON : RUNTIME_NONE;
}

void runtime_words_heap(enum runtime_kind kind, const char *variables, size_t bytes,
			struct runtime_words *ret)
{
	const char *key = heaps[kind].key, *line;

	*ret = (struct runtime_words){ heaps[kind].what, heaps[kind].advice };
	for (line = variables; key && line < variables + bytes; line += strlen(line) + 1) {
		if (!begins(line, key))
			continue;
		for (size_t i = 0; i < ARRAY_CNT(heaps[kind].values) && heaps[kind].values[i]; i++)
			if (!strcmp(line + strlen(key), heaps[kind].values[i]))
				*ret = (struct runtime_words){ 0 };
	}
}
