/* SPDX-License-Identifier: MIT */
/* execs.c - works, then executes the program that its arguments name, when told to. */
#include "ledger.h"

SITE void *site_before_exec(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		led_die("execs: no program\n");
	e2e_ready();
	for (int i = 0; i < 103; i++)
		site_before_exec(1051);
	e2e_print_ledger();
	e2e_say("BEFORE\n");
	e2e_wait_line();
	execv(argv[1], argv + 1);
	led_die("execs: no exec\n");
}
