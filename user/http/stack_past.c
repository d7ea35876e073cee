/* SPDX-License-Identifier: MIT */
/*
 * stack_past.c - the heap in use of each stack at moments of the last day, in bounded memory (see past.h).
 *
 * Why lives. A profile of each moment would take a hundred times the room of a snapshot, for a hundred moments, and
 * most of it would repeat the one before. A sample carries the time of its allocation. So a stack is stored as lives
 * (history.h): this many samples were live from this moment to that one. A stack whose blocks stay is one life,
 * whatever the number of moments; a leak has one for each moment. Lives give the heap in use at each moment, and what
 * two moments have in common, and so the variance of a difference and of growth (growth.c): errors of a sample that
 * was live at both cancel.
 *
 * Why one read. All live samples are read every ten seconds: half a microsecond each in the kernel and a quarter here.
 * If that is more than a COST_PART-th of a CPU, moments are further apart.
 *
 * Coarser with age. Moments of age a are at most a / AGE_PART apart, or as far apart as they are read: some 120
 * moments in a day. Each of twelve windows of any time until now has moments, so growth of an hour, of a day and of a
 * new process is judged by the same rule.
 *
 * Bounded. There are at most STACK_PAST_ENTRIES_CAP lives of 32 bytes: 6 MiB, and the live samples while a moment is
 * read. An image may have its part of these, or half of the free ones. If it wants more, the past of its stacks is cut
 * off before some moment and added to the rest, which is one sum for each moment. The largest stacks are served first,
 * each with at most a SHARE_PART-th of what is left. So the heap in use at a moment is the sum of the stacks and the
 * rest. A stack in the rest can be taken up again, and is known from then on.
 *
 * Measured (tools/soak/past): for 300 processes with 200 samples each, two thirds of which come and go, an hour takes
 * 2.9 MiB and a day no more; 3 MiB more are needed during a read. All of it takes 0.2 % of one CPU.
 *
 * A moment is identified by the clock of the samples, which never jumps. The wall clock's time is stored beside it.
 */
#include "http/past.h"

#include "base/vec.h"

#define COST_PART 200
#define AGE_PART 12
#define SHARE_PART 4
#define LIVE_CAP (STACK_PAST_ENTRIES_CAP / 2 * 3) /* of what is live, while a moment is read */
#define OPEN UINT8_MAX /* as `last`: still live */

/* This many samples of a stack in a context were live from moment `first` to moment `last`, and at no other. The rest
 * has one for each moment. */
struct life {
	uint64_t stack_id;
	uint32_t context_id;
	int32_t samples; /* < 0: to be taken off, see bring_up() */
	float bytes, variance, objects;
	uint8_t first, last;
	uint8_t known; /* the moment since when this stack is kept; before, it was in the rest */
};
_Static_assert(sizeof(struct life) == STACK_PAST_ENTRY_BYTES, "the bound holds");
_Static_assert(STACK_PAST_MOMENTS_CAP < OPEN, "each moment has a number");

struct lives {
	struct life *data;
	size_t cnt, cap; /* like VEC() */
};

struct image {
	uint64_t image;
	uint64_t since_ns;
	struct lives lives; /* sorted by compare_lives(): those of the rest are the last */
	struct lives live; /* while a moment is read: what is live, as open lives */
	uint8_t first; /* the moment since when it is known */
	bool is_named;
	bool is_crowded; /* while a moment is read: no room for other stacks than those that are kept */
};

struct stack_past {
	uint64_t interval_ns, due_ns, seed;
	struct stack_past_moment moments[STACK_PAST_MOMENTS_CAP];
	size_t moment_cnt;
	VEC(struct image) images; /* sorted by `image` */
	size_t live_cap; /* room taken by what is live, in lives */
};

int stack_past_new(uint64_t interval_ns, struct stack_past **ret)
{
	struct stack_past *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->interval_ns = interval_ns ? interval_ns : 1;
	*ret = p;
	return 0;
}

static void release_image(struct image *im)
{
	vec_release(&im->lives);
	vec_release(&im->live);
}

void stack_past_forget(struct stack_past *p)
{
	struct image *im;

	vec_each(&p->images, im)
		release_image(im);
	vec_release(&p->images);
	p->moment_cnt = 0;
}

void stack_past_free(struct stack_past *p)
{
	if (!p)
		return;
	stack_past_forget(p);
	free(p);
}

uint64_t stack_past_due_ns(const struct stack_past *p)
{
	return p->due_ns;
}

static int compare_stacks(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	if (x->stack_id != y->stack_id)
		return x->stack_id < y->stack_id ? -1 : 1;
	return (x->context_id > y->context_id) - (x->context_id < y->context_id);
}

