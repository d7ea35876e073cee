/* SPDX-License-Identifier: MIT */
/*
 * test_reclaim.c - what ended processes left is taken out and used again; what others still refer
 * to stays, and a probe that asks for it meanwhile finds it.
 */
#include "rig.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/sendfile.h>

#include "base/clock.h"
#include "heaptap/scope.h"
#include "kernel/engine_priv.h"
#include "kernel/reclaim.h"
#include "record/snapshot.h"

#define DEEPEST 40
#define NO_READER UINT64_MAX
#define LIMIT_NS (20 * NS_PER_S)

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;
static void *held[DEEPEST + 1];

static void name_thread(const char *prefix, unsigned n)
{
	char name[HT_COMM_BYTES];

	snprintf(name, sizeof(name), "%s-%u", prefix, n);
	prctl(PR_SET_NAME, name);
}

/* A stack and a context each. */
static void step_fill(volatile uint64_t *out)
{
	for (int i = 0; i < DEEPEST; i++) {
		name_thread("fill", i);
		held[i] = rig_alloc_below(i, 101);
	}
}

static void step_free_all(volatile uint64_t *out)
{
	for (int i = 0; i < DEEPEST; i++)
		do_free(held[i]);
}

/* Polar Signals' custom labels, ABI version 1 (tests/e2e/workloads/custom_labels.c). */
struct text {
	size_t len;
	const char *buf;
};
struct label {
	struct text key, value;
};
struct label_set {
	struct label *storage;
	size_t count, capacity;
};
#define EXPORTED __attribute__((visibility("default"), used))
EXPORTED unsigned int custom_labels_abi_version = 1;
EXPORTED __thread struct label_set *volatile custom_labels_current_set;

#define TASK_CNT 20
/* Tasks with a scope and a label of its own, half of which never end. */
static void step_fill_tags(volatile uint64_t *out)
{
	heaptap_node query = heaptap_task("query");

	for (uint64_t i = 0; i < TASK_CNT; i++) {
		heaptap_state before = heaptap_enter(query, 1000 + i);
		char tenant[16];
		struct label label = { { 6, "tenant" }, { 0, tenant } };
		struct label_set set = { &label, 1, 1 };

		label.value.len = (size_t)snprintf(tenant, sizeof(tenant), "t%u", (unsigned)i);
		custom_labels_current_set = &set;
		{
			HEAPTAP_SCOPE("stage");
			held[i] = rig_alloc_below((int)i, 107);
		}
		custom_labels_current_set = NULL;
		heaptap_leave(before);
		if (i % 2)
			heaptap_task_exit(query, 1000 + i);
	}
}

struct contents {
	size_t live, totals, bins, contexts, stacks;
	uint32_t highest_context;
};

static int count_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	((struct contents *)ctx)->live++;
	return 0;
}
static int count_total(void *ctx, const struct ht_total_key *k, const struct ht_total *v)
{
	((struct contents *)ctx)->totals++;
	return 0;
}
static int count_bin(void *ctx, const struct ht_bin_key *k, const struct ht_bin *v)
{
	((struct contents *)ctx)->bins++;
	return 0;
}
static int count_context(void *ctx, const struct ht_context *k, const struct ht_context_value *v)
{
	struct contents *c = ctx;

	c->contexts++;
	if (v->id > c->highest_context)
		c->highest_context = v->id;
	return 0;
}
static int count_stack(void *ctx, const void *k, const void *v)
{
	((struct contents *)ctx)->stacks++;
	return 0;
}

static struct contents contents(struct rig *rig)
{
	struct contents c = { 0 };
	struct map_walk stacks = { bpf_map__fd(rig->engine->skel->maps.stacks), sizeof(uint64_t),
				   sizeof(struct ht_stack), count_stack, &c };

	assert_int_equal(engine_each_live(rig->engine, count_live, &c), 0);
	assert_int_equal(engine_each_total(rig->engine, count_total, &c), 0);
	assert_int_equal(engine_each_bin(rig->engine, count_bin, &c), 0);
	assert_int_equal(engine_each_context(rig->engine, count_context, &c), 0);
	assert_int_equal(map_walk_all(&stacks), 0);
	return c;
}

/* Until so many more cycles are over. Slices that are too short for anything are enough. */
static void cycle(struct rig *rig, unsigned cnt)
{
	uint64_t want = reclaim_counts(tracker_reclaim(rig->tracker))->cycles + cnt;
	uint64_t end_ns = now_ns() + LIMIT_NS;

	while (reclaim_counts(tracker_reclaim(rig->tracker))->cycles < want && now_ns() < end_ns) {
		assert_int_equal(reclaim_run(tracker_reclaim(rig->tracker), NO_READER, 1), 0);
		usleep(200);
	}
	assert_true(reclaim_counts(tracker_reclaim(rig->tracker))->cycles >= want);
}

