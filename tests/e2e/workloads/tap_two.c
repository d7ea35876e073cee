/* SPDX-License-Identifier: MIT */
/*
 * tap_two - a program with a second C library in a namespace of its own (dlmopen), so with two allocators of the same
 * file. What it keeps is of both by halves.
 *
 *	tap_two LIBRARY		which has give_block(); of tap_give.c
 */
#include "tap_target.h"

#include <dlfcn.h>

static void *(*give)(size_t);

static void keep_both(void)
{
	unsigned cnt = number_of("E2E_BLOCKS", 5000) / 2;

	for (unsigned i = 0; i < cnt; i++) {
		kept[kept_cnt++] = filled(give(BLOCK_BYTES), BLOCK_BYTES);
		held_bytes += BLOCK_BYTES;
	}
	keep(cnt);
	say("HELD %llu\n", (unsigned long long)held_bytes);
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : NULL;

	if (library)
		give = (void *(*)(size_t))dlsym(library, "give_block");
	if (!give) {
		say("BAD dlmopen: %s\n", dlerror());
		return 3;
	}
	begin(allocate, (void *)1);
	be_ready();
	obey(keep_both);
}