static int compare_lives(const void *a, const void *b)
{
	const struct life *x = a, *y = b;
	int order = compare_stacks(a, b);

	if (order)
		return order;
	return x->first != y->first ? x->first - y->first : x->last - y->last;
}

struct sums {
	int64_t samples;
	double bytes, variance, objects;
};

static void add(struct sums *to, const struct life *l)
{
	to->samples += l->samples;
	to->bytes += (double)l->bytes;
	to->variance += (double)l->variance;
	to->objects += (double)l->objects;
}

static void set(struct life *l, const struct sums *s)
{
	l->samples = (int32_t)s->samples;
	l->bytes = s->bytes > 0 ? (float)s->bytes : 0;
	l->variance = s->variance > 0 ? (float)s->variance : 0;
	l->objects = s->objects > 0 ? (float)s->objects : 0;
}

static void sort(struct lives *lives)
{
	if (lives->cnt)
		qsort(lives->data, lives->cnt, sizeof(*lives->data), compare_lives);
}

/* Sort lives that are nearly sorted, merge equal ones, and leave out those of no samples: their count shows that
 * nothing is left, floating point does not. */
static void tidy(struct lives *lives)
{
	const struct life *l = lives->data, *end = l + lives->cnt;

	for (size_t i = 1; i < lives->cnt; i++) {
		const struct life life = l[i];
		size_t at = i;

		for (; at && compare_lives(&l[at - 1], &life) > 0; at--)
			lives->data[at] = l[at - 1];
		lives->data[at] = life;
	}
	lives->cnt = 0;
	while (l < end) {
		struct life life = *l;
		struct sums sums = { 0 };

		for (; l < end && !compare_lives(l, &life); l++)
			add(&sums, l);
		set(&life, &sums);
		if (life.samples > 0)
			lives->data[lives->cnt++] = life;
	}
}

/* Both are sorted; there is room. */
static void merge(struct lives *to, const struct lives *from)
{
	size_t i = to->cnt, k = from->cnt;

	to->cnt += k;
	for (struct life *l = to->data + i + k; k;) {
		bool is_own = i && compare_lives(&to->data[i - 1], &from->data[k - 1]) > 0;

		*--l = is_own ? to->data[--i] : from->data[--k];
	}
}

/* Return some life of this stack in this context; NULL: it is not kept. */
static const struct life *find_stack(const struct image *im, const struct life *key)
{
	return im->lives.cnt ?
		       bsearch(key, im->lives.data, im->lives.cnt, sizeof(*key), compare_stacks) :
		       NULL;
}

/* A life that begins at a moment that goes begins at the next one, and one that ends there ends at the one before;
 * bring_up() sorts them again. begin_at: the new number of a moment, or of the next one. */
static void renumber(struct image *im, const bool *goes, const uint8_t *begin_at)
{
	struct life *l;
	size_t kept = 0;

	im->first = begin_at[im->first];
	vec_each(&im->lives, l) {
		int last = l->last == OPEN ? OPEN : begin_at[l->last] - goes[l->last];

		l->first = begin_at[l->first];
		l->known = begin_at[l->known];
		if (l->first > last)
			continue;
		l->last = (uint8_t)last;
		im->lives.data[kept++] = *l;
	}
	im->lives.cnt = kept;
}

/* Remove moments older than a day, and those that their neighbours make up for; the newest one stays. If there is no
 * room, which happens only if the interval is very short, the oldest one goes. */
static void thin(struct stack_past *p, uint64_t now_ns)
{
	bool goes[STACK_PAST_MOMENTS_CAP] = { false };
	uint8_t begin_at[STACK_PAST_MOMENTS_CAP];
	struct image *im;
	uint64_t before_ns = 0;
	size_t kept = 0;

	for (size_t i = 0; i < p->moment_cnt; i++) {
		const struct stack_past_moment m = p->moments[i];
		uint64_t age_ns = now_ns - m.time_ns;

		if (i + 1 < p->moment_cnt)
			goes[i] = age_ns > STACK_PAST_NS ||
				  i + STACK_PAST_MOMENTS_CAP == p->moment_cnt ||
				  (before_ns &&
				   p->moments[i + 1].time_ns - before_ns <= age_ns / AGE_PART);
		begin_at[i] = (uint8_t)kept;
		if (goes[i])
			continue;
		before_ns = m.time_ns;
		p->moments[kept++] = m;
	}
	if (kept < p->moment_cnt)
		vec_each(&p->images, im)
			renumber(im, goes, begin_at);
	p->moment_cnt = kept;
}

