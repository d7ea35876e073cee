/* SPDX-License-Identifier: MIT */
/* taps.c - see tracker_priv.h. */
#include "track/tracker_priv.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "kernel/engine.h"
#include "proc/process.h"
#include "tap/tap.h"
#include "track/file.h"

/*
 * The rate.
 */

static double limit_ns(const struct tap_rate_cost *c)
{
	double ns = (double)(c->cpu_ns > c->time_ns ? c->cpu_ns : c->time_ns) * TAP_RATE_SHARE;

	return ns < c->allowed_ns * TAP_RATE_OF_ALLOWED ? ns : c->allowed_ns * TAP_RATE_OF_ALLOWED;
}

uint64_t tap_rate_next(uint64_t rate_bytes, const struct tap_rate_cost *cost, uint64_t *calm_ns)
{
	double spent_ns = (double)cost->spent_ns;

	/* Half the rate is twice the cost; the rest of the factor 4 avoids going back and forth. */
	if (spent_ns * 4 < limit_ns(cost)) {
		*calm_ns += cost->time_ns;
		return *calm_ns >= TAP_RATE_CALM_NS && rate_bytes >= 2 * TAP_RATE_FINEST ?
			       rate_bytes / 2 :
			       rate_bytes;
	}
	*calm_ns = 0;
	for (; spent_ns > limit_ns(cost) && rate_bytes < TAP_RATE_COARSEST; spent_ns /= 2)
		rate_bytes *= 2;
	return rate_bytes;
}

/*
 * The taps of a process.
 */

/* Cost of a trap and of the program's work there, without the stack, which is measured. */
#define TAP_HIT_NS 2000
#define TAP_LOOK_NS 250000000ULL
/* A process that gets no processor, or executes another program, may answer the next visit. From the third pause on
 * each is twice as long as the one before, except where a user waits for the attaching. */
#define TAP_VISITS 6
#define TAP_FIRST_RETRY_NS (50 * NS_PER_MS) /* it executes another program just now, mostly */
#define TAP_RETRY_NS (700 * NS_PER_MS)
/* A visit that does not come to an end is followed by a pause of so many times its length, unless it is tried again. */
#define VISIT_PAUSES 8

bool tracker_wants_taps(const struct tracker *t)
{
	return t->policy->tap_rate_bytes && (!t->policy->taps_on_request || t->are_taps_requested);
}

bool tracker_may_tap(const struct tracker *t, pid_t pid)
{
	const struct tracked_process *p = pid ? tracked_find(t, pid) : NULL;

	if (!t->policy->tap_rate_bytes || !t->policy->taps_on_request || t->is_stopped)
		return false;
	if (!pid)
		return !t->are_taps_requested;
	return p && !p->is_tap_requested &&
	       (p->tap != TAP_REFUSED || p->tap_generation != p->generation);
}

int taps_await(const struct tracker *t, struct tracked_process *p, uint64_t not_before_ns)
{
	p->is_tap_requested = true;
	p->tap_generation = HT_GENERATION_NONE;
	p->tap_due_ns = not_before_ns;
	return probes_set_sampled(t->probes, p->pid, p->pid, true);
}

/* The process has another image, which has no tap. */
static int begin_tap(struct tracker *t, struct tracked_process *p)
{
	struct track_instance *inst = instances_get(&t->instances, p->pid, p->generation);

	if (!inst)
		return -ENOMEM;
	probes_untap(t->probes, p->pid); /* also when some of its files only were tapped */
	p->tap_generation = p->generation;
	p->tap_tries = 0;
	p->tap = !t->policy->may_tap || t->policy->may_tap(t->policy->may_tap_ctx, p->pid) ?
			 TAP_NOT_TRIED :
			 TAP_REFUSED;
	inst->is_tap_refused = p->tap == TAP_REFUSED;
	inst->is_tap_awaited = true;
	return probes_set_sampled(t->probes, p->pid, p->live_tid, p->tap == TAP_NOT_TRIED);
}

