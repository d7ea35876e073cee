/* SPDX-License-Identifier: MIT */
/*
 * tag_labels.c - decode raw label bytes to keys and values.
 *
 * Two entries may have the same key. With numbered keys (OpenTelemetry) the last one counts, because a writer appends.
 * Custom labels say that the first one counts, because a writer that is interrupted in the middle of a deletion leaves
 * a stale copy at the end.
 *
 * OpenTelemetry's specification wants entries ignored whose key index is not in the table. Here they are shown by
 * number instead: the table is read seldom, keys are only ever added to it, and bytes that were tagged are better shown
 * under "key-7" than under nothing.
 *
 * Ids of traces and spans are left out: every request has another one, so each would make rows of its own that nobody
 * can read. A published writer puts such an id into every record.
 */
#include "profile/tag_labels.h"

#include "base/strset.h"
#include "heaptap/abi.h"

#define EMPTY "(empty)"

struct decoder {
	struct strset *strings;
	struct tag_label *labels;
	int cnt;
};

void tag_keys_release(struct tag_keys *k)
{
	size_t i;

	for (i = 0; i < k->cnt; i++)
		free(k->names[i]);
	memset(k, 0, sizeof(*k));
}

static int64_t add_text(struct strset *s, const void *text, size_t len)
{
	return len ? strset_add_n(s, text, len) : strset_add(s, EMPTY);
}

/* Does the key end with "span_id", "traceId" or the like? */
static bool is_request_id(const char *key)
{
	static const char *const ends[] = { "spanid", "traceid" };
	char last[8];
	size_t used = sizeof(last) - 1, pos = strlen(key), i;

	/* the key's last letters, in lower case, without word separators */
	last[used] = '\0';
	while (pos > 0 && used > 0) {
		char c = key[--pos];

		if (c == '_' || c == '-' || c == '.')
			continue;
		last[--used] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t len = strlen(ends[i]);

		if (sizeof(last) - 1 - used >= len &&
		    !strcmp(last + sizeof(last) - 1 - len, ends[i]))
			return true;
	}
	return false;
}

uint32_t tag_keys_ids(const struct tag_keys *k)
{
	uint32_t ids = 0;
	size_t i;

	for (i = 0; i < k->cnt && i < 32; i++)
		if (k->names[i] && is_request_id(k->names[i]))
			ids |= 1U << i;
	return ids;
}

/* 0 or -ENOMEM. */
static int add_label(struct decoder *d, int64_t key_str, const void *value, size_t len,
		     bool last_wins)
{
	int64_t value_str = add_text(d->strings, value, len);
	int i;

	if (key_str < 0 || value_str < 0)
		return -ENOMEM;
	if (is_request_id(strset_get(d->strings, key_str)))
		return 0;
	for (i = 0; i < d->cnt; i++) {
		if (d->labels[i].key_str != key_str)
			continue;
		if (last_wins)
			d->labels[i].value_str = value_str;
		return 0;
	}
	if (d->cnt < TAG_LABELS_CAP)
		d->labels[d->cnt++] = (struct tag_label){ key_str, value_str };
	return 0;
}

static int64_t numbered_key(struct decoder *d, const struct tag_keys *keys, unsigned int idx)
{
	char text[16];

	if (keys && idx < keys->cnt && keys->names[idx] && *keys->names[idx])
		return strset_add(d->strings, keys->names[idx]);
	snprintf(text, sizeof(text), "key-%u", idx);
	return strset_add(d->strings, text);
}

/* {u8 key index, u8 length, value}... */
static int decode_numbered(struct decoder *d, const uint8_t *p, size_t bytes,
			   const struct tag_keys *keys)
{
	size_t pos, len;
	int err = 0;

	for (pos = 0; !err && bytes - pos >= 2; pos += 2 + len) {
		len = p[pos + 1];
		if (len > bytes - pos - 2)
			break;
		err = add_label(d, numbered_key(d, keys, p[pos]), p + pos + 2, len, true);
	}
	return err;
}

/* {u8 key length, u8 value length, key, value}... */
static int decode_custom(struct decoder *d, const uint8_t *p, size_t bytes)
{
	size_t pos, key_len, value_len;
	int err = 0;

	for (pos = 0; !err && bytes - pos >= 2; pos += 2 + key_len + value_len) {
		key_len = p[pos];
		value_len = p[pos + 1];
		if (key_len + value_len > bytes - pos - 2)
			break;
		err = add_label(d, add_text(d->strings, p + pos + 2, key_len),
				p + pos + 2 + key_len, value_len, false);
	}
	return err;
}

/* Insertion sort: a set has only a handful. */
static void sort_labels(struct decoder *d)
{
	int i, j;

	for (i = 1; i < d->cnt; i++) {
		struct tag_label l = d->labels[i];
		const char *key = strset_get(d->strings, l.key_str);

		for (j = i; j > 0; j--) {
			if (strcmp(strset_get(d->strings, d->labels[j - 1].key_str), key) <= 0)
				break;
			d->labels[j] = d->labels[j - 1];
		}
		d->labels[j] = l;
	}
}

int tag_labels_decode(const struct ht_labels *raw, const struct tag_keys *keys,
		      struct strset *strings, struct tag_label *ret)
{
	struct decoder d = { .strings = strings, .labels = ret };
	size_t bytes = raw->byte_cnt < HT_LABEL_BYTES_CAP ? raw->byte_cnt : HT_LABEL_BYTES_CAP;
	int err = raw->kind == HT_TAG_CUSTOM ? decode_custom(&d, raw->byte, bytes) :
					       decode_numbered(&d, raw->byte, bytes, keys);

	if (err)
		return err;
	sort_labels(&d);
	return d.cnt;
}
