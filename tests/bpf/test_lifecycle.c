/* SPDX-License-Identifier: MIT */
/*
 * test_lifecycle.c - threads that die inside of a call, and images that are replaced by an exec.
 *
 * The test program itself is the image that is executed: with an argument it is not a test, but the
 * target's second life.
 */
#include "rig.h"

#include <bpf/bpf.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "kernel/engine_priv.h" /* the map of calls under way */

#define THREAD_CNT 40
#define BLOCK_CNT 8
#define BLOCK_BYTES (40 << 20) /* above the largest threshold: each a mapping of its own */
#define PAGE_BYTES 4096

static void *(*volatile do_malloc)(size_t) = malloc;
static int (*volatile do_posix_memalign)(void **, size_t, size_t) = posix_memalign;
static void (*volatile do_free)(void *) = free;

static void end_thread(int sig)
{
	syscall(SYS_exit, 0);
}

/* Never returns from the call: storing the address faults, and that ends the thread. */
static void *die_inside(void *arg)
{
	do_posix_memalign((void **)8, 64, 5003);
	return arg;
}

static void step_die(volatile uint64_t *out)
{
	static pthread_t thread;
	struct sigaction act = { .sa_handler = end_thread };

	sigaction(SIGSEGV, &act, NULL);
	for (int i = 0; i < THREAD_CNT; i++)
		if (!pthread_create(&thread, NULL, die_inside, NULL))
			out[0] += !pthread_join(thread, NULL);
}

static uint32_t pending_cnt(const struct rig *rig)
{
	int fd = bpf_map__fd(rig->engine->skel->maps.pending);
	uint32_t key, cnt = 0;

	for (int err = bpf_map_get_next_key(fd, NULL, &key); !err;
	     err = bpf_map_get_next_key(fd, &key, &key))
		cnt++;
	return cnt;
}

/* Older kernels wake who joins a thread before they trace its end. */
static void await_ends(const struct rig *rig)
{
	for (int i = 0; i < 400 && pending_cnt(rig) > 1; i++)
		usleep(5000);
}

/* The end of a thread takes what it had under way: nothing grows, no later thread meets it. */
TEST(test_thread_death)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_die);
	assert_int_equal(rig->out[0], THREAD_CNT);
	assert_true(rig_stat(rig, HT_STAT_SAMPLES) >= THREAD_CNT);
	await_ends(rig);
	assert_true(pending_cnt(rig) <= 1); /* the main thread's */
	/* each counted once, at the death, and never met again */
	assert_int_equal(rig_stat(rig, HT_STAT_PENDING_STALE), THREAD_CNT);
}

static void step_hold(volatile uint64_t *out)
{
	for (int i = 0; i < BLOCK_CNT; i++)
		out[i] = (uintptr_t)do_malloc(BLOCK_BYTES);
}

static void step_exec(volatile uint64_t *out)
{
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", rig_child_fd);
	fcntl(rig_child_fd, F_SETFD, 0);
	execl("/proc/self/exe", "second", fd, (char *)NULL);
}

/*
 * The second image's free() of an address that the first one had a block at. The address is given
 * the header of a block with a mapping of its own, which glibc's free() unmaps.
 */
static bool free_at(uint64_t addr)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	const size_t bytes = BLOCK_BYTES + PAGE_BYTES;
	uint64_t *header = (uint64_t *)(addr - 16);

	if (addr % PAGE_BYTES != 16 ||
	    mmap(header, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != header)
		return false;
	header[1] = bytes | 2; /* size, IS_MMAPPED */
	do_free((void *)addr);
	return true;
}

/* Talks to the rig as the first image did, but its addresses are its own: steps have numbers. */
static int second_image(int fd)
{
	uint64_t addr[BLOCK_CNT], freed_cnt = 0;

	if (write(fd, "", 1) != 1) /* the end of step_exec */
		return 1;
	if (read(fd, addr, sizeof(addr)) != sizeof(addr))
		return 1;
	for (int i = 0; i < BLOCK_CNT; i++)
		freed_cnt += free_at(addr[i]);
	do_malloc(307);
	do_free(do_malloc(311));
	if (write(fd, &freed_cnt, sizeof(freed_cnt)) != sizeof(freed_cnt))
		return 1;
	pause();
	return 0;
}

struct image_sum {
	uint32_t generation;
	uint64_t old_cnt, fresh_cnt, fresh_bytes;
};

