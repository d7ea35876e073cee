/* SPDX-License-Identifier: MIT */
/*
 * scope_linked.c - the same scopes in whatever way a program can be linked.
 *
 * Top{ A{ 100; B{ 100 } }; 100; B{ 100 } } by the function work(), which is in this file, in a library
 * that is loaded at the start (-DIN_LIBRARY; the library is this file with -DLIBRARY), or in one that
 * is given as the argument and dlopened.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <heaptap/scope.h>

void work(void);

#ifndef IN_LIBRARY
static void *volatile block;

static __attribute__((noinline)) void site_linked(void)
{
	block = malloc(100);
}

__attribute__((visibility("default"))) void work(void)
{
	HEAPTAP_SCOPE("Top");
	{
		HEAPTAP_SCOPE("A");
		site_linked();
		HEAPTAP_SCOPE("B");
		site_linked();
	}
	site_linked();
	HEAPTAP_SCOPE("B");
	site_linked();
}
#endif

#ifndef LIBRARY
int main(int argc, char **argv)
{
	void (*run)(void) = work;

	if (argc > 1) {
#ifndef STATIC
		void *library = dlopen(argv[1], RTLD_NOW);

		run = library ? (void (*)(void))dlsym(library, "work") : NULL;
#endif
		if (!run || argv[2])
			return 99;
		usleep(500000); /* a library that comes later is found some milliseconds later */
	}
	run();
	return 0;
}
#endif