/* Does nobody else wait meanwhile? */
static bool is_patient(const struct tracker *t)
{
	return t->policy->taps_are_patient || t->is_requesting;
}

static int refuse_tap(struct tracker *t, struct tracked_process *p, const struct track_file *file,
		      const char *why)
{
	struct track_instance *inst = instances_get(&t->instances, p->pid, p->generation);

	if (!inst)
		return -ENOMEM;
	if (p->tap == TAP_IN) {
		log_warn("PID %d: '%s', which was loaded after the tap was put in, cannot be "
			 "tapped: %s; its allocations are not seen",
			 p->pid, file->path, why);
		late_files_note_never(inst, file);
		return 0;
	}
	log_warn("PID %d cannot be tapped: %s (%s); it is recorded with probes", p->pid, why,
		 file->path);
	probes_untap(t->probes, p->pid);
	p->tap = TAP_REFUSED;
	p->is_sampled = false;
	if (p->tap_tries > 1 && !is_patient(t))
		inst->tap_late_ns = now_ns() - p->followed_ns;
	inst->is_tap_refused = true;
	return probes_set_sampled(t->probes, p->pid, p->live_tid, false);
}

static struct tap_unit *unit_of(struct tracker *t, struct tracked_process *p)
{
	return t->policy->follow ? &t->family : &p->tap_unit;
}

static void log_tapped(struct tracker *t, const struct tracked_process *p,
		       const struct track_instance *inst, const struct tap_news *news)
{
	char others[64] = "";
	uint64_t cnt;

	if (t->policy->follow && !log_limit_allows(&t->tap_log, now_ns()))
		return;
	cnt = log_limit_left_out(&t->tap_log);
	if (cnt)
		snprintf(others, sizeof(others), " (%llu more processes since the last line)",
			 (unsigned long long)cnt);
	log_info("PID %d is tapped: %u thread%s paused for %.1f ms%s%s%s", p->pid, news->thread_cnt,
		 news->thread_cnt == 1 ? "" : "s", (double)news->stopped_ns / 1e6, others,
		 inst->tap_missed[0] ? "; not sampled: calls to " : "", inst->tap_missed);
}

static int note_tapped(struct tracker *t, struct tracked_process *p, const struct tap_news *news)
{
	struct track_instance *inst = instances_get(&t->instances, p->pid, p->generation);
	struct tap_unit *u = unit_of(t, p);
	struct track_file **file;

	if (!inst)
		return -ENOMEM;
	vec_each(&p->mapped, file)
		if ((*file)->alloc && !inst->tap_missed[0])
			tap_code_missed((*file)->alloc, inst->tap_missed, sizeof(inst->tap_missed));
	log_tapped(t, p, inst, news);
	if (p->tap == TAP_IN)
		return 0;
	p->tap = TAP_IN;
	p->is_sampled = true;
	inst->is_tapped = true;
	snprintf(inst->sampler, sizeof(inst->sampler), "tap");
	inst->sampler_ns = now_ns();
	if (t->is_requesting)
		inst->tap_late_ns = 0; /* it was probed before */
	else if (inst->exec_ns)
		inst->tap_late_ns = inst->sampler_ns - inst->exec_ns;
	else if (p->is_child || (p->tap_tries && !t->policy->taps_are_patient))
		inst->tap_late_ns = inst->sampler_ns - p->followed_ns;
	inst->tap_stopped_ns = news->stopped_ns;
	inst->tap_thread_cnt = news->thread_cnt;
	/* It was tapped at this rate. If the family's rate has changed, its next look records
	 * that. */
	inst->sampler_rate_bytes = t->policy->tap_rate_bytes;
	process_cpu_ns(p->pid, &p->tap_cpu_ns);
	if (!t->policy->follow || !u->rate_bytes)
		*u = (struct tap_unit){ .limit = u->limit,
					.rate_bytes = t->policy->tap_rate_bytes,
					.calm_ns = TAP_RATE_CALM_NS };
	return engine_mark_target(t->engine, p->pid, HT_TARGET_SAMPLES, 0);
}

