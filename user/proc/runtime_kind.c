/* SPDX-License-Identifier: MIT */
/* runtime_kind.c - see runtime_kind.h. */
#include "proc/runtime_kind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/heap_kind.h"
#include "proc/process.h"

static int is_in_file(const struct process_info *info, const char *file, const char *word)
{
	char path[64], *text = NULL;
	int found = 0;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", info->live_tid, file);
	f = fopen(path, "re");
	if (!f)
		return -EACCES;
	while (!found && getdelim(&text, &room, '\0', f) > 0)
		found = strstr(text, word) != NULL;
	free(text);
	fclose(f);
	return found;
}

/* Variables add to the arguments: JAVA_TOOL_OPTIONS, NODE_OPTIONS. */
int runtime_was_told(const struct process_info *info, const char *word)
{
	int in_arguments = is_in_file(info, "cmdline", word);

	return in_arguments == 1 ? 1 : is_in_file(info, "environ", word);
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static enum runtime_kind kind_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (!strcmp(name, "libjvm.so"))
		return RUNTIME_JAVA;
	if (!strcmp(name, "node") || !strcmp(name, "nodejs") || begins(name, "libnode.so"))
		return RUNTIME_NODE;
	if (heap_kind_is_cpython_file(path))
		return RUNTIME_PYTHON;
	if (begins(name, "luajit") || begins(name, "libluajit-"))
		return RUNTIME_LUAJIT;
	return RUNTIME_NONE;
}

void runtime_read(const struct process_info *info, const struct proc_maps *maps,
		  struct runtime *ret)
{
	const struct proc_map *m;

	*ret = (struct runtime){ 0 };
	vec_each(&maps->maps, m)
		if (m->is_exec && m->path[0] == '/' && !ret->kind)
			ret->kind = kind_of_file(m->path);
	if (ret->kind == RUNTIME_JAVA)
		ret->was_told = runtime_was_told(info, "-XX:+PreserveFramePointer") == 1;
	else if (ret->kind == RUNTIME_NODE)
		ret->was_told = runtime_was_told(info, "--interpreted-frames-native-stack") == 1;
}

void runtime_words_stacks(const struct runtime *r, struct runtime_words *ret)
{
	*ret = (struct runtime_words){ 0 };
	if (!r->has_jit)
		return;
	if (r->kind == RUNTIME_JAVA && !r->was_told) {
		ret->what = "stacks end in compiled Java code: this JVM was started without frame "
			    "pointers";
		ret->advice = "start it with -XX:+PreserveFramePointer";
	} else if (r->kind == RUNTIME_LUAJIT) {
		ret->what = "stacks end in compiled Lua code: LuaJIT has no frame pointers";
		ret->advice = "nothing helps; sums are right, and so are the frames up to there";
	} else if (r->kind == RUNTIME_NONE) {
		ret->what = "stacks go through code that it makes at run time only where that has "
			    "frame pointers";
		ret->advice = "sums are right in any case";
	}
}

void runtime_words_names(const struct runtime *r, struct runtime_words *ret)
{
	*ret = (struct runtime_words){ 0 };
	if (r->kind == RUNTIME_JAVA && r->has_jit && !r->has_names) {
		ret->what = "Java's functions have no names yet";
		ret->advice = "heaptap record --jvm-perfmap asks the JVM for them (17 or later)";
	} else if (r->kind == RUNTIME_NODE && r->has_jit && !r->has_names) {
		ret->what = "JavaScript's functions have no names";
		ret->advice = "start it with --perf-basic-prof --interpreted-frames-native-stack";
	} else if (r->kind == RUNTIME_NODE && r->has_jit && !r->was_told) {
		ret->what = "JavaScript's functions have no names until they are compiled";
		ret->advice = "start it with --interpreted-frames-native-stack as well";
	} else if (r->kind == RUNTIME_PYTHON && !r->has_names) {
		ret->what = "stacks have the interpreter's functions, and not Python's";
		ret->advice = "start it with -X perf or PYTHONPERFSUPPORT=1 (Python 3.12 or later)";
	} else if (r->kind == RUNTIME_NONE && r->has_jit && !r->has_names) {
		ret->what = "functions of code that it makes at run time have no names";
		ret->advice = "they have if it writes /tmp/perf-PID.map, or a jitdump and maps it";
	}
}
