/* SPDX-License-Identifier: MIT */
/*
 * symbolizer.c - the parent's side: starts the helper, reads and checks its answers, and answers the rest
 * itself.
 *
 * Promises: for any file, symbolize() returns within its time limits with at least one frame for each address.
 * A helper that crashes, hangs, runs out of memory or sends nonsense costs only the answers that it had not
 * given yet. The missing ones are asked again of a second helper that reads only the symbol table; any that are
 * still missing are "module+0xvaddr". The note says why.
 *
 * A file that is too slow is remembered (slow files), and is not tried again for a while. So is a file whose
 * reading hangs: its helper computes nothing, because the kernel waits for the server of the file. Such a
 * helper may not end when it is killed; it is left alone, and nobody waits for it.
 */
#include "symbol/symbol.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/strset.h"
#include "proc/proc_text.h"
#include "symbol/dwarf_lookup.h"
#include "symbol/symbol_wire.h"

/*
 * Slow files: a table in which a new entry replaces the oldest. To fill it with files, a process has to wait for each of
 * them first.
 */

#define FILES_CAP 512

struct entry {
	_Atomic uint32_t part; /* written last; 0: none */
	struct slow_file_key key;
	uint64_t until_ns;
};

struct hung {
	_Atomic pid_t pid; /* 0: none */
	uint32_t dev;
};

struct slow_files {
	struct entry files[FILES_CAP];
	_Atomic uint32_t next;
	struct hung hung[SLOW_FILES_HUNG];
	_Atomic uint64_t end_ns;
};

int slow_files_new(struct slow_files **ret)
{
	struct slow_files *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (s == MAP_FAILED)
		return -ENOMEM;
	s->end_ns = UINT64_MAX;
	*ret = s;
	return 0;
}

void slow_files_free(struct slow_files *s)
{
	if (s)
		munmap(s, sizeof(*s));
}

void slow_files_hide(struct slow_files *s)
{
	if (s)
		madvise(s, sizeof(*s), MADV_DONTFORK);
}

static bool is_same(const struct slow_file_key *a, const struct slow_file_key *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->changed_ns == b->changed_ns;
}

static bool is_none(const struct slow_file_key *key)
{
	return !key->dev && !key->ino && !key->changed_ns;
}

static const struct entry *find(const struct slow_files *s, const struct slow_file_key *key,
				uint64_t now_ns)
{
	for (size_t i = 0; i < FILES_CAP; i++)
		if (s->files[i].part && is_same(&s->files[i].key, key) &&
		    s->files[i].until_ns > now_ns)
			return &s->files[i];
	return NULL;
}

void slow_files_put(struct slow_files *s, const struct slow_file_key *key, enum slow_file_part part,
		    uint64_t now_ns)
{
	struct entry *e;

	if (!s || is_none(key))
		return;
	e = (struct entry *)find(s, key, now_ns);
	if (!e)
		e = &s->files[atomic_fetch_add(&s->next, 1) % FILES_CAP];
	e->part = 0;
	e->key = *key;
	e->until_ns = now_ns + SLOW_FILES_NS;
	e->part = part;
}

enum slow_file_part slow_files_find(const struct slow_files *s, const struct slow_file_key *key,
				    uint64_t now_ns)
{
	const struct entry *e = s && !is_none(key) ? find(s, key, now_ns) : NULL;

	return e ? (enum slow_file_part)e->part : SLOW_FILE_NOTHING;
}

/* The pid may be another process's by now: then one too many is counted as long as that lives. */
static bool hangs(const struct hung *h)
{
	return h->pid && (!kill(h->pid, 0) || errno == EPERM);
}

void slow_files_put_hung(struct slow_files *s, uint32_t dev, pid_t pid)
{
	for (size_t i = 0; s && i < SLOW_FILES_HUNG; i++) {
		struct hung *h = &s->hung[i];
		pid_t old = h->pid;

		if (hangs(h) || !atomic_compare_exchange_strong(&h->pid, &old, pid))
			continue;
		h->dev = dev;
		return;
	}
}

bool slow_files_is_full(const struct slow_files *s, uint32_t dev)
{
	size_t cnt = 0, dev_cnt = 0;

	for (size_t i = 0; s && i < SLOW_FILES_HUNG; i++) {
		if (!hangs(&s->hung[i]))
			continue;
		cnt++;
		dev_cnt += s->hung[i].dev == dev;
	}
	return cnt == SLOW_FILES_HUNG || dev_cnt >= SLOW_FILES_HUNG_DEVICE;
}

