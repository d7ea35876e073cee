/* SPDX-License-Identifier: MIT */
/*
 * dlopens.c - loads libraries while it is recorded. E2E_MODE=late: the plugin, then an allocator
 * (E2E_ALLOCATOR, with the functions E2E_MALLOC and E2E_FREE), with E2E_PAUSE_MS between loading
 * and use; without it, with a second, and the allocator once its functions are probed. =loop: loads, uses and unloads the plugin 60 times without a pause.
 */
#include <dlfcn.h>

#include "ledger.h"

static void *(*late_malloc)(size_t, int);
static void (*late_free)(void *, int);

SITE void *site_late_allocator(size_t size)
{
	return led_alloc(__func__, late_malloc(size, 0), size);
}

static void *load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		dprintf(2, "dlopens: %s\n", dlerror());
		_exit(96);
	}
	return lib;
}

static void *find(void *lib, const char *name)
{
	void *p = name ? dlsym(lib, name) : NULL;

	if (!p)
		led_die("dlopens: a function is missing\n");
	return p;
}

static void pause_ms(void)
{
	const char *ms = getenv("E2E_PAUSE_MS");

	usleep(1000 * (ms ? strtol(ms, NULL, 10) : 1000));
}

/* The first bytes of both functions, in which a probe is seen as a breakpoint. */
struct code {
	unsigned char of_malloc[64], of_free[64];
};

static struct code read_code(void)
{
	struct code c;

	memcpy(c.of_malloc, (void *)late_malloc, sizeof(c.of_malloc));
	memcpy(c.of_free, (void *)late_free, sizeof(c.of_free));
	return c;
}

/*
 * For 20 s at the most: then what is wrong shows itself in the profile. A probe of the return is not seen and comes
 * after that of the entry, so as long again is waited.
 */
static void await_probes(struct code before)
{
	int i;

	for (i = 0; i < 2000; i++) {
		struct code now = read_code();

		if (memcmp(now.of_malloc, before.of_malloc, sizeof(now.of_malloc)) &&
		    memcmp(now.of_free, before.of_free, sizeof(now.of_free)))
			break;
		usleep(10000);
	}
	while (i--)
		usleep(10000);
}

static void use_plugin(void *lib, int cnt, size_t size)
{
	int (*work)(int, size_t) = (int (*)(int, size_t))find(lib, "plugin_work");

	led_bulk("site_plugin", size, cnt, work(cnt, size));
}

int main(void)
{
	const char *mode = getenv("E2E_MODE"), *plugin = getenv("E2E_PLUGIN");
	const char *allocator = getenv("E2E_ALLOCATOR");
	struct code code;
	void *lib;

	if (!mode || !plugin)
		led_die("dlopens: E2E_MODE, E2E_PLUGIN are not set\n");
	if (getenv("E2E_KNOWN"))
		load(plugin); /* so that it is mapped when the recording begins, and stays */
	e2e_ready();
	if (!strcmp(mode, "loop")) {
		for (int i = 0; i < 60; i++) {
			lib = load(plugin);
			use_plugin(lib, 31, 1061);
			dlclose(lib);
		}
	} else {
		lib = load(plugin);
		pause_ms();
		use_plugin(lib, 307, 1063);
	}
	if (allocator) {
		lib = load(allocator);
		late_malloc = (void *(*)(size_t, int))find(lib, getenv("E2E_MALLOC"));
		late_free = (void (*)(void *, int))find(lib, getenv("E2E_FREE"));
		code = read_code();
		if (!getenv("E2E_PAUSE_MS"))
			await_probes(code);
		pause_ms();
		for (int i = 0; i < 211; i++) {
			void *p = site_late_allocator(1069);

			if (i % 2)
				late_free(led_free(p), 0);
		}
	}
	e2e_done();
	return 0;
}
