/* SPDX-License-Identifier: MIT */
/*
 * follow.c - see follow.h.
 *
 * Nearly all processes are the same as a second ago, and reading what /proc says about each would be most of the
 * work of an idle heaptap. So a scan only lists the folders of /proc: the inode of a folder is made for one process
 * and goes with it, so its number shows when a pid is used again. A process with a known inode is checked closely
 * only
 * - after an exec: BPF reports those of followed processes, a mapping shows those of others;
 * - in each scan, if it would be selected if it were larger;
 * - in each scan, if mappings were missed, or cannot be reported at all;
 * - now and then, for unreported changes: a process may take another name, user or control group at any time
 *   (FICKLE_NS, if the rules use one of these; a young process is more likely to: at first the wait is as long as the
 *   process is known), and an event may be lost (STEADY_NS).
 *
 * If processes are selected by their pids alone, the others are not even read: they may keep a reader waiting, and what is
 * said of them would be about nobody who is followed.
 *
 * A refused process stays refused until it executes another program, unless it was refused for want of room in the
 * kernel's tables or in memory: close checks try such processes again, some in each scan and as long as it helps.
 */
#include "serve/follow.h"

#include <dirent.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/vec.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "kernel/features.h"
#include "proc/proc_text.h"
#include "proc/process.h"
#include "proc/reader.h"
#include "proc/select.h"
#include "record/targets.h"
#include "track/tracker.h"

/* Descriptors that must be left before one more process is attached to: this takes some ten to forty, and requests,
 * profiles and reads of /proc need some at any time. */
#define SPARE_FILES 96

/* 0, or -EMFILE, -ENFILE. */
static int follow_room_check_files(void)
{
	int fds[SPARE_FILES], cnt = 0, err = 0;
	struct rlimit limit;
	struct stat st;

	/* From Linux 6.2 on the folder's size is the number of open descriptors; before, it is 0. */
	if (!stat("/proc/self/fd", &st) && st.st_size > 0 && !getrlimit(RLIMIT_NOFILE, &limit))
		return (rlim_t)st.st_size + SPARE_FILES <= limit.rlim_cur ? 0 : -EMFILE;
	for (; cnt < SPARE_FILES && !err; cnt++) {
		fds[cnt] = dup(STDERR_FILENO);
		if (fds[cnt] < 0)
			err = -errno;
	}
	while (cnt-- > 0)
		if (fds[cnt] >= 0)
			close(fds[cnt]);
	return err == -EMFILE || err == -ENFILE ? err : 0;
}

/* Processes to check soon; if there are more, all are checked. */
#define NOTED_CAP 256
/* A forked child is looked at after this time: it may have executed another program by then, which is noted by itself. */
#define FORKED_NS (50 * NS_PER_MS)

/* Longest time between close checks of a process. */
#define FICKLE_NS (3 * NS_PER_S)
#define STEADY_NS (20 * NS_PER_S)

/* Attachments in one scan that may fail for want of room; then no other refused process is tried again. */
#define ROOM_TRIES 4
#define LOG_EVERY_NS (60 * NS_PER_S)

/* Nothing else waits in the first scan; but whoever starts heaptap waits for its end. */
#define FIRST_SCAN_NS (5 * NS_PER_S)

/* The inode number if procfs could not make an inode for a folder. */
#define INO_NONE 1

/* A process as of its last check. */
struct seen {
	pid_t pid;
	uint64_t start_time_ticks; /* shows when a pid is used again */
	uint64_t dir_ino; /* so does this, of its folder in /proc; 0: not known */
	uint64_t since_ns; /* since when it is known */
	uint64_t due_ns; /* when to check it closely */
	uint64_t address_limit_bytes; /* as of the last check, or its last exec */
	bool is_selected; /* false: nothing below is known */
	bool is_refused;
	bool waits_for_room; /* the reason for that may pass */
	bool is_late; /* selected, but there was no time for it: checked in the next scan */
	bool is_silent; /* could not be read, as it did not answer */
	bool is_undecided; /* may be empty: not all of its files have been read */
	bool is_empty; /* has no allocator, and is selected only because all are */
	uint32_t exe_hash; /* of the refused executable */
	uint32_t uid;
};

