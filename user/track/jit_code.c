/* SPDX-License-Identifier: MIT */
/* jit_code.c - see jit_code.h. */
#include "track/jit_code.h"

#include "base/clock.h"
#include "base/hmap.h"
#include "base/strset.h"
#include "base/vec.h"
#include "proc/jit_entry.h"
#include "proc/proc_text.h"
#include "proc/process.h"

/* Limit of one look at one file: a tenth of a second. Later looks read the rest. */
#define LOOK_BYTES (32ULL << 20)
/* Places that have their own period. If there are more, they become one. */
#define PLACES_CAP 128
#define CHANGED_CAP 1024 /* likewise, for places that wait for a period */
/* Periods of a process. The more there were, the later the next one begins: see is_due(). */
#define PERIODS_CAP 1024

/*
 * Which addresses have had code, to see whether memory is reused for other code.
 *
 * One bit for every 8 bytes: 16 KiB for each MiB of code. Smaller pieces of code that do not begin
 * at a multiple of 8 may be missed. Code that does not fit counts as new.
 */

#define UNIT_SHIFT 3
#define CHUNK_SHIFT 20
#define CHUNK_UNITS (1U << (CHUNK_SHIFT - UNIT_SHIFT))
#define CHUNKS_CAP 1024 /* 16 MiB, for 1 GiB of code */
#define CODE_BYTES_CAP (64ULL << 20) /* no compiler makes larger pieces, so they are not believed */

struct jit_reuse {
	struct hmap idx; /* address / 1 MiB -> index in chunk */
	VEC(uint8_t *) chunk;
};

static void jit_reuse_init(struct jit_reuse *r)
{
	*r = (struct jit_reuse){ 0 };
	hmap_init(&r->idx, sizeof(uint64_t));
}

static void jit_reuse_release(struct jit_reuse *r)
{
	uint8_t **chunk;

	vec_each(&r->chunk, chunk)
		free(*chunk);
	vec_release(&r->chunk);
	hmap_release(&r->idx);
}

static uint8_t *find_chunk(const struct jit_reuse *r, uint64_t unit)
{
	uint64_t key = unit / CHUNK_UNITS;
	const uint64_t *idx = hmap_get(&r->idx, &key);

	return idx ? r->chunk.data[*idx] : NULL;
}

/* NULL with *ret_err 0: CHUNKS_CAP is reached. */
static uint8_t *get_chunk(struct jit_reuse *r, uint64_t unit, int *ret_err)
{
	uint64_t key = unit / CHUNK_UNITS;
	uint8_t *chunk = find_chunk(r, unit);

	*ret_err = 0;
	if (chunk || r->chunk.cnt >= CHUNKS_CAP)
		return chunk;
	chunk = calloc(1, CHUNK_UNITS / 8);
	*ret_err = chunk ? vec_push(&r->chunk, chunk) : -ENOMEM;
	if (*ret_err) {
		free(chunk);
		return NULL;
	}
	*ret_err = hmap_put(&r->idx, &key, r->chunk.cnt - 1);
	return *ret_err ? NULL : chunk;
}

/* Whole units only, because two small pieces may share one. */
static bool units_of(uint64_t start_addr, uint64_t end_addr, uint64_t *ret_first, uint64_t *ret_end)
{
	if (end_addr - start_addr > CODE_BYTES_CAP || start_addr >> 63)
		return false;
	*ret_first = (start_addr + (1 << UNIT_SHIFT) - 1) >> UNIT_SHIFT;
	*ret_end = end_addr >> UNIT_SHIFT;
	return true;
}

/* Has any part of the range had code? */
static bool jit_reuse_has(const struct jit_reuse *r, uint64_t start_addr, uint64_t end_addr)
{
	const uint8_t *chunk = NULL;
	uint64_t unit, first, end;

	if (!units_of(start_addr, end_addr, &first, &end))
		return false;
	for (unit = first; unit < end; unit++) {
		if (unit == first || unit % CHUNK_UNITS == 0)
			chunk = find_chunk(r, unit);
		if (chunk && chunk[unit % CHUNK_UNITS / 8] & 1 << unit % 8)
			return true;
	}
	return false;
}

