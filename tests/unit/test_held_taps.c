/* SPDX-License-Identifier: MIT */
/* test_held_taps.c - taps that could not be taken out yet: what becomes of them, and of the next tap of their process. */
#include "child.h"

#include "base/err.h"
#include "guardian/guardian_priv.h"
#include "tap/tap.h"

/* Processes that live. */
#define PID getpid()
#define OTHER_PID getppid()

/* Instead of those of tap.c: a tap that is where its number says. */
struct tap {
	pid_t pid;
	uint64_t rate_bytes;
};

static int out_err, in_cnt, out_cnt, freed_cnt;

int tap_put_in(const struct tap_order *order, const struct tap_files *own, struct tap **ret,
	       int *ret_fd, struct tap_result *result, struct err *why)
{
	(void)own;
	(void)why;
	*result = (struct tap_result){ 0 };
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	(*ret)->pid = order->pid;
	*ret_fd = -1;
	in_cnt++;
	return 0;
}

int tap_take_out(struct tap *t, struct tap_result *result, struct err *why)
{
	(void)t;
	*result = (struct tap_result){ 0 };
	out_cnt++;
	return out_err ? err_set(why, out_err, "it may not") : 0;
}

int tap_clear(pid_t pid, const uint64_t *old_addr, uint32_t cnt, uint32_t *ret_cnt, struct err *why)
{
	(void)pid;
	(void)old_addr;
	(void)cnt;
	(void)why;
	*ret_cnt = 0;
	return 0;
}

pid_t tap_pid(const struct tap *t)
{
	return t->pid;
}

uint64_t tap_ino(const struct tap *t)
{
	return (uintptr_t)t;
}

int tap_fd(const struct tap *t)
{
	(void)t;
	return -1;
}

int tap_set_rate(struct tap *t, uint64_t rate_bytes)
{
	t->rate_bytes = rate_bytes;
	return 0;
}

void tap_read_lost(const struct tap *t, struct tap_lost *ret)
{
	(void)t;
	*ret = (struct tap_lost){ 0 };
}

void tap_free(struct tap *t)
{
	freed_cnt += t != NULL;
	free(t);
}

static int put_in(struct held_taps *ht, uint64_t number, pid_t pid, struct err *why)
{
	struct tap_order *order = calloc(1, sizeof(*order));
	struct tap_result result;
	int fd, err;

	assert_non_null(order);
	order->pid = pid;
	err = held_taps_put_in(ht, number, order, &fd, &result, why);
	free(order);
	return err;
}

/* A process has one tap at most: with a second one, which is at the same place, the first would take that out. */
TEST(test_next_of_late)
{
	struct err why = { 0 }, why_late = { 0 };
	struct held_taps ht;

	held_taps_init(&ht, &why_late);
	assert_int_equal(put_in(&ht, 1, PID, &why), 0);
	out_err = -ETIME;
	held_taps_take_out(&ht, 1);
	assert_int_equal(ht.late.cnt, 1);
	assert_int_equal(put_in(&ht, 2, PID, &why), -EAGAIN);
	assert_says(why.text, "it may not");
	assert_int_equal(in_cnt, 1);
	/* another process has nothing to do with it */
	assert_int_equal(put_in(&ht, 3, OTHER_PID, &why), 0);
	/* when it is out, the next one goes in */
	out_err = 0;
	assert_int_equal(put_in(&ht, 4, PID, &why), 0);
	assert_int_equal(ht.late.cnt, 0);
	assert_int_equal(in_cnt, 3);
	assert_int_equal(freed_cnt, 1);
	assert_int_equal(held_taps_take_all_out(&ht), 0);
	assert_int_equal(freed_cnt, 3);
	hmap_release(&ht.by_number);
	vec_release(&ht.late);
}

/* Nobody is sent to a process that has ended, be it collected or not. */
TEST(test_ended)
{
	struct err why = { 0 }, why_late = { 0 };
	pid_t pid = start_idle();
	struct held_taps ht;

	held_taps_init(&ht, &why_late);
	assert_int_equal(put_in(&ht, 1, pid, &why), 0);
	assert_int_equal(put_in(&ht, 2, pid, &why), 0);
	assert_int_equal(put_in(&ht, 3, pid, &why), 0);
	out_cnt = freed_cnt = out_err = 0;
	held_taps_take_out(&ht, 1); /* it lives */
	assert_int_equal(out_cnt, 1);
	assert_int_equal(freed_cnt, 1);
	out_err = -ETIME;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	held_taps_take_out(&ht, 2);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	held_taps_take_out(&ht, 3);
	assert_int_equal(out_cnt, 1);
	assert_int_equal(freed_cnt, 3);
	assert_int_equal(ht.late.cnt, 0);
	hmap_release(&ht.by_number);
	vec_release(&ht.late);
}

RUN_TESTS()