struct forked {
	pid_t pid;
	uint64_t due_ns;
};

struct follow {
	struct reader *reader;
	struct engine *engine;
	struct tracker *tracker;
	const struct select_rules *rules;
	VEC(struct seen) named; /* given by pid */
	VEC(struct seen) seen; /* all */
	struct hmap idx; /* pid -> index in seen */
	size_t refused_cnt;
	VEC(pid_t) noted;
	VEC(struct forked) forked;
	bool has_lost_notes;
	unsigned room_tries; /* left until the next scan */
	struct follow_room room;
	bool has_scanned; /* false: first scan, nothing else waits yet */
	bool size_counts; /* of followed ones, too: in the first scan with a larger minimum */
	uint64_t throw_limit_bytes; /* as the engine knows it */
	struct log_limit log; /* about processes that cannot be checked */
	struct log_limit busy_log; /* about heaptap's own cost */
	char own_exe[PATH_MAX];
	struct guardian *guardian;
	bool returns_are_safe; /* under seccomp: see kernel/features.h */
};

struct seen_list {
	VEC(struct seen) seen;
};

/* -ESRCH: the reason was logged. */
static int find_named(struct reader *reader, pid_t pid, enum log_level level, struct seen *ret)
{
	struct process_info info;
	int err = process_glance(reader, pid, &info);

	if (err == -ETIMEDOUT || err == -EPIPE) {
		log_msg(level, "serve: PID %d does not respond (is it executing a program?)", pid);
		return -ESRCH;
	}
	if (err || info.is_kernel_thread || info.tgid != pid) {
		log_msg(level, "serve: PID %d is %s", pid,
			err		 ? "not a running process" :
			info.tgid != pid ? "a thread, not a process" :
					   "a kernel thread: it has no heap");
		return -ESRCH;
	}
	*ret = (struct seen){ .pid = pid, .start_time_ticks = info.start_time_ticks };
	return 0;
}

static int add_named(struct follow *f, pid_t pid)
{
	struct seen s;
	int err = find_named(f->reader, pid, LOG_ERROR, &s);

	return err ? err : vec_push(&f->named, s);
}

static void set_throw_limit(struct follow *f, uint64_t bytes)
{
	f->throw_limit_bytes = bytes;
	engine_set_throw_limit(f->engine, bytes);
}

/*
 * Throwing functions must not be probed for sizes that one of the processes cannot have. The lower limit of one
 * process holds for all at once; whether it may rise again is known only when all are known: renew_throw_limit().
 */
static int read_address_limit(struct follow *f, struct seen *s)
{
	uint64_t own;
	int err = process_address_limit(s->pid, &s->address_limit_bytes);

	if (err || !s->address_limit_bytes)
		return err;
	own = throw_limit_bytes(s->pid, s->address_limit_bytes);
	if (own < f->throw_limit_bytes)
		set_throw_limit(f, own);
	return 0;
}

static void renew_throw_limit(struct follow *f)
{
	uint64_t limit = throw_limit_bytes(getpid(), 0), own;
	const struct seen *s;

	vec_each(&f->seen, s) {
		if (!s->address_limit_bytes || s->is_refused)
			continue;
		own = throw_limit_bytes(s->pid, s->address_limit_bytes);
		limit = own < limit ? own : limit;
	}
	set_throw_limit(f, limit);
}

int follow_new(struct engine *e, struct tracker *t, const struct follow_options *opts,
	       struct follow **ret)
{
	struct follow *f = calloc(1, sizeof(*f));
	ssize_t n;
	int err = 0;

	if (!f)
		return -ENOMEM;
	f->reader = opts->reader;
	f->engine = e;
	f->tracker = t;
	f->guardian = opts->guardian;
	f->rules = opts->rules;
	f->log = f->busy_log = (struct log_limit){ .every_ns = LOG_EVERY_NS, .burst = 1 };
	hmap_init(&f->idx, sizeof(uint32_t));
	follow_room_init(&f->room, HT_TARGETS_CAP);
	n = readlink("/proc/self/exe", f->own_exe, sizeof(f->own_exe) - 1);
	f->own_exe[n > 0 ? n : 0] = '\0';
	if (seccomp_probe_returns(&f->returns_are_safe))
		f->returns_are_safe = true; /* as `record` assumes */
	renew_throw_limit(f);
	for (size_t i = 0; i < opts->pid_cnt && !err; i++)
		err = add_named(f, opts->pids[i]);
	if (err)
		follow_free(f);
	else
		*ret = f;
	return err;
}

