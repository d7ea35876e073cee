/* SPDX-License-Identifier: MIT */
/*
 * family.c - every entry point of the malloc family, each at a site of its own, a prime number of
 * times, with successes and failures. Blocks of all sites stay or go as the arithmetic in main()
 * says. E2E_THREADS=N does the whole of it in N threads named w0, w1, ...
 */
#include <errno.h>
#include <malloc.h>

#include "ledger.h"

#define KEEP 13
#define DROP 5

static size_t huge(void)
{
	return OPAQUE((size_t)PTRDIFF_MAX / 2);
}

SITE void site_malloc(void)
{
	void *p[KEEP + DROP];

	for (int i = 0; i < KEEP + DROP; i++)
		p[i] = led_alloc(__func__, malloc(1009), 1009);
	for (int i = 0; i < DROP; i++)
		free(led_free(p[i * 3]));
}

SITE void site_malloc_large(void)
{
	void *p[7];

	for (int i = 0; i < 7; i++)
		p[i] = led_alloc(__func__, malloc(1048583 + i), 1048583 + i);
	free(led_free(p[2]));
	free(led_free(p[4]));
}

/* E2E_NO_EMPTY=1: without blocks of 0 bytes, which a tap never samples. E2E_NO_ALIGNED=1: without memalign(),
 * aligned_alloc() and valloc(), which a tap of musl does not see. */
static int no_empty;

SITE void site_malloc_zero(void)
{
	for (int i = 0; i < 11 && !no_empty; i++)
		led_alloc(__func__, malloc(OPAQUE((size_t)0)), 0);
}

SITE void site_malloc_fail(void)
{
	for (int i = 0; i < 3; i++)
		if (led_alloc(__func__, malloc(huge()), huge()))
			led_die("family: a huge malloc succeeded\n");
	led_alloc(__func__, malloc(101), 101);
}

SITE void site_calloc(void)
{
	void *p[KEEP];

	for (int i = 0; i < KEEP; i++)
		p[i] = led_alloc(__func__, calloc(17, 61), 17 * 61);
	for (int i = 0; i < DROP; i++)
		free(led_free(p[i]));
}

SITE void site_calloc_overflow(void)
{
	for (int i = 0; i < 5; i++)
		if (led_alloc(__func__, calloc(OPAQUE(SIZE_MAX / 2), OPAQUE((size_t)3)), 1))
			led_die("family: an overflowing calloc succeeded\n");
	if (!no_empty)
		led_alloc(__func__, calloc(OPAQUE((size_t)0), 7), 0);
	led_alloc(__func__, calloc(1, 103), 103);
}

SITE void *site_realloc_null(void)
{
	struct led_block b = led_take(NULL);

	return led_settle(__func__, &b, realloc(NULL, 211), 211);
}

SITE void *site_realloc_grow(void *p, size_t size)
{
	struct led_block b = led_take(p);

	return led_settle(__func__, &b, realloc(p, size), size);
}

SITE void *site_realloc_shrink(void *p, size_t size)
{
	struct led_block b = led_take(p);

	return led_settle(__func__, &b, realloc(p, size), size);
}

/* The block stays with whom it was. */
SITE void site_realloc_fail(void *p)
{
	struct led_block b = led_take(p);

	if (led_settle(__func__, &b, realloc(p, huge()), huge()))
		led_die("family: a huge realloc succeeded\n");
}

SITE void site_realloc_zero(void *p)
{
	struct led_block b = led_take(p);

	led_settle(__func__, &b, realloc(p, OPAQUE((size_t)0)), 0);
}

SITE void site_reallocarray(void)
{
	struct led_block b = led_take(NULL);
	void *p = led_settle(__func__, &b, reallocarray(NULL, 13, 53), 13 * 53);

	b = led_take(p);
	p = led_settle(__func__, &b, reallocarray(p, 29, 53), 29 * 53);
	b = led_take(p);
	if (led_settle(__func__, &b, reallocarray(p, OPAQUE(SIZE_MAX / 2), OPAQUE((size_t)53)), 1))
		led_die("family: an overflowing reallocarray succeeded\n");
}

SITE void site_posix_memalign(void)
{
	void *p;

	for (int i = 0; i < 7; i++)
		if (!posix_memalign(&p, 64 << i, 307))
			led_alloc(__func__, p, 307);
	if (!posix_memalign(&p, 64, 311))
		free(led_free(led_alloc(__func__, p, 311)));
}

SITE void site_posix_memalign_einval(void)
{
	void *p = NULL;

	for (int i = 0; i < 3; i++) {
		if (posix_memalign(&p, OPAQUE((size_t)3), 313) != EINVAL)
			led_die("family: a bad alignment was accepted\n");
		if (posix_memalign(&p, OPAQUE((size_t)64), huge()) != ENOMEM)
			led_die("family: a huge posix_memalign succeeded\n");
	}
	if (!posix_memalign(&p, 32, 317))
		led_alloc(__func__, p, 317);
}

SITE void site_aligned_alloc(void)
{
	for (int i = 0; i < 5; i++)
		led_alloc(__func__, aligned_alloc(128, 384), 384);
	free(led_free(led_alloc(__func__, aligned_alloc(4096, 8192), 8192)));
}