/* Mark the range. 0 or -ENOMEM. */
static int jit_reuse_add(struct jit_reuse *r, uint64_t start_addr, uint64_t end_addr)
{
	uint8_t *chunk = NULL;
	uint64_t unit, first, end;
	int err = 0;

	if (!units_of(start_addr, end_addr, &first, &end))
		return 0;
	for (unit = first; unit < end; unit++) {
		if (unit == first || unit % CHUNK_UNITS == 0)
			chunk = get_chunk(r, unit, &err);
		if (err)
			return err;
		if (chunk)
			chunk[unit % CHUNK_UNITS / 8] |= (uint8_t)(1 << unit % 8);
	}
	return 0;
}

typedef int (*read_fn)(int fd, uint64_t *off, uint64_t bytes_cap, jit_entry_fn fn, void *ctx);

struct source {
	read_fn read;
	int fd; /* -1: not found so far */
	uint64_t read_off; /* end of what was read so far */
	/* Size when it was first seen: code before that counts as unchanged */
	uint64_t history_end;
};

enum { MAP, DUMP, SOURCE_CNT };

/* Memory that was given to other code. */
struct place {
	uint64_t start_addr, end_addr;
	uint32_t period;
};

struct period {
	uint64_t end[SOURCE_CNT]; /* as in struct jit_entry; UINT64_MAX: not over */
	uint64_t named_bytes; /* the files' size when its names were last searched */
};

struct jit_code {
	struct reader *reader;
	uint32_t ref_cnt;
	struct process_info info;
	struct jit_code *parent; /* NULL: none */
	uint32_t parent_period; /* the parent's period at the fork */
	bool has_our_root; /* its files can be read when it has ended */
	bool is_over;
	struct source source[SOURCE_CNT];
	uint64_t looked_ns, period_ns;
	struct jit_reuse reuse;
	VEC(struct period) periods;
	VEC(struct place) places; /* sorted, disjoint */
	VEC(struct place) changed; /* waiting for a new period */
	uint64_t changed_at[SOURCE_CNT]; /* position of the first change */
	struct hmap names; /* struct name_key -> id in strings; 0: no name */
	struct strset *strings;
};

struct name_key {
	uint64_t addr;
	uint64_t period;
};