void follow_free(struct follow *f)
{
	if (!f)
		return;
	vec_release(&f->named);
	vec_release(&f->seen);
	vec_release(&f->noted);
	vec_release(&f->forked);
	hmap_release(&f->idx);
	follow_room_release(&f->room);
	free(f);
}

size_t follow_refused_cnt(const struct follow *f)
{
	return f->refused_cnt;
}

static struct seen *find_seen(const struct follow *f, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	const uint64_t *idx = hmap_get(&f->idx, &key);

	return idx ? &f->seen.data[*idx] : NULL;
}

/* A process that uses the pid again does not count. */
static bool is_named(const struct follow *f, const struct process_info *info)
{
	const struct seen *n;

	vec_each(&f->named, n)
		if (n->pid == info->pid && n->start_time_ticks == info->start_time_ticks)
			return true;
	return false;
}

/* Without reading anything of it. */
static bool may_be_selected(const struct follow *f, pid_t pid)
{
	const struct seen *n;

	if (!select_is_of_pids(f->rules))
		return true;
	vec_each(&f->named, n)
		if (n->pid == pid)
			return true;
	return false;
}

enum verdict { VERDICT_NO, VERDICT_SMALL /* if it were larger */, VERDICT_SELECTED };

static int match_rules(const struct follow *f, const struct select_candidate *known, pid_t pid,
		       enum verdict *ret)
{
	char id[CONTAINER_ID_BYTES] = "", *cgroup = NULL;
	struct select_candidate c = *known;
	enum verdict verdict = VERDICT_NO;
	int err = 0;

	if (!c.is_named && (select_needs(f->rules).cgroup || select_needs(f->rules).container))
		err = proc_text_read(pid, "cgroup", &cgroup);
	if (err)
		return err;
	if (cgroup && select_needs(f->rules).container)
		process_container_id(pid, cgroup, id);
	c.cgroup = cgroup ? cgroup : "";
	c.container_id = id;
	if (select_matches(f->rules, &c)) {
		verdict = VERDICT_SELECTED;
	} else if (!c.is_followed) {
		c.is_followed = true; /* so that its size does not count */
		verdict = select_matches(f->rules, &c) ? VERDICT_SMALL : VERDICT_NO;
	}
	free(cgroup);
	*ret = verdict;
	return 0;
}

/* -ESRCH: it has ended. */
static int judge(const struct follow *f, const struct process_info *info, enum verdict *ret)
{
	struct select_candidate c = {
		.comm = info->comm,
		.exe = info->exe,
		.uid = info->uid,
		.rss_bytes = info->rss_bytes,
		.is_named = is_named(f, info),
		.is_followed = !f->size_counts && tracker_follows(f->tracker, info->pid),
	};

	*ret = VERDICT_NO;
	if (info->is_kernel_thread || info->pid == getpid())
		return 0;
	/* It is ending; or only its main thread has ended, and then nothing tells what it is. */
	if (info->is_zombie) {
		if (c.is_followed || (c.is_named && info->thread_cnt > 1))
			*ret = VERDICT_SELECTED;
		return 0;
	}
	/* This also excludes heaptap's forked helpers. */
	if (f->own_exe[0] && !strcmp(info->exe, f->own_exe) && !c.is_named)
		return 0;
	return match_rules(f, &c, info->pid, ret);
}

/* Return why this process cannot be followed; NULL: it can. */
static const char *why_refused(const struct follow *f, const struct process_info *info,
			       struct err *why)
{
	uint32_t flags = 0;

	if (process_check_probing(info, why))
		return why->text;
	if (info->is_main_thread_gone && engine_mode(f->engine) != ATTACH_PERF)
		return "its main thread has ended: only 'heaptap record' can attach to it";
	if (info->seccomp && !f->returns_are_safe)
		return "it runs under seccomp, and on this kernel its filter would kill it at the "
		       "end of a return probe";
	if (info->catches_sigsys && engine_ask_threads(f->engine, info->pid, &flags) != -ENOTSUP &&
	    flags & HT_THREAD_DISPATCHES)
		return "it handles its system calls itself (syscall user dispatch, as Wine does), "
		       "so a return probe would harm it";
	return NULL;
}

