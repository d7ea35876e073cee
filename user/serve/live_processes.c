/* SPDX-License-Identifier: MIT */
/*
 * live_processes.c - what each tracked process has in use, by scope and thread pool: for the pages and /metrics of
 * heaptap serve (see daemon_priv.h).
 *
 * A row of a snapshot is one context: a process, a thread, a scope, labels. Threads of a pool, and labels, are summed
 * up to one cell of {process, scope, pool}. The book (http/series_table.c) chooses the cells of a process that are
 * shown.
 */

#include <poll.h>

#include "base/hmap.h"
#include "base/printable.h"
#include "http/past.h"
#include "http/series.h"
#include "http/view.h"
#include "proc/cgroup.h"
#include "proc/facts.h"
#include "proc/proc_text.h"
#include "proc/process.h"
#include "proc/reader.h"
#include "profile/profile.h"
#include "profile/resident_words.h"
#include "profile/thread_pool.h"
#include "profile/witness.h"
#include "record/recording_notes.h"
#include "record/scope_labels.h"
#include "record/snapshot.h"
#include "serve/daemon_priv.h"
#include "track/governor.h"
#include "track/tracker.h"

#define ROWS_CHANGE 0.1 /* of the growth: so much may have come since the rows were read */

struct cell_key {
	uint64_t process; /* index in facts */
	int64_t scope_str, pool_str;
};

/* A process; its cells are cell_first and the cell_cnt - 1 after it. */
struct facts {
	struct serve_process shown;
	double rss_begin_bytes, growth_bytes; /* see profile/witness.h */
	struct series_process id;
	size_t cell_first, cell_cnt;
	size_t scope_first; /* in lp->scopes */
};

struct keyed_cell {
	size_t process;
	struct series_cell cell;
};

struct maker {
	const struct result_source *src;
	struct target_memory *memory;
	struct live_processes *lp;
	struct scope_labels *labels;
	VEC(struct facts) facts;
	struct hmap by_pid; /* uint32_t -> index in facts */
	VEC(struct keyed_cell) cells;
	struct hmap by_key; /* struct cell_key -> index in cells */
};

static const struct track_instance *last_image(const struct tracker *t, pid_t pid)
{
	const struct track_instance *inst = tracker_instances(t)->list.data;
	size_t cnt = tracker_instances(t)->list.cnt;

	while (cnt--)
		if (inst[cnt].pid == pid)
			return &inst[cnt];
	return NULL;
}

/* Copy a text, valid until the view is released. NULL: no memory. */
static const char *keep_text(struct maker *m, const char *text)
{
	int64_t str = profile_str(m->lp->names, text);

	return str < 0 ? NULL : profile_text(m->lp->names, str);
}

static int add_inuse_words(struct maker *m, const struct track_instance *image,
			   struct serve_process *p)
{
	int64_t epoch_off_ns = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)now_ns();
	struct recording r = RECORDING_NONE;
	char words[RECORDING_INUSE_BUF], late[LATE_FILES_WORDS];

	r.pid = p->pid;
	governor_fill_recording(m->src->governor, p->pid, epoch_off_ns, &r);
	recording_inuse_words(&r, "", m->src->rate_bytes, false, words);
	if (image->has_unseen_frees) {
		r.inuse = RECORDING_INUSE_UNKNOWN;
		r.has_nameless_frees = true;
		recording_inuse_words(&r, "", m->src->rate_bytes, false, words);
	}
	p->is_inuse_unknown = r.inuse == RECORDING_INUSE_UNKNOWN;
	if (image->unseen[0] || image->late_file_cnt) /* what is seen is the least that it can be */
		p->is_inuse_complete = 0;
	if (!words[0] && image->unseen[0])
		snprintf(words, sizeof(words), "%s", image->unseen);
	else if (!words[0] && image->late_file_cnt)
		snprintf(words, sizeof(words), "%s", late_files_words(image, late));
	p->inuse_words = keep_text(m, words);
	return p->inuse_words ? 0 : -ENOMEM;
}

