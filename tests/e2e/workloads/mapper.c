/* SPDX-License-Identifier: MIT */
/* mapper.c - loads all libraries lib<i>.so of the folder E2E_DIR, then allocates slowly. */
#include <dlfcn.h>

#include "ledger.h"

SITE void *site_mapper(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

int main(void)
{
	const char *dir = getenv("E2E_DIR");
	char path[512];
	int cnt = 0;

	for (;; cnt++) {
		snprintf(path, sizeof(path), "%s/lib%d.so", dir, cnt);
		if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
			break;
	}
	snprintf(path, sizeof(path), "LOADED %d\n", cnt);
	e2e_say(path);
	e2e_ready();
	for (int i = 0; i < 200; i++) {
		site_mapper(1087);
		usleep(100);
	}
	e2e_done();
	return 0;
}