static uint32_t hash_of(const char *text)
{
	return (uint32_t)hash_bytes(text, strlen(text));
}

/* True for an error that is not about the process itself: it may be followed when others have ended. */
static bool is_want_of_room(int err)
{
	return err == -E2BIG || err == -ENOSPC || err == -EBUSY || err == -ENOMEM ||
	       err == -EMFILE || err == -ENFILE || err == -EDQUOT;
}

/* Log it once, however often it is tried. */
static void refuse(struct follow *f, struct seen *s, const struct process_info *info, int err,
		   bool was_told)
{
	s->is_refused = true;
	s->is_silent = err == -ETIMEDOUT; /* which was logged */
	if (s->is_silent)
		return;
	s->waits_for_room = is_want_of_room(err);
	if (err == -EDQUOT) {
		if (!was_told && log_limit_allows(&f->log, now_ns()))
			log_warn("serve: PID %d (%s) is not tracked: too many processes of user "
				 "%u are tracked",
				 s->pid, info->comm, info->uid);
	} else if (s->waits_for_room) {
		f->room_tries -= f->room_tries > 0;
		log_msg(was_told ? LOG_DEBUG : LOG_WARN,
			"serve: PID %d (%s) is not tracked yet: no room (%s); retrying when "
			"others have ended",
			s->pid, info->comm, err == -E2BIG ? "too many processes" : strerror(-err));
	} else if (err == -ESRCH || err == -ENOENT) {
		return; /* it has ended */
	} else if (!f->guardian || !guardian_is_lost(f->guardian)) { /* that has its own line */
		log_warn("serve: cannot attach to PID %d (%s): %s", s->pid, info->comm,
			 strerror(-err));
	}
}

/* Let go a process without an allocator if nobody named it. */
static void decide(struct follow *f, struct seen *s)
{
	int has_allocator = tracker_has_allocator(f->tracker, s->pid);

	if (has_allocator == -EAGAIN)
		return;
	s->is_undecided = false;
	s->is_empty = !has_allocator;
	if (s->is_empty)
		tracker_remove(f->tracker, s->pid);
}

static uint64_t age_ns(const struct process_info *info)
{
	uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t begin_ns = info->start_time_ticks * tick_ns, now = clock_ns(CLOCK_BOOTTIME);

	return now > begin_ns ? now - begin_ns : 0;
}

/* known: the result of the last check, or NULL. */
static void attach(struct follow *f, struct seen *s, const struct process_info *glanced,
		   const struct seen *known)
{
	struct process_info info;
	bool was_told = known && known->waits_for_room && known->exe_hash == s->exe_hash;
	const char *refusal;
	uint64_t begin_ns;
	struct err why;
	int err = is_named(f, glanced) ?
			  0 :
			  follow_room_check(&f->room, glanced->uid, tracker_running_cnt(f->tracker),
					    age_ns(glanced));

	s->is_refused = s->is_empty = s->is_silent = false;
	s->is_late = loop_is_told_to_end() ||
		     (err == -EAGAIN && (f->has_scanned || f->room.all_spent_ns >= FIRST_SCAN_NS));
	if (s->is_late)
		return;
	if (!err || err == -EAGAIN)
		err = process_info_read(f->reader, s->pid, &info);
	if (err) {
		refuse(f, s, glanced, err, was_told);
		return;
	}
	if (info.is_zombie) {
		s->is_refused = true;
		return;
	}
	refusal = why_refused(f, &info, &why);
	if (refusal) {
		s->is_refused = true;
		f->room_tries -= s->waits_for_room && f->room_tries > 0;
		log_msg(s->waits_for_room && was_told ? LOG_DEBUG : LOG_WARN,
			"serve: PID %d (%s) is not tracked: %s", s->pid, info.comm, refusal);
		return;
	}
	err = follow_room_check_files();
	if (!err)
		err = read_address_limit(f, s);
	if (err) {
		refuse(f, s, &info, err, was_told);
		return;
	}
	begin_ns = now_ns();
	err = tracker_add(f->tracker, s->pid);
	follow_room_spend(&f->room, info.uid, now_ns() - begin_ns);
	s->is_undecided = !err && select_needs(f->rules).is_all && !is_named(f, &info);
	if (s->is_undecided)
		decide(f, s);
	if (s->is_empty)
		return;
	if (!err) {
		follow_room_add(&f->room, info.uid);
		log_info("serve: tracking PID %d (%s)", s->pid, info.comm);
		return;
	}
	tracker_remove(f->tracker, s->pid);
	refuse(f, s, &info, err, was_told);
}