static void end_target(struct rig *rig)
{
	size_t cnt = tracker_running_cnt(rig->tracker);

	kill(rig->pid, SIGKILL);
	waitpid(rig->pid, NULL, 0);
	close(rig->fd);
	for (int i = 0; i < 100 && tracker_running_cnt(rig->tracker) == cnt; i++) {
		rig_settle(rig);
		usleep(10000);
	}
	assert_int_equal(tracker_running_cnt(rig->tracker), cnt - 1);
}

/* Another process instead of the one that has ended. */
static void next_target(struct rig *rig)
{
	struct rig fresh;

	rig_start(&fresh);
	munmap((void *)rig->out, RIG_OUT_CNT * sizeof(uint64_t));
	rig->out = fresh.out;
	rig->pid = fresh.pid;
	rig->fd = fresh.fd;
	assert_int_equal(tracker_add(rig->tracker, rig->pid), 0);
}

static struct rig *open_many(void **state, uint32_t stack_cap)
{
	const struct rig_options opts = { rig_mode(state), 1, 4096, stack_cap, true };

	return rig_open_with(&opts);
}

/* Of a process that has ended nothing is left, and its numbers are given out again. */
TEST(test_ended)
{
	struct contents before, after;
	struct rig *rig = open_many(state, 1024);

	rig_do(rig, step_fill);
	before = contents(rig);
	assert_int_equal(before.live, DEEPEST);
	assert_true(before.stacks >= DEEPEST && before.contexts >= DEEPEST);
	assert_true(before.bins >= DEEPEST);
	end_target(rig);
	cycle(rig, 2);
	after = contents(rig);
	assert_int_equal(after.live + after.totals + after.contexts + after.stacks, 0);
	assert_int_equal(after.bins, 0);
	assert_int_equal(rig->engine->skel->bss->share_used[HT_SHARED_BINS], 0);
	for (size_t i = 0; i < HT_FILTER_CNT; i++)
		assert_int_equal(rig->engine->skel->bss->live_filter[i], 0);
	assert_int_equal(tracker_instances(rig->tracker)->list.cnt, 0);

	next_target(rig);
	rig_do(rig, step_fill);
	after = contents(rig);
	assert_int_equal(after.live, DEEPEST);
	assert_true(after.highest_context <= before.highest_context);
}

/* Each row has its bins, in order. */
static void check_bins(const struct snapshot *s)
{
	const struct snapshot_row *row;
	size_t cnt = 0;

	vec_each(&s->rows, row) {
		const struct bin_part *bins = s->bins.data + row->bin_first;

		cnt += row->bin_cnt;
		for (uint32_t i = 0; i < row->bin_cnt; i++) {
			assert_true(bins[i].samples && bins[i].samples <= row->alloc.samples);
			assert_true(!i || bins[i - 1].bin < bins[i].bin);
		}
	}
	assert_int_equal(cnt, s->bins.cnt);
}

static size_t row_cnt(const struct rig *rig, const struct tracker *t)
{
	struct snapshot *s;
	size_t cnt;

	assert_int_equal(snapshot_take(rig->engine, t, &s), 0);
	assert_true(s->live_cnt >= DEEPEST && s->total_cnt >= DEEPEST);
	check_bins(s);
	cnt = s->rows.cnt;
	snapshot_free(s);
	return cnt;
}

/* A snapshot leaves out what waits to be reclaimed, if it is told so, and nothing that is still wanted. */
TEST(test_left_out)
{
	uint32_t generation;
	pid_t pid;
	struct rig *rig = open_many(state, 1024);

	rig_do(rig, step_fill);
	rig_do(rig, step_free_all);
	rig_do(rig, step_fill);
	pid = rig->pid;
	generation = tracker_generation(rig->tracker, pid);
	assert_true(row_cnt(rig, rig->tracker) >= DEEPEST);
	assert_int_equal(tracker_pin_image(rig->tracker, pid, generation), 0);
	end_target(rig);
	assert_true(row_cnt(rig, rig->tracker) >= DEEPEST);
	tracker_unpin_image(rig->tracker, pid, generation);
	assert_int_equal(row_cnt(rig, rig->tracker), 0);
	assert_true(row_cnt(rig, NULL) >= DEEPEST);
}

static int count_entry(void *ctx, const void *k, const void *v)
{
	(*(size_t *)ctx)++;
	return 0;
}

/* Every map whose entries are a process's or refer to one. */
static const char *const maps_of_processes[] = { "live",    "totals",	  "bins",    "contexts",
						 "scopes",  "instances",  "stacks",  "images",
						 "pending", "label_sets", "targets", "maps_of" };