static int add_image(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct image_sum *sum = ctx;

	if (k->generation != sum->generation) {
		sum->old_cnt++;
		assert_int_equal(k->generation + 1, sum->generation);
		assert_int_equal(v->size_bytes, BLOCK_BYTES);
	} else if (v->size_bytes == 307) {
		sum->fresh_cnt++;
	} else {
		assert_int_not_equal(v->size_bytes, 311);
		assert_int_not_equal(v->size_bytes, BLOCK_BYTES);
	}
	return 0;
}

static void check_exec(void **state, bool is_one_of_many)
{
	const struct rig_options opts = { rig_mode(state), 1, 65536, 4096, is_one_of_many };
	struct ht_target before, after;
	struct image_sum sum = { 0 };
	uint64_t addr[BLOCK_CNT], freed_cnt;
	size_t exec_cnt = 0;
	struct rig *rig = rig_open_with(&opts);

	rig_do(rig, step_hold);
	assert_int_equal(rig_live(rig).cnt, BLOCK_CNT);
	for (int i = 0; i < BLOCK_CNT; i++)
		addr[i] = rig->out[i];
	assert_int_equal(engine_get_target(rig->engine, rig->pid, &before), 0);
	rig_do(rig, step_exec);
	rig_settle(rig);
	assert_int_equal(engine_get_target(rig->engine, rig->pid, &after), 0);
	assert_int_equal(after.generation, before.generation + 1);
	for (size_t i = 0; i < rig->event_cnt; i++)
		exec_cnt += rig->events[i].kind == HT_EVENT_EXEC &&
			    rig->events[i].generation == after.generation;
	assert_int_equal(exec_cnt, 1);

	assert_int_equal(write(rig->fd, addr, sizeof(addr)), sizeof(addr));
	assert_int_equal(read(rig->fd, &freed_cnt, sizeof(freed_cnt)), sizeof(freed_cnt));
	assert_true(freed_cnt > 0); /* not where the new image has something else */
	sum.generation = after.generation;
	assert_int_equal(engine_each_live(rig->engine, add_image, &sum), 0);
	assert_int_equal(sum.old_cnt, BLOCK_CNT);
	assert_int_equal(sum.fresh_cnt, 1);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
}

TEST(test_exec)
{
	check_exec(state, false);
}

TEST(test_exec_followed)
{
	check_exec(state, true);
}

static void step_fork(volatile uint64_t *out)
{
	pid_t pid = fork();

	if (!pid) {
		do_malloc(401);
		do_free((void *)out[0]);
		do_malloc(409);
		_exit(0);
	}
	out[1] = pid;
	waitpid(pid, NULL, 0);
}

struct fork_sum {
	uint32_t parent, child, child_generation;
	uint64_t parent_cnt, child_bytes;
};

static int add_fork(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct fork_sum *sum = ctx;

	if (k->tgid == sum->parent) {
		sum->parent_cnt++;
	} else {
		assert_int_equal(k->tgid, sum->child);
		assert_true(k->generation >= HT_GENERATION_CHILDREN);
		sum->child_bytes += v->size_bytes;
	}
	return 0;
}

/* A child's free of a block that the fork copied is not the parent's. */
TEST(test_fork_followed)
{
	const struct rig_options opts = { rig_mode(state), 1, 4096, 1024, true };
	struct fork_sum sum = { 0 };
	struct rig *rig = rig_open_with(&opts);

	rig_do(rig, step_hold);
	rig_do(rig, step_fork);
	rig_settle(rig);
	sum.parent = rig->pid;
	sum.child = rig->out[1];
	assert_int_equal(engine_each_live(rig->engine, add_fork, &sum), 0);
	assert_int_equal(sum.parent_cnt, BLOCK_CNT);
	assert_int_equal(sum.child_bytes, 401 + 409);
	assert_int_equal(tracker_running_cnt(rig->tracker), 1); /* its end was seen */
}

static void step_vfork(volatile uint64_t *out)
{
	pid_t pid = vfork();

	if (!pid) {
		do_free((void *)out[0]);
		out[2] = (uintptr_t)do_malloc(401);
		_exit(0);
	}
	out[1] = pid;
	waitpid(pid, NULL, 0);
}

static void step_free_of_child(volatile uint64_t *out)
{
	do_free((void *)out[2]);
}

static void step_vfork_exec(volatile uint64_t *out)
{
	pid_t pid = vfork();

	if (!pid) {
		do_free((void *)out[1]);
		do_malloc(401);
		execl("/bin/sleep", "sleep", "100", (char *)NULL);
		_exit(1);
	}
	out[3] = pid;
}

struct vfork_sum {
	uint32_t parent, child;
	uint64_t held_cnt, child_cnt;
};