/* Is the last result still valid? The process may have mapped an allocator, or executed another program. */
static bool is_settled(const struct follow *f, const struct seen *known,
		       const struct process_info *info, bool may_have_mapped)
{
	if (known->is_empty)
		return !may_have_mapped;
	if (known->is_silent)
		return false;
	if (known->waits_for_room && f->room_tries)
		return false;
	return !known->is_refused || known->exe_hash == hash_of(info->exe);
}

/* When to check it closely again. Processes first seen together are spread. */
static uint64_t next_look_ns(const struct follow *f, const struct seen *s, enum verdict verdict,
			     uint64_t now)
{
	const bool is_fickle = select_needs(f->rules).may_change;
	uint64_t wait_ns = is_fickle ? FICKLE_NS : STEADY_NS;

	if (verdict == VERDICT_SMALL)
		return now;
	if ((is_fickle || s->is_refused || s->is_undecided) && now - s->since_ns < wait_ns)
		wait_ns = now - s->since_ns;
	return now + wait_ns - (uint32_t)s->pid * 2654435761U % (wait_ns / 4 + 1);
}

/*
 * Read what a process is, and attach to it when it is newly selected. known: the result of the last check, or NULL.
 * -ESRCH: it has ended. Other errors: it could not be checked, which says nothing about it.
 */
static int look_closely(struct follow *f, pid_t pid, const struct seen *known, bool may_have_mapped,
			struct seen *ret)
{
	struct process_info info;
	uint64_t now = now_ns();
	struct seen s = { .pid = pid, .since_ns = now };
	enum verdict verdict;
	int err = process_glance(f->reader, pid, &info);

	if (err)
		return err;
	if (known && known->start_time_ticks != info.start_time_ticks) {
		tracker_remove(f->tracker, pid); /* its end was not reported yet */
		known = NULL;
	}
	s.start_time_ticks = info.start_time_ticks;
	s.exe_hash = hash_of(info.exe);
	s.uid = info.uid;
	err = judge(f, &info, &verdict);
	if (err)
		return err;
	if (verdict == VERDICT_SELECTED) {
		if (known && known->is_selected && is_settled(f, known, &info, may_have_mapped)) {
			s = *known;
			if (s.is_undecided)
				decide(f, &s);
			if (!s.is_refused)
				(void)read_address_limit(f, &s);
		} else if (!tracker_follows(f->tracker, pid)) {
			attach(f, &s, &info, known);
		}
	}
	if (known) {
		s.since_ns = may_have_mapped ? now : known->since_ns;
		s.dir_ino = known->dir_ino;
	}
	s.is_selected = verdict == VERDICT_SELECTED && !s.is_late;
	s.due_ns = s.is_late ? now : next_look_ns(f, &s, verdict, now);
	*ret = s;
	return 0;
}

static void note_unseen(struct follow *f, pid_t pid, int err)
{
	if (err != -ESRCH && log_limit_allows(&f->log, now_ns()))
		log_warn("serve: cannot read PID %d: %s%s", pid, strerror(-err),
			 err == -EMFILE ?
				 ": heaptap needs a higher limit (ulimit -n, LimitNOFILE=)" :
				 "");
}