/* A process that does not answer stalls everybody: then no other one is visited for a while. */
static void note_visit(struct tracker *t, uint64_t begin_ns, int err)
{
	uint64_t now = now_ns(), took_ns = now - begin_ns;

	if (err == -ETIMEDOUT || err == -ETIME)
		t->taps_quiet_until_ns = now + VISIT_PAUSES * took_ns;
}

static uint64_t tap_pause_ns(const struct tracker *t, const struct tracked_process *p)
{
	if (!p->tap_tries || t->is_requesting)
		return TAP_FIRST_RETRY_NS;
	return t->policy->taps_are_patient ? TAP_RETRY_NS : TAP_RETRY_NS << (p->tap_tries - 1);
}

static bool is_tried_again(const struct tracker *t, struct tracked_process *p, int err)
{
	uint64_t pause_ns = tap_pause_ns(t, p);

	if ((err != -ETIME && err != -EAGAIN && err != -EFAULT) || p->tap == TAP_IN ||
	    ++p->tap_tries >= TAP_VISITS)
		return false;
	if (is_patient(t))
		usleep((useconds_t)(pause_ns / 1000));
	else
		p->tap_due_ns = now_ns() + pause_ns;
	return true;
}

/* What its threads are, is known before one is stopped: the visitor may be killed before it has mended anything. */
static const char *why_not_stopped(const struct tracker *t, const struct tracked_process *p)
{
	uint32_t flags = 0;

	if (engine_ask_threads(t->engine, p->pid, &flags) == -ENOTSUP)
		return NULL; /* the visitor finds out by itself */
	if (flags & HT_THREAD_DISPATCHES)
		return "it handles its system calls itself (syscall user dispatch, as Wine does)";
	if (flags & HT_THREAD_MAY_NOT_RESTART)
		return "its seccomp filter may forbid restart_syscall(), which it needs after a "
		       "stop";
	return NULL;
}

static int tap_files(struct tracker *t, struct tracked_process *p, const struct tap_news **last)
{
	const bool has_new_maps = p->allocator_maps_cnt != p->tapped_maps_cnt;
	const struct tap_news *news = NULL;
	uint64_t begin_ns = now_ns();
	const char *why = why_not_stopped(t, p);
	struct track_file **file;
	int err = 0;

	vec_each(&p->mapped, file) {
		if (!(*file)->alloc)
			continue;
		if (why)
			return refuse_tap(t, p, *file, why);
		err = probes_tap(t->probes, *file, p->pid, has_new_maps, &news);
		if (err)
			break;
		*last = news ? news : *last;
	}
	if (err && is_tried_again(t, p, err)) {
		/* Half a tap sees frees of blocks that it never saw. */
		probes_untap(t->probes, p->pid);
		*last = NULL;
		return is_patient(t) ? tap_files(t, p, last) : 0;
	}
	note_visit(t, begin_ns, err);
	if (err && err != -ESRCH &&
	    err != -EPIPE) /* its end, or the guardian's, has its own line */
		err = refuse_tap(t, p, *file,
				 news && news->why.text[0] ? news->why.text : strerror(-err));
	else if (!err)
		p->tapped_maps_cnt = p->allocator_maps_cnt;
	return err;
}

static bool is_in_tapped_memory(const struct tracker *t, const struct tracked_process *p)
{
	const struct tracked_process *other;

	vec_each(&t->list, other)
		if (other != p && other->tap == TAP_IN &&
		    process_shares_memory(p->live_tid, other->live_tid))
			return true;
	return false;
}

