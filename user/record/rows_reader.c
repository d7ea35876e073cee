/* SPDX-License-Identifier: MIT */
/* rows_reader.c - see rows_reader.h. */
#include "record/rows_reader.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "explain/explain.h"
#include "proc/reader.h"

/* A GiB of small blocks takes 0.5 s, and more on a busy machine. */
#define READ_NS (2 * NS_PER_S)
#define READ_PER_GIB_NS NS_PER_S
#define READ_MOST_NS (6 * NS_PER_S)
/* A child that is on its way has this much more. */
#define ANSWER_NS (2 * NS_PER_S)
#define CHILD_CPU_S 10
#define CLASSES_EACH \
	((RESIDENT_CLASS_CAP - RESIDENT_SPAN_CAP) / 2) /* of sizes, and of C++ classes */
/* Of a job: for a heap of 24 GiB, where each bit of a map is for 16 bytes. */
#define JOB_DATA_BYTES (256ULL << 20)

/* A row that is not here has its own label, and is nothing for limits. */
static const struct {
	const char *label;
	enum resident_kind kind;
} texts[ROW_CNT] = {
	[ROW_LIVE] = { "live", RESIDENT_LIVE },
	[ROW_TRIM] = { "free kept by glibc", RESIDENT_FREE },
	[ROW_PINNED] = { "free kept by glibc", RESIDENT_FREE },
	[ROW_KEPT] = { "free kept by glibc", RESIDENT_FREE },
	[ROW_OWN] = { "metadata of malloc", RESIDENT_METADATA },
	[ROW_UNKNOWN] = { "heap not read", RESIDENT_UNREAD },
	[ROW_JE_LIVE] = { "live", RESIDENT_LIVE },
	[ROW_JE_PINNED] = { "free kept by jemalloc", RESIDENT_FREE },
	[ROW_JE_DIRTY] = { "free kept by jemalloc", RESIDENT_FREE },
	[ROW_JE_OWN] = { "metadata of malloc", RESIDENT_METADATA },
	[ROW_PY_LIVE] = { "Python objects", RESIDENT_OTHER },
	[ROW_PY_FREE] = { "free kept by Python", RESIDENT_FREE },
	[ROW_JAVA] = { "Java heap", RESIDENT_OTHER },
	[ROW_GO_LIVE] = { "Go heap in use", RESIDENT_OTHER },
	[ROW_GO_FREE] = { "free kept by Go", RESIDENT_FREE },
	[ROW_V8] = { "V8 heap", RESIDENT_OTHER },
	[ROW_BRK] = { "brk heap", RESIDENT_UNOWNED },
	[ROW_ANONYMOUS] = { "anonymous", RESIDENT_UNOWNED },
	[ROW_NAMED] = { "named anonymous", RESIDENT_OTHER },
	[ROW_CODE] = { "generated code", RESIDENT_OTHER },
	[ROW_STACKS] = { "stacks", RESIDENT_OTHER },
	[ROW_SHARED] = { "shared memory", RESIDENT_OTHER },
	[ROW_FILES] = { "files", RESIDENT_OTHER },
	[ROW_DATA] = { "program data", RESIDENT_OTHER },
	[ROW_KERNEL] = { "kernel pages", RESIDENT_OTHER },
	[ROW_MOVED] = { "changed while read", RESIDENT_MOVED },
};
_Static_assert(ROW_CNT <= RESIDENT_ROW_CAP, "a reading has room for all rows");

/* Is a heap in use? why: one that was found was not read, or none was found; "": all were. */
static bool find_heap(const struct explanation *x, char why[RESIDENT_WHY_BYTES])
{
	bool has_heap = x->jemalloc.tree_cnt != 0;
	const struct glibc_arena *a;

	why[0] = '\0';
	vec_each(&x->glibc.arenas, a) {
		has_heap |= a->system_bytes != 0;
		if (!a->is_proved && a->system_bytes && !why[0])
			snprintf(why, RESIDENT_WHY_BYTES, "an arena of malloc: %.128s", a->why);
	}
	for (size_t i = 0; i < x->jemalloc.tree_cnt; i++) {
		if (!x->jemalloc.trees[i].is_proved && !why[0])
			snprintf(why, RESIDENT_WHY_BYTES, "jemalloc: %.128s",
				 x->jemalloc.trees[i].why);
	}
	if (x->glibc.is_unread && !why[0])
		snprintf(why, RESIDENT_WHY_BYTES, "glibc's malloc: %.128s", x->glibc.why);
	if (!has_heap && !why[0])
		snprintf(why, RESIDENT_WHY_BYTES, "no glibc malloc or jemalloc in use was found");
	return has_heap;
}

static void set_row(const struct row *row, bool is_proved, struct resident_reading_row *ret)
{
	const char *label = texts[row->kind].label;

	if (row->kind == ROW_ANONYMOUS && is_proved)
		label = "mapped directly"; /* else a part of it may be malloc's */
	snprintf(ret->name, sizeof(ret->name), "%s", row_name(row->kind));
	snprintf(ret->label, sizeof(ret->label), "%s", label ? label : row_label(row->kind));
	ret->kind = texts[row->kind].kind;
	ret->bytes = row->bytes;
}

