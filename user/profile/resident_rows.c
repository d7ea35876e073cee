/* SPDX-License-Identifier: MIT */
/* resident_rows.c - see resident_rows.h. */
#include "profile/resident_rows.h"

#include <sys/mman.h>

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
	if (reading->class_cnt > RESIDENT_CLASS_CAP)
		return -EINVAL;
	for (uint32_t i = 0; i < reading->class_cnt; i++)
		if (!check_text(reading->classes[i].name, RESIDENT_CLASS_BYTES))
			return -EINVAL;
	return !reading->is_known || sum == (int64_t)reading->rss_bytes ? 0 : -EINVAL;
}

#define PINNED_CAP (1 << 20) /* no block pins as much: its pages, or its slab, are smaller */

static int compare_pins(const void *a, const void *b)
{
	const struct resident_pin *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int resident_pins_share(struct resident_pins *p)
{
	if (!p->list.cnt)
		return -ENODATA;
	p->bytes = mmap(NULL, p->list.cnt * sizeof(*p->bytes), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->bytes == MAP_FAILED) {
		p->bytes = NULL;
		return -errno;
	}
	vec_sort(&p->list, compare_pins);
	for (size_t i = 0; i < p->list.cnt; i++)
		p->bytes[i] = NAN;
	return 0;
}

void resident_pins_release(struct resident_pins *p)
{
	if (p->bytes)
		munmap(p->bytes, p->list.cnt * sizeof(*p->bytes));
	vec_release(&p->list);
	*p = (struct resident_pins){ 0 };
}

/* A walk goes up block by block, so mostly it is still the same one, or the next. */
size_t resident_pins_found(struct resident_pins *p, uint64_t addr)
{
	const struct resident_pin *list;
	size_t i;

	if (!p || !p->bytes)
		return 0;
	list = p->list.data;
	i = p->last;
	i += i < p->list.cnt && list[i].addr < addr;
	if ((i && list[i - 1].addr >= addr) || (i < p->list.cnt && list[i].addr < addr))
		i = vec_first_from(&p->list, addr, addr);
	p->last = i;
	if (i == p->list.cnt || list[i].addr != addr)
		return 0;
	p->bytes[i] = 0;
	return i + 1;
}

void resident_pins_add(struct resident_pins *p, size_t number, double bytes)
{
	if (number)
		p->bytes[number - 1] += (float)bytes;
}

double resident_pins_weight(const struct resident_pins *p, size_t number)
{
	return number ? p->list.data[number - 1].weight : 0;
}

void resident_recorded_add(struct resident_recorded *r, double weight)
{
	r->cnt += weight;
	r->variance += weight * (weight - 1); /* (1 - p) / p^2, where weight is 1 / p */
}

double resident_pins_bytes(const struct resident_pins *p, uint64_t addr, uint64_t time_ns)
{
	size_t i = vec_first_from(&p->list, addr, addr);
	double bytes;

	if (i == p->list.cnt || p->list.data[i].addr != addr || p->list.data[i].time_ns != time_ns)
		return NAN;
	bytes = p->bytes[i];
	return bytes >= 0 && bytes < PINNED_CAP ? bytes : NAN;
}
