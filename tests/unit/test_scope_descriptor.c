/* SPDX-License-Identifier: MIT */
/* test_scope_descriptor.c - the 640 bytes that a program says of its scopes, sound and not. */
#include "unit.h"

#include "base/err.h"
#include "heaptap/abi.h"
#include "proc/tag_sources.h"

static void put(uint8_t *raw, size_t off, size_t bytes, uint64_t v)
{
	memcpy(raw + off, &v, bytes);
}

/* As heaptap/scope.h has it when the program begins. */
static void make(uint8_t *raw)
{
	memset(raw, 0, SCOPE_DESCRIPTOR_BYTES);
	put(raw, 0, 2, 3); /* three probes on it */
	put(raw, 2, 2, 1);
	put(raw, 6, 2, 640);
	memcpy(raw + 8, "HEAPTAP", 8);
	put(raw, 16, 2, 32);
	put(raw, 18, 2, 32);
	put(raw, 21, 1, 8);
	put(raw, 48, 4, 262144);
	put(raw, 52, 4, 1);
	put(raw, 56, 4, 12);
}

TEST(test_sound)
{
	uint8_t raw[SCOPE_DESCRIPTOR_BYTES];
	struct scope_descriptor d;
	struct err why = { 0 };

	make(raw);
	assert_int_equal(scope_descriptor_parse(raw, &d, &why), 0);
	assert_int_equal(d.tls_mode, HT_TLS_NOT_READY);
	assert_int_equal(d.node_cnt, 1);
	put(raw, 4, 2, 7); /* a later minor version */
	put(raw, 20, 1, HT_TLS_STATIC);
	put(raw, 22, 2, 1);
	put(raw, 24, 8, (uint64_t)-96);
	put(raw, 32, 8, 2);
	put(raw, 40, 8, 0x40);
	put(raw, 52, 4, 12);
	put(raw, 60, 4, 101);
	put(raw, 72, 4, 102);
	put(raw, 76, 4, 103);
	put(raw, 80, 4, 4711);
	put(raw, 84, 4, 5);
	put(raw, 88, 8, 0x7000);
	assert_int_equal(scope_descriptor_parse(raw, &d, &why), 0);
	assert_int_equal(d.minor, 7);
	assert_int_equal(d.flags, 1);
	assert_int_equal(d.tls_mode, HT_TLS_STATIC);
	assert_int_equal(d.tls_off, -96);
	assert_int_equal(d.dtv_module, 2);
	assert_int_equal(d.dtv_off, 0x40);
	assert_int_equal(d.node_cnt, 12);
	assert_int_equal(d.node_capacity, 262144);
	assert_int_equal(d.overflows, 101);
	assert_int_equal(d.underflows, 102);
	assert_int_equal(d.truncations, 103);
	assert_int_equal(d.init_pid, 4711);
	assert_int_equal(d.epoch, 5);
	assert_int_equal(d.registry_addr, 0x7000);
	assert_string_equal(why.text, "");
	/* of this process */
	assert_int_equal(scope_descriptor_read(NULL, getpid(), (uintptr_t)raw, &d, &why), 0);
	assert_int_equal(scope_descriptor_read(NULL, getpid(), 8, &d, &why), -EFAULT);
}

TEST(test_refused)
{
	static const struct {
		size_t off, bytes;
		uint64_t v;
		const char *why;
	} cases[] = {
		{ 2, 2, 2, "version 2.0" },
		{ 2, 2, 0, "version 0.0" },
		{ 8, 1, 'h', "no scope descriptor" },
		{ 15, 1, '!', "no scope descriptor" },
		{ 6, 2, 641, "its size is 641" },
		{ 16, 2, 64, "record size is 64" },
		{ 18, 2, 0, "node size is 0" },
		{ 21, 1, 4, "pointer size is 4" },
		{ 56, 4, 0x7fffffff, "chunk shift is 2147483647" },
		{ 20, 1, 4, "TLS mode 4 is unknown" },
		{ 48, 4, 262145, "1 nodes of 262145" },
		{ 52, 4, 262145, "262145 nodes of 262144" },
	};
	uint8_t raw[SCOPE_DESCRIPTOR_BYTES];
	struct scope_descriptor d = { .minor = 99 };
	struct err why;

	each_case(c, cases) {
		make(raw);
		put(raw, c->off, c->bytes, c->v);
		why.text[0] = '\0';
		/* what a loader has not mapped yet may be anything */
		assert_int_equal(scope_descriptor_parse(raw, &d, &why),
				 c->off >= 8 && c->off < 16 ? -EBADMSG : -EPROTO);
		if (!strstr(why.text, c->why))
			fail_msg("%s: not about %s", why.text, c->why);
	}
	make(raw);
	put(raw, 20, 1, HT_TLS_STATIC);
	put(raw, 24, 8, 1ULL << 40);
	assert_int_equal(scope_descriptor_parse(raw, &d, &why), -EPROTO);
	assert_says(why.text, "1099511627776 bytes");
	assert_int_equal(d.minor, 99); /* left alone */
	/* nothing but the kernel's counter */
	memset(raw, 0, sizeof(raw));
	put(raw, 0, 2, 1);
	assert_int_equal(scope_descriptor_parse(raw, &d, &why), -EAGAIN);
}

RUN_TESTS()
