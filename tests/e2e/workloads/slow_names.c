/* SPDX-License-Identifier: MIT */
/*
 * slow_names.c - allocates in each of the libraries that it is given, copies of plugin.c.
 *
 * It says READY, does it when it is told to, says DONE; once more with each line.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LIBRARIES_CAP 16

int main(int argc, char **argv)
{
	int (*work[LIBRARIES_CAP])(int, size_t) = { NULL };
	char line[64];

	if (argc < 2 || argc > LIBRARIES_CAP)
		return 2;
	for (int i = 1; i < argc; i++) {
		void *lib = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);

		if (lib)
			work[i] = (int (*)(int, size_t))dlsym(lib, "plugin_work");
		if (!work[i]) {
			fprintf(stderr, "slow_names: %s\n", dlerror());
			return 1;
		}
	}
	puts("READY");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 1; i < argc; i++)
			work[i](60, 10000);
		puts("DONE");
		fflush(stdout);
	}
	_exit(0);
}
