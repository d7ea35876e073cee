/* SPDX-License-Identifier: MIT */
/*
 * custom_labels.c - a program with Polar Signals' custom labels, ABI version 1, written from its
 * text. Definitions as in otel_writer.c; -DABI=2 says another version.
 *	site_none, site_empty		no labels
 *	site_a				user=me team=red
 *	site_first			user=me (a stale copy at the end says otherwise; one is deleted)
 *	site_many			k0=v0 to k9=v9, k10 and k11 are beyond what is read
 *	site_long			short=s (beside it a key of 80 and a value of 300 bytes, too long)
 */
#include <stddef.h>

struct text {
	size_t len;
	const unsigned char *buf;
};

struct label {
	struct text key, value;
};

struct label_set {
	struct label *storage;
	size_t count, capacity;
};

#ifndef ABI
#define ABI 1
#endif
#define EXPORTED __attribute__((visibility("default"), used))

#if defined(LIBRARY) || !(defined(LINKED) || defined(DLOPEN))
EXPORTED unsigned int custom_labels_abi_version = ABI;
EXPORTED __thread struct label_set *volatile custom_labels_current_set;

EXPORTED __attribute__((noinline)) void labels_set(struct label_set *set);
void labels_set(struct label_set *set)
{
	__asm__ volatile("" ::: "memory");
	custom_labels_current_set = set;
	__asm__ volatile("" ::: "memory");
}
#endif

#ifndef LIBRARY
#include <dlfcn.h>

#include "tag_sites.h"

#ifdef DLOPEN
static void (*labels_set)(struct label_set *set);
#elif defined(LINKED)
void labels_set(struct label_set *set);
#endif

SITE_OF(none)
SITE_OF(empty)
SITE_OF(a)
SITE_OF(first)
SITE_OF(many)
SITE_OF(long)

static struct text text_of(const char *s)
{
	return (struct text){ strlen(s), (const unsigned char *)s };
}

static void add(struct label_set *set, const char *key, const char *value)
{
	set->storage[set->count++] = (struct label){ text_of(key), text_of(value) };
}

int main(int argc, char **argv)
{
	static struct label storage[5][12];
	static struct label_set empty, a = { storage[0], 0, 12 }, first = { storage[1], 0, 12 },
				       many = { storage[2], 0, 12 }, lng = { storage[3], 0, 12 };
	static char names[12][2][4], key[81], value[301];

#ifdef DLOPEN
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (library)
		labels_set = (void (*)(struct label_set *))dlsym(library, "labels_set");
	if (!library || !labels_set)
		led_die("custom_labels: the library cannot be opened\n");
#else
	(void)argc;
	(void)argv;
#endif
	add(&a, "user", "me");
	add(&a, "team", "red");
	add(&first, "user", "me");
	add(&first, "gone", "x");
	first.storage[1].key.buf = NULL; /* what a deletion leaves */
	add(&first, "user", "stale");
	for (int i = 0; i < 12; i++) {
		snprintf(names[i][0], 4, "k%d", i);
		snprintf(names[i][1], 4, "v%d", i);
		add(&many, names[i][0], names[i][1]);
	}
	memset(key, 'k', 80);
	memset(value, 'v', 300);
	add(&lng, key, "x");
	add(&lng, "value", value);
	add(&lng, "short", "s");
	labels_set(NULL);
	e2e_ready();
	site_none(101);
	labels_set(&empty);
	site_empty(103);
	labels_set(&a);
	site_a(107);
	labels_set(&first);
	site_first(109);
	labels_set(&many);
	site_many(113);
	labels_set(&lng);
	site_long(127);
	labels_set(NULL);
	site_none(101);
	e2e_done();
	return 0;
}
#endif
