/* SPDX-License-Identifier: MIT */
/*
 * scope_dlopen.c - a program with scopes opens a library with scopes, closes it and opens it again.
 *
 *	scope_dlopen FILE [ROUNDS [MS]]		scope_plugin.so, 3, 0: to wait after each opening
 *
 * What is allocated while the library alone is in a scope is the library's; while both are, the
 * program's, which heaptap knew first. A thread that is older than the library is in it as well.
 */
#include <dlfcn.h>

#include "scope_ledger.h"

static void (*plugin_call)(void (*function)(void));

static void in_plugin(void)
{
	scoped_alloc("Plugin/Inner", 0, 100);
}
static void in_both(void)
{
	scoped_alloc("Main", 0, 10);
}

static pthread_barrier_t barrier;
static int round_cnt = 3, wait_ms;

static void *older(void *arg)
{
	led_name_thread("dlopen");
	for (int i = 0; i < round_cnt; i++) {
		pthread_barrier_wait(&barrier);
		plugin_call(in_plugin);
		pthread_barrier_wait(&barrier);
	}
	return arg;
}

static void one_round(const char *file)
{
	void *handle;

	{
		HEAPTAP_PAUSED(); /* what the dynamic linker allocates */
		handle = dlopen(file, RTLD_NOW);
		if (!handle)
			led_die("scope_dlopen: cannot open it\n");
		*(void **)&plugin_call = dlsym(handle, "plugin_call");
	}
	usleep(1000 * wait_ms);
	plugin_call(in_plugin);
	{
		HEAPTAP_SCOPE("Main");
		plugin_call(in_both);
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	dlclose(handle);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		led_die("scope_dlopen: which file?\n");
	if (argc > 2)
		round_cnt = (int)strtol(argv[2], NULL, 10);
	if (argc > 3)
		wait_ms = (int)strtol(argv[3], NULL, 10);
	led_name_thread("dlopen");
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, older, NULL))
		led_die("scope_dlopen: no thread\n");
	e2e_ready();
	for (int i = 0; i < round_cnt; i++)
		one_round(argv[1]);
	pthread_join(thread, NULL);
	scope_done();
	return 0;
}
