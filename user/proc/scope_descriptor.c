/* SPDX-License-Identifier: MIT */
/*
 * scope_descriptor.c - checks the descriptor of a program's scopes.
 *
 * The major version is checked before anything that it may change. The BPF side may rely on what is accepted
 * here, but must not be harmed when it becomes wrong later: the program can change the bytes at any time, so
 * the BPF reader checks every index again.
 */
#include "proc/tag_sources.h"

#include "base/err.h"
#include "heaptap/abi.h"
#include "proc/process.h"

#define MAGIC "HEAPTAP" /* and its zero: 8 bytes */
#define RECORD_BYTES 32
#define NODE_BYTES 32
#define CHUNK_SHIFT 12
#define CHUNKS_CAP 64U

static uint16_t get_u16(const uint8_t *raw, size_t off)
{
	uint16_t v;

	memcpy(&v, raw + off, sizeof(v));
	return v;
}

static uint32_t get_u32(const uint8_t *raw, size_t off)
{
	uint32_t v;

	memcpy(&v, raw + off, sizeof(v));
	return v;
}

static uint64_t get_u64(const uint8_t *raw, size_t off)
{
	uint64_t v;

	memcpy(&v, raw + off, sizeof(v));
	return v;
}

static bool is_zero(const uint8_t *raw, size_t bytes)
{
	return !raw[0] && !memcmp(raw, raw + 1, bytes - 1);
}

/* Do the sizes have the values that they have in every version 1? */
static int check_layout(const uint8_t *raw, struct err *why)
{
	static const struct {
		const char *what;
		uint8_t off, bytes;
		uint16_t expected;
	} fields[] = {
		{ "size", 6, 2, SCOPE_DESCRIPTOR_BYTES }, { "record size", 16, 2, RECORD_BYTES },
		{ "node size", 18, 2, NODE_BYTES },	  { "pointer size", 21, 1, 8 },
		{ "chunk shift", 56, 4, CHUNK_SHIFT },
	};
	size_t i;

	for (i = 0; i < ARRAY_CNT(fields); i++) {
		uint32_t v = 0;

		memcpy(&v, raw + fields[i].off, fields[i].bytes);
		if (v == fields[i].expected)
			continue;
		return err_set(why, -EPROTO, "its %s is %u instead of %u", fields[i].what, v,
			       fields[i].expected);
	}
	return 0;
}

static int check_values(const struct scope_descriptor *d, struct err *why)
{
	if (d->tls_mode > HT_TLS_REGISTRY)
		return err_set(why, -EPROTO, "its TLS mode %u is unknown in version %u",
			       d->tls_mode, SCOPE_DESCRIPTOR_MAJOR);
	if (d->node_capacity > CHUNKS_CAP << CHUNK_SHIFT || d->node_cnt > d->node_capacity)
		return err_set(why, -EPROTO, "it has %u nodes of %u; the limit is %u", d->node_cnt,
			       d->node_capacity, CHUNKS_CAP << CHUNK_SHIFT);
	if (d->tls_mode == HT_TLS_STATIC && (d->tls_off > INT32_MAX || d->tls_off < INT32_MIN))
		return err_set(why, -EPROTO, "its record is %lld bytes from the thread pointer",
			       (long long)d->tls_off);
	return 0;
}

int scope_descriptor_parse(const uint8_t raw[static SCOPE_DESCRIPTOR_BYTES],
			   struct scope_descriptor *ret, struct err *why)
{
	struct scope_descriptor d;
	int err;

	/* The first two bytes belong to the kernel: it counts attached probes there. */
	if (is_zero(raw + 2, 22))
		return -EAGAIN;
	if (memcmp(raw + 8, MAGIC, sizeof(MAGIC)))
		return err_set(why, -EBADMSG, "no scope descriptor at the address of the probe");
	if (get_u16(raw, 2) != SCOPE_DESCRIPTOR_MAJOR)
		return err_set(why, -EPROTO,
			       "it has version %u.%u of the scope ABI, this heaptap reads %u.x",
			       get_u16(raw, 2), get_u16(raw, 4), SCOPE_DESCRIPTOR_MAJOR);
	d = (struct scope_descriptor){
		.minor = get_u16(raw, 4),
		.tls_mode = raw[20],
		.flags = get_u16(raw, 22),
		.tls_off = (int64_t)get_u64(raw, 24),
		.dtv_module = get_u64(raw, 32),
		.dtv_off = get_u64(raw, 40),
		.node_capacity = get_u32(raw, 48),
		.node_cnt = get_u32(raw, 52),
		.overflows = get_u32(raw, 60),
		.underflows = get_u32(raw, 72),
		.truncations = get_u32(raw, 76),
		.init_pid = get_u32(raw, 80),
		.epoch = get_u32(raw, 84),
		.registry_addr = get_u64(raw, 88),
	};
	err = check_layout(raw, why);
	if (!err)
		err = check_values(&d, why);
	if (!err)
		*ret = d;
	return err;
}

int scope_descriptor_read(struct reader *reader, pid_t tid, uint64_t addr,
			  struct scope_descriptor *ret, struct err *why)
{
	uint8_t raw[SCOPE_DESCRIPTOR_BYTES];
	int err = process_memory_read(reader, tid, addr, raw, sizeof(raw));

	return err ? err : scope_descriptor_parse(raw, ret, why);
}