void slow_files_end_at(struct slow_files *s, uint64_t end_ns)
{
	if (s)
		s->end_ns = end_ns;
}

uint64_t slow_files_end_ns(const struct slow_files *s)
{
	return s ? s->end_ns : UINT64_MAX;
}

#define TIME_LIMIT_DEFAULT_NS (30 * NS_PER_S)
/* For the second helper, which reads no DWARF. */
#define SYMBOLS_TIME_LIMIT_NS (10 * NS_PER_S)
#define MEMORY_LIMIT_DEFAULT_BYTES (1ULL << 30)
#define READ_BYTES 65536
/* Between the end of the stream and the end of the process. */
#define EXIT_GRACE_NS (2 * NS_PER_S)
/* Between the kill and the end. */
#define KILL_GRACE_NS (300 * NS_PER_MS)
/* A helper may be idle for so long: busy for less than this share of the time, which is less than any file
 * needs. */
#define IDLE_NS (8 * NS_PER_S)
#define IDLE_SHARE 50
/* The caller's end time may change at any time. */
#define LOOK_NS (100 * NS_PER_MS)

/* Why a helper did not finish. */
struct outcome {
	bool is_ok;
	bool is_slow; /* its time was over... */
	bool is_idle; /* ...and it did nothing in it */
	bool is_late; /* ...because the caller's time was over */
	char why[64];
};

struct helper_run {
	const struct symbol_options *opts;
	pid_t pid;
	int fd;
	uint64_t deadline_ns;
	/* Time of the last look, how long the helper had been busy then, and when it was last found busy. */
	uint64_t looked_ns, busy_ns, awake_ns;
};

static void fail(struct outcome *o, const char *why)
{
	o->is_ok = false;
	snprintf(o->why, sizeof(o->why), "%s", why);
}

/*
 * Return how long it computed or waited for a processor. Waiting counts because on a busy machine, at low
 * priority, it is nearly all of the time: otherwise the helper would look as if its file did not answer.
 * UINT64_MAX: unknown, or gone.
 */
static uint64_t busy_ns_of(pid_t pid)
{
	unsigned long long ran_ns, waited_ns;
	char text[96];

	if (!proc_read_start(pid, text, sizeof(text), "schedstat") ||
	    sscanf(text, "%llu %llu", &ran_ns, &waited_ns) != 2)
		return UINT64_MAX;
	return ran_ns + waited_ns;
}

static bool is_idle(struct helper_run *h, uint64_t now)
{
	uint64_t busy_ns;

	if (now >= h->looked_ns + LOOK_NS) {
		busy_ns = busy_ns_of(h->pid);
		if (busy_ns == UINT64_MAX ||
		    busy_ns - h->busy_ns > (now - h->looked_ns) / IDLE_SHARE)
			h->awake_ns = now;
		if (busy_ns != UINT64_MAX)
			h->busy_ns = busy_ns;
		h->looked_ns = now;
	}
	return now >= h->awake_ns + IDLE_NS;
}

static uint64_t end_of(const struct symbol_options *opts)
{
	uint64_t end_ns = slow_files_end_ns(opts->slow);

	return opts->end_ns && opts->end_ns < end_ns ? opts->end_ns : end_ns;
}

/* 0; -ETIMEDOUT; -ETIME: the helper does nothing; -ECANCELED: the caller's time is over. */
static int check_time(struct helper_run *h, uint64_t now)
{
	if (now >= end_of(h->opts))
		return -ECANCELED;
	if (now >= h->deadline_ns)
		return -ETIMEDOUT;
	return is_idle(h, now) ? -ETIME : 0;
}

/* Read until the end of the stream. -EBADMSG, -ENOMEM, the error of read(), or as check_time(). */
static int read_answers(struct helper_run *h, struct wire_reader *r)
{
	uint8_t *buf = malloc(READ_BYTES);
	int err = buf ? 0 : -ENOMEM;

	while (!err) {
		struct pollfd p = { .fd = h->fd, .events = POLLIN };
		uint64_t now = now_ns(), left_ns;
		ssize_t n;

		err = check_time(h, now);
		if (err)
			break;
		left_ns = h->deadline_ns - now < LOOK_NS ? h->deadline_ns - now : LOOK_NS;
		if (poll(&p, 1, (int)(left_ns / NS_PER_MS) + 1) <= 0)
			continue;
		n = read(h->fd, buf, READ_BYTES);
		if (n == 0)
			break;
		if (n > 0)
			err = wire_reader_feed(r, buf, (size_t)n);
		else if (errno != EINTR && errno != EAGAIN)
			err = -errno;
	}
	free(buf);
	return err;
}