void stack_past_begin(struct stack_past *p, const struct stack_past_moment *now)
{
	struct image *im;

	thin(p, now->time_ns);
	p->moments[p->moment_cnt++] = *now;
	vec_each(&p->images, im)
		im->is_named = im->is_crowded = false;
	p->live_cap = 0;
}

bool stack_past_is_full(const struct stack_past *p)
{
	return p->images.cnt >= STACK_PAST_IMAGES_CAP;
}

int stack_past_name_image(struct stack_past *p, uint64_t image, uint64_t since_ns)
{
	struct image *im = vec_get(&p->images, image, image);
	struct image fresh = { .image = image,
			       .since_ns = since_ns,
			       .first = (uint8_t)(p->moment_cnt - 1),
			       .is_named = true };

	if (im && im->since_ns == since_ns) {
		im->is_named = true;
		return 0;
	}
	if (im) {
		release_image(im);
		*im = fresh;
		return 0;
	}
	if (stack_past_is_full(p))
		return -ENOSPC;
	if (vec_push(&p->images, fresh))
		return -ENOMEM;
	vec_sort_by(&p->images, image);
	return 0;
}

static void drop_unnamed(struct stack_past *p)
{
	struct image *im;
	size_t kept = 0;

	vec_each(&p->images, im) {
		if (im->is_named)
			p->images.data[kept++] = *im;
		else
			release_image(im);
	}
	p->images.cnt = kept;
}

/* Merge equal ones of what is live. What was not kept until now may have been in the rest: then it begins now, or,
 * where there is no room, stays there. */
static void settle(const struct stack_past *p, struct image *im)
{
	const struct life *end = im->lives.data + im->lives.cnt;
	bool has_rest = im->lives.cnt && end[-1].stack_id == STACK_PAST_REST;
	uint8_t now = (uint8_t)(p->moment_cnt - 1);
	struct life *l;

	vec_each(&im->live, l) {
		const struct life *kept = find_stack(im, l);

		if (l->stack_id == STACK_PAST_REST)
			continue;
		l->known = kept ? kept->known : has_rest ? now : im->first;
		if (l->first < l->known)
			l->first = l->known;
		if (!kept && im->is_crowded) {
			l->stack_id = STACK_PAST_REST;
			l->context_id = 0;
			l->first = l->last = now;
		}
	}
	sort(&im->live);
	tidy(&im->live);
}

static int make_room(struct stack_past *p, struct image *im)
{
	size_t cap = im->live.cap, need = cap ? cap + 1 : im->lives.cnt / 2 + 1;
	int err = 0;

	if (p->live_cap + cap > LIVE_CAP)
		im->is_crowded = true;
	settle(p, im);
	if (im->live.cnt >= cap / 3 * 2)
		err = vec_reserve(&im->live, need);
	p->live_cap += im->live.cap - cap;
	return err;
}

int stack_past_add(struct stack_past *p, const struct history_key *key, uint64_t alloc_ns,
		   uint64_t size_bytes, double probability)
{
	double n = (double)size_bytes;
	struct life l = { .stack_id = key->stack_id,
			  .context_id = (uint32_t)key->context_id,
			  .last = OPEN };
	const struct sums sums = { 1, n / probability,
				   n * n * (1 - probability) / (probability * probability),
				   1 / probability };
	struct image *im = vec_get(&p->images, image, key->image);
	size_t first;

	if (!im || !im->is_named)
		return 0;
	for (first = im->first; first < p->moment_cnt && p->moments[first].time_ns < alloc_ns;)
		first++;
	if (first >= p->moment_cnt)
		return 0;
	l.first = (uint8_t)first;
	set(&l, &sums);
	if (im->live.cnt == im->live.cap && make_room(p, im))
		return -ENOMEM;
	im->live.data[im->live.cnt++] = l;
	return 0;
}

/* The lives of one stack. */
struct group {
	size_t first, cnt;
	double rank_bytes; /* what it held on average since it is known */
};

/* Return their number. */
static size_t group_stacks(const struct lives *lives, uint8_t now, struct group *ret)
{
	const struct life *l = lives->data, *end = l + lives->cnt;
	size_t cnt = 0;

	while (l < end && l->stack_id != STACK_PAST_REST) {
		struct group *g = &ret[cnt++];

		g->first = (size_t)(l - lives->data);
		for (; l < end && l->stack_id == lives->data[g->first].stack_id; l++, g->cnt++)
			g->rank_bytes += (double)l->bytes *
					 ((l->last == OPEN ? now : l->last) + 1 - l->first) /
					 (now + 1 - l->known);
	}
	return cnt;
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return (x->rank_bytes < y->rank_bytes) - (x->rank_bytes > y->rank_bytes);
}

