/* SPDX-License-Identifier: MIT */
/*
 * startup.c - allocations outside main(): constructors of a library and of the program, atexit
 * handlers and destructors. With -DLIBRARY the library. What the end of the program allocates is
 * told before it happens.
 */
#include "ledger.h"

#ifdef LIBRARY
void *startup_library_block[7];
int startup_library_size = 811;

__attribute__((noinline)) static void site_library_constructor(void)
{
	for (int i = 0; i < 7; i++)
		startup_library_block[i] = malloc(811);
	free(startup_library_block[3]);
	__asm__ volatile("");
}

__attribute__((constructor)) static void begin(void)
{
	site_library_constructor();
	__asm__ volatile("");
}

__attribute__((noinline)) static void site_library_destructor(void)
{
	for (int i = 0; i < 5; i++)
		startup_library_block[i] = malloc(821);
	__asm__ volatile("");
}

__attribute__((destructor)) static void end(void)
{
	site_library_destructor();
	__asm__ volatile("");
}
#else
extern void *startup_library_block[7];
static void *kept[16];

__attribute__((noinline)) static void site_constructor(void)
{
	for (int i = 0; i < 3; i++)
		kept[i] = malloc(823);
	__asm__ volatile("");
}

__attribute__((constructor)) static void begin(void)
{
	site_constructor();
	__asm__ volatile("");
}

__attribute__((noinline)) static void site_atexit(void)
{
	for (int i = 0; i < 7; i++)
		kept[i] = malloc(827);
	free(kept[2]);
	__asm__ volatile("");
}

static void at_end(void)
{
	site_atexit();
	__asm__ volatile("");
}

SITE void site_main(void)
{
	for (int i = 0; i < 11; i++)
		led_alloc(__func__, malloc(829), 829);
	free(startup_library_block[5]); /* of the constructor */
	__asm__ volatile("");
}

int main(void)
{
	atexit(at_end);
	e2e_ready();
	site_main();
	led_bulk("site_library_constructor", 811, 7, 5);
	led_bulk("site_constructor", 823, 3, 3);
	led_bulk("site_atexit", 827, 7, 6);
	led_bulk("site_library_destructor", 821, 5, 5);
	e2e_done();
	return 0;
}
#endif