/* The tap of a memory sees all that run in it: note if that is the tap of another process. */
static bool is_tap_of_other(struct tracker *t, struct tracked_process *p)
{
	struct track_instance *inst;

	if (p->tap == TAP_IN || !is_in_tapped_memory(t, p)) {
		if (p->tap == TAP_OF_OTHER)
			p->tap = TAP_NOT_TRIED; /* the other one has ended */
		return false;
	}
	p->tap = TAP_OF_OTHER;
	inst = instances_get(&t->instances, p->pid, p->generation);
	if (inst)
		inst->is_tap_of_other = true;
	return true;
}

int taps_process(struct tracker *t, struct tracked_process *p)
{
	const struct tap_news *last = NULL;
	int err = 0;

	if (p->tap_generation != p->generation)
		err = begin_tap(t, p);
	if (err || p->tap == TAP_REFUSED ||
	    (p->tap != TAP_IN && (p->is_waiting || p->has_busy_files)) ||
	    !tracked_is_current(t, p) || p->tap_due_ns > now_ns())
		return err;
	if (p->tap != TAP_IN && t->taps_quiet_until_ns > now_ns()) {
		p->tap_due_ns = t->taps_quiet_until_ns;
		return 0;
	}
	p->tap_due_ns = 0;
	/* Then none is put in; one that is in comes back with the probes. */
	if (probes_kept_of(t->probes, p->pid) == PROBES_NONE) {
		p->tap_due_ns = p->tap == TAP_IN ? 0 : now_ns() + TAP_RETRY_NS;
		return 0;
	}
	if (is_tap_of_other(t, p))
		return 0;
	err = tap_files(t, p, &last);
	return err || !last || p->tap == TAP_REFUSED ? err : note_tapped(t, p, last);
}

/*
 * On request.
 */

struct seeding {
	const struct tracked_process *process;
	struct tap_seeds *seeds;
	bool is_full;
};

static int add_seed(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct seeding *s = ctx;

	(void)v;
	if ((pid_t)k->tgid == s->process->pid && k->generation == s->process->generation)
		s->is_full |= !tap_seeds_add(s->seeds, k->addr);
	return 0;
}

