/* SPDX-License-Identifier: MIT */
/*
 * test_otel_process_ctx.c - key names published by a process: this one.
 */
#include "unit.h"

#include <stdatomic.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "proc/tag_sources.h"
#include "proc/process.h"

#define PAYLOAD_CAP 65536

struct payload {
	uint8_t data[PAYLOAD_CAP];
	size_t bytes;
};

static void put_varint(struct payload *p, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		p->data[p->bytes++] = (uint8_t)(v | 0x80);
	p->data[p->bytes++] = (uint8_t)v;
}

static void put_bytes(struct payload *p, unsigned int field, const void *data, size_t bytes)
{
	put_varint(p, field << 3 | 2);
	put_varint(p, bytes);
	memcpy(p->data + p->bytes, data, bytes);
	p->bytes += bytes;
	assert_true(p->bytes < PAYLOAD_CAP - 100);
}

static void put_message(struct payload *p, unsigned int field, const struct payload *m)
{
	put_bytes(p, field, m->data, m->bytes);
}

/* A KeyValue with a string. */
static void put_string(struct payload *p, unsigned int field, const char *key, const char *text)
{
	struct payload *kv = calloc(1, sizeof(*kv)), *any = calloc(1, sizeof(*any));

	put_bytes(any, 1, text, strlen(text));
	put_bytes(kv, 1, key, strlen(key));
	put_message(kv, 2, any);
	put_message(p, field, kv);
	free(kv);
	free(any);
}

/* A KeyValue with an array of strings; a NULL among them is an integer. */
static void put_array(struct payload *p, unsigned int field, const char *key,
		      const char *const *texts, size_t cnt)
{
	struct payload *kv = calloc(1, sizeof(*kv)), *any = calloc(1, sizeof(*any)),
		       *array = calloc(1, sizeof(*array));
	size_t i;

	for (i = 0; i < cnt; i++) {
		any->bytes = 0;
		if (texts[i]) {
			put_bytes(any, 1, texts[i], strlen(texts[i]));
		} else {
			put_varint(any, 3 << 3 | 0);
			put_varint(any, 300);
		}
		put_message(array, 1, any);
	}
	any->bytes = 0;
	put_message(any, 5, array);
	put_bytes(kv, 1, key, strlen(key));
	put_message(kv, 2, any);
	put_message(p, field, kv);
	free(kv);
	free(any);
	free(array);
}

#define KEYS "threadlocal.attribute_key_map"
#define SCHEMA "threadlocal.schema_version"
static const char *const three[] = { "http_route", "http_method", "user_id" };

TEST(test_decode)
{
	static const char *const odd[] = { "a", NULL, "" };
	struct payload *p = unit_keep(calloc(1, sizeof(*p)), free),
		       *resource = unit_keep(calloc(1, sizeof(*resource)), free);
	struct tag_keys keys;

	put_string(resource, 1, "service.name", "shop");
	put_message(p, 1, resource);
	put_string(p, 2, SCHEMA, "tlsdesc_v1_dev");
	put_array(p, 2, KEYS, three, 3);
	put_string(p, 2, "something.else", "x");
	assert_int_equal(otel_process_ctx_decode(p->data, p->bytes, &keys), 0);
	assert_int_equal(keys.cnt, 3);
	assert_string_equal(keys.names[0], "http_route");
	assert_string_equal(keys.names[2], "user_id");
	tag_keys_release(&keys);

	/* without a schema, and with things that are no strings in the array */
	p->bytes = 0;
	put_array(p, 2, KEYS, odd, 3);
	assert_int_equal(otel_process_ctx_decode(p->data, p->bytes, &keys), 0);
	assert_int_equal(keys.cnt, 3);
	assert_string_equal(keys.names[0], "a");
	assert_string_equal(keys.names[1], "");
	tag_keys_release(&keys);

	/* the keys of another mechanism */
	put_string(p, 2, SCHEMA, "go_pprof_labels_v1");
	assert_int_equal(otel_process_ctx_decode(p->data, p->bytes, &keys), 0);
	assert_int_equal(keys.cnt, 0);

	/* among the resource's attributes */
	p->bytes = 0;
	put_array(resource, 1, KEYS, three, 2);
	put_string(resource, 1, SCHEMA, "tls_v1");
	put_message(p, 1, resource);
	assert_int_equal(otel_process_ctx_decode(p->data, p->bytes, &keys), 0);
	assert_int_equal(keys.cnt, 2);
	tag_keys_release(&keys);

	/* nothing for threads */
	assert_int_equal(otel_process_ctx_decode(p->data, 0, &keys), 0);
	assert_int_equal(keys.cnt, 0);
}

TEST(test_decode_damaged)
{
	struct payload *p = unit_keep(calloc(1, sizeof(*p)), free);
	const char *many[300];
	struct tag_keys keys;
	uint8_t *exact;
	size_t i;

	for (i = 0; i < 300; i++)
		many[i] = "k";
	put_array(p, 2, KEYS, many, 300);
	assert_int_equal(otel_process_ctx_decode(p->data, p->bytes, &keys), 0);
	assert_int_equal(keys.cnt, TAG_KEYS_CAP);
	tag_keys_release(&keys);

	p->bytes = 0;
	put_string(p, 2, SCHEMA, "tls_v1");
	put_array(p, 2, KEYS, three, 3);
	for (i = 1; i < p->bytes; i++) {
		/* exact size, so that the sanitizer sees a read behind it */
		exact = malloc(i);
		memcpy(exact, p->data, i);
		if (!otel_process_ctx_decode(exact, i, &keys))
			tag_keys_release(&keys);
		free(exact);
	}
	for (i = 0; i < p->bytes; i++) {
		p->data[i] ^= 0xff;
		if (!otel_process_ctx_decode(p->data, p->bytes, &keys))
			tag_keys_release(&keys);
		p->data[i] ^= 0xff;
	}
	assert_int_equal(otel_process_ctx_decode((const uint8_t *)"\xff", 1, &keys), -EPROTO);
	assert_int_equal(otel_process_ctx_decode((const uint8_t *)"\x12\x05", 2, &keys), -EPROTO);
	assert_int_equal(otel_process_ctx_decode((const uint8_t *)"\x13", 1, &keys), -EPROTO);
}

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	_Atomic uint64_t published_ns;
	uint64_t payload_addr;
};