static double unrecorded_bytes(const struct resident_reading_class *c)
{
	double part = c->live_cnt ? 1 - c->recorded.cnt / (double)c->live_cnt : 0;

	return part * (double)c->live_bytes;
}

/* Keep those with the most, the most first; `first`: where those of its kind begin. */
static void add_class(struct resident_reading *to, uint32_t first,
		      const struct resident_reading_class *c)
{
	struct resident_reading_class *list = to->classes;
	const double bytes = unrecorded_bytes(c);
	uint32_t i = to->class_cnt;

	if (bytes <= 0)
		return;
	if (i < first + CLASSES_EACH)
		to->class_cnt++;
	else if (unrecorded_bytes(&list[--i]) >= bytes)
		return;
	for (; i > first && unrecorded_bytes(&list[i - 1]) < bytes; i--)
		list[i] = list[i - 1];
	list[i] = *c;
}

/* Powers of two of the chunk, which is 23 bytes larger than the least block of it. The smallest has a span of its own, for
 * blocks of a byte are hardly ever sampled. */
static uint32_t span_of(uint64_t from_bytes)
{
	uint32_t span = from_bytes ? 59 - (uint32_t)__builtin_clzll(from_bytes + 23) : 0;

	return span < RESIDENT_SPAN_CAP ? span : RESIDENT_SPAN_CAP - 1;
}

static void add_spans(const struct heap_class *classes, struct resident_reading *ret)
{
	struct resident_reading_class spans[RESIDENT_SPAN_CAP] = { 0 }, *span;
	uint64_t from, to;

	for (uint32_t i = 0; classes && i < HEAP_CLASS_CNT; i++) {
		heap_class_range(i, &from, &to);
		span = &spans[span_of(from)];
		if (!classes[i].live_cnt)
			continue;
		if (!span->is_span)
			span->from_bytes = from;
		span->is_span = true;
		span->to_bytes = to;
		span->live_cnt += classes[i].live_cnt;
		span->live_bytes += classes[i].live_bytes;
		span->recorded.cnt += classes[i].recorded.cnt;
		span->recorded.variance += classes[i].recorded.variance;
	}
	for (span = spans; span < spans + RESIDENT_SPAN_CAP; span++)
		if (span->is_span)
			ret->classes[ret->class_cnt++] = *span;
}

/* By size, and by C++ class. */
static void add_classes(const struct explanation *x, struct resident_reading *ret)
{
	const struct heap_class *classes = x->glibc.classes;
	size_t cnt;
	const struct type *types = types_list(x->types, &cnt);
	uint64_t to;

	for (uint32_t i = 0; classes && i < HEAP_CLASS_CNT; i++) {
		struct resident_reading_class c = { .live_cnt = classes[i].live_cnt,
						    .live_bytes = classes[i].live_bytes,
						    .recorded = classes[i].recorded };

		heap_class_range(i, &c.from_bytes, &c.to_bytes);
		add_class(ret, 0, &c);
	}
	for (uint32_t first = ret->class_cnt, i = 0; i < cnt; i++) {
		struct resident_reading_class c = { .live_cnt = types[i].sum.cnt,
						    .live_bytes = types[i].sum.bytes,
						    .recorded = types[i].sum.recorded };

		heap_class_range(heap_class_of(types[i].sum.least_bytes), &c.from_bytes, &to);
		snprintf(c.name, sizeof(c.name), "%.79s", types[i].name);
		add_class(ret, first, &c);
	}
	add_spans(classes, ret);
}

static void make_reading(const struct explanation *x, struct resident_reading *ret)
{
	const struct glibc *g = &x->glibc;

	memset(ret, 0, sizeof(*ret));
	ret->has_heap = find_heap(x, ret->why);
	ret->is_known = true;
	ret->is_proved = !ret->why[0];
	ret->rss_bytes = x->rows.rss_bytes;
	ret->took_ns = x->took_ns;
	/* jemalloc's blocks are counted with those in caches of threads, which are not the program's. */
	ret->is_counted =
		ret->is_proved && g->cache_key && !x->jemalloc.tree_cnt && !x->jemalloc.is_mapped;
	ret->live_cnt = g->sum.cnt[HEAP_LIVE];
	ret->live_bytes = g->sum.bytes[HEAP_LIVE];
	ret->mmapped_cnt = g->mmapped.cnt[HEAP_LIVE];
	ret->has_brk = rows_find(&x->rows, ROW_BRK)->bytes != 0;
	for (size_t i = 0; i < ROW_CNT; i++)
		if (x->rows.list[i].bytes)
			set_row(&x->rows.list[i], ret->is_proved, &ret->rows[ret->row_cnt++]);
	if (ret->is_counted && g->pins && g->pins->is_all)
		add_classes(x, ret);
}

void rows_reader_read(pid_t pid, struct resident_pins *pins, uint64_t limit_ns,
		      struct resident_reading *ret)
{
	uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct explanation x;
	struct err why;

