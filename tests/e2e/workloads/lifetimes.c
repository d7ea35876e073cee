// SPDX-License-Identifier: MIT
// lifetimes.c - blocks of known sizes that live for known times: lifetimes [QUICK BRIEF LONG KEPT], how many of each.
// site_quick  32 B, freed at once
// site_brief  32 B, 100 us
// site_long   4 KiB, 50 ms
// site_kept   700 B, for ever
// Prints the longest that any of a site can have lived, in ns: on a busy machine that is longer. LIVED SITE NS
#include <time.h>

#include "ledger.h"

static void *long_blocks[8192];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Not while anything is measured: it may allocate. */
static void lived(const char *site, uint64_t longest_ns)
{
	static char text[4][64];
	static int cnt;

	if (site)
		snprintf(text[cnt++], sizeof(text[0]), "LIVED %s %llu", site,
			 (unsigned long long)longest_ns);
	else
		for (int i = 0; i < cnt; i++)
			puts(text[i]);
}

SITE void site_quick(int cnt)
{
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < cnt; i++)
		free(OPAQUE(malloc(32)));
	lived("site_quick", now_ns() - begin_ns);
}

SITE void site_brief(int cnt)
{
	uint64_t longest_ns = 0;

	for (int i = 0; i < cnt; i++) {
		uint64_t begin_ns = now_ns(), end_ns;
		void *block = OPAQUE(malloc(32));

		end_ns = now_ns() + 100000;
		while (now_ns() < end_ns)
			;
		free(block);
		end_ns = now_ns();
		longest_ns = end_ns - begin_ns > longest_ns ? end_ns - begin_ns : longest_ns;
	}
	lived("site_brief", longest_ns);
}

SITE void site_long(int cnt)
{
	struct timespec ts = { .tv_nsec = 50000000 };
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < cnt; i++)
		long_blocks[i] = OPAQUE(malloc(4096));
	nanosleep(&ts, NULL);
	for (int i = 0; i < cnt; i++)
		free(long_blocks[i]);
	lived("site_long", now_ns() - begin_ns);
}

SITE void site_kept(int cnt)
{
	for (int i = 0; i < cnt; i++)
		OPAQUE(malloc(700));
}

int main(int argc, char **argv)
{
	int cnt[4] = { 10007, 1009, 503, 211 };

	for (int i = 0; i < 4 && i + 1 < argc; i++)
		cnt[i] = (int)strtol(argv[i + 1], NULL, 10);
	if (cnt[2] > (int)(sizeof(long_blocks) / sizeof(*long_blocks)))
		return 2;
	e2e_ready();
	site_quick(cnt[0]);
	site_brief(cnt[1]);
	site_long(cnt[2]);
	site_kept(cnt[3]);
	lived(NULL, 0);
	fflush(stdout);
	e2e_done();
	return 0;
}