/* Check one process of /proc, and add it to `fresh`. */
static int look_at(struct follow *f, pid_t pid, uint64_t dir_ino, struct follow *fresh)
{
	const struct seen *known = find_seen(f, pid);
	uint32_t key = (uint32_t)pid;
	struct seen s;
	int err = 0;

	if (known && known->dir_ino == dir_ino && dir_ino != INO_NONE && !f->has_lost_notes &&
	    now_ns() < known->due_ns)
		s = *known;
	else
		err = look_closely(f, pid, known, f->has_lost_notes, &s);
	if (err) {
		note_unseen(f, pid, err);
		/* That it could not be read does not mean that it has ended, or is unchanged: it is checked again. */
		known = find_seen(f, pid);
		if (err == -ESRCH || !known)
			return 0;
		s = *known;
		s.due_ns = 0;
	}
	s.dir_ino = dir_ino;
	err = vec_push(&fresh->seen, s);
	if (!err)
		err = hmap_put(&fresh->idx, &key, fresh->seen.cnt - 1);
	fresh->refused_cnt += s.is_refused;
	return err;
}

/* Let go processes that are not selected any more. */
static void let_go(struct follow *f)
{
	for (size_t i = tracker_running_cnt(f->tracker); i-- > 0;) {
		pid_t pid = tracker_running_at(f->tracker, i);
		const struct seen *s = find_seen(f, pid);

		if (s && s->is_selected)
			continue;
		log_info("serve: no longer tracking PID %d", pid);
		tracker_remove(f->tracker, pid);
	}
}

/* A pid that was given before still means the same process: the pid may belong to another one now. */
static bool find_named_again(const struct follow *f, pid_t pid, struct seen *ret)
{
	const struct seen *n;
	struct seen now;
	bool runs = !find_named(f->reader, pid, LOG_WARN, &now);

	vec_each(&f->named, n) {
		if (n->pid != pid)
			continue;
		*ret = *n;
		if (runs && n->start_time_ticks != now.start_time_ticks)
			log_warn("serve: PID %d has ended; the process that has this PID now is "
				 "not tracked",
				 pid);
		return true;
	}
	if (runs)
		*ret = now;
	return runs;
}

int follow_select(struct follow *f, const struct select_rules *rules, const pid_t *pids,
		  size_t pid_cnt)
{
	struct seen_list named = { 0 };
	size_t kept = 0;
	struct seen s;
	int err = vec_reserve(&named.seen, pid_cnt);

	if (err)
		return err;
	for (size_t i = 0; i < pid_cnt; i++)
		if (find_named_again(f, pids[i], &s))
			named.seen.data[named.seen.cnt++] = s;
	vec_release(&f->named);
	f->named.data = named.seen.data;
	f->named.cnt = named.seen.cnt;
	f->named.cap = named.seen.cap;
	f->size_counts = select_needs(rules).min_rss_bytes > select_needs(f->rules).min_rss_bytes;
	f->rules = rules;
	/* Refused processes and those without an allocator are tried again, and all are checked. */
	hmap_release(&f->idx);
	hmap_init(&f->idx, sizeof(uint32_t));
	for (size_t i = 0; i < f->seen.cnt; i++) {
		uint32_t key = (uint32_t)f->seen.data[i].pid;

		if (!tracker_follows(f->tracker, f->seen.data[i].pid) ||
		    hmap_put(&f->idx, &key, kept))
			continue;
		f->seen.data[kept] = f->seen.data[i];
		f->seen.data[kept++].due_ns = 0;
	}
	f->seen.cnt = kept;
	f->refused_cnt = 0;
	return 0;
}

void follow_note(struct follow *f, pid_t pid)
{
	if (!may_be_selected(f, pid))
		return;
	for (size_t i = 0; i < f->noted.cnt; i++)
		if (f->noted.data[i] == pid)
			return;
	if (f->noted.cnt == NOTED_CAP || vec_push(&f->noted, pid))
		f->has_lost_notes = true;
}

bool follow_note_fork(struct follow *f, pid_t child)
{
	const struct forked forked = { child, now_ns() + FORKED_NS };

	return !may_be_selected(f, child) ||
	       (f->forked.cnt < NOTED_CAP && !vec_push(&f->forked, forked));
}

void follow_note_exec(struct follow *f, pid_t pid)
{
	struct seen *known = find_seen(f, pid);

	if (known) {
		known->since_ns = now_ns();
		known->due_ns = 0;
		if (known->is_selected && !known->is_refused)
			(void)read_address_limit(f, known);
	}
}

void follow_note_lost(struct follow *f)
{
	f->has_lost_notes = true;
}