static void add_overhead(const struct maker *m, struct serve_process *p)
{
	struct governor_view view;

	p->overhead = p->overhead_step = p->overhead_rate_bytes = NAN;
	p->is_inuse_complete = NAN;
	if (governor_view(m->src->governor, p->pid, &view))
		return; /* it is new */
	p->overhead = view.now.cpu_share;
	p->overhead_step = view.step;
	p->overhead_rate_bytes = (double)view.rate_bytes;
	p->is_inuse_complete = view.has_inuse && !view.inuse_ns;
}

/* After a read, nothing is read for this many times as long as it took. */
#define PSS_REST 200
/* Changes of a process's group, and of its limit, may be noticed this late. */
#define GROUP_NS (10 * NS_PER_S)
/* A walk of a terabyte takes seconds; a job that hangs in the kernel is not waited for. */
#define PSS_WALL_S 20
#define PSS_CAP_NS (25 * NS_PER_S)
#define NOBODY UINT32_MAX /* these jobs belong to no user */
/* After this nobody asks any more. */
#define IDLE_NS (120 * NS_PER_S)

struct entry {
	pid_t pid;
	uint64_t start;
	char container[CONTAINER_ID_BYTES];
	char cgroup[64]; /* the last part of its control group's path */
	char *group_dir; /* group whose usage counts against the limit; NULL: not known */
	uint64_t limit_bytes;
	uint64_t group_read_ns;
	double pss_bytes;
	uint64_t pss_due_ns;
	bool is_seen; /* since the last sweep */
};

/* The usage of a group, for one view: until target_memory_sweep(). */
struct usage {
	char dir[CGROUP_PATH_BYTES]; /* "": none was read */
	uint64_t bytes;
	int err;
};

struct target_memory {
	struct cgroup_mount mount;
	bool has_mount;
	struct hmap entries; /* uint32_t, a pid -> struct entry, a record */
	size_t next; /* where the walk for the next pss goes on */
	uint64_t rest_until_ns; /* no pss is read until then */
	/* the pss read in progress */
	int pss_fd; /* -1: none */
	uint32_t pss_pid;
	uint64_t pss_start, pss_begin_ns;
	uint64_t asked_ns;
	struct usage last; /* kept, as many are in the same group */
};

int target_memory_new(struct target_memory **ret)
{
	struct target_memory *tm = calloc(1, sizeof(*tm));

	if (!tm)
		return -ENOMEM;
	tm->pss_fd = -1;
	hmap_init(&tm->entries, sizeof(uint32_t));
	tm->has_mount = !cgroup_find_mount(&tm->mount);
	*ret = tm;
	return 0;
}

static bool is_none_kept(void *record, const void *ctx)
{
	struct entry *e = record;

	(void)ctx;
	free(e->group_dir);
	return false;
}

static bool was_asked_for(void *record, const void *ctx)
{
	struct entry *e = record;
	bool is_seen = e->is_seen;

	(void)ctx;
	e->is_seen = false;
	if (!is_seen)
		free(e->group_dir);
	return is_seen;
}

/* Forget the processes that were not asked for since the last call. */
static void target_memory_sweep(struct target_memory *tm)
{
	hmap_keep_records(&tm->entries, was_asked_for, NULL);
	tm->last.dir[0] = '\0';
}

static void end_pss(struct target_memory *tm)
{
	close(tm->pss_fd);
	tm->pss_fd = -1;
}

void target_memory_free(struct target_memory *tm)
{
	if (!tm)
		return;
	if (tm->pss_fd >= 0)
		end_pss(tm);
	hmap_keep_records(&tm->entries, is_none_kept, NULL);
	hmap_release(&tm->entries);
	free(tm);
}

