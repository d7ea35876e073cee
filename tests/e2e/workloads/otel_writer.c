/* SPDX-License-Identifier: MIT */
/*
 * otel_writer.c - a program with OpenTelemetry's thread context (OTEP 4947) and process context
 * (OTEP 4719), written from their texts.
 *
 * Without a definition the program has the thread-local pointer itself; -DLIBRARY is a library
 * with the pointer and a function that sets it, -DLINKED the program for it, -DDLOPEN the program
 * that opens the library that is its first argument. -DSCOPE: without the pointer, through the record
 * of heaptap/scope.h, which may hold the same labels. E2E_MODE=anon publishes in an anonymous
 * mapping with a name instead of a memfd. Sites tell the labels that must be found on them:
 *	site_none, site_invalid		none
 *	site_a		http_route=/a http_method=GET
 *	site_b		http_route=/b key-9=nine (index 9 has no name)
 *	site_last	http_route=/c (said twice)
 *	site_late	tenant=t1 (a key that is published later)
 *	site_worker	as site_b, on another thread
 */
#if defined(SCOPE)
#include <heaptap/scope.h>

static void otel_set(void *record)
{
	heaptap_set_kv(record);
}
#elif defined(LIBRARY) || !(defined(LINKED) || defined(DLOPEN))
__attribute__((visibility("default"))) __thread void *volatile otel_thread_ctx_v1;

__attribute__((visibility("default"), noinline)) void otel_set(void *record);
void otel_set(void *record)
{
	__asm__ volatile("" ::: "memory");
	otel_thread_ctx_v1 = record;
	__asm__ volatile("" ::: "memory");
}
#endif

#ifndef LIBRARY
#include <dlfcn.h>
#include <sys/mman.h>

#include "tag_sites.h"

#ifdef DLOPEN
static void (*otel_set)(void *record);
#elif defined(LINKED)
void otel_set(void *record);
#endif

struct record {
	uint8_t trace_id[16], span_id[8];
	uint8_t valid, flags;
	uint16_t attr_bytes;
	uint8_t attr[100];
} __attribute__((packed, aligned(2)));
_Static_assert(sizeof(struct record) == 128, "attributes begin at 28");

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	volatile uint64_t published_ns;
	uint64_t payload_addr;
};

SITE_OF(none)
SITE_OF(invalid)
SITE_OF(a)
SITE_OF(b)
SITE_OF(last)
SITE_OF(late)
SITE_OF(worker)
SITE_OF(untouched)

static void set_attr(struct record *r, int key, const char *value)
{
	size_t len = strlen(value), at = r->attr_bytes;

	if (at + 2 + len > sizeof(r->attr))
		led_die("otel_writer: too many attributes\n");
	r->attr[at] = (uint8_t)key;
	r->attr[at + 1] = (uint8_t)len;
	memcpy(r->attr + at + 2, value, len);
	r->attr_bytes = (uint16_t)(at + 2 + len);
}

/* A span of its own, which must make no difference. */
static void begin_record(struct record *r)
{
	static int spans;

	memset(r, 0, sizeof(*r));
	r->trace_id[0] = 1;
	r->span_id[7] = (uint8_t)++spans;
	r->valid = 1;
}

static size_t put(uint8_t *to, size_t at, int field, const void *data, size_t bytes)
{
	to[at++] = (uint8_t)(field << 3 | 2);
	to[at++] = (uint8_t)bytes; /* all here is below 128 */
	memcpy(to + at, data, bytes);
	return at + bytes;
}