static struct header *publish(const struct payload *p, bool memfd)
{
	struct header *h;
	int fd = -1;

	if (memfd) {
		fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, sizeof(*h)), 0);
		h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		close(fd);
	} else {
		h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	}
	assert_true(h != MAP_FAILED);
	memcpy(h->signature, "OTEL_CTX", 8);
	h->version = 2;
	h->payload_bytes = (uint32_t)p->bytes;
	h->payload_addr = (uintptr_t)p->data;
	h->published_ns = 1000;
	return h;
}

static int read_self(uint64_t known_ns, struct otel_process_ctx *ret)
{
	struct proc_maps maps = { 0 };
	int err;

	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	err = otel_process_ctx_read(NULL, getpid(), &maps, known_ns, ret);
	proc_maps_release(&maps);
	return err;
}

static void check_header(struct header *h)
{
	struct otel_process_ctx ctx;
	uint64_t addr = h->payload_addr;
	uint32_t bytes = h->payload_bytes;

	assert_int_equal(read_self(0, &ctx), 0);
	assert_int_equal(ctx.published_ns, 1000);
	assert_int_equal(ctx.keys.cnt, 3);
	assert_string_equal(ctx.keys.names[1], "http_method");
	tag_keys_release(&ctx.keys);
	assert_int_equal(read_self(1000, &ctx), -EALREADY);
	assert_int_equal(read_self(999, &ctx), 0);
	tag_keys_release(&ctx.keys);
	h->published_ns = 0;
	assert_int_equal(read_self(0, &ctx), -EAGAIN);
	h->published_ns = 1001;
	h->version = 1;
	assert_int_equal(read_self(0, &ctx), -EPROTO);
	h->version = 2;
	h->payload_addr = 8;
	assert_int_equal(read_self(0, &ctx), -EFAULT);
	h->payload_addr = addr;
	h->payload_bytes = 0;
	assert_int_equal(read_self(0, &ctx), -EPROTO);
	h->payload_bytes = UINT32_MAX;
	assert_int_equal(read_self(0, &ctx), -EPROTO);
	h->payload_bytes = bytes;
	h->signature[0] = 'o';
	assert_int_equal(read_self(0, &ctx), -EPROTO);
	h->signature[0] = 'O';
	assert_int_equal(read_self(0, &ctx), 0);
	tag_keys_release(&ctx.keys);
}

TEST(test_process)
{
	struct payload *p = unit_keep(calloc(1, sizeof(*p)), free);
	struct otel_process_ctx ctx;
	struct header *h;

	put_string(p, 2, SCHEMA, "tls_v1");
	put_array(p, 2, KEYS, three, 3);
	assert_int_equal(read_self(0, &ctx), -ENOENT);
	h = publish(p, true);
	check_header(h);
	munmap(h, sizeof(*h));
	assert_int_equal(read_self(0, &ctx), -ENOENT);
	h = publish(p, false);
	/* 0x53564d41: PR_SET_VMA, 0: PR_SET_VMA_ANON_NAME */
	if (prctl(0x53564d41, 0, h, sizeof(*h), "OTEL_CTX"))
		print_message("this kernel does not name mappings\n");
	else
		check_header(h);
	munmap(h, sizeof(*h));
}

/* Updates while it is read: what comes out is one of the two tables, never a mixture. */
struct updater {
	struct header *h;
	struct payload *even, *odd;
	atomic_bool stop;
};

static void *update(void *arg)
{
	struct updater *u = arg;
	uint64_t ns = 1000;

	while (!u->stop) {
		const struct payload *p = ++ns % 2 ? u->odd : u->even;

		u->h->published_ns = 0;
		((volatile struct header *)u->h)->payload_addr = (uintptr_t)p->data;
		((volatile struct header *)u->h)->payload_bytes = (uint32_t)p->bytes;
		u->h->published_ns = ns;
		if (ns % 16 == 0)
			usleep(20);
	}
	return NULL;
}

TEST(test_updates)
{
	struct payload *even = calloc(1, sizeof(*even)), *odd = calloc(1, sizeof(*odd));
	struct updater u = { .even = even, .odd = odd };
	struct otel_process_ctx ctx;
	pthread_t thread;
	int i, good = 0;

	put_array(even, 2, KEYS, three, 3);
	put_array(odd, 2, KEYS, three, 1);
	u.h = publish(even, true);
	assert_int_equal(pthread_create(&thread, NULL, update, &u), 0);
	for (i = 0; i < 300; i++) {
		int err = read_self(0, &ctx);

		if (err == -EAGAIN)
			continue;
		assert_int_equal(err, 0);
		good++;
		if (ctx.published_ns != 1000)
			assert_int_equal(ctx.keys.cnt, ctx.published_ns % 2 ? 1 : 3);
		tag_keys_release(&ctx.keys);
	}
	u.stop = true;
	pthread_join(thread, NULL);
	assert_true(good > 0);
	munmap(u.h, sizeof(*u.h));
	free(even);
	free(odd);
}

RUN_TESTS()