SITE void site_memalign(void)
{
	led_alloc(__func__, memalign(8, 331), 331);
	led_alloc(__func__, memalign(16, 337), 337);
	led_alloc(__func__, memalign(65536, 347), 347);
	led_alloc(__func__, memalign(1 << 21, 349), 349);
	free(led_free(led_alloc(__func__, memalign(4096, 353), 353)));
}

SITE void site_valloc(void)
{
	led_alloc(__func__, valloc(359), 359);
	free(led_free(led_alloc(__func__, valloc(367), 367)));
}

#ifdef __GLIBC__
SITE void site_pvalloc(void)
{
	led_alloc(__func__, pvalloc(373), 373);
	led_alloc(__func__, pvalloc(4099), 4099);
}
#endif

SITE void site_strdup(const char *text)
{
	for (int i = 0; i < 7; i++)
		led_alloc(__func__, strdup(text), strlen(text) + 1);
	led_alloc(__func__, strndup(text, 5), 6);
}

SITE void site_free_null(void)
{
	for (int i = 0; i < 5; i++)
		free(OPAQUE((void *)NULL));
}

/* The same address again and again: a free that was missed would show. */
SITE void site_reuse(void)
{
	for (int i = 0; i < 1009; i++)
		free(led_free(led_alloc(__func__, malloc(64), 64)));
	led_alloc(__func__, malloc(64), 64);
}

/* Called from two places: two stacks, one site. */
SITE void *site_shared(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

HELPER void via_one(void)
{
	for (int i = 0; i < 3; i++)
		site_shared(401);
}

HELPER void via_two(void)
{
	for (int i = 0; i < 5; i++)
		site_shared(409);
}

HELPER void deep(int depth)
{
	if (depth)
		deep(depth - 1);
	else
		site_shared(419);
	__asm__ volatile("");
}

HELPER void reallocs(void)
{
	void *p, *q;

	site_realloc_null();
	p = site_realloc_null(); /* moves to grow, then to shrink */
	p = site_realloc_grow(p, 100003);
	site_realloc_shrink(p, 37);
	p = site_realloc_null();
	p = site_realloc_grow(p, 1000003); /* mapped, then remapped */
	p = site_realloc_grow(p, 5000011);
	site_realloc_fail(p);
	q = site_realloc_null();
	if (no_empty)
		free(led_free(q)); /* what realloc(q, 0) gives is a block of 0 bytes to some */
	else
		site_realloc_zero(q);
}

static void all(void)
{
	site_malloc();
	site_malloc_large();
	site_malloc_zero();
	site_malloc_fail();
	site_calloc();
	site_calloc_overflow();
	reallocs();
	site_reallocarray();
	site_posix_memalign();
	site_posix_memalign_einval();
	if (!getenv("E2E_NO_ALIGNED")) {
		site_aligned_alloc();
		site_memalign();
		site_valloc();
	}
#ifdef __GLIBC__
	site_pvalloc();
#endif
	site_strdup("nineteen characters");
	site_free_null();
	site_reuse();
	via_one();
	via_two();
	deep(41);
}

static void check(void)
{
	e2e_self_check("site_malloc", 13 * 1009, 13);
	e2e_self_check("site_malloc_large", 5 * 1048583 + 0 + 1 + 3 + 5 + 6, 5);
	e2e_self_check("site_malloc_zero", 0, no_empty ? 0 : 11);
	e2e_self_check("site_malloc_fail", 101, 1);
	e2e_self_check("site_calloc", 8 * 1037, 8);
	e2e_self_check("site_calloc_overflow", 103, no_empty ? 1 : 2);
	e2e_self_check("site_realloc_null", 211, 1);
	e2e_self_check("site_realloc_grow", 5000011, 1);
	e2e_self_check("site_realloc_shrink", 37, 1);
	e2e_self_check("site_reallocarray", 29 * 53, 1);
	e2e_self_check("site_posix_memalign", 7 * 307, 7);
	e2e_self_check("site_posix_memalign_einval", 317, 1);
	if (!getenv("E2E_NO_ALIGNED")) {
		e2e_self_check("site_aligned_alloc", 5 * 384, 5);
		e2e_self_check("site_memalign", 331 + 337 + 347 + 349, 4);
		e2e_self_check("site_valloc", 359, 1);
	}
	e2e_self_check("site_strdup", 7 * 20 + 6, 8);
	e2e_self_check("site_reuse", 64, 1);
	e2e_self_check("site_shared", 3 * 401 + 5 * 409 + 419, 9);
}

static void *run(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "w%d", (int)(intptr_t)arg);
	led_name_thread(name);
	all();
	check();
	return NULL;
}

int main(void)
{
	const char *threads = getenv("E2E_THREADS");
	int n = threads ? (int)strtol(threads, NULL, 10) : 0;
	pthread_t thread[256];

	no_empty = getenv("E2E_NO_EMPTY") != NULL;
	if (n > (int)(sizeof(thread) / sizeof(*thread)))
		led_die("family: too many threads\n");
	e2e_ready();
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)(intptr_t)i))
			led_die("family: no thread\n");
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	if (!n) {
		all();
		check();
	}
	e2e_done();
	return 0;
}
