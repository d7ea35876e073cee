/* SPDX-License-Identifier: MIT */
/* cmd/record_settings.c - see cmd/record_settings.h. */
#include "cmd/record_settings.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "track/governor.h"

int record_settings_check_pids(const char *text, struct err *why)
{
	struct whom whom = { 0 };
	int err = whom_add_pids(&whom, text);

	whom_release(&whom);
	return err == -EINVAL ? whom_explain_pids(text, why) : err;
}

/* There is no limit when every allocation is recorded, unless one is given. */
static void settle_limit(struct record_settings *s, const char *command, bool is_given)
{
	if (is_given) {
		s->recorder.max_overhead =
			governor_limit(s->max_overhead.percent, s->max_overhead.is_strict);
	} else if (s->recorder.rate_bytes == 1) {
		s->recorder.max_overhead = BUDGET_NO_LIMIT;
		log_info("%s: --rate 1 records every allocation, so the overhead is not limited "
			 "(--max-overhead PCT limits it)",
			 command);
	} else {
		s->recorder.max_overhead = GOVERNOR_RECORD_LIMIT;
	}
}

/* Who asks for the tap is told why it cannot be; who only allows it gets probes. */
static int settle_tap(struct record_settings *s, const char *command)
{
	const char *with = s->recorder.source == SOURCE_USDT ? "--source usdt" :
			   s->recorder.alloc.naive	     ? "--naive-placement" :
							       NULL;
	const bool is_exact = s->recorder.rate_bytes == 1 && !s->tap_exactly;
	enum tap_wish *tap = &s->recorder.tap;

	if (*tap == TAP_NEVER || (!with && !is_exact))
		return 0;
	if (*tap == TAP_STARTED || *tap == TAP_AUTO) {
		*tap = TAP_NEVER;
		return 0;
	}
	if (with)
		log_error("%s: --tap and %s exclude each other", command, with);
	else
		log_error("%s: --tap and --rate 1 exclude each other: only probes can record every "
			  "allocation",
			  command);
	return -EINVAL;
}

int record_settings_settle(struct record_settings *s, const char *command,
			   const struct option_args *args)
{
	int err = 0;

	for (size_t i = 0; i < s->pids.cnt && !err; i++)
		err = whom_add_pids(&s->whom, s->pids.data[i]);
	s->recorder.rate_is_fixed |= option_args_find(args, "rate") != NULL;
	if (!err)
		err = settle_tap(s, command);
	settle_limit(s, command, option_args_find(args, "max-overhead"));
	return err;
}

bool record_settings_has_targets(const struct record_settings *s)
{
	return s->whom.pids.cnt || whom_has_rules(&s->whom);
}

bool record_settings_has_more_pids(const struct record_settings *s, char *const *operands)
{
	return s->pids.cnt && operands[0] && strcmp(operands[-1], "--") != 0 &&
	       whom_are_pids(operands);
}

int record_settings_operands(struct record_settings *s, const char *command, char **operands)
{
	struct err why;
	int err = 0;

	if (!operands[0])
		return 0;
	if (record_settings_has_more_pids(s, operands)) {
		for (; *operands && !err; operands++)
			err = whom_add_pids(&s->whom, *operands);
		if (err)
			log_error("%s: bad value '%s' for --pid", command, operands[-1]);
		return err;
	}
	if (strcmp(operands[-1], "--") != 0 &&
	    whom_is_mistaken(command, &s->whom, operands, &why)) {
		log_error("%s: %s", command, why.text);
		return -EINVAL;
	}
	if (record_settings_has_targets(s)) {
		log_error(
			"%s: give running processes (-p, --comm, --cgroup) or a command ('%s'), not "
			"both",
			command, operands[0]);
		return -EINVAL;
	}
	s->recorder.argv = operands;
	if (s->recorder.tap == TAP_STARTED)
		s->recorder.tap = TAP_AUTO;
	return 0;
}

int record_settings_find(struct record_settings *s, const char *command, struct whom_found *ret)
{
	struct err why;
	int err = whom_find(&s->whom, ret, &why);

	if (err) {
		log_error("%s: %s", command, why.text);
		return err;
	}
	s->recorder.pids = ret->pids.data;
	s->recorder.pid_cnt = ret->pids.cnt;
	s->recorder.named_cnt = ret->named_cnt;
	return 0;
}