/*
 * Wait for the helper after its stream has ended or is not wanted any more. A helper that closed its pipe is
 * about to end. One that was taken over may wait for ever, and one in state D does not end when it is killed.
 * false: it is left alone.
 */
static bool reap(pid_t pid, bool is_failed, int *ret_status)
{
	uint64_t deadline_ns = now_ns() + (is_failed ? 0 : EXIT_GRACE_NS);
	struct timespec pause = { .tv_nsec = 100000 };
	bool is_killed = false;
	pid_t got;

	*ret_status = 0;
	while ((got = waitpid(pid, ret_status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
		if (now_ns() >= deadline_ns) {
			if (is_killed)
				return false;
			kill(pid, SIGKILL);
			is_killed = true;
			deadline_ns = now_ns() + KILL_GRACE_NS;
		}
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 10000000)
			pause.tv_nsec *= 2;
	}
	/* It was reaped elsewhere (SIGCHLD ignored): only the stream tells. */
	if (got < 0)
		*ret_status = 0;
	return true;
}

static void judge(struct outcome *o, const struct wire_reader *r, int err, int status)
{
	if (err == -ETIMEDOUT || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) {
		fail(o, "time limit");
		o->is_slow = true;
	} else if (err == -ETIME) {
		fail(o, "the file does not respond");
		o->is_slow = o->is_idle = true;
	} else if (err == -ECANCELED) {
		fail(o, "no time is left");
		o->is_slow = o->is_late = true;
	} else if (err == -EBADMSG) {
		fail(o, "the helper's answer is invalid");
	} else if (err == -ENOMEM ||
		   (WIFEXITED(status) && WEXITSTATUS(status) == DWARF_EXIT_NO_MEMORY)) {
		fail(o, "memory limit");
	} else if (err) {
		fail(o, "cannot read from the helper");
	} else if (WIFSIGNALED(status)) {
		o->is_ok = false;
		snprintf(o->why, sizeof(o->why), "helper crashed (signal %d)", WTERMSIG(status));
	} else if (!r->is_done || (WIFEXITED(status) && WEXITSTATUS(status) != 0)) {
		fail(o, "the helper gave up");
	} else {
		o->is_ok = true;
	}
}

static void say_hung(const struct symbol_file *file, pid_t pid)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s", file->name);
	make_printable(name);
	log_warn("symbols: cannot kill process %d, because its file '%s' does not respond; going "
		 "on without it",
		 pid, name);
}

static void run_helper(const struct symbol_options *opts, struct helper_job *job,
		       struct wire_reader *r, uint64_t limit_ns, struct outcome *o)
{
	struct helper_run h = { .opts = opts };
	int err, status = 0;

	*o = (struct outcome){ 0 };
	wire_reader_restart(r);
	h.looked_ns = h.awake_ns = now_ns();
	h.deadline_ns = h.awake_ns + limit_ns;
	/* The kernel's limit is the second line, behind the parent's clock. */
	job->cpu_seconds = limit_ns / NS_PER_S + 2;
	job->answers = r->answers;
	err = helper_start(job, &h.pid, &h.fd);
	if (err) {
		fail(o, "helper could not be started");
		return;
	}
	err = read_answers(&h, r);
	close(h.fd);
	if (!reap(h.pid, err != 0, &status)) {
		say_hung(job->file, h.pid);
		slow_files_put_hung(opts->slow, job->file->key.dev, h.pid);
		err = err == -ECANCELED ? err : -ETIME;
	}
	judge(o, r, err, status);
}

static void note_append(struct symbol_result *res, const char *text)
{
	size_t n = strlen(res->note);

	snprintf(res->note + n, sizeof(res->note) - n, "%s%s", n ? "; " : "", text);
}

static void note_flags(struct symbol_result *res, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} notes[] = {
		{ WIRE_BAD_FILE, "file is missing or no ELF file" },
		{ WIRE_NO_DEBUG_INFO, "no debug info" },
		{ WIRE_BAD_DEBUG_INFO, "cannot read the debug info" },
		{ WIRE_SPLIT_DEBUG_INFO, "split debug info is not read: no inlines" },
		{ WIRE_NO_SYMBOLS, "no symbols" },
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (flags & notes[i].flag)
			note_append(res, notes[i].text);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	path = slash ? slash + 1 : path;
	return path[0] ? path : "[unknown]";
}

