/* SPDX-License-Identifier: MIT */
/*
 * tag_labels.h - the labels that a program put on a thread, decoded from the raw bytes.
 *
 * The bytes are struct ht_labels (abi.h). Formats that number their keys need a table of key names.
 */
#ifndef HT_PROFILE_TAG_LABELS_H
#define HT_PROFILE_TAG_LABELS_H

#include "base/std.h"

struct ht_labels;
struct strset;

/* A key index is one byte. */
#define TAG_KEYS_CAP 256
/* Most distinct keys of one set; further keys are left out (no sound writer has so many). */
#define TAG_LABELS_CAP 256

struct tag_keys {
	char *names[TAG_KEYS_CAP]; /* malloc'ed; NULL or "": not known */
	size_t cnt;
};
void tag_keys_release(struct tag_keys *k);
/* Bit i: key i, among the first 32, names the id of a trace or span. */
uint32_t tag_keys_ids(const struct tag_keys *k);

/* Ids of a strset, so both texts are valid UTF-8 and never "". */
struct tag_label {
	int64_t key_str, value_str;
};

/*
 * Write at most TAG_LABELS_CAP labels with distinct keys, sorted by key, to ret; return their number or -ENOMEM. keys
 * may be NULL and is not used for HT_TAG_CUSTOM. A key without a name in the table, such as 7, becomes "key-7"; an
 * empty key or value "(empty)". Bytes that end in the middle of an entry end the set before it. Keys that name the id
 * of a trace or span are left out.
 */
int tag_labels_decode(const struct ht_labels *raw, const struct tag_keys *keys,
		      struct strset *strings, struct tag_label *ret);

#endif