static int look_at_noted(struct follow *f, pid_t pid)
{
	struct seen *known = find_seen(f, pid), s;
	uint32_t key = (uint32_t)pid;
	int err;

	if (tracker_follows(f->tracker, pid) || look_closely(f, pid, known, true, &s))
		return 0;
	f->refused_cnt += s.is_refused;
	if (known) {
		f->refused_cnt -= known->is_refused;
		*known = s;
		return 0;
	}
	err = vec_push(&f->seen, s);
	return err ? err : hmap_put(&f->idx, &key, f->seen.cnt - 1);
}

static void begin_room(struct follow *f)
{
	follow_room_begin(&f->room);
	for (size_t i = 0; i < tracker_running_cnt(f->tracker); i++) {
		const struct seen *s = find_seen(f, tracker_running_at(f->tracker, i));

		if (s)
			follow_room_add(&f->room, s->uid);
	}
}

/* One that has mapped something was looked at meanwhile. */
static int look_at_forked(struct follow *f)
{
	uint64_t now = now_ns();
	size_t done = 0;
	int err = 0;

	for (; done < f->forked.cnt && f->forked.data[done].due_ns <= now && !err; done++)
		if (!find_seen(f, f->forked.data[done].pid))
			err = look_at_noted(f, f->forked.data[done].pid);
	f->forked.cnt -= done;
	if (f->forked.cnt)
		memmove(f->forked.data, f->forked.data + done,
			f->forked.cnt * sizeof(*f->forked.data));
	return err;
}

int follow_look(struct follow *f)
{
	int err = 0;

	if (f->forked.cnt) /* in a storm of forks the time of one scan is not enough for all of a second */
		begin_room(f);
	for (size_t i = 0; i < f->noted.cnt && !err; i++)
		err = look_at_noted(f, f->noted.data[i]);
	f->noted.cnt = 0;
	return err ? err : look_at_forked(f);
}

uint64_t follow_own_cpu_ns(const struct follow *f)
{
	const pid_t helpers[2] = { reader_pid(f->reader),
				   f->guardian ? guardian_pid(f->guardian) : 0 };
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), helper_ns;
	struct rusage ended;

	if (!getrusage(RUSAGE_CHILDREN, &ended))
		cpu_ns += timeval_ns(&ended.ru_utime) + timeval_ns(&ended.ru_stime);
	for (size_t i = 0; i < 2; i++)
		if (helpers[i] > 0 && !process_cpu_ns(helpers[i], &helper_ns))
			cpu_ns += helper_ns;
	return cpu_ns;
}

static void note_own_cost(struct follow *f)
{
	uint64_t now = now_ns();

	follow_room_note_own(&f->room, now, follow_own_cpu_ns(f));
	if (f->room.own.share >= ROOM_OWN_SHARE && log_limit_allows(&f->busy_log, now))
		log_info("serve: heaptap uses %.0f %% of a CPU: new processes are tracked when "
			 "they are %u s old, until it uses less",
			 100 * f->room.own.share, (unsigned)(ROOM_AGE_NS / NS_PER_S));
}

int follow_scan(struct follow *f)
{
	struct follow fresh = { 0 };
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	int err = 0;

	if (!dir)
		return -errno;
	hmap_init(&fresh.idx, sizeof(uint32_t));
	f->room_tries = ROOM_TRIES;
	begin_room(f);
	while (!err && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && !*end && may_be_selected(f, (pid_t)pid))
			err = look_at(f, (pid_t)pid, entry->d_ino, &fresh);
	}
	closedir(dir);
	if (err) {
		vec_release(&fresh.seen);
		hmap_release(&fresh.idx);
		return err;
	}
	f->has_lost_notes = f->size_counts = false;
	f->has_scanned = true;
	vec_release(&f->seen);
	hmap_release(&f->idx);
	f->seen.data = fresh.seen.data;
	f->seen.cnt = fresh.seen.cnt;
	f->seen.cap = fresh.seen.cap;
	f->idx = fresh.idx;
	f->refused_cnt = fresh.refused_cnt;
	/* An event reports each end, and how it came: it is here by now, if it was not lost. */
	err = engine_events_drain(f->engine);
	let_go(f);
	renew_throw_limit(f);
	note_own_cost(f);
	return err;
}
