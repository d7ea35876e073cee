/* SPDX-License-Identifier: MIT */
/*
 * planted.c - 1 002 997 bytes stay, 6 002 997 were allocated, and all of it at once: who is late misses
 * it. Says as whom it ran, and makes a file of the name in PLANTED_MARK.
 */
#include <fcntl.h>

#include "ledger.h"

SITE void site_kept(void)
{
	for (int i = 0; i < 999; i++)
		led_alloc(__func__, malloc(1000), 1000);
	led_alloc(__func__, malloc(3997), 3997);
}

SITE void site_dropped(void)
{
	for (int i = 0; i < 50; i++)
		free(led_free(led_alloc(__func__, malloc(100000), 100000)));
}

int main(void)
{
	const char *mark = getenv("PLANTED_MARK");
	char line[64];

	site_kept();
	site_dropped();
	e2e_self_check("site_kept", 1002997, 1000);
	e2e_print_ledger();
	snprintf(line, sizeof(line), "EUID %d\n", (int)geteuid());
	e2e_say(line);
	return mark && open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0;
}
