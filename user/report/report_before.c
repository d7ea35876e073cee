/* SPDX-License-Identifier: MIT */
/*
 * report_before.c - what was allocated before the recording and lives at its end: no stack shows it.
 *
 *	before = live at the end, as malloc's heap says - in use, as the recording says
 *
 * Each is known within bounds, so the difference is. The heap was walked while the process ran on: each call of its
 * allocator in that time may be in one of the two and not in the other. A sampled sum has its interval. Blocks in the heap
 * have a header and are rounded up, by 8 to 48 bytes, and those that are mapped for themselves to pages.
 *
 * What was not sampled has no part in the variance of what was: a thousand samples of large blocks say nothing of small ones, of
 * which 60,000 may have been allocated without a sample. So the least is the most of what is certain of the blocks of a size
 * and above, for any size: below it all that is live may be the recording's.
 *
 * It is said only where the two are of the same blocks: all heaps were read to their ends, blocks in caches of threads were
 * told from live ones, all frees were watched, nothing was lost, and no memory is known to be unseen.
 *
 * By size and C++ class the reader of the heap counts it: its live blocks of a class, less what those of them stand for that
 * the recording has sampled.
 */

#include "profile/resident_words.h"
#include "report/report_rows.h"
#include "report/report_text.h"

#define HEADER_LEAST 8
#define HEADER_USUAL 16
#define HEADER_MOST 48
#define MMAPPED_MOST 4128
#define CHUNK_LEAST 32
#define UNSEEN_SAMPLES 3 /* where calls are not counted: so many may have had no sample */
#define SURE 1.96
/* Of hundreds of classes, and of all spans, none may be older by chance. */
#define SURE_OF_CLASS 3
#define UNSEEN_OF_CLASS 7

/* The reading of the heap, if it is of the blocks that the recording is of. */
static const struct resident_look *comparable_heap(const struct report *r)
{
	const struct recording *rec = &r->p->recording;
	const struct resident_look *end = &r->p->resident.end;
	size_t at = 0;

	if (!rec->is_known || rec->is_from_start || rec->process_cnt > 1 || r->is_lossy ||
	    !report_is_at_end(r) || rec->inuse != RECORDING_INUSE_ALL || !r->is_inuse ||
	    r->objects_type < 0 || r->alloc_type < 0 || r->alloc_objects_type < 0 ||
	    !r->has_interval || r->opts->scope || r->opts->older_than ||
	    report_next_unseen(r->p, &at))
		return NULL;
	return r->p->resident.is_asked && end->is_known && end->is_proved && end->is_counted &&
			       end->coarsest_rate_bytes ?
		       end :
		       NULL;
}

/* Calls of the allocator during the walk; *ret_bytes: of these, if they are as large as others. */
static double calls_meanwhile(const struct report *r, const struct resident_look *heap,
			      double *ret_bytes)
{
	const struct report_row *t = &r->total;
	double cnt = (double)t->alloc_objects, calls = (double)heap->late_hit_cnt;
	double samples = (double)t->alloc_estimate.samples;
	double per_sample = samples > 0 ? fmax(cnt / samples, 1) :
					  (double)heap->coarsest_rate_bytes / CHUNK_LEAST;

	if (!heap->hit_cnt)
		calls = per_sample * (calls + UNSEEN_SAMPLES);
	*ret_bytes = calls * (cnt > 0 ? report_alloc(t) / cnt : CHUNK_LEAST);
	return calls;
}

/*
 * How many blocks of so many bytes and more the recording may have beyond those that its samples stand for, and those that were
 * allocated during the walk. Not more than were allocated at all.
 */
static double unseen_objects(const struct resident_look *heap,
			     const struct resident_recorded *recorded, uint64_t from_bytes)
{
	double late = (double)heap->late_hit_cnt;
	double each = 1 / estimate_probability(from_bytes, heap->coarsest_rate_bytes);
	double cnt = heap->coarsest_rate_bytes > 1 ? UNSEEN_OF_CLASS * each : 0;

	cnt += SURE_OF_CLASS * sqrt(fmax(recorded->variance, 0));
	if (!heap->hit_cnt)
		return cnt + each * (late + SURE_OF_CLASS * sqrt(late));
	return fmin(cnt, fmax((double)heap->hit_cnt - recorded->cnt, 0)) + late;
}

static bool is_sound(const struct resident_recorded *r)
{
	return isfinite(r->cnt) && isfinite(r->variance) && r->cnt >= 0;
}

bool report_find_before_class(const struct report *r, const struct resident_class *c,
			      struct report_before_class *ret)
{
	const struct resident_look *heap = comparable_heap(r);
	const char *name = profile_text(r->p, c->name_str);
	double off;