/* Return how many lives are left of cnt when cut() has cut them all. */
static size_t cnt_from(const struct life *l, size_t cnt, unsigned from, uint8_t now)
{
	bool has_last[OPEN + 1] = { false }; /* of those in this context that begin there then */
	size_t left = 0;

	for (size_t i = 0; i < cnt && from <= now; i++) {
		if (i && l[i].context_id != l[i - 1].context_id)
			memset(has_last, 0, sizeof(has_last));
		if (l[i].last < from || (l[i].first <= from && has_last[l[i].last]))
			continue;
		has_last[l[i].last] = l[i].first <= from;
		left++;
	}
	return left;
}

/* Add to the rest what a life held before moment `from`. */
static void cut(struct life *l, unsigned from, uint8_t now, struct sums *rest)
{
	for (unsigned at = l->first; at < from && at <= l->last; at++)
		add(&rest[at], l);
	if (l->last < from || from > now)
		l->samples = 0;
	if (l->first < from)
		l->first = (uint8_t)from;
	if (l->known < from)
		l->known = (uint8_t)from;
}

/* Cut off as much as must go so that at most `room` lives are left. */
static int fit(struct lives *lives, uint8_t now, size_t room)
{
	size_t left = room > now + 1U ? room - now - 1U : 0; /* besides the rest */
	struct group *groups = calloc(lives->cnt + 1, sizeof(*groups));
	struct sums rest[STACK_PAST_MOMENTS_CAP] = { 0 };
	size_t cnt = groups ? group_stacks(lives, now, groups) : 0;
	int err = groups ? 0 : -ENOMEM;

	if (cnt)
		qsort(groups, cnt, sizeof(*groups), compare_groups);
	for (const struct group *g = groups; g < groups + cnt; g++) {
		struct life *l = lives->data + g->first;
		unsigned from = 0;

		while (cnt_from(l, g->cnt, from, now) > left / SHARE_PART)
			from += (now + 2U - from) / 2;
		left -= cnt_from(l, g->cnt, from, now);
		for (size_t i = 0; i < g->cnt; i++)
			cut(&l[i], from, now, rest);
	}
	for (unsigned at = 0; at <= now && !err; at++) {
		struct life l = { .stack_id = STACK_PAST_REST };

		l.first = l.last = (uint8_t)at;
		set(&l, &rest[at]);
		err = vec_push(lives, l);
	}
	free(groups);
	sort(lives);
	tidy(lives);
	return err;
}

/*
 * Bring an image up to the moment that was read. What was live at the moment before, and is not any more, has ended
 * there: so all of it is ended, and what still lives is taken off that.
 */
static int bring_up(const struct stack_past *p, struct image *im, size_t room)
{
	uint8_t now = (uint8_t)(p->moment_cnt - 1);
	struct lives made = { 0 };
	struct life *l;
	int err;

	settle(p, im);
	err = vec_reserve(&made, im->lives.cnt + 2 * im->live.cnt + 1);
	if (err)
		return err;
	merge(&made, &im->lives);
	vec_each(&made, l)
		if (l->last == OPEN)
			l->last = (uint8_t)(now - 1);
	merge(&made, &im->live);
	vec_each(&im->live, l) {
		l->last = (uint8_t)(now - 1);
		l->samples = -l->samples;
		l->bytes = -l->bytes;
		l->variance = -l->variance;
		l->objects = -l->objects;
	}
	if (now)
		merge(&made, &im->live);
	tidy(&made);
	if (made.cnt > room)
		err = fit(&made, now, room);
	release_image(im);
	im->lives = made;
	l = realloc(made.data, (made.cnt + 1) * sizeof(*l));
	if (l)
		im->lives = (struct lives){ l, made.cnt, made.cnt + 1 };
	return err;
}

static size_t most_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* An image may use its part of the room, or half of what is free when the others are counted with at least their
 * parts. */
static size_t room_of(const struct stack_past *p, const struct image *im)
{
	size_t part = STACK_PAST_ENTRIES_CAP / p->images.cnt, taken = 0;
	const struct image *other;

	vec_each(&p->images, other)
		taken += other == im ? 0 : most_of(other->lives.cnt, part);
	return most_of(part,
		       taken < STACK_PAST_ENTRIES_CAP ? (STACK_PAST_ENTRIES_CAP - taken) / 2 : 0);
}

/* A random number: at fixed intervals, a program that works in steps would be seen in another phase each time,
 * which would pass for growth. */