static void read_group(const struct target_memory *tm, struct entry *e, uint64_t now)
{
	char dir[CGROUP_PATH_BYTES], limited[CGROUP_PATH_BYTES], *text;
	const char *name;

	e->group_read_ns = now;
	free(e->group_dir);
	e->group_dir = NULL;
	if (proc_text_read(e->pid, "cgroup", &text))
		return;
	container_id_from_cgroup(text, e->container);
	e->cgroup[0] = '\0';
	if (tm->has_mount && !cgroup_memory_dir(&tm->mount, text, dir)) {
		name = strrchr(dir, '/');
		snprintf(e->cgroup, sizeof(e->cgroup), "%.*s", (int)sizeof(e->cgroup) - 1,
			 name ? name + 1 : dir);
		if (!cgroup_memory_limit(&tm->mount, dir, &e->limit_bytes, limited))
			e->group_dir = strdup(limited);
	}
	free(text);
}

static int read_usage(struct target_memory *tm, const char *dir, uint64_t *ret_bytes)
{
	struct usage *u = &tm->last;

	if (strcmp(u->dir, dir) != 0) {
		u->err = cgroup_memory_usage(&tm->mount, dir, &u->bytes);
		snprintf(u->dir, sizeof(u->dir), "%s", dir);
	}
	*ret_bytes = u->bytes;
	return u->err;
}

/* For the process ret->pid that began at start, fill container, cgroup, pss_bytes and cgroup_*_bytes. Pointers are valid
 * until target_memory_sweep(). */