/* A file of the blocks that the process has. -ENOSPC: they are too many. */
static int make_seeds(const struct tracker *t, const struct tracked_process *p, int *ret_fd)
{
	struct seeding s = { .process = p, .seeds = MAP_FAILED };
	int fd = memfd_create("seeds", MFD_CLOEXEC), err;

	err = fd < 0 || ftruncate(fd, sizeof(*s.seeds)) ? -errno : 0;
	if (!err)
		s.seeds = mmap(NULL, sizeof(*s.seeds), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!err && s.seeds == MAP_FAILED)
		err = -errno;
	if (!err)
		err = engine_each_live(t->engine, add_seed, &s);
	if (!err && s.is_full)
		err = -ENOSPC;
	if (s.seeds != MAP_FAILED)
		munmap(s.seeds, sizeof(*s.seeds));
	if (!err)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

/* It may be held at an exec no more: who traces it keeps the tap out. */
static int begin_request(struct tracker *t, struct tracked_process *p)
{
	struct track_instance *inst = instances_get(&t->instances, p->pid, p->generation);

	if (!inst)
		return -ENOMEM;
	if (p->tap_generation != p->generation) {
		p->tap_generation = p->generation;
		p->tap = TAP_NOT_TRIED;
	}
	p->tap_tries = 0;
	p->tap_due_ns = 0;
	if (!tracked_is_current(t, p))
		return -EAGAIN;
	if (p->tap == TAP_REFUSED ||
	    (t->policy->may_tap && !t->policy->may_tap(t->policy->may_tap_ctx, p->pid)))
		return -EPERM;
	inst->is_tap_awaited = true;
	inst->has_loader = false;
	return engine_mark_target(t->engine, p->pid, 0, HT_TARGET_HELD);
}

/* -EPERM: refused; -ENOENT: it has no allocator. */
static int tap_probed(struct tracker *t, struct tracked_process *p, bool *ret_keeps_inuse)
{
	const struct tap_news *last = NULL;
	int err, fd = -1;

	if (p->tap == TAP_REFUSED || !tracked_is_current(t, p))
		return -EAGAIN;
	if (is_tap_of_other(t, p)) {
		p->is_tap_requested = true;
		return 0;
	}
	if (make_seeds(t, p, &fd))
		*ret_keeps_inuse = false;
	probes_seed_taps(t->probes, fd);
	err = tap_files(t, p, &last);
	probes_seed_taps(t->probes, -1);
	if (fd >= 0)
		close(fd);
	if (!err && p->tap == TAP_REFUSED)
		err = -EPERM;
	if (!err)
		err = last ? note_tapped(t, p, last) : -ENOENT;
	p->is_tap_requested |= !err;
	return err;
}

/*
 * After the shared probes are gone. Who could not be tapped gets probes of its own, but until then its frees were not seen.
 * Who was in the middle of a fork or an exec is tapped later, and what it has is not known to be in use.
 */
static int leave_sharing(struct tracker *t, struct tracked_process *p, bool *ret_keeps_inuse)
{
	int err;

	p->is_dirty = true;
	if (p->is_tap_requested || p->tap == TAP_REFUSED) {
		*ret_keeps_inuse &= p->is_tap_requested;
		p->is_tap_requested = true;
		return probes_set_sampled(t->probes, p->pid, p->live_tid, p->tap != TAP_REFUSED);
	}
	err = taps_await(t, p, 0);
	return err ? err : engine_drop_live(t->engine, p->pid, p->generation, NULL);
}

static int tap_family(struct tracker *t, bool *ret_keeps_inuse)
{
	struct tracked_process *p;
	size_t tapped_cnt = 0;
	int err = 0;

	vec_each(&t->list, p)
		tapped_cnt += !tap_probed(t, p, ret_keeps_inuse);
	if (!tapped_cnt)
		return -EPERM;
	t->are_taps_requested = true;
	probes_unshare(t->probes);
	vec_each(&t->list, p)
		if (!err)
			err = leave_sharing(t, p, ret_keeps_inuse);
	return err;
}

/* Allocations went into the sums only, since then. */
static void note_gap(struct tracker *t, pid_t pid, uint64_t begin_ns)
{
	const struct tracked_process *p;

	vec_each(&t->list, p) {
		struct track_instance *inst = instances_find(&t->instances, p->pid, p->generation);

		if (inst && (!pid || p->pid == pid))
			inst->tap_gap_ns = now_ns() - begin_ns;
	}
}

int tracker_prepare_tap(struct tracker *t, pid_t pid)
{
	struct tracked_process *p;
	int err = tracker_may_tap(t, pid) ? 0 : -EPERM, prog_fd;

	vec_each(&t->list, p) {
		if (err || (pid && p->pid != pid))
			continue;
		err = begin_request(t, p);
		if (!pid && err == -EAGAIN)
			err = 0; /* in the middle of an exec */
	}
	if (err)
		return err;
	prog_fd = engine_prog_fd(t->engine, ENGINE_SAMPLED); /* loads it */
	return prog_fd < 0 ? prog_fd : 0;
}

int tracker_tap(struct tracker *t, pid_t pid, bool *ret_keeps_inuse)
{
	struct tracked_process *p = pid ? tracked_find(t, pid) : NULL;
	const uint64_t begin_ns = now_ns();
	int err;

	*ret_keeps_inuse = true;
	if (pid && !p)
		return -ESRCH;
	t->is_requesting = true;
	err = pid ? tap_probed(t, p, ret_keeps_inuse) : tap_family(t, ret_keeps_inuse);
	t->is_requesting = false;
	note_gap(t, pid, begin_ns);
	if (err || !pid)
		return err;
	t->are_taps_requested = true;
	return probes_set_sampled(t->probes, p->pid, p->live_tid, true);
}

/*
 * Rates.
 */

/* Without a limit all time is allowed. */
static double allowed_ns(const struct recording_limit *limit, const struct tap_rate_cost *cost)
{
	double of_cpu = limit->cpu_share * (double)cost->cpu_ns;
	double of_time = limit->one_cpu * (double)cost->time_ns;

	if (limit->cpu_share <= 0 && limit->one_cpu <= 0)
		return (double)(cost->cpu_ns + cost->time_ns);
	return of_cpu > of_time ? of_cpu : of_time;
}

/* CPU time since the last look at the rate. */
static uint64_t take_cpu_ns(struct tracked_process *p)
{
	uint64_t before_ns = p->tap_cpu_ns;

	if (p->tap != TAP_IN || process_cpu_ns(p->pid, &p->tap_cpu_ns))
		return 0;
	return p->tap_cpu_ns > before_ns ? p->tap_cpu_ns - before_ns : 0;
}

static void set_rate(const struct tracker *t, const struct tracked_process *p, uint64_t rate_bytes)
{
	struct track_instance *inst = instances_find(&t->instances, p->pid, p->generation);
	struct tap_lost lost;

	if (!inst || p->tap != TAP_IN)
		return;
	probes_set_taps(t->probes, p->pid, rate_bytes, &lost);
	inst->tap_dropped_cnt = lost.dropped_cnt;
	inst->tap_failed_cnt = lost.failed_cnt;
	if (rate_bytes > inst->sampler_rate_bytes)
		inst->sampler_rate_bytes = rate_bytes;
}

/* hits: of a unit that used cpu_ns since its last look. */
static void choose_rate(const struct tracker *t, struct tap_unit *u, const struct ht_hits *hits,
			uint64_t cpu_ns, uint64_t now)
{
	struct tap_rate_cost cost = {
		.spent_ns =
			(hits->alloc_cnt - u->hits.alloc_cnt + hits->free_cnt - u->hits.free_cnt) *
				TAP_HIT_NS +
			hits->stack_ns - u->hits.stack_ns,
		.cpu_ns = cpu_ns,
		.time_ns = now - u->checked_ns,
	};

	cost.allowed_ns = allowed_ns(&u->limit, &cost);
	if (u->checked_ns && !t->policy->tap_rate_is_fixed)
		u->rate_bytes = tap_rate_next(u->rate_bytes, &cost, &u->calm_ns);
	u->hits = *hits;
	u->checked_ns = now;
}

void taps_adjust(struct tracker *t, struct tracked_process *p)
{
	struct tap_unit *u = unit_of(t, p);
	uint64_t now = now_ns(), cpu_ns = 0;
	struct ht_hits hits;

	if (now < u->checked_ns + TAP_LOOK_NS || engine_read_hits(t->engine, p->hits_idx, &hits))
		return;
	if (!t->policy->follow) {
		cpu_ns = take_cpu_ns(p);
		choose_rate(t, u, &hits, cpu_ns, now);
		set_rate(t, p, u->rate_bytes);
		return;
	}
	vec_each(&t->list, p)
		cpu_ns += take_cpu_ns(p);
	choose_rate(t, u, &hits, cpu_ns, now);
	vec_each(&t->list, p)
		set_rate(t, p, u->rate_bytes);
}

void tracker_limit_tap(struct tracker *t, pid_t pid, const struct recording_limit *limit)
{
	struct tracked_process *p = tracked_find(t, pid);

	if (!pid)
		t->family.limit = *limit;
	else if (p)
		p->tap_unit.limit = *limit;
}

bool tracker_is_tapped(const struct tracker *t, pid_t pid)
{
	const struct tracked_process *p;

	if (pid) {
		p = tracked_find(t, pid);
		return p && (p->tap == TAP_IN || p->tap == TAP_OF_OTHER);
	}
	vec_each(&t->list, p)
		if (p->tap != TAP_IN && p->tap != TAP_OF_OTHER && !p->tap_due_ns)
			return false;
	return t->list.cnt;
}
