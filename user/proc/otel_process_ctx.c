/* SPDX-License-Identifier: MIT */
/*
 * otel_process_ctx.c - reads the names of the thread-context keys that a process publishes.
 *
 * The protobuf is read by a cursor over the received bytes: four message types with one or two fields of
 * interest do not need generated code. No allocation here has a size that the other side chooses.
 */
#include "proc/tag_sources.h"

#include "base/names.h"
#include "proc/process.h"

#define SIGNATURE "OTEL_CTX"
#define HEADER_VERSION 2
#define TRIES 4
#define NAME_BYTES_CAP 255

struct header {
	char signature[8];
	uint32_t version;
	uint32_t payload_bytes;
	uint64_t published_ns; /* 0: the header is being written */
	uint64_t payload_addr;
};
_Static_assert(sizeof(struct header) == 32, "layout of OTEP 4719");

/* A message, or the rest of it. */
struct cursor {
	const uint8_t *p, *end;
};

/* A field of the wire format; only length-delimited fields have data. */
struct field {
	uint32_t number;
	bool has_data;
	struct cursor data;
};

static bool take_varint(struct cursor *c, uint64_t *ret)
{
	unsigned int shift;

	*ret = 0;
	for (shift = 0; shift < 64 && c->p < c->end; shift += 7) {
		uint8_t byte = *c->p++;

		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* 1: a field, 0: the end, -EPROTO. */
static int take_field(struct cursor *c, struct field *ret)
{
	uint64_t tag, v;

	if (c->p == c->end)
		return 0;
	if (!take_varint(c, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
		return -EPROTO;
	*ret = (struct field){ .number = (uint32_t)(tag >> 3) };
	switch (tag & 7) {
	case 0:
		return take_varint(c, &v) ? 1 : -EPROTO;
	case 1:
		v = 8;
		break;
	case 2:
		if (!take_varint(c, &v))
			return -EPROTO;
		ret->has_data = true;
		break;
	case 5:
		v = 4;
		break;
	default:
		return -EPROTO;
	}
	if (v > (uint64_t)(c->end - c->p))
		return -EPROTO;
	ret->data = (struct cursor){ c->p, c->p + v };
	c->p += v;
	return 1;
}

/* Find the last field with this number; *ret is empty when there is none. */
static int find_field(struct cursor message, uint32_t number, struct cursor *ret)
{
	struct field f;
	int rc;

	*ret = (struct cursor){ message.end, message.end };
	while ((rc = take_field(&message, &f)) > 0)
		if (f.number == number && f.has_data)
			*ret = f.data;
	return rc;
}

static bool is_text(struct cursor c, const char *text)
{
	return (size_t)(c.end - c.p) == strlen(text) && !memcmp(c.p, text, strlen(text));
}

/* any: an AnyValue. NULL: out of memory. */
static char *string_value(struct cursor any)
{
	struct cursor text;
	size_t bytes;

	if (find_field(any, 1, &text) < 0)
		text.p = text.end;
	bytes = (size_t)(text.end - text.p);
	return strndup((const char *)text.p, bytes < NAME_BYTES_CAP ? bytes : NAME_BYTES_CAP);
}

/* any: an AnyValue that should be an array of strings. */
static int decode_keys(struct cursor any, struct tag_keys *ret)
{
	struct cursor array;
	struct field f;
	int rc = find_field(any, 5, &array);

	if (rc < 0)
		return rc;
	while ((rc = take_field(&array, &f)) > 0) {
		if (f.number != 1 || !f.has_data || ret->cnt == TAG_KEYS_CAP)
			continue;
		ret->names[ret->cnt] = string_value(f.data);
		if (!ret->names[ret->cnt])
			return -ENOMEM;
		ret->cnt++;
	}
	return rc;
}

/* Content of one list of attributes. */
struct attributes {
	bool has_schema, is_known_schema, has_keys;
	struct cursor keys; /* an AnyValue */
};

/* Read the KeyValues in the fields `number` of message. */
static int read_attributes(struct cursor message, uint32_t number, struct attributes *ret)
{
	struct field f;
	int rc;

	while ((rc = take_field(&message, &f)) > 0) {
		struct cursor key, value, text;

		if (f.number != number || !f.has_data)
			continue;
		rc = find_field(f.data, 1, &key);
		if (rc == 0)
			rc = find_field(f.data, 2, &value);
		if (rc < 0)
			return rc;
		if (is_text(key, "threadlocal.attribute_key_map")) {
			ret->has_keys = true;
			ret->keys = value;
		} else if (is_text(key, "threadlocal.schema_version")) {
			rc = find_field(value, 1, &text);
			if (rc < 0)
				return rc;
			ret->has_schema = true;
			ret->is_known_schema =
				is_text(text, "tls_v1") || is_text(text, "tlsdesc_v1_dev");
		}
	}
	return rc;
}

int otel_process_ctx_decode(const uint8_t *payload, size_t bytes, struct tag_keys *ret)
{
	struct cursor whole = { payload, payload + bytes }, resource = { whole.end, whole.end };
	struct attributes own = { 0 }, of_resource = { 0 };
	struct tag_keys keys = { 0 };
	const struct attributes *from;
	int err;

	err = read_attributes(whole, 2, &own);
	if (!err)
		err = find_field(whole, 1, &resource);
	if (!err)
		err = read_attributes(resource, 1, &of_resource);
	if (err)
		return err;
	from = own.has_keys ? &own : &of_resource;
	if (from->has_keys && (!from->has_schema || from->is_known_schema)) {
		err = decode_keys(from->keys, &keys);
		if (err) {
			tag_keys_release(&keys);
			return err;
		}
	}
	*ret = keys;
	return 0;
}

/*
 * Read the payload of a header that was valid at published_ns and does not change meanwhile; *ret is malloc'ed.
 * Address and size are read after the time: the two halves of one read of the header may be from different
 * updates.
 */
static int read_payload(struct reader *reader, pid_t tid, uint64_t addr, uint64_t published_ns,
			uint8_t **ret, size_t *ret_bytes)
{
	struct header h, again;
	uint8_t *payload;
	int err = process_memory_read(reader, tid, addr, &h, sizeof(h));

	if (err)
		return err;
	if (h.published_ns != published_ns)
		return -EAGAIN;
	if (!h.payload_bytes || h.payload_bytes > OTEL_PAYLOAD_BYTES_CAP)
		return -EPROTO;
	payload = malloc(h.payload_bytes);
	if (!payload)
		return -ENOMEM;
	err = process_memory_read(reader, tid, h.payload_addr, payload, h.payload_bytes);
	if (!process_memory_read(reader, tid, addr, &again, sizeof(again)) &&
	    again.published_ns != published_ns)
		err = -EAGAIN;
	if (err) {
		free(payload);
		return err;
	}
	*ret = payload;
	*ret_bytes = h.payload_bytes;
	return 0;
}

/* Read the context at addr, if there is a header. */
static int read_at(struct reader *reader, pid_t tid, uint64_t addr, uint64_t known_ns,
		   struct otel_process_ctx *ret)
{
	struct tag_keys keys;
	size_t payload_bytes;
	uint8_t *payload;
	struct header h;
	int err, i;

	for (i = 0; i < TRIES; i++) {
		err = process_memory_read(reader, tid, addr, &h, sizeof(h));
		if (err)
			return err;
		if (memcmp(h.signature, SIGNATURE, sizeof(h.signature)) ||
		    h.version != HEADER_VERSION)
			return -EPROTO;
		err = -EAGAIN;
		if (!h.published_ns)
			continue;
		if (h.published_ns == known_ns)
			return -EALREADY;
		err = read_payload(reader, tid, addr, h.published_ns, &payload, &payload_bytes);
		if (err != -EAGAIN)
			break;
	}
	if (err)
		return err;
	err = otel_process_ctx_decode(payload, payload_bytes, &keys);
	free(payload);
	if (!err)
		*ret = (struct otel_process_ctx){ .published_ns = h.published_ns, .keys = keys };
	return err;
}

static bool is_named(const struct proc_map *m)
{
	/* depends on what the writer could do: memfd_create() and naming, naming, memfd_create() */
	static const char *const names[] = {
		"[anon_shmem:OTEL_CTX]",
		"[anon:OTEL_CTX]",
		"/memfd:OTEL_CTX",
	};

	return begins_with_one_of(m->path, names, ARRAY_CNT(names));
}

int otel_process_ctx_read(struct reader *reader, pid_t tid, const struct proc_maps *maps,
			  uint64_t known_ns, struct otel_process_ctx *ret)
{
	const struct proc_map *m;
	int err = -ENOENT;

	/* There should be only one; of several, take the first valid one. */
	vec_each(&maps->maps, m) {
		if (!m->is_read || !is_named(m))
			continue;
		err = read_at(reader, tid, m->start_addr, known_ns, ret);
		if (err != -EPROTO && err != -EFAULT)
			break;
	}
	return err;
}