#define MAP_CNT (sizeof(maps_of_processes) / sizeof(*maps_of_processes))

static size_t entry_cnt(const struct rig *rig, const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(rig->engine->skel->obj, name);
	size_t cnt = 0;
	const struct map_walk walk = { bpf_map__fd(map), bpf_map__key_size(map),
				       bpf_map__value_size(map), count_entry, &cnt };

	assert_int_equal(map_walk_all(&walk), 0);
	return cnt;
}

/* In none of the maps there is anything of a process that has ended, and all of its shares are given back. */
TEST(test_every_map)
{
	struct rig *rig = open_many(state, 1024);

	rig_do(rig, step_fill_tags);
	for (size_t i = 0; i < MAP_CNT; i++)
		if (!entry_cnt(rig, maps_of_processes[i]))
			fail_msg("nothing is in %s", maps_of_processes[i]);
	assert_true(entry_cnt(rig, "instances") >= TASK_CNT / 2);
	assert_true(entry_cnt(rig, "label_sets") >= TASK_CNT);
	end_target(rig);
	cycle(rig, 2);
	for (size_t i = 0; i < MAP_CNT; i++)
		if (entry_cnt(rig, maps_of_processes[i]))
			fail_msg("%zu entries are left in %s", entry_cnt(rig, maps_of_processes[i]),
				 maps_of_processes[i]);
	for (int table = 0; table < HT_SHARED_CNT; table++)
		if (rig->engine->skel->bss->share_used[table])
			fail_msg("share %d: %u", table, rig->engine->skel->bss->share_used[table]);
}

/* Of a process that runs everything stays: also the stacks and sums of what it has freed. */
TEST(test_running)
{
	struct contents before, after;
	struct rig *rig = open_many(state, 1024);

	rig_do(rig, step_fill);
	rig_do(rig, step_free_all);
	before = contents(rig);
	assert_int_equal(before.live, 0);
	assert_true(before.stacks >= DEEPEST);
	reclaim_ask(tracker_reclaim(rig->tracker));
	cycle(rig, 1);
	after = contents(rig);
	assert_int_equal(after.stacks, before.stacks);
	assert_int_equal(after.totals, before.totals);
	assert_int_equal(after.bins, before.bins);
	assert_int_equal(after.contexts, before.contexts);
}

static void reclaim_with_reader(struct rig *rig, uint64_t since_ns)
{
	uint64_t until_ns = now_ns() + NS_PER_S / 2;

	while (now_ns() < until_ns) {
		assert_int_equal(reclaim_run(tracker_reclaim(rig->tracker), since_ns, NS_PER_MS),
				 0);
		usleep(1000);
	}
	assert_int_equal(reclaim_counts(tracker_reclaim(rig->tracker))->cycles, 0);
}

/*
 * A snapshot's reader holds up what it may still look up, stacks and labels, and nothing else: also not what ends while it
 * waits.
 */
TEST(test_reader)
{
	struct rig *rig = open_many(state, 1024), keeper;
	struct contents c;
	uint64_t since_ns;

	/* It has the same files, so none is forgotten, which would ask for another cycle. */
	rig_start(&keeper);
	assert_int_equal(tracker_add(rig->tracker, keeper.pid), 0);
	for (int i = 0; i < 3; i++) {
		if (i)
			next_target(rig);
		rig_do(rig, step_fill);
		if (!i)
			since_ns = now_ns();
		assert_true(contents(rig).contexts >= DEEPEST);
		end_target(rig);
		reclaim_with_reader(rig, since_ns);
		c = contents(rig);
		assert_int_equal(c.live + c.totals + c.bins + c.contexts, 0);
		assert_true(c.stacks >= DEEPEST);
		assert_int_equal(tracker_instances(rig->tracker)->list.cnt, 1);
	}
	/* Those of the last one were asked for after the marks: they are the next cycle's, for which nobody asks. */
	cycle(rig, 2);
	assert_int_equal(contents(rig).stacks, 0);
	kill(keeper.pid, SIGKILL);
	waitpid(keeper.pid, NULL, 0);
	close(keeper.fd);
	munmap((void *)keeper.out, RIG_OUT_CNT * sizeof(uint64_t));
}

#define STACK_CAP 36 /* one process has two thirds of it */
#define BAND 8 /* stacks at once */
#define BAND_CNT 5
#define MUST_STOP 1000 /* as a band */

static void step_fill_totals(volatile uint64_t *out)
{
	for (unsigned i = 0; i < 4 * STACK_CAP + 16; i++) {
		name_thread("total", i);
		do_free(do_malloc(101));
	}
}