	if (!heap || c->is_span || !c->live_cnt || !is_sound(&c->recorded))
		return false;
	off = unseen_objects(heap, &c->recorded, c->from_bytes);
	*ret = (struct report_before_class){
		.name = name[0] ? name : NULL,
		.from_bytes = c->from_bytes,
		.to_bytes = c->to_bytes,
		.objects = (double)c->live_cnt - c->recorded.cnt,
	};
	ret->objects_low = ret->objects - off;
	ret->objects_high = fmin(ret->objects + off, (double)c->live_cnt);
	ret->bytes = ret->objects * (double)c->live_bytes / (double)c->live_cnt;
	return ret->objects_low > 0;
}

/* What is certain of some live blocks, which have from_bytes or more, is certain of all. */
static void raise_least(const struct resident_look *heap, const struct resident_class *c,
			double recorded_bytes, double late_bytes, struct report_before *ret)
{
	double recorded = c->recorded.cnt + unseen_objects(heap, &c->recorded, c->from_bytes);

	ret->objects_low = fmax(ret->objects_low, (double)c->live_cnt - recorded);
	ret->bytes_low = fmax(ret->bytes_low,
			      (double)c->live_bytes - recorded_bytes - HEADER_MOST * recorded -
				      MMAPPED_MOST * (double)heap->mmapped_cnt - late_bytes);
}

/* recorded_bytes: at most so many of all live bytes are the recording's, without headers. */
static void find_least(const struct report *r, const struct resident_look *heap,
		       double recorded_bytes, double late_bytes, struct report_before *ret)
{
	const struct resident_class all = {
		.live_cnt = heap->live_cnt,
		.live_bytes = heap->live_bytes,
		.recorded = { (double)r->total.objects, r->total.estimate.objects_variance },
	};
	const struct resident_class *c, *list = r->p->resident.classes.data;
	struct resident_class above = { .from_bytes = UINT64_MAX };
	struct report_before_class of;
	double objects = 0, bytes = 0;

	raise_least(heap, &all, recorded_bytes, late_bytes, ret);
	/* from the largest on */
	for (size_t i = r->p->resident.classes.cnt; i--;) {
		c = &list[i];
		if (!c->is_span || !is_sound(&c->recorded))
			continue;
		if (c->from_bytes < above.from_bytes)
			above.from_bytes = c->from_bytes;
		above.live_cnt += c->live_cnt;
		above.live_bytes += c->live_bytes;
		above.recorded.cnt += c->recorded.cnt;
		above.recorded.variance += c->recorded.variance;
		raise_least(heap, &above, recorded_bytes, late_bytes, ret);
	}
	vec_each(&r->p->resident.classes, c) {
		if (!report_find_before_class(r, c, &of) || of.name)
			continue;
		objects += of.objects_low;
		bytes += of.objects_low * fmax((double)of.from_bytes, CHUNK_LEAST);
	}
	ret->objects_low = fmax(ret->objects_low, objects);
	ret->bytes_low = fmax(ret->bytes_low, bytes);
}

bool report_find_before(const struct report *r, struct report_before *ret)
{
	const struct resident_look *heap = comparable_heap(r);
	const struct report_row *t = &r->total;
	struct estimate e = t->estimate;
	double low, high, objects_off, late, late_bytes, unread;

	if (!heap)
		return false;
	e.rate_bytes = fmax(e.rate_bytes, (double)heap->coarsest_rate_bytes);
	estimate_interval(&e, &low, &high);
	/* Without a variance these are equal, but what was not sampled has none either. */
	if (e.samples && e.bytes_variance <= 0 && heap->coarsest_rate_bytes > 1)
		high += -log(2 * ESTIMATE_TAIL_95) * e.rate_bytes;
	objects_off = SURE * sqrt(fmax(e.objects_variance, 0));
	late = calls_meanwhile(r, heap, &late_bytes);
	unread = (double)resident_bytes(r->p, RESIDENT_UNREAD, true);
	*ret = (struct report_before){
		.objects = (double)heap->live_cnt - (double)t->objects,
		.bytes = (double)heap->live_bytes - (double)t->value -
			 HEADER_USUAL * (double)t->objects,
	};
	/* Nothing negative was allocated. */
	find_least(r, heap, high, late_bytes, ret);
	ret->objects = fmax(ret->objects, ret->objects_low);
	ret->bytes = fmax(ret->bytes, ret->bytes_low);
	ret->objects_high = fmin(fmax((double)heap->live_cnt - (double)t->objects, 0) + objects_off,
				 (double)heap->live_cnt) +
			    late + unread / CHUNK_LEAST;
	ret->bytes_high = fmax((double)heap->live_bytes - low -
				       HEADER_LEAST * fmax((double)t->objects - objects_off, 0) +
				       late_bytes + unread,
			       0);
	return !isnan(ret->objects_high) && !isnan(ret->bytes_high);
}