int jit_code_new(struct reader *reader, const struct process_info *info, struct jit_code *parent,
		 struct jit_code **ret)
{
	const struct period first = { { UINT64_MAX, UINT64_MAX }, 0 };
	struct jit_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->ref_cnt = 1;
	c->reader = reader;
	c->info = *info;
	c->has_our_root = !process_has_own_root(reader, info->live_tid);
	c->parent = parent ? jit_code_ref(parent) : NULL;
	c->parent_period = parent ? (uint32_t)parent->periods.cnt - 1 : 0;
	c->source[MAP] = (struct source){ .read = jit_map_read, .fd = -1 };
	c->source[DUMP] = (struct source){ .read = jit_dump_read, .fd = -1 };
	jit_reuse_init(&c->reuse);
	hmap_init(&c->names, sizeof(struct name_key));
	if (vec_push(&c->periods, first) || strset_new(&c->strings)) {
		jit_code_unref(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

struct jit_code *jit_code_ref(struct jit_code *c)
{
	c->ref_cnt++;
	return c;
}

void jit_code_unref(struct jit_code *c)
{
	if (!c || --c->ref_cnt)
		return;
	for (int i = 0; i < SOURCE_CNT; i++)
		if (c->source[i].fd >= 0)
			close(c->source[i].fd);
	jit_reuse_release(&c->reuse);
	vec_release(&c->periods);
	vec_release(&c->places);
	vec_release(&c->changed);
	hmap_release(&c->names);
	strset_free(c->strings);
	jit_code_unref(c->parent);
	free(c);
}

void jit_code_end(struct jit_code *c)
{
	c->is_over = true;
}

pid_t jit_code_pid(const struct jit_code *c)
{
	return c->info.tgid;
}

static uint64_t bytes_of(const struct source *s)
{
	struct stat st;

	return s->fd >= 0 && !fstat(s->fd, &st) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static void add_source(struct source *s, int fd)
{
	s->fd = fd;
	s->history_end = bytes_of(s);
}

void jit_code_add_dump(struct jit_code *c, int fd)
{
	if (c->source[DUMP].fd >= 0)
		close(fd);
	else
		add_source(&c->source[DUMP], fd);
}

bool jit_code_has_dump(const struct jit_code *c)
{
	return c->source[DUMP].fd >= 0;
}

/* A program writes its map at any time: a JVM when it is asked to, or at its end. */
static void open_map(struct jit_code *c)
{
	const pid_t tids[] = { c->info.tgid, c->info.live_tid };
	char root[PROC_ROOT_BYTES];
	int fd = -1;

	if (c->source[MAP].fd >= 0)
		return;
	/* The main thread may have ended, and so may live_tid. */
	for (size_t i = 0; i < 2 && fd < 0 && !c->is_over; i++) {
		proc_root_path(tids[i], root);
		fd = jit_map_open(c->reader, root, &c->info);
	}
	if (fd < 0 && c->has_our_root)
		fd = jit_map_open(c->reader, "/", &c->info);
	if (fd >= 0)
		add_source(&c->source[MAP], fd);
}

/* The source that a look reads. */
struct look {
	struct jit_code *c;
	int source;
};

static int note_change(struct jit_code *c, const struct jit_entry *e)
{
	const struct place place = { e->start_addr, e->end_addr, 0 };
	struct place *first = c->changed.data;

	if (c->changed.cnt < CHANGED_CAP)
		return vec_push(&c->changed, place);
	if (place.start_addr < first->start_addr)
		first->start_addr = place.start_addr;
	if (place.end_addr > first->end_addr)
		first->end_addr = place.end_addr;
	return 0;
}

static int on_new_entry(void *ctx, const struct jit_entry *e)
{
	const struct look *look = ctx;
	struct jit_code *c = look->c;
	const struct source *s = &c->source[look->source];
	uint64_t off = look->source == MAP ? e->at : s->read_off;

	if (off < s->history_end || !jit_reuse_has(&c->reuse, e->start_addr, e->end_addr))
		return jit_reuse_add(&c->reuse, e->start_addr, e->end_addr);
	if (!c->changed.cnt) {
		c->changed_at[MAP] = c->source[MAP].read_off;
		c->changed_at[DUMP] = now_ns();
		c->changed_at[look->source] = e->at;
	}
	return note_change(c, e);
}

/* A file that has become shorter was rewritten from the start. */
static void look_at(struct jit_code *c, int source)
{
	struct source *s = &c->source[source];
	struct look look = { c, source };

	if (s->fd < 0 || bytes_of(s) == s->read_off)
		return;
	if (bytes_of(s) < s->read_off) {
		s->read_off = 0;
		s->history_end = bytes_of(s);
	}
	/* What cannot be read is read at the next look. */
	(void)s->read(s->fd, &s->read_off, LOOK_BYTES, on_new_entry, &look);
}

/* From some hundred periods on the interval is minutes. So a program that compiles all the time
 * gets at most a thousand periods a day, and no more than there are file ids. */
static bool is_due(const struct jit_code *c, uint64_t now)
{
	return c->changed.cnt && c->periods.cnt < PERIODS_CAP &&
	       now - c->period_ns >= JIT_REFRESH_NS * (c->periods.cnt / 8);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->start_addr < y->start_addr ? -1 : x->start_addr > y->start_addr;
}

/* Cut the new place out of an older one. */
static int keep_rest(struct jit_code *c, const struct place *fresh, struct place *old)
{
	struct place behind = *old;

	if (old->start_addr >= fresh->end_addr || old->end_addr <= fresh->start_addr)
		return 0;
	behind.start_addr = fresh->end_addr;
	if (old->start_addr < fresh->start_addr)
		old->end_addr = fresh->start_addr;
	else
		old->end_addr = old->start_addr; /* empty */
	return behind.start_addr < behind.end_addr ? vec_push(&c->places, behind) : 0;
}

static int add_place(struct jit_code *c, struct place fresh)
{
	int err = 0;

	for (size_t i = c->places.cnt; i-- > 0 && !err;) {
		struct place old = c->places.data[i];

		err = keep_rest(c, &fresh, &old);
		c->places.data[i] = old;
	}
	return err ? err : vec_push(&c->places, fresh);
}

/* Remove empty places, join neighbours of one period; if there are too many, make them one place. */
static void tidy_places(struct jit_code *c, uint32_t period)
{
	struct place *place = c->places.data;
	size_t kept = 0;

	qsort(place, c->places.cnt, sizeof(*place), compare_places);
	for (size_t i = 0; i < c->places.cnt; i++) {
		if (place[i].start_addr >= place[i].end_addr)
			continue;
		if (kept && place[kept - 1].period == place[i].period &&
		    place[kept - 1].end_addr >= place[i].start_addr)
			place[kept - 1].end_addr = place[i].end_addr;
		else
			place[kept++] = place[i];
	}
	if (kept > PLACES_CAP) {
		place[0].end_addr = place[kept - 1].end_addr;
		place[0].period = period;
		kept = 1;
	}
	c->places.cnt = kept;
}

static int begin_period(struct jit_code *c)
{
	const struct period next = { { UINT64_MAX, UINT64_MAX }, 0 };
	uint32_t number = (uint32_t)c->periods.cnt;
	struct place *place;
	int err = vec_push(&c->periods, next);

	if (err)
		return err;
	memcpy(c->periods.data[number - 1].end, c->changed_at, sizeof(c->changed_at));
	vec_each(&c->changed, place) {
		place->period = number;
		err = add_place(c, *place);
		if (err)
			break;
	}
	c->changed.cnt = 0;
	tidy_places(c, number);
	return err;
}

bool jit_code_refresh(struct jit_code *c)
{
	uint64_t now = now_ns();

	if (now - c->looked_ns < JIT_REFRESH_NS)
		return false;
	c->looked_ns = now;
	open_map(c);
	for (int i = 0; i < SOURCE_CNT; i++)
		look_at(c, i);
	if (!is_due(c, now))
		return false;
	c->period_ns = now;
	return !begin_period(c);
}

uint32_t jit_code_period(const struct jit_code *c, uint64_t addr, uint64_t *ret_end_addr)
{
	const struct place *place;

	*ret_end_addr = UINT64_MAX;
	vec_each(&c->places, place) {
		if (addr < place->start_addr) {
			*ret_end_addr = place->start_addr;
			return 0;
		}
		if (addr < place->end_addr) {
			*ret_end_addr = place->end_addr;
			return place->period;
		}
	}
	return 0;
}

/* An address to be named, and the best name so far. */
struct wanted {
	uint64_t addr;
	int64_t name; /* id; 0: none so far */
	uint64_t code_index; /* of moved code, whose name is found by its index */
	bool is_moved;
};

struct search {
	struct jit_code *c;
	uint64_t end; /* end of the period */
	VEC(struct wanted) wanted; /* sorted */
};

static int on_entry(void *ctx, const struct jit_entry *e)
{
	struct search *s = ctx;
	for (size_t i = vec_first_from(&s->wanted, addr, e->start_addr);
	     i < s->wanted.cnt && s->wanted.data[i].addr < e->end_addr; i++) {
		struct wanted *w = &s->wanted.data[i];
		int64_t id = 0;

		/* Of the entries after the period only the first counts, and only if there was no
		 * earlier one. */
		if (e->at >= s->end && (w->name || w->is_moved))
			continue;
		if (e->name)
			id = strset_add_n(s->c->strings, e->name, e->name_len);
		if (id < 0)
			return (int)id;
		w->name = id;
		w->is_moved = !e->name;
		w->code_index = e->code_index;
	}
	return 0;
}

static int on_moved(void *ctx, const struct jit_entry *e)
{
	struct search *s = ctx;
	struct wanted *w;

	if (!e->name)
		return 0;
	vec_each(&s->wanted, w) {
		int64_t id;

		if (!w->is_moved || w->code_index != e->code_index)
			continue;
		id = strset_add_n(s->c->strings, e->name, e->name_len);
		if (id < 0)
			return (int)id;
		w->name = id;
	}
	return 0;
}

static int search_source(struct search *s, uint32_t period, int source)
{
	const struct source *from = &s->c->source[source];
	const struct wanted *w;
	bool has_moved = false;
	uint64_t off = 0;
	int err;

	if (from->fd < 0)
		return 0;
	s->end = s->c->periods.data[period].end[source];
	err = from->read(from->fd, &off, UINT64_MAX, on_entry, s);
	vec_each(&s->wanted, w)
		has_moved |= w->is_moved;
	off = 0;
	if (has_moved && err != -ENOMEM)
		err = from->read(from->fd, &off, UINT64_MAX, on_moved, s);
	return err == -ENOMEM ? err : 0;
}

/* Keep the names that were found. is_last: also keep that an address has no name, so that none is left. */
static int keep_names(struct search *s, uint32_t period, bool is_last)
{
	size_t left = 0;

	for (size_t i = 0; i < s->wanted.cnt; i++) {
		const struct wanted *w = &s->wanted.data[i];
		const struct name_key key = { w->addr, period };

		if (!w->name && !is_last)
			s->wanted.data[left++] = (struct wanted){ .addr = w->addr };
		else if (hmap_put(&s->c->names, &key, (uint64_t)w->name))
			return -ENOMEM;
	}
	s->wanted.cnt = left;
	return 0;
}

static int collect(struct search *s, uint32_t period, const uint64_t *addr, size_t cnt)
{
	struct period *p = &s->c->periods.data[period];
	uint64_t bytes = bytes_of(&s->c->source[MAP]) + bytes_of(&s->c->source[DUMP]);
	bool has_changed = bytes != p->named_bytes;

	p->named_bytes = bytes;
	for (size_t i = 0; i < cnt; i++) {
		const struct name_key key = { addr[i], period };
		const uint64_t *known = hmap_get(&s->c->names, &key);
		const struct wanted w = { .addr = addr[i] };

		if (known && (*known || !has_changed))
			continue;
		if (vec_push(&s->wanted, w))
			return -ENOMEM;
	}
	return 0;
}

static int search_all(struct jit_code *c, uint32_t period, const uint64_t *addr, size_t cnt)
{
	struct search s = { .c = c };
	int err;

	open_map(c);
	err = collect(&s, period, addr, cnt);
	for (int i = 0; i < SOURCE_CNT && s.wanted.cnt && !err; i++) {
		err = search_source(&s, period, i);
		if (!err)
			err = keep_names(&s, period, i == SOURCE_CNT - 1);
	}
	vec_release(&s.wanted);
	return err;
}

/* Ask the parent for all missing names at once, because its files are read as a whole. */
static int ask_parent(struct jit_code *c, const uint64_t *addr, size_t cnt, const char **ret_name)
{
	uint64_t *left = calloc(cnt + 1, sizeof(*left));
	const char **name = calloc(cnt + 1, sizeof(*name));
	size_t left_cnt = 0, at = 0;
	int err = left && name ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && !err; i++)
		if (!ret_name[i])
			left[left_cnt++] = addr[i];
	if (!err && left_cnt)
		err = jit_code_names(c->parent, c->parent_period, left, left_cnt, name);
	for (size_t i = 0; i < cnt && !err; i++)
		if (!ret_name[i])
			ret_name[i] = name[at++];
	free(left);
	free(name);
	return err;
}

int jit_code_names(struct jit_code *c, uint32_t period, const uint64_t *addr, size_t cnt,
		   const char **ret_name)
{
	int err = search_all(c, period, addr, cnt);

	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		const struct name_key key = { addr[i], period };
		const uint64_t *id = hmap_get(&c->names, &key);

		ret_name[i] = id && *id ? strset_get(c->strings, (int64_t)*id) : NULL;
	}
	return c->parent ? ask_parent(c, addr, cnt, ret_name) : 0;
}
