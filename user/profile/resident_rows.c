/* SPDX-License-Identifier: MIT */
/* resident_rows.c - see resident_rows.h. */
#include "profile/resident_rows.h"

#include <errno.h>
#include <string.h>

#include "base/printable.h"

/* Make it printable. false: it does not end. */
static bool check_text(char *text, size_t bytes)
{
	if (!memchr(text, 0, bytes))
		return false;
	make_printable(text);
	return true;
}

int resident_reading_check(struct resident_reading *reading)
{
	int64_t sum = 0;

	if (!check_text(reading->why, sizeof(reading->why)) ||
	    reading->row_cnt > RESIDENT_ROW_CAP || reading->rss_bytes > RESIDENT_BYTES_CAP)
		return -EINVAL;
	for (uint32_t i = 0; i < reading->row_cnt; i++) {
		struct resident_reading_row *row = &reading->rows[i];

		if (!check_text(row->name, sizeof(row->name)) ||
		    !check_text(row->label, sizeof(row->label)) || row->kind >= RESIDENT_KIND_CNT ||
		    row->bytes > RESIDENT_BYTES_CAP || row->bytes < -RESIDENT_BYTES_CAP)
			return -EINVAL;
		sum += row->bytes;
	}
	return !reading->is_known || sum == (int64_t)reading->rss_bytes ? 0 : -EINVAL;
}