static int target_memory_get(struct target_memory *tm, uint64_t start, struct serve_process *ret)
{
	uint32_t key = (uint32_t)ret->pid;
	struct entry *e = hmap_record(&tm->entries, &key);
	uint64_t now = now_ns(), usage_bytes;

	if (!e)
		e = hmap_add_record(&tm->entries, &key, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->pid = ret->pid;
	tm->asked_ns = now;
	e->is_seen = true;
	if (e->start != start) { /* new, or another process with this pid */
		e->start = start;
		e->group_read_ns = e->pss_due_ns = 0;
		e->pss_bytes = NAN;
	}
	if (!e->group_read_ns || now - e->group_read_ns > GROUP_NS)
		read_group(tm, e, now);
	ret->container = e->container;
	ret->cgroup = e->cgroup;
	ret->pss_bytes = e->pss_bytes;
	ret->cgroup_limit_bytes = ret->cgroup_usage_bytes = NAN;
	if (e->group_dir && !read_usage(tm, e->group_dir, &usage_bytes)) {
		ret->cgroup_usage_bytes = (double)usage_bytes;
		if (e->limit_bytes != CGROUP_UNLIMITED)
			ret->cgroup_limit_bytes = (double)e->limit_bytes;
	}
	return 0;
}

/* The answer of a job. */
struct pss {
	double bytes; /* NAN: not known */
	uint64_t took_ns;
};

int target_memory_run_job(const void *args, size_t args_bytes, int out_fd)
{
	struct process_info info = { 0 };
	uint64_t begin_ns = now_ns();
	struct pss said = { .bytes = NAN };
	pid_t pid;
	int err;

	if (args_bytes != sizeof(pid))
		return 1;
	memcpy(&pid, args, sizeof(pid));
	info.pid = info.tgid = info.live_tid = pid;
	err = process_read_pss(&info);
	if (err == -ESRCH && !process_info_read(NULL, pid, &info) && info.is_main_thread_gone)
		err = process_read_pss(&info);
	if (!err)
		said.bytes = (double)info.pss_bytes;
	said.took_ns = now_ns() - begin_ns;
	return write(out_fd, &said, sizeof(said)) == sizeof(said) ? 0 : 1;
}

/* Take the answer of the job, which has a pipe to itself, if it is there by now. */
static void take_pss(struct target_memory *tm, uint64_t now)
{
	struct pollfd p = { .fd = tm->pss_fd, .events = POLLIN };
	struct pss said = { NAN, now - tm->pss_begin_ns };
	struct entry *e;

	if (poll(&p, 1, 0) <= 0) {
		if (said.took_ns < PSS_CAP_NS)
			return;
	} else if (read(tm->pss_fd, &said, sizeof(said)) != sizeof(said)) {
		said.bytes = NAN;
	}
	end_pss(tm);
	e = hmap_record(&tm->entries, &tm->pss_pid);
	if (e && e->start == tm->pss_start)
		e->pss_bytes = said.bytes;
	tm->rest_until_ns = now + said.took_ns * PSS_REST;
}

/* There are some. */
static struct entry *next_entry(struct target_memory *tm)
{
	const void *key;
	uint64_t value;

	while (!hmap_next(&tm->entries, &tm->next, &key, &value))
		tm->next = 0;
	return (struct entry *)(uintptr_t)value;
}

void target_memory_work(struct target_memory *tm, struct reader *reader)
{
	uint64_t now = now_ns();

	if (tm->pss_fd >= 0)
		take_pss(tm, now);
	if (tm->pss_fd >= 0 || now - tm->asked_ns > IDLE_NS || now < tm->rest_until_ns)
		return;
	for (size_t i = 0; i < tm->entries.cnt; i++) {
		struct entry *e = next_entry(tm);

		if (e->pss_due_ns > now)
			continue;
		tm->pss_pid = (uint32_t)e->pid;
		tm->pss_start = e->start;
		tm->pss_begin_ns = now;
		e->pss_due_ns = now + TARGET_PSS_NS;
		if (reader_run_job(reader, NOBODY, TARGET_MEMORY_JOB, -1, &e->pid, sizeof(e->pid),
				   PSS_WALL_S, &tm->pss_fd))
			tm->pss_fd = -1;
		return;
	}
}

static int add_process(struct maker *m, pid_t pid)
{
	const struct track_instance *image = last_image(m->src->tracker, pid);
	char comm[sizeof(((struct process_info *)NULL)->comm) + 1] = "";
	struct process_info info;
	struct facts f = { 0 };
	uint32_t key = (uint32_t)pid;
	int err;

	if (!image || process_glance(m->src->reader, pid, &info))
		return 0; /* it is ending */
	memcpy(comm, info.comm, sizeof(info.comm));
	f.id = (struct series_process){ pid, info.start_time_ticks, image->generation };
	f.shown = (struct serve_process){
		.pid = pid,
		.image = result_image(m->src, pid),
		.comm = keep_text(m, comm),
		.exe = keep_text(m, image->exe),
		.rss_bytes = (double)info.rss_bytes,
		.swap_bytes = (double)info.swap_bytes,
	};
	f.shown.is_tapped = image->is_tapped;
	f.shown.exec_ns = image->exec_ns;
	f.rss_begin_bytes = (double)image->rss_begin_bytes;
	f.growth_bytes = NAN;
	if (image->rss_begin_bytes)
		f.growth_bytes = (double)info.rss_bytes - (double)info.file_bytes -
				 f.rss_begin_bytes + (double)image->file_begin_bytes;
	if (!f.shown.comm || !f.shown.exe)
		return -ENOMEM;
	add_overhead(m, &f.shown);
	err = add_inuse_words(m, image, &f.shown);
	if (!err)
		err = target_memory_get(m->memory, info.start_time_ticks, &f.shown);
	if (!err)
		err = vec_push(&m->facts, f);
	return err ? err : hmap_put(&m->by_pid, &key, m->facts.cnt - 1);
}

static int add_processes(struct maker *m)
{
	size_t cnt = tracker_running_cnt(m->src->tracker);
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++)
		err = add_process(m, tracker_running_at(m->src->tracker, i));
	return err;
}

static int64_t pool_string(struct maker *m, const char comm[HT_COMM_BYTES])
{
	char name[HT_COMM_BYTES + 1] = "", pool[HT_COMM_BYTES + 1];

	memcpy(name, comm, HT_COMM_BYTES);
	make_printable(name); /* names that look the same on the page are one */
	if (!name[0])
		return profile_str(m->lp->names, SERIES_NONE);
	return profile_str(m->lp->names,
			   thread_pool_name(name, pool, sizeof(pool)) < 0 ? name : pool);
}

static int new_cell(struct maker *m, const struct cell_key *key)
{
	struct keyed_cell c = {
		.process = key->process,
		.cell = { .scope = profile_text(m->lp->names, key->scope_str),
			  .pool = profile_text(m->lp->names, key->pool_str) },
	};
	int err = vec_push(&m->cells, c);

	return err ? err : hmap_put(&m->by_key, key, m->cells.cnt - 1);
}

