/* SPDX-License-Identifier: MIT */
/*
 * vec.h - a growing array of T: `struct { T *data; size_t cnt, cap; }`, zero-initialised.
 *
 * vec_push() and vec_reserve() evaluate to 0 or -ENOMEM and leave the array as it was on failure.
 */
#ifndef HT_BASE_VEC_H
#define HT_BASE_VEC_H

#include "base/std.h"

#define VEC(T)                   \
	struct {                 \
		T *data;         \
		size_t cnt, cap; \
	}

/* Grow *data so that it holds at least need elements of elem_bytes. */
int vec_grow(void **data, size_t *cap, size_t need, size_t elem_bytes);

#define vec_make_room(v, need) \
	((need) <= (v)->cap ?  \
		 0 :           \
		 vec_grow((void **)&(v)->data, &(v)->cap, (need), sizeof(*(v)->data)))
#ifdef __clang_analyzer__ /* does not know that a vector with room is not NULL */
#define vec_reserve(v, need) \
	(vec_make_room((v), (need)) ? -12 : (v)->data ? 0 : (__builtin_unreachable(), 0))
#else
#define vec_reserve(v, need) vec_make_room(v, need)
#endif
#define vec_push(v, ...)                                   \
	(vec_reserve((v), (v)->cnt + 1) ? -12 /* ENOMEM */ \
					  :                \
					  ((v)->data[(v)->cnt++] = (__VA_ARGS__), 0))
#define vec_release(v)                   \
	do {                             \
		free((v)->data);         \
		(v)->data = NULL;        \
		(v)->cnt = (v)->cap = 0; \
	} while (0)
/* compare: as of qsort(), or of qsort_r(). */
#define vec_sort(v, compare)                                                       \
	do {                                                                       \
		if ((v)->cnt)                                                      \
			qsort((v)->data, (v)->cnt, sizeof(*(v)->data), (compare)); \
	} while (0)
#define vec_sort_r(v, compare, ctx)                                                 \
	do {                                                                        \
		if ((v)->cnt)                                                       \
			qsort_r((v)->data, (v)->cnt, sizeof(*(v)->data), (compare), \
				(void *)(ctx));                                     \
	} while (0)
#define vec_each(v, p) for ((p) = (v)->data; (p) && (p) < (v)->data + (v)->cnt; (p)++)

/* Of cnt elements in the order of a uint64_t at off: the index of the first with at least key, or with more; cnt: none. */
static inline size_t sorted_find(const void *list, size_t cnt, size_t elem_bytes, size_t off,
				 uint64_t key, bool wants_more)
{
	size_t low = 0, high = cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		uint64_t at;

		memcpy(&at, (const char *)list + mid * elem_bytes + off, sizeof(at));
		if (at < key || (wants_more && at == key))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The element with that key, or NULL. */
void *sorted_get(const void *list, size_t cnt, size_t elem_bytes, size_t off, uint64_t key);
/* Bring elements in the order of a uint64_t at off. */
void sorted_make(void *list, size_t cnt, size_t elem_bytes, size_t off);

/* The same of the member of a vector's elements that it is sorted by. */
#define sorted_off(data, member)                 \
	(offsetof(__typeof__(*(data)), member) + \
	 0 * sizeof(char[sizeof((data)->member) == sizeof(uint64_t) ? 1 : -1]))
#define vec_first_from(v, member, key)                                                             \
	sorted_find((v)->data, (v)->cnt, sizeof(*(v)->data), sorted_off((v)->data, member), (key), \
		    false)
#define vec_first_behind(v, member, key)                                                           \
	sorted_find((v)->data, (v)->cnt, sizeof(*(v)->data), sorted_off((v)->data, member), (key), \
		    true)
#define vec_get(v, member, key)                                                       \
	((__typeof__(&*(v)->data))sorted_get((v)->data, (v)->cnt, sizeof(*(v)->data), \
					     sorted_off((v)->data, member), (key)))
#define vec_sort_by(v, member) \
	sorted_make((v)->data, (v)->cnt, sizeof(*(v)->data), sorted_off((v)->data, member))

/* A list of texts that owns them. Zero-initialised. */
struct texts {
	char **data;
	size_t cnt, cap;
};

/* Add a copy of text. -ENOMEM leaves the list as it was. */
int texts_add(struct texts *t, const char *text);
void texts_release(struct texts *t);

#endif
