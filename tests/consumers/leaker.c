/* SPDX-License-Identifier: MIT */
/*
 * leaker.c - a process that leaks when it is told to, a line of stdin for each command:
 *
 *	requests N	N blocks of 1000 bytes from read_header(), which is inlined into handle_request()
 *	cache N		N blocks of 5000 bytes from fill_cache(), every second one of them freed
 *	plugin N	N blocks of 700 bytes from the library PLUGIN
 *	close 1		the library is closed
 *
 * Each is answered with "done". With LEAKER_PLUGIN defined this is that library.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline, noclone))

#ifdef LEAKER_PLUGIN
void plugin_leak(int cnt);

OWN void plugin_leak(int cnt)
{
	for (int i = 0; i < cnt; i++)
		*(void *volatile *)&(void *){ malloc(700) };
}
#else
static void *volatile kept;

static inline __attribute__((always_inline)) void *read_header(void)
{
	return malloc(1000);
}

static OWN void handle_request(void)
{
	kept = read_header();
}

static OWN void fill_cache(int i)
{
	kept = malloc(5000);
	if (i % 2)
		free(kept);
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*leak)(int) = NULL;
	char line[100], what[20];
	int cnt;

	if (library)
		*(void **)&leak = dlsym(library, "plugin_leak");
	if (!leak)
		return 1;

	/* stdio's own buffers are not to be counted. */
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%19s %d", what, &cnt) != 2)
			return 2;
		for (int i = 0; i < cnt && !strcmp(what, "requests"); i++)
			handle_request();
		for (int i = 0; i < cnt && !strcmp(what, "cache"); i++)
			fill_cache(i);
		if (!strcmp(what, "plugin"))
			leak(cnt);
		if (!strcmp(what, "close") && dlclose(library))
			return 3;
		puts("done");
	}
	return 0;
}
#endif