/* A ProcessContext with the first cnt keys. */
static size_t encode(uint8_t *to, const char *const *keys, int cnt)
{
	static const char schema_key[] = "threadlocal.schema_version", schema[] = "tlsdesc_v1_dev";
	static const char map_key[] = "threadlocal.attribute_key_map";
	uint8_t kv[256], any[256], array[256];
	size_t n, kv_n, array_n = 0;

	n = put(any, 0, 1, schema, sizeof(schema) - 1);
	kv_n = put(kv, 0, 1, schema_key, sizeof(schema_key) - 1);
	kv_n = put(kv, kv_n, 2, any, n);
	n = put(to, 0, 2, kv, kv_n);
	for (int i = 0; i < cnt; i++) {
		size_t any_n = put(any, 0, 1, keys[i], strlen(keys[i]));

		array_n = put(array, array_n, 1, any, any_n);
	}
	array_n = put(any, 0, 5, array, array_n);
	kv_n = put(kv, 0, 1, map_key, sizeof(map_key) - 1);
	kv_n = put(kv, kv_n, 2, any, array_n);
	return put(to, n, 2, kv, kv_n);
}

/* The first call makes the mapping, later ones update it. */
static void publish(int cnt)
{
	static const char *const keys[] = { "http_route", "http_method", "tenant" };
	static uint8_t payload[2][512];
	static struct header *h;
	static int updates;
	uint8_t *to = payload[updates % 2];
	size_t bytes = encode(to, keys, cnt);
	const char *mode = getenv("E2E_MODE");
	int fd = mode && !strcmp(mode, "anon") ? -1 : memfd_create("OTEL_CTX", MFD_CLOEXEC);

	if (!h) {
		if (fd >= 0 && ftruncate(fd, sizeof(*h)))
			led_die("otel_writer: ftruncate\n");
		h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
		if (h == MAP_FAILED)
			led_die("otel_writer: mmap\n");
		memcpy(h->signature, "OTEL_CTX", 8);
		h->version = 2;
		madvise(h, sizeof(*h), MADV_DONTFORK);
	}
	h->published_ns = 0;
	__sync_synchronize();
	h->payload_addr = (uintptr_t)to;
	h->payload_bytes = (uint32_t)bytes;
	__sync_synchronize();
	h->published_ns = 1000000 + (uint64_t)updates++;
	prctl(0x53564d41, 0, h, sizeof(*h), "OTEL_CTX"); /* PR_SET_VMA, PR_SET_VMA_ANON_NAME */
	if (fd >= 0)
		close(fd);
}

static void *work(void *arg)
{
	led_name_thread("worker");
	otel_set(arg);
	site_worker(401);
	otel_set(NULL);
	return NULL;
}

/* It never uses the variable: a thread may have no block for it at all. */
static void *leave_alone(void *arg)
{
	led_name_thread("untouched");
	site_untouched(503);
	return arg;
}

static void in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg))
		led_die("otel_writer: pthread_create\n");
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	static struct record a, b, last, late;

#ifdef DLOPEN
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (library)
		otel_set = (void (*)(void *))dlsym(library, "otel_set");
	if (!library || !otel_set)
		led_die("otel_writer: the library cannot be opened\n");
#else
	(void)argc;
	(void)argv;
#endif
	publish(2);
	otel_set(NULL);
	e2e_ready();
	site_none(101);
	begin_record(&a);
	set_attr(&a, 0, "/a");
	set_attr(&a, 1, "GET");
	otel_set(&a);
	site_a(103);
	begin_record(&b);
	set_attr(&b, 0, "/b");
	set_attr(&b, 9, "nine");
	otel_set(&b);
	site_b(107);
	begin_record(&last);
	set_attr(&last, 0, "/old");
	set_attr(&last, 0, "/c");
	otel_set(&last);
	site_last(109);
	last.valid = 0;
	__asm__ volatile("" ::: "memory");
	site_invalid(113);
	begin_record(&a); /* the span of another request: the same labels */
	set_attr(&a, 0, "/a");
	set_attr(&a, 1, "GET");
	otel_set(&a);
	site_a(103);
	publish(3);
	begin_record(&late);
	set_attr(&late, 2, "t1");
	otel_set(&late);
	site_late(127);
	in_thread(work, &b);
	in_thread(leave_alone, NULL);
	otel_set(NULL);
	site_none(101);
	e2e_done();
	return 0;
}
#endif
