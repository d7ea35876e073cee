/* SPDX-License-Identifier: MIT */
/* tag_sites.h - call sites of programs with tags: SITE_OF(name) is one that keeps five of seven blocks. */
#ifndef E2E_TAG_SITES_H
#define E2E_TAG_SITES_H

#include "ledger.h"

#define KEEP 5
#define TRIES 7
static void *kept[16 * TRIES];
static int kept_cnt;

/* Exported, so that a stripped program has names for them. */
#define SITE_OF(name)                                                           \
	__attribute__((noipa)) void site_##name(size_t size)                    \
	{                                                                       \
		for (int i = 0; i < TRIES; i++) {                               \
			void *p = led_alloc("site_" #name, malloc(size), size); \
			if (i < KEEP)                                           \
				kept[__atomic_fetch_add(&kept_cnt, 1, 5)] = p;  \
			else                                                    \
				free(led_free(p));                              \
		}                                                               \
		__asm__ volatile("");                                           \
	}

#endif