/* "module+0xvaddr" */
static int last_resort(struct wire_reader *r, const char *module, uint64_t vaddr,
		       struct symbol_frame *ret)
{
	char text[512];
	int64_t id;

	snprintf(text, sizeof(text), "%.400s+0x%" PRIx64, module, vaddr);
	make_printable(text);
	id = strset_add(r->strings, text);
	if (id < 0)
		return -ENOMEM;
	ret->name = ret->system_name = strset_get(r->strings, id);
	ret->file = "";
	ret->line = ret->start_line = 0;
	return 0;
}

/* Put the frames in the order of the addresses; the strings move to the result. */
static int fill_result(struct symbol_result *res, struct wire_reader *r, const char *module,
		       const uint64_t *vaddr)
{
	uint64_t total = r->addr_cnt;
	uint32_t at = 0;

	for (size_t i = 0; i < r->addr_cnt; i++)
		total += r->answers[i].cnt;
	if (total > UINT32_MAX)
		return -EOVERFLOW;
	res->first = calloc(r->addr_cnt + 1, sizeof(*res->first));
	res->frames = calloc(total ? total : 1, sizeof(*res->frames));
	if (!res->first || !res->frames)
		return -ENOMEM;
	for (size_t i = 0; i < r->addr_cnt; i++) {
		const struct wire_answer *a = &r->answers[i];

		res->first[i] = at;
		if (a->cnt == 0 && last_resort(r, base_name(module), vaddr[i], &res->frames[at++]))
			return -ENOMEM;
		for (uint32_t k = 0; k < a->cnt; k++) {
			struct symbol_frame *f = &res->frames[at++];

			*f = r->frames.data[a->first + k];
			if (!f->system_name[0])
				f->system_name = f->name;
			res->has_lines = res->has_lines || f->line;
		}
	}
	res->first[r->addr_cnt] = at;
	res->addr_cnt = r->addr_cnt;
	res->has_functions = r->dwarf_cnt || r->symbol_cnt;
	res->has_inlines = r->dwarf_cnt > 0;
	res->owner = r->strings;
	r->strings = NULL;
	return 0;
}

/*
 * Remember a slow file, unless only the caller's time was over. Only the first process reports it: of processes
 * that look up names at the same time another may have waited for the same file.
 */
static void remember(const struct symbol_options *opts, const struct symbol_file *file,
		     enum slow_file_part part, const struct outcome *o)
{
	uint64_t now = now_ns();
	char name[PATH_MAX];
	bool is_known;

	if (!o->is_slow || o->is_late)
		return;
	is_known = slow_files_find(opts->slow, &file->key, now) >= part;
	slow_files_put(opts->slow, &file->key, part, now);
	if (is_known)
		return;
	snprintf(name, sizeof(name), "%s", file->name);
	make_printable(name);
	log_warn("symbols: '%s' is too slow to look up (%s): %s", name, o->why,
		 part == SLOW_FILE_ALL ? "its addresses stay without names" :
					 "names are from its symbol table alone");
}

/* Look up the rest in the symbol table, after DWARF has given its answers. */
static void run_second(const struct symbol_options *opts, struct helper_job *job,
		       struct wire_reader *r, struct symbol_result *res)
{
	struct outcome o;
	char text[96];

	job->use_dwarf = false;
	run_helper(opts, job, r, SYMBOLS_TIME_LIMIT_NS, &o);
	if (o.is_ok) {
		note_append(res, "the rest is from the symbol table");
		return;
	}
	remember(opts, job->file, SLOW_FILE_ALL, &o);
	res->is_slow = res->is_slow || o.is_slow;
	res->is_late = res->is_late || o.is_late;
	snprintf(text, sizeof(text), "symbols: %s", o.why);
	note_append(res, text);
}

static struct name_cache_query query_of(const struct helper_job *job)
{
	return (struct name_cache_query){ .key = job->file->key,
					  .lines = job->use_dwarf,
					  .demangle = job->opts->demangle,
					  .vaddr = job->vaddr,
					  .vaddr_cnt = job->vaddr_cnt };
}

/* How long the first helper may take. true: less than the file is given, so that there is time for a second. */
static bool is_hurried(const struct symbol_options *opts, const struct helper_job *job,
		       uint64_t *limit_ns)
{
	uint64_t now = now_ns(), end_ns = end_of(opts);

	*limit_ns = opts->time_limit_ns ? opts->time_limit_ns : TIME_LIMIT_DEFAULT_NS;
	if (!opts->is_hurried || !job->use_dwarf || end_ns <= now || (end_ns - now) / 2 > *limit_ns)
		return false;
	*limit_ns = (end_ns - now) / 2;
	return true;
}