	memset(ret, 0, sizeof(*ret));
	if (!explain_process(pid, pins && pins->is_all, pins, limit_ns, &x, &why))
		make_reading(&x, ret);
	else
		snprintf(ret->why, sizeof(ret->why), "%.159s", why.text);
	explain_release(&x);
	ret->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
}

struct job {
	pid_t pid;
	uint64_t limit_ns;
	struct resident_pins *pins; /* only of a child that shares the memory of this process */
};

static int read_and_answer(void *arg)
{
	const struct job *job = arg;
	struct resident_reading reading;

	rows_reader_read(job->pid, job->pins, job->limit_ns, &reading);
	return write_all(STDOUT_FILENO, &reading, sizeof(reading)) ? 1 : 0;
}

static void end_child(struct rows_reader *r)
{
	if (r->is_job)
		close(r->child.fd);
	else
		sandbox_end_reading(&r->child);
	r->is_job = false;
}

static void set_unknown(struct rows_reader *r, const char *why)
{
	r->is_over = true;
	memset(&r->answer, 0, sizeof(r->answer));
	r->answer.rss_bytes = r->rss_bytes;
	snprintf(r->answer.why, sizeof(r->answer.why), "%s", why);
}

static uint64_t limit_ns(uint64_t rss_bytes)
{
	uint64_t ns =
		READ_NS + (uint64_t)((double)rss_bytes / (1ULL << 30) * (double)READ_PER_GIB_NS);

	return ns < READ_MOST_NS ? ns : READ_MOST_NS;
}

static struct job begin(struct rows_reader *r, pid_t pid, uint64_t rss_bytes, uint64_t most_ns)
{
	struct job job = { .pid = pid, .limit_ns = limit_ns(rss_bytes) };

	if (job.limit_ns > most_ns)
		job.limit_ns = most_ns;
	*r = (struct rows_reader){ .deadline_ns = now_ns() + job.limit_ns + ANSWER_NS,
				   .rss_bytes = rss_bytes };
	return job;
}

void rows_reader_begin(struct rows_reader *r, pid_t pid, uint64_t rss_bytes, uint64_t most_ns,
		       struct resident_pins *pins)
{
	struct job job = begin(r, pid, rss_bytes, most_ns);
	int err;

	job.pins = pins;
	err = sandbox_begin_reading(read_and_answer, &job, CHILD_CPU_S, &r->child);
	if (err)
		set_unknown(r, strerror(-err));
}

void rows_reader_begin_job(struct rows_reader *r, struct reader *reader, uint32_t uid, pid_t pid,
			   uint64_t rss_bytes)
{
	struct job job = begin(r, pid, rss_bytes, UINT64_MAX);
	int err = reader_run_job(reader, uid, ROWS_READER_JOB, -1, &job, sizeof(job), CHILD_CPU_S,
				 &r->child.fd);

	r->is_job = !err;
	if (!err && fcntl(r->child.fd, F_SETFL, O_NONBLOCK)) {
		err = -errno;
		end_child(r);
	}
	if (err)
		set_unknown(r, strerror(-err));
}

int rows_reader_run_job(const void *args, size_t args_bytes, int out_fd)
{
	struct resident_reading reading;
	struct job job;

	if (args_bytes != sizeof(job) || sandbox_seal_reading(getppid(), JOB_DATA_BYTES))
		return 1;
	memcpy(&job, args, sizeof(job));
	rows_reader_read(job.pid, NULL, job.limit_ns, &reading);
	return write_all(out_fd, &reading, sizeof(reading)) ? 1 : 0;
}

/* The child may have been taken over by what it read. */
static void finish(struct rows_reader *r)
{
	end_child(r);
	r->is_over = true;
	memcpy(&r->answer, r->bytes, sizeof(r->answer));
	if (r->byte_cnt != sizeof(r->answer))
		set_unknown(r, sandbox_reading_error(-EIO));
	else if (resident_reading_check(&r->answer))
		set_unknown(r, "its rows contradict each other");
	else if (!r->answer.is_known)
		r->answer.rss_bytes = r->rss_bytes;
}

/* true: to the end. */
static bool take(struct rows_reader *r)
{
	while (r->byte_cnt < sizeof(r->bytes)) {
		ssize_t n =
			read(r->child.fd, r->bytes + r->byte_cnt, sizeof(r->bytes) - r->byte_cnt);

		if (!n)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
		r->byte_cnt += n < 0 ? 0 : (size_t)n;
	}
	return false;
}

bool rows_reader_work(struct rows_reader *r)
{
	if (!rows_reader_is_at_work(r))
		return true;
	if (take(r)) {
		finish(r);
	} else if (r->byte_cnt == sizeof(r->bytes) || now_ns() >= r->deadline_ns) {
		rows_reader_give_up(r, "it did not respond in time");
		r->is_late = true;
	}
	return !rows_reader_is_at_work(r);
}

void rows_reader_give_up(struct rows_reader *r, const char *why)
{
	if (r->is_over)
		return;
	end_child(r);
	set_unknown(r, why);
}
