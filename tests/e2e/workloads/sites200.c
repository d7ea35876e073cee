/* SPDX-License-Identifier: MIT */
/*
 * sites200.c - the statistics workload: 200 sites, sizes spread over 16 B to 1 MiB, few of them tiny, the same every
 * time. Site i allocates its number of blocks; every third one is freed again. Nothing touches the
 * blocks, so that large ones cost no memory. E2E_LEAST: no block is smaller (16): the same samples of fewer hits.
 */
#include <math.h>

#include "ledger.h"

static size_t least;

static size_t size_of(int i)
{
	double size = 16 * pow(65536, i / 199.0);

	/* Samples are of bytes. Of tiny blocks it takes many to have them, which is hits and no more samples. */
	if (size < 400 && i % 10)
		size = 400 + i;
	if (size < least)
		size = least + i;
	return (size_t)size | 1;
}

/* From about 0.4 to 3 MiB a site, so that the default rate finds 6 to 48 samples of it. */
static int count_of(int i)
{
	size_t bytes = (size_t)(420000 * pow(7, (i * 67 % 200) / 199.0));
	int n = bytes / size_of(i);

	return n < 12 ? 12 : n;
}

static void use(const char *site, int cnt, size_t size, void *(*allocate)(size_t))
{
	int kept = 0;

	for (int k = 0; k < cnt; k++) {
		void *p = allocate(size);

		if (!p)
			led_die("sites200: no memory\n");
		if (k % 3 == 1)
			free(p);
		else
			kept++;
	}
	led_bulk(site, size, cnt, kept);
}

/* The number makes each function's code its own: equal ones could be merged. */
#define S(n)                                                      \
	SITE void *site_##n(size_t size)                          \
	{                                                         \
		void *p = malloc(size);                           \
		__asm__ volatile("mov $" #n ", %%ecx" ::: "ecx"); \
		return p;                                         \
	}
/* clang-format off */
#define TEN(f, d)                                                                               \
	f(1##d##0) f(1##d##1) f(1##d##2) f(1##d##3) f(1##d##4) f(1##d##5) f(1##d##6) f(1##d##7) \
		f(1##d##8) f(1##d##9)
#define ALL(f)                                                                                  \
	TEN(f, 00)                                                                              \
	TEN(f, 01) TEN(f, 02) TEN(f, 03) TEN(f, 04) TEN(f, 05) TEN(f, 06) TEN(f, 07) TEN(f, 08) \
		TEN(f, 09) TEN(f, 10) TEN(f, 11) TEN(f, 12) TEN(f, 13) TEN(f, 14) TEN(f, 15)    \
			TEN(f, 16) TEN(f, 17) TEN(f, 18) TEN(f, 19)
/* clang-format on */
ALL(S)

#define NAME(n) "site_" #n,
#define FUNCTION(n) site_##n,
static const char *const name[] = { ALL(NAME) };
static void *(*const function[])(size_t) = { ALL(FUNCTION) };

int main(void)
{
	const char *s = getenv("E2E_LEAST");

	least = s ? strtoul(s, NULL, 10) : 0;
	e2e_ready();
	for (int i = 0; i < 200; i++)
		use(name[i], count_of(i), size_of(i), function[i]);
	e2e_done();
	return 0;
}