static void *shift(void *arg)
{
	volatile uint64_t *out = arg;

	while (out[1] != MUST_STOP) {
		int first = out[1] * BAND;

		for (int i = 0; i < BAND; i++)
			held[first + i] = rig_alloc_below(first + i, 103);
		for (int i = 0; i < BAND && out[1] != MUST_STOP; i++)
			do_free(held[first + i]);
		out[0]++;
		usleep(500);
	}
	out[2] = 1;
	return NULL;
}

static void step_shift(volatile uint64_t *out)
{
	static pthread_t thread;

	pthread_create(&thread, NULL, shift, (void *)out);
}

static int check_stack(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct rig *rig = ctx;
	struct ht_stack stack;

	if (v->size_bytes != 103)
		return 0;
	assert_int_not_equal(v->stack_id, 0);
	assert_int_equal(engine_get_stack(rig->engine, v->stack_id, &stack), 0);
	return 0;
}

/*
 * A running process whose sums found no room uses more stacks than the map has, a few at a time: those
 * of before make room, those in use stay, and one that is just being asked for is not lost.
 */
TEST(test_shift)
{
	struct rig *rig = open_many(state, STACK_CAP);

	rig_do(rig, step_fill_totals);
	assert_true(rig_stat(rig, HT_STAT_SHARE_TOTALS) > 0);
	rig_do(rig, step_shift);
	for (int i = 0; i < 2 * BAND_CNT; i++) {
		rig->out[1] = i % BAND_CNT;
		for (int k = 0; k < 3; k++) {
			reclaim_ask(tracker_reclaim(rig->tracker));
			cycle(rig, 1);
		}
	}
	rig->out[1] = MUST_STOP;
	for (int i = 0; i < 1000 && !rig->out[2]; i++)
		usleep(10000);
	assert_int_equal(rig->out[2], 1);
	assert_int_equal(engine_each_live(rig->engine, check_stack, rig), 0);
	assert_true(rig->out[0] >= 2 * BAND_CNT);
	assert_true(reclaim_counts(tracker_reclaim(rig->tracker))->stacks > STACK_CAP);
	/* One in a thousand may have met a stack in the moment in which it went. */
	assert_true(rig_stat(rig, HT_STAT_STACKS_FULL) + rig_stat(rig, HT_STAT_SHARE_STACKS) <=
		    rig->out[0] * BAND / 1000);
}

static char library_path[64];
static void *library;

static void step_open_library(volatile uint64_t *out)
{
	library = dlopen(library_path, RTLD_NOW);
	out[0] = library != NULL;
}
static void step_close_library(volatile uint64_t *out)
{
	out[0] = dlclose(library) == 0;
}

/* A library with an inode of its own: that of zlib, which this program is linked with. */
static void copy_library(void)
{
	Dl_info info;
	struct stat st;
	int from, to;

	assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "zlibVersion"), &info), 0);
	from = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(from >= 0 && !fstat(from, &st));
	strcpy(library_path, "/tmp/heaptap-library-XXXXXX");
	to = mkstemp(library_path);
	assert_true(to >= 0);
	assert_int_equal(sendfile(to, from, NULL, st.st_size), st.st_size);
	close(from);
	close(to);
}

static int fd_cnt(void)
{
	int cnt = 0;

	for (int fd = 0; fd < 1024; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}

/* Libraries that come and go leave no file, no descriptor, and no rows behind. */
TEST(test_files)
{
	uint32_t rows_free, pages_free;
	size_t file_cnt;
	struct rig *rig;
	int fds;

	copy_library();
	rig = open_many(state, 1024);
	file_cnt = track_files_cnt(rig->files);
	rows_free = extents_free_cnt(&rig->engine->shards.data[0].rows);
	pages_free = extents_free_cnt(&rig->engine->pages);
	fds = fd_cnt();
	rig_do(rig, step_open_library);
	assert_int_equal(rig->out[0], 1);
	rig_settle_mapped(rig);
	assert_int_equal(track_files_cnt(rig->files), file_cnt + 1);
	assert_true(extents_free_cnt(&rig->engine->pages) < pages_free);
	reclaim_ask(tracker_reclaim(rig->tracker));
	cycle(rig, 1);
	assert_int_equal(track_files_cnt(rig->files), file_cnt + 1);

	rig_do(rig, step_close_library);
	rig_settle_mapped(rig);
	cycle(rig, 2);
	assert_int_equal(track_files_cnt(rig->files), file_cnt);
	assert_int_equal(extents_free_cnt(&rig->engine->shards.data[0].rows), rows_free);
	assert_int_equal(extents_free_cnt(&rig->engine->pages), pages_free);
	assert_int_equal(fd_cnt(), fds);

	/* and once more: found again */
	rig_do(rig, step_open_library);
	rig_settle_mapped(rig);
	assert_int_equal(track_files_cnt(rig->files), file_cnt + 1);
	unlink(library_path);
}

RUN_RIG_TESTS()