static int add_row(struct maker *m, const struct snapshot_row *row)
{
	uint32_t pid = (uint32_t)row->pid;
	const uint64_t *process = hmap_get(&m->by_pid, &pid), *known;
	struct cell_key key;
	struct series_cell *cell;
	struct row_labels labels;
	int err;

	if (!process || m->facts.data[*process].id.generation != row->generation)
		return 0;
	err = scope_labels_of(m->labels, row, &labels);
	if (err)
		return err;
	key.process = *process;
	key.scope_str =
		labels.scope_str ? labels.scope_str : profile_str(m->lp->names, SERIES_NONE);
	key.pool_str = pool_string(m, row->comm);
	if (key.scope_str < 0 || key.pool_str < 0)
		return -ENOMEM;
	known = hmap_get(&m->by_key, &key);
	if (!known) {
		err = new_cell(m, &key);
		if (err)
			return err;
	}
	cell = &m->cells.data[known ? *known : m->cells.cnt - 1].cell;
	estimate_merge(&cell->inuse, &row->inuse);
	cell->alloc_bytes += row->alloc.bytes;
	cell->alloc_objects += row->alloc.objects;
	return 0;
}

static void group_cells(struct maker *m)
{
	vec_sort_by(&m->cells, process);
	for (size_t i = 0; i < m->cells.cnt; i++) {
		struct facts *f = &m->facts.data[m->cells.data[i].process];

		if (!f->cell_cnt++)
			f->cell_first = i;
	}
}

static int add_scope(struct maker *m, const struct series_cell *cell, bool is_inuse_unknown)
{
	struct serve_scope s = {
		.scope = keep_text(m, cell->scope),
		.thread = keep_text(m, cell->pool),
		.inuse_bytes = cell->inuse.bytes,
		.inuse_objects = cell->inuse.objects,
		.inuse_error_bytes = sqrt(cell->inuse.bytes_variance),
		.inuse_samples = (double)cell->inuse.samples,
		.alloc_bytes = cell->alloc_bytes,
		.alloc_objects = cell->alloc_objects,
	};

	if (!s.scope || !s.thread)
		return -ENOMEM;
	if (is_inuse_unknown)
		s.inuse_bytes = s.inuse_objects = s.inuse_error_bytes = s.inuse_samples = NAN;
	return vec_push(&m->lp->scopes, s);
}

/* By which rows it grew, if they are of about now. */
static int find_rows(const struct maker *m, const struct facts *f, struct witness *w)
{
	const struct rows_past_image *i =
		m->src->rows ? rows_past_find(m->src->rows, f->shown.image) : NULL;
	double most = ROWS_CHANGE * w->growth_bytes;
	char words[RESIDENT_WORDS], range[RESIDENT_RANGE];
	struct profile *p;
	int err;

	if (!i || !rows_past_is_known(i) || i->first_ns == i->last_ns ||
	    fabs((double)i->last.rss_bytes - f->shown.rss_bytes) > most)
		return 0;
	err = profile_new(&p);
	if (err)
		return err;
	err = resident_rows_set(p, &i->first, &i->last);
	if (!err)
		snprintf(w->rows, sizeof(w->rows), "%s", resident_growth_words(p, words));
	if ((double)i->first.rss_bytes - f->rss_begin_bytes > most)
		snprintf(w->rows_range, sizeof(w->rows_range), ", %s",
			 resident_range_words((double)i->first.rss_bytes, (double)i->last.rss_bytes,
					      range));
	profile_free(p);
	return err;
}

/* Without in-use, nothing is said. */
static int add_growth_words(struct maker *m, struct facts *f)
{
	char words[WITNESS_WORDS] = "";
	struct witness w;
	int err = 0;

	witness_judge(f->rss_begin_bytes, f->growth_bytes, f->shown.inuse_bytes, &w);
	if (w.is_unexplained)
		err = find_rows(m, f, &w);
	if (err)
		return err;
	if (w.is_unexplained)
		witness_words(&w, words);
	f->shown.growth_words = keep_text(m, words);
	return f->shown.growth_words ? 0 : -ENOMEM;
}

