/* SPDX-License-Identifier: MIT */
/*
 * jemalloc.c - jemalloc's own entry points. Linked against libjemalloc.so, or with -DJE_PREFIX
 * against a prefixed build.
 */
#include <jemalloc/jemalloc.h>

#include "ledger.h"

SITE void site_mallocx(void)
{
	for (int i = 0; i < 11; i++)
		led_alloc(__func__, mallocx(503, 0), 503);
	for (int i = 0; i < 5; i++)
		led_alloc(__func__, mallocx(509, MALLOCX_ALIGN(4096) | MALLOCX_ZERO), 509);
}

SITE void site_dallocx(void)
{
	for (int i = 0; i < 7; i++) {
		void *p = led_alloc(__func__, mallocx(521, 0), 521);

		if (i % 2)
			dallocx(led_free(p), 0);
	}
}

SITE void site_sdallocx(void)
{
	for (int i = 0; i < 7; i++) {
		void *p = led_alloc(__func__, mallocx(523, MALLOCX_ALIGN(64)), 523);

		if (i % 3)
			sdallocx(led_free(p), 523, MALLOCX_ALIGN(64));
	}
}

SITE void *site_mallocx_for_rallocx(void)
{
	return led_alloc(__func__, mallocx(541, 0), 541);
}

SITE void site_rallocx(void *p)
{
	struct led_block b = led_take(p);

	p = led_settle(__func__, &b, rallocx(p, 100003, 0), 100003);
	b = led_take(p);
	p = led_settle(__func__, &b, rallocx(p, 547, 0), 547);
	b = led_take(p);
	if (led_settle(__func__, &b, rallocx(p, OPAQUE((size_t)1 << 60), 0), (size_t)1 << 60))
		led_die("jemalloc: a huge rallocx succeeded\n");
}

/*
 * In place: the pointer stays, the size may not change at all. What xallocx returns is the usable
 * size; heaptap counts that, so the sizes here are of size classes: 14336, 12288, 10240.
 */
SITE void site_xallocx(void)
{
	void *p = mallocx(14336, 0), *q = mallocx(577, 0);
	struct led_block b;
	size_t now;

	led_alloc(__func__, p, 14336);
	led_alloc(__func__, q, 577);
	b = led_take(q);
	if (xallocx(q, OPAQUE((size_t)1 << 40), 0, 0) >= (size_t)1 << 40)
		led_die("jemalloc: a huge xallocx succeeded\n");
	led_put_back(&b);
	p = mallocx(1 << 20, 0);
	led_alloc(__func__, p, 1 << 20);
	b = led_take(p);
	now = xallocx(p, (1 << 20) + (1 << 18), 0, 0);
	led_alloc(__func__, p, now); /* grown, or the same */
	led_skip_alloc(__func__);
}

SITE void site_je_malloc(void)
{
	for (int i = 0; i < 5; i++)
		led_alloc(__func__, malloc(587), 587);
	free(led_free(led_alloc(__func__, malloc(593), 593)));
	free(led_free(led_alloc(__func__, calloc(3, 599), 3 * 599)));
}

int main(void)
{
	e2e_ready();
	site_mallocx();
	site_dallocx();
	site_sdallocx();
	site_rallocx(site_mallocx_for_rallocx());
	site_xallocx();
	site_je_malloc();
	e2e_done();
	return 0;
}
