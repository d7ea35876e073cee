/* SPDX-License-Identifier: MIT */
/* mimalloc.c - mimalloc's own entry points. */
#include <mimalloc.h>

#include "ledger.h"

SITE void site_mi_malloc(void)
{
	for (int i = 0; i < 11; i++)
		led_alloc(__func__, mi_malloc(601), 601);
	for (int i = 0; i < 5; i++)
		mi_free(led_free(led_alloc(__func__, mi_malloc(607), 607)));
	led_alloc(__func__, mi_malloc_small(113), 113);
}

SITE void site_mi_zalloc(void)
{
	led_alloc(__func__, mi_zalloc(613), 613);
	led_alloc(__func__, mi_zalloc_small(127), 127);
	led_alloc(__func__, mi_calloc(7, 617), 7 * 617);
	led_alloc(__func__, mi_mallocn(11, 619), 11 * 619);
}

SITE void site_mi_realloc(void)
{
	struct led_block b = led_take(NULL);
	void *p = led_settle(__func__, &b, mi_realloc(NULL, 631), 631);

	b = led_take(p);
	p = led_settle(__func__, &b, mi_realloc(p, 641000), 641000);
	b = led_take(p);
	p = led_settle(__func__, &b, mi_realloc(p, 643), 643);
}

SITE void site_mi_aligned(void)
{
	void *p = NULL;

	led_alloc(__func__, mi_malloc_aligned(647, 256), 647);
	led_alloc(__func__, mi_zalloc_aligned(653, 4096), 653);
	if (!mi_posix_memalign(&p, 128, 659))
		led_alloc(__func__, p, 659);
	p = led_alloc(__func__, mi_malloc_aligned(661, 64), 661);
	mi_free_size_aligned(led_free(p), 661, 64);
	p = led_alloc(__func__, mi_malloc(673), 673);
	mi_free_size(led_free(p), 673);
}

SITE void site_mi_heap(mi_heap_t *heap)
{
	led_alloc(__func__, mi_heap_malloc(heap, 677), 677);
	led_alloc(__func__, mi_heap_zalloc(heap, 683), 683);
	led_alloc(__func__, mi_heap_calloc(heap, 3, 691), 3 * 691);
	mi_free(led_free(led_alloc(__func__, mi_heap_malloc(heap, 701), 701)));
}

SITE void site_mi_override(void)
{
	for (int i = 0; i < 7; i++)
		led_alloc(__func__, malloc(709), 709);
	free(led_free(led_alloc(__func__, malloc(719), 719)));
}

int main(void)
{
	e2e_ready();
	site_mi_malloc();
	site_mi_zalloc();
	site_mi_realloc();
	site_mi_aligned();
	if (getenv("E2E_HEAPS"))
		site_mi_heap(mi_heap_new());
	site_mi_override();
	e2e_done();
	return 0;
}
