/* SPDX-License-Identifier: MIT */
/*
 * report_before.c - what was allocated before the recording and lives at its end: no stack shows it.
 *
 *	before = live at the end, as malloc's heap says - in use, as the recording says
 *
 * Each is known within bounds, so the difference is. The heap was walked while the process ran on: each call of its
 * allocator in that time may be in one of the two and not in the other. A sampled sum has its interval. Blocks in the heap have a header and are rounded up, by 8
 * to 48 bytes, and those that are mapped for themselves to pages.
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
#define UNSEEN_SAMPLES 3 /* where hits are samples: so many calls may have had none */
#define HITS_PER_CALL 1.5
#define SURE 1.96
/* Of hundreds of classes none may be older by chance. */
#define SURE_OF_CLASS 3
#define UNSEEN_OF_CLASS 7
/* With fewer samples, blocks that were not seen may be as many. */
#define FEW_SAMPLES 16

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
	return r->p->resident.is_asked && end->is_known && end->is_proved && end->is_counted ? end :
											       NULL;
}

/* With the tap hits are samples, else all calls. */
static bool has_all_calls(const struct report *r, const struct resident_look *heap)
{
	return heap->hit_cnt &&
	       (double)r->total.alloc_objects <= HITS_PER_CALL * (double)heap->hit_cnt;
}

/* Calls of the allocator during the walk; *ret_bytes: of these, if they are as large as others. */
static double calls_meanwhile(const struct report *r, const struct resident_look *heap,
			      double *ret_bytes)
{
	double cnt = (double)r->total.alloc_objects, hits = (double)heap->hit_cnt;
	double per_hit = hits > 0 ? fmax(cnt / hits, 1) : (double)r->rate_bytes / CHUNK_LEAST;
	double calls = (double)heap->late_hit_cnt;

	if (!has_all_calls(r, heap))
		calls = per_hit * (calls + UNSEEN_SAMPLES);
	*ret_bytes = calls * (cnt > 0 ? report_alloc(&r->total) / cnt : CHUNK_LEAST);
	return calls;
}

/* Without a sample the recording may still have so many blocks of this size; not more than were allocated. */
static double unseen_objects(const struct report *r, const struct resident_look *heap,
			     double samples, double bytes)
{
	double cnt;

	if (r->rate_bytes <= 1)
		return 0;
	cnt = samples / -expm1(-fmax(bytes, 1) / (double)r->rate_bytes);
	return has_all_calls(r, heap) ? fmin(cnt, (double)heap->hit_cnt) : cnt;
}

bool report_find_before_class(const struct report *r, const struct resident_class *c,
			      struct report_before_class *ret)
{
	const struct resident_look *heap = comparable_heap(r);
	const char *name = profile_text(r->p, c->name_str);
	double off, late_bytes;

	if (!heap || !c->live_cnt || !isfinite(c->recorded.cnt) || !isfinite(c->recorded.variance))
		return false;
	off = SURE_OF_CLASS * sqrt(fmax(c->recorded.variance, 0)) +
	      unseen_objects(r, heap, UNSEEN_OF_CLASS, (double)c->from_bytes) +
	      calls_meanwhile(r, heap, &late_bytes);
	*ret = (struct report_before_class){
		.name = name[0] ? name : NULL,
		.from_bytes = c->from_bytes,
		.to_bytes = c->to_bytes,
		.objects = fmin((double)c->live_cnt - c->recorded.cnt, (double)c->live_cnt),
	};
	ret->objects_low = ret->objects - off;
	ret->objects_high = fmin(ret->objects + off, (double)c->live_cnt);
	ret->bytes = ret->objects * (double)c->live_bytes / (double)c->live_cnt;
	return ret->objects_low > 0;
}

bool report_find_before(const struct report *r, struct report_before *ret)
{
	const struct resident_look *heap = comparable_heap(r);
	const struct report_row *t = &r->total;
	struct report_before_class of, least = { 0 };
	const struct resident_class *c;
	double low, high, objects_off, late, late_bytes, unread;

	if (!heap)
		return false;
	/* a sum that is exact has no variance */
	estimate_interval(&t->estimate, &low, &high);
	objects_off = SURE * sqrt(fmax(t->estimate.objects_variance, 0));
	if (t->estimate.samples < FEW_SAMPLES)
		objects_off += unseen_objects(r, heap, UNSEEN_SAMPLES, 1);
	late = calls_meanwhile(r, heap, &late_bytes);
	unread = (double)resident_bytes(r->p, RESIDENT_UNREAD, true);
	ret->objects = (double)heap->live_cnt - (double)t->objects;
	ret->objects_low = ret->objects - objects_off - late;
	ret->objects_high = fmin(ret->objects + objects_off, (double)heap->live_cnt) + late +
			    unread / CHUNK_LEAST;
	ret->bytes =
		(double)heap->live_bytes - (double)t->value - HEADER_USUAL * (double)t->objects;
	ret->bytes_low = (double)heap->live_bytes - high -
			 HEADER_MOST * ((double)t->objects + objects_off) -
			 MMAPPED_MOST * (double)heap->mmapped_cnt - late_bytes;
	ret->bytes_high = (double)heap->live_bytes - low -
			  HEADER_LEAST * fmax((double)t->objects - objects_off, 0) + late_bytes +
			  unread;
	/* What is certain of sizes is certain of the sum. */
	vec_each(&r->p->resident.classes, c) {
		if (!report_find_before_class(r, c, &of) || of.name)
			continue;
		least.objects += of.objects_low;
		least.bytes += of.objects_low * fmax((double)of.from_bytes, CHUNK_LEAST);
	}
	ret->objects_low = fmax(ret->objects_low, least.objects);
	ret->bytes_low = fmax(ret->bytes_low, least.bytes);
	ret->objects = fmax(ret->objects, ret->objects_low);
	ret->bytes = fmax(ret->bytes, ret->bytes_low);
	/* Nothing negative was allocated. */
	ret->objects = fmax(ret->objects, 0);
	ret->objects_low = fmax(ret->objects_low, 0);
	ret->objects_high = fmax(ret->objects_high, 0);
	ret->bytes = fmax(ret->bytes, 0);
	ret->bytes_low = fmax(ret->bytes_low, 0);
	ret->bytes_high = fmax(ret->bytes_high, 0);
	return !isnan(ret->objects_high) && !isnan(ret->bytes_high);
}
