/* SPDX-License-Identifier: MIT */
/* test_tag_labels.c - raw label bytes to keys and values, sound and not. */
#include "unit.h"

#include "base/strset.h"
#include "heaptap/abi.h"
#include "profile/tag_labels.h"

/* "key=value key=value" of raw bytes, in a buffer that the next call uses again. */
static const char *shown(uint32_t kind, const char *bytes, size_t byte_cnt,
			 const struct tag_keys *keys)
{
	static char text[65536];
	struct tag_label labels[TAG_LABELS_CAP];
	struct ht_labels *raw = calloc(1, sizeof(*raw));
	struct strset *strings;
	size_t used = 0;
	int cnt, i;

	assert_int_equal(strset_new(&strings), 0);
	raw->kind = kind;
	raw->byte_cnt = (uint32_t)byte_cnt;
	if (bytes)
		memcpy(raw->byte, bytes, byte_cnt);
	cnt = tag_labels_decode(raw, keys, strings, labels);
	assert_true(cnt >= 0 && cnt <= TAG_LABELS_CAP);
	text[0] = '\0';
	for (i = 0; i < cnt; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%s", i ? " " : "",
					 strset_get(strings, labels[i].key_str),
					 strset_get(strings, labels[i].value_str));
	strset_free(strings);
	free(raw);
	return text;
}
#define SHOWN(kind, bytes, keys) shown(kind, bytes, sizeof(bytes) - 1, keys)

TEST(test_numbered)
{
	struct tag_keys keys = { .names = { strdup("route"), strdup("method"), strdup("") },
				 .cnt = 3 };

	assert_string_equal(SHOWN(HT_TAG_OTEL, "\0\x02/a\1\3GET", &keys), "method=GET route=/a");
	assert_string_equal(SHOWN(HT_TAG_SCOPE, "\0\x02/a\1\3GET", &keys), "method=GET route=/a");
	/* the last one of a key counts */
	assert_string_equal(SHOWN(HT_TAG_OTEL, "\0\1x\1\1y\0\1z", &keys), "method=y route=z");
	/* no name for it, or no table */
	assert_string_equal(SHOWN(HT_TAG_OTEL, "\2\1a\3\1b\xff\1c", &keys),
			    "key-2=a key-255=c key-3=b");
	assert_string_equal(SHOWN(HT_TAG_OTEL, "\0\1a", NULL), "key-0=a");
	assert_string_equal(SHOWN(HT_TAG_OTEL, "\0\0", &keys), "route=(empty)");
	/* the last entry does not fit, or has no length */
	assert_string_equal(SHOWN(HT_TAG_OTEL, "\1\1y\0\3ab", &keys), "method=y");
	assert_string_equal(SHOWN(HT_TAG_OTEL, "\1\1y\0", &keys), "method=y");
	assert_string_equal(SHOWN(HT_TAG_OTEL, "", &keys), "");
	tag_keys_release(&keys);
	assert_int_equal(keys.cnt, 0);
}

TEST(test_custom)
{
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\4\2userme\1\3aGET", NULL), "a=GET user=me");
	/* the first one of a key counts */
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\1\1kx\1\1ky", NULL), "k=x");
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\0\1x\1\0k", NULL), "(empty)=x k=(empty)");
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\1\1kx\1\xffky", NULL), "k=x");
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\1\1kx\xff\1", NULL), "k=x");
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\1\1kx\1", NULL), "k=x");
}

/* Every request has another one. */
TEST(test_request_ids)
{
	struct tag_keys keys = { .names = { strdup("datadog.local_root_span_id"), strdup("traceId"),
					    strdup("span_idx"), strdup("id") },
				 .cnt = 4 };

	assert_string_equal(SHOWN(HT_TAG_OTEL, "\0\1a\1\1b\2\1c\3\1d", &keys), "id=d span_idx=c");
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\10\1trace.id1\6\1spanid2\7\1SPAN-ID3", NULL),
			    "");
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\5\1panid1", NULL), "panid=1");
	assert_int_equal(tag_keys_ids(&keys), 3);
	tag_keys_release(&keys);
}

/* Whatever bytes a program writes, text comes out. */
TEST(test_bytes)
{
	assert_string_equal(SHOWN(HT_TAG_CUSTOM, "\2\2\xff\0a\xc3", NULL),
			    "\xef\xbf\xbd\xef\xbf\xbd=a\xef\xbf\xbd");
	assert_string_equal(SHOWN(HT_TAG_OTEL, "\7\2\xc3\xa9", NULL), "key-7=\xc3\xa9");
	/* an overlong '/', a surrogate */
	assert_string_equal(SHOWN(HT_TAG_OTEL, "\1\2\xc0\xaf", NULL),
			    "key-1=\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(test_bounds)
{
	char bytes[HT_LABEL_BYTES_CAP];
	const char *text;
	size_t i;

	/* 512 keys of two bytes, no values */
	for (i = 0; i < sizeof(bytes); i += 4) {
		bytes[i] = 2;
		bytes[i + 1] = 0;
		bytes[i + 2] = (char)('!' + i / 4 % 64);
		bytes[i + 3] = (char)('!' + i / 4 / 64);
	}
	text = shown(HT_TAG_CUSTOM, bytes, sizeof(bytes), NULL);
	for (i = 1; *text; text++)
		i += *text == ' ';
	assert_int_equal(i, TAG_LABELS_CAP);
	/* a count that lies is cut to what there is */
	assert_string_equal(shown(HT_TAG_OTEL, NULL, UINT32_MAX, NULL), "key-0=(empty)");
}

RUN_TESTS()