static uint64_t draw(struct stack_past *p)
{
	p->seed = p->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return p->seed >> 24;
}

int stack_past_end(struct stack_past *p, uint64_t took_ns)
{
	uint64_t interval_ns = p->interval_ns;
	struct image *im;
	int err = 0;

	if (took_ns * COST_PART > interval_ns)
		interval_ns = took_ns * COST_PART;
	p->due_ns = p->moments[p->moment_cnt - 1].time_ns + interval_ns - interval_ns / 4 +
		    draw(p) % (interval_ns / 2 + 1);
	vec_each(&p->images, im)
		if (!err)
			err = bring_up(p, im, room_of(p, im));
	drop_unnamed(p);
	if (err)
		stack_past_forget(p);
	return err;
}

size_t stack_past_moments(const struct stack_past *p, uint64_t image,
			  const struct stack_past_moment **ret)
{
	const struct image *im = vec_get(&p->images, image, image);

	if (!im)
		return 0;
	*ret = p->moments + im->first;
	return p->moment_cnt - im->first;
}

int stack_past_history(const struct stack_past *p, uint64_t image, uint64_t from_ns,
		       struct history **ret, bool *ret_is_partial)
{
	const struct image *im = vec_get(&p->images, image, image);
	struct history *h = NULL;
	size_t from;
	int err;

	if (!im)
		return -ENOENT;
	for (from = im->first; from < p->moment_cnt && p->moments[from].time_ns < from_ns;)
		from++;
	if (from == p->moment_cnt)
		return -ENOENT;
	err = history_new(p->interval_ns, &h);
	for (size_t i = from; i < p->moment_cnt && !err; i++)
		err = history_put_moment(h, p->moments[i].time_ns);
	*ret_is_partial = false;
	for (size_t i = 0; i < im->lives.cnt && !err; i++) {
		const struct life *l = &im->lives.data[i];

		const struct history_key key = { .stack_id = l->stack_id,
						 .image = image,
						 .context_id = l->context_id };
		const struct history_life life = {
			.first = l->first > from ? (uint32_t)(l->first - from) : 0,
			.last = (uint32_t)((l->last == OPEN ? p->moment_cnt - 1 : l->last) - from),
			.samples = (uint64_t)l->samples,
			.bytes = (double)l->bytes,
			.variance = (double)l->variance,
		};

		if (l->last < from)
			continue;
		if (l->stack_id == STACK_PAST_REST || l->known > from)
			*ret_is_partial = true;
		else
			err = history_put_life(h, &key, &life);
	}
	if (err)
		history_free(h);
	else
		*ret = h;
	return err;
}

static void add_life(struct estimate at[2], const struct life *life, size_t before, size_t after)
{
	bool has[2] = { life->first <= before && before <= life->last,
			life->first <= after && after <= life->last };

	for (int i = 0; i < 2; i++) {
		if (!has[i])
			continue;
		at[i].samples += (uint64_t)life->samples;
		at[i].bytes += (double)life->bytes;
		at[i].objects += (double)life->objects;
		if (!has[!i] || before == after)
			at[i].bytes_variance += (double)life->variance;
	}
}

int stack_past_compare(const struct stack_past *p, uint64_t image, size_t before, size_t after,
		       stack_past_pair_fn fn, void *ctx)
{
	struct history_key key = { .image = image, .stack_id = STACK_PAST_REST };
	const struct image *im = vec_get(&p->images, image, image);
	struct estimate rest[2] = { 0 };
	int err = 0;

	if (!im)
		return -ENOENT;
	before += im->first;
	after += im->first;
	for (size_t i = 0; i < im->lives.cnt && !err;) {
		const struct life *first = &im->lives.data[i], *l = first;
		bool is_rest = first->known > before || first->stack_id == STACK_PAST_REST;
		const struct history_key of = { .image = image,
						.stack_id = first->stack_id,
						.context_id = first->context_id };
		struct estimate at[2] = { 0 };

		for (; i < im->lives.cnt && !compare_stacks(l, first); l = &im->lives.data[++i])
			add_life(is_rest ? rest : at, l, before, after);
		if (!is_rest && (at[0].samples || at[1].samples))
			err = fn(ctx, &of, at);
	}
	if (!err && (rest[0].samples || rest[1].samples))
		err = fn(ctx, &key, rest);
	return err;
}

size_t stack_past_bytes(const struct stack_past *p)
{
	size_t bytes = sizeof(*p) + p->images.cap * sizeof(*p->images.data);
	const struct image *im;

	vec_each(&p->images, im)
		bytes += im->lives.cap * sizeof(*im->lives.data);
	return bytes;
}