static int book_process(struct maker *m, struct facts *f, struct series_table *book)
{
	struct series_cell *cells = calloc(f->cell_cnt + 1, sizeof(*cells)), total;
	const struct series_cell *rows = NULL;
	size_t row_cnt = 0;
	int err;

	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < f->cell_cnt; i++)
		cells[i] = m->cells.data[f->cell_first + i].cell;
	err = series_table_update(book, &f->id, cells, f->cell_cnt, &total, &rows, &row_cnt);
	if (!err) {
		f->shown.inuse_bytes = total.inuse.bytes;
		f->shown.inuse_objects = total.inuse.objects;
		f->shown.inuse_error_bytes = sqrt(total.inuse.bytes_variance);
		f->shown.inuse_samples = (double)total.inuse.samples;
		if (f->shown.is_inuse_unknown)
			f->shown.inuse_bytes = f->shown.inuse_objects = f->shown.inuse_error_bytes =
				f->shown.inuse_samples = NAN;
		f->shown.alloc_bytes = total.alloc_bytes;
		f->shown.alloc_objects = total.alloc_objects;
		f->scope_first = m->lp->scopes.cnt;
		f->shown.scope_cnt = row_cnt;
		err = add_growth_words(m, f);
	}
	for (size_t i = 0; i < row_cnt && !err; i++)
		err = add_scope(m, &rows[i], f->shown.is_inuse_unknown);
	free(cells);
	return err;
}

static int by_inuse(const void *a, const void *b)
{
	const struct serve_process *x = a, *y = b;

	if (x->is_inuse_unknown != y->is_inuse_unknown)
		return x->is_inuse_unknown ? 1 : -1;
	if (!x->is_inuse_unknown && x->inuse_bytes != y->inuse_bytes)
		return x->inuse_bytes < y->inuse_bytes ? 1 : -1;
	if (x->is_inuse_unknown && x->alloc_bytes != y->alloc_bytes)
		return x->alloc_bytes < y->alloc_bytes ? 1 : -1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int book_all(struct maker *m, struct series_table *book)
{
	struct facts *f;
	int err = 0;

	vec_each(&m->facts, f) {
		err = book_process(m, f, book);
		if (err)
			return err;
	}
	series_table_sweep(book);
	target_memory_sweep(m->memory);
	vec_each(&m->facts, f) {
		f->shown.scopes = m->lp->scopes.data + f->scope_first;
		err = vec_push(&m->lp->all, f->shown);
		if (err)
			return err;
	}
	if (m->lp->all.cnt)
		qsort(m->lp->all.data, m->lp->all.cnt, sizeof(*m->lp->all.data), by_inuse);
	return 0;
}

int live_processes_make(const struct result_source *src, const struct snapshot *s,
			struct series_table *book, struct target_memory *memory,
			struct live_processes *ret)
{
	struct maker m = { .src = src, .lp = ret, .memory = memory };
	const struct snapshot_row *row;
	int err;

	memset(ret, 0, sizeof(*ret));
	hmap_init(&m.by_pid, sizeof(uint32_t));
	hmap_init(&m.by_key, sizeof(struct cell_key));
	err = profile_new(&ret->names);
	if (!err)
		err = scope_labels_new(s, src->engine, src->tracker, ret->names, LABEL_SCOPE,
				       &m.labels);
	if (!err)
		err = add_processes(&m);
	vec_each(&s->rows, row) {
		if (err)
			break;
		err = add_row(&m, row);
	}
	if (!err) {
		group_cells(&m);
		err = book_all(&m, book);
	}
	scope_labels_free(m.labels);
	vec_release(&m.facts);
	vec_release(&m.cells);
	hmap_release(&m.by_pid);
	hmap_release(&m.by_key);
	if (err)
		live_processes_release(ret);
	return err;
}

void live_processes_release(struct live_processes *lp)
{
	vec_release(&lp->all);
	vec_release(&lp->scopes);
	profile_free(lp->names);
	lp->names = NULL;
}