static int add_vfork(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct vfork_sum *sum = ctx;

	assert_int_equal(k->tgid, sum->parent);
	if (v->size_bytes == 401) {
		assert_int_equal(v->tid, sum->child); /* the thread is who it was */
		sum->child_cnt++;
	} else {
		sum->held_cnt++;
	}
	return 0;
}

static size_t event_cnt(const struct rig *rig, uint32_t kind, uint32_t tgid)
{
	size_t cnt = 0;

	for (size_t i = 0; i < rig->event_cnt; i++)
		cnt += rig->events[i].kind == kind &&
		       (kind == HT_EVENT_FORK ? rig->events[i].other : rig->events[i].tgid) == tgid;
	return cnt;
}

/* A child in its parent's memory: what it allocates and frees is the parent's, and it is no process of its own. */
TEST(test_vfork_followed)
{
	const struct rig_options opts = { rig_mode(state), 1, 4096, 1024, true };
	struct vfork_sum sum = { 0 };
	struct ht_target target;
	struct rig *rig = rig_open_with(&opts);

	rig_do(rig, step_hold);
	rig_do(rig, step_vfork);
	rig_settle(rig);
	sum.parent = rig->pid;
	sum.child = rig->out[1];
	assert_int_equal(engine_each_live(rig->engine, add_vfork, &sum), 0);
	assert_int_equal(sum.held_cnt, BLOCK_CNT - 1);
	assert_int_equal(sum.child_cnt, 1);
	assert_int_equal(event_cnt(rig, HT_EVENT_FORK, sum.child), 0);
	assert_int_equal(event_cnt(rig, HT_EVENT_EXIT, sum.child), 0);
	assert_int_equal(engine_get_target(rig->engine, (pid_t)sum.child, &target), -ENOENT);
	rig_do(rig, step_free_of_child);
	assert_int_equal(rig_live(rig).cnt, BLOCK_CNT - 1);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
}

/* ... until it executes a program. */
TEST(test_vfork_exec_followed)
{
	const struct rig_options opts = { rig_mode(state), 1, 4096, 1024, true };
	struct ht_target target;
	uint32_t child;
	struct rig *rig = rig_open_with(&opts);

	rig_do(rig, step_hold);
	rig_do(rig, step_vfork_exec);
	child = rig->out[3];
	/* The parent goes on a moment before the exec is done. */
	for (int i = 0; i < 400 && !event_cnt(rig, HT_EVENT_EXEC, child); i++) {
		usleep(5000);
		rig_settle(rig);
	}
	assert_int_equal(engine_get_target(rig->engine, (pid_t)child, &target), 0);
	assert_int_equal(target.flags & (HT_TARGET_BORROWS | HT_TARGET_FOLLOW), HT_TARGET_FOLLOW);
	assert_int_equal(target.tgid, child);
	assert_int_equal(target.generation % HT_GENERATION_STEP, 1);
	assert_true(target.generation >= HT_GENERATION_CHILDREN);
	assert_int_equal(event_cnt(rig, HT_EVENT_FORK, child), 1);
	assert_int_equal(event_cnt(rig, HT_EVENT_EXEC, child), 1);
	assert_true(tracker_follows(rig->tracker, (pid_t)child));
	kill((pid_t)child, SIGKILL);
	for (int i = 0; i < 400 && tracker_running_cnt(rig->tracker) > 1; i++) {
		usleep(5000);
		rig_settle(rig);
	}
	assert_int_equal(event_cnt(rig, HT_EVENT_EXIT, child), 1);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
}

/* A pid that is used again: the end of the process before it is told late. */
TEST(test_late_end)
{
	struct ht_event event = { .kind = HT_EVENT_EXIT };
	struct ht_target target;
	struct rig *rig = rig_open(rig_mode(state), 1, 1024, 1024);

	assert_int_equal(engine_get_target(rig->engine, rig->pid, &target), 0);
	event.tgid = (uint32_t)rig->pid;
	event.generation = target.generation;
	tracker_remove(rig->tracker, rig->pid);
	assert_int_equal(tracker_add(rig->tracker, rig->pid), 0);
	tracker_on_event(rig->tracker, &event);
	assert_true(tracker_follows(rig->tracker, rig->pid));
	assert_int_equal(tracker_has_allocator(rig->tracker, rig->pid), true);

	assert_int_equal(engine_get_target(rig->engine, rig->pid, &target), 0);
	event.generation =
		target.generation + 1; /* it has executed a program, which was not read yet */
	tracker_on_event(rig->tracker, &event);
	assert_false(tracker_follows(rig->tracker, rig->pid));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[0], "second"))
		return second_image((int)strtol(argv[1], NULL, 10));
	return rig_run(__FILE__);
}