static void run_helpers(const struct symbol_options *opts, struct helper_job *job,
			struct wire_reader *r, struct symbol_result *res)
{
	uint64_t limit_ns;
	bool hurries = is_hurried(opts, job, &limit_ns), is_last = !job->use_dwarf;
	struct outcome o;
	char text[96];

	run_helper(opts, job, r, limit_ns, &o);
	if (o.is_ok) {
		const struct name_cache_query q = query_of(job);

		name_cache_put(opts->names, &q, r);
		note_flags(res, r->done_flags);
		return;
	}
	is_last = is_last || o.is_idle || o.is_late;
	o.is_late |= hurries && o.is_slow;
	remember(opts, job->file, is_last ? SLOW_FILE_ALL : SLOW_FILE_DWARF, &o);
	res->is_slow = res->is_slow || o.is_slow;
	res->is_late = res->is_late || o.is_late;
	snprintf(text, sizeof(text), "%s: %s", job->use_dwarf ? "debug info" : "symbols", o.why);
	note_append(res, text);
	if (!is_last)
		run_second(opts, job, r, res);
}

/* Run the helpers, unless all is known, or the file is known to take too long. */
static void try_helpers(const struct symbol_options *opts, struct helper_job *job,
			struct wire_reader *r, struct symbol_result *res)
{
	uint64_t now = now_ns();
	enum slow_file_part part = slow_files_find(opts->slow, &job->file->key, now);
	const struct name_cache_query q = query_of(job);
	uint32_t flags;

	if (name_cache_get(opts->names, &q, r, &flags) == job->vaddr_cnt) {
		note_flags(res, flags);
		return;
	}
	res->is_slow = true;
	res->is_late = now >= end_of(opts);
	if (res->is_late) {
		note_append(res, "no time is left");
	} else if (part == SLOW_FILE_ALL) {
		note_append(res, "was too slow lately");
	} else if (slow_files_is_full(opts->slow, job->file->key.dev)) {
		note_append(res, "too many files do not respond");
	} else {
		res->is_slow = part == SLOW_FILE_DWARF && job->use_dwarf;
		job->use_dwarf = job->use_dwarf && part != SLOW_FILE_DWARF;
		run_helpers(opts, job, r, res);
	}
}

static bool is_sorted(const uint64_t *vaddr, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++)
		if (vaddr[i - 1] >= vaddr[i])
			return false;
	return true;
}

int symbolize(const struct symbol_options *opts, const struct symbol_file *file,
	      const uint64_t *vaddr, size_t vaddr_cnt, struct symbol_result **ret)
{
	/* Members that the caller left out are empty. */
	struct symbol_file sf = {
		.fd = file->fd,
		.name = file->name ? file->name : "",
		.module = file->module ? file->module :
			  file->name   ? file->name :
					 "",
		.build_id_hex = file->build_id_hex ? file->build_id_hex : "",
		.root = file->root ? file->root : "",
		.key = file->key,
	};
	struct helper_job job = {
		.opts = opts,
		.file = &sf,
		.vaddr = vaddr,
		.vaddr_cnt = vaddr_cnt,
		.use_dwarf = opts->lines,
		.memory_bytes = opts->memory_limit_bytes ? opts->memory_limit_bytes :
							   MEMORY_LIMIT_DEFAULT_BYTES,
	};
	struct symbol_result *res;
	struct wire_reader r;
	int err;

	if (vaddr_cnt > UINT32_MAX / 2 || !is_sorted(vaddr, vaddr_cnt))
		return -EINVAL;
	res = calloc(1, sizeof(*res));
	if (!res)
		return -ENOMEM;
	err = wire_reader_init(&r, vaddr_cnt);
	if (err)
		goto out;
	if (vaddr_cnt && (sf.fd >= 0 || sf.build_id_hex[0]))
		try_helpers(opts, &job, &r, res);
	else if (vaddr_cnt)
		note_append(res, "file is missing");
	/* When everybody's time is over, no caller will come back for them. */
	if (res->is_late && opts->wants_all && now_ns() < slow_files_end_ns(opts->slow))
		err = -ETIME;
	else
		err = fill_result(res, &r, sf.module, vaddr);
	wire_reader_release(&r);
out:
	if (err)
		symbol_result_free(res);
	else
		*ret = res;
	return err;
}

void symbol_result_free(struct symbol_result *r)
{
	if (!r)
		return;
	strset_free(r->owner);
	free(r->first);
	free(r->frames);
	free(r);
}
