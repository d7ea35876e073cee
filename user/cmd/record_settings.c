/* SPDX-License-Identifier: MIT */
/* cmd/record_settings.c - see cmd/record_settings.h. */
#include "cmd/record_settings.h"

#include "base/err.h"
#include "base/log.h"
#include "base/printable.h"
#include "proc/cgroup.h"
#include "proc/proc_text.h"
#include "proc/process.h"
#include "proc/select.h"
#include "track/governor.h"

#define EXEC_WAIT_NS 20000000 /* for programs that are on their way to main() */

void whom_release(struct whom *w)
{
	vec_release(&w->pids);
	texts_release(&w->comms);
	texts_release(&w->cgroups);
}

static int add_pid(struct whom *w, pid_t pid)
{
	const pid_t *known;

	vec_each(&w->pids, known)
		if (*known == pid)
			return 0;
	return vec_push(&w->pids, pid);
}

int whom_add_pids(struct whom *w, const char *list)
{
	const char *at = list;

	for (;;) {
		char *end;
		long pid;
		int err;

		errno = 0;
		pid = strtol(at, &end, 10);
		if (!isdigit((unsigned char)*at) || errno || pid <= 0 || pid > INT_MAX ||
		    (*end && *end != ',' && !isspace((unsigned char)*end)))
			return -EINVAL;
		err = add_pid(w, (pid_t)pid);
		if (err || !*end)
			return err;
		at = end + 1;
	}
}

bool whom_has_rules(const struct whom *w)
{
	return w->comms.cnt || w->cgroups.cnt;
}

/* Rules must not select these: this process, and its forked helpers. */
struct own {
	char exe[PATH_MAX];
};

static void read_own(struct own *own)
{
	ssize_t n = readlink("/proc/self/exe", own->exe, sizeof(own->exe) - 1);

	own->exe[n > 0 ? n : 0] = '\0';
}

static bool is_candidate(const struct own *own, const struct process_info *info)
{
	return !info->is_kernel_thread && !info->is_zombie && info->pid != getpid() &&
	       !(own->exe[0] && !strcmp(own->exe, info->exe));
}

static bool fits(const struct select_rules *rules, const struct process_info *info)
{
	struct select_candidate c = {
		.comm = info->comm,
		.exe = info->exe,
		.uid = info->uid,
		.rss_bytes = info->rss_bytes,
		.container_id = "",
	};
	char *cgroup = NULL;
	bool is;

	if (select_needs(rules).cgroup && proc_text_read(info->pid, "cgroup", &cgroup))
		return false;
	c.cgroup = cgroup ? cgroup : "";
	is = select_matches(rules, &c);
	free(cgroup);
	return is;
}

/* There is no reader yet: one that executes another program just now (-EAGAIN) could let this wait. */
static int glance(pid_t pid, struct process_info *ret)
{
	return process_text_pages(pid, pid) ? process_glance(NULL, pid, ret) : -EAGAIN;
}

/* Add those that fit; pids then has those that execute another program. */
static int look_through(const struct select_rules *rules, const struct own *own,
			struct process_list *pids, struct whom *found)
{
	struct process_info info;
	size_t cnt = pids->pids.cnt;
	int err = 0;

	pids->pids.cnt = 0;
	for (size_t i = 0; i < cnt && !err; i++) {
		pid_t pid = pids->pids.data[i];
		int seen = glance(pid, &info);

		if (seen == -EAGAIN)
			pids->pids.data[pids->pids.cnt++] = pid;
		else if (!seen && is_candidate(own, &info) && fits(rules, &info))
			err = add_pid(found, pid);
	}
	return err;
}

/* Kernel threads have no text either, so the list is never empty. */
static int look_through_all(const struct select_rules *rules, struct whom *found)
{
	const struct timespec wait = { .tv_nsec = EXEC_WAIT_NS };
	struct process_list pids;
	struct own own;
	int err = process_list_read(&pids);

	if (err)
		return err;
	read_own(&own);
	err = look_through(rules, &own, &pids, found);
	if (!err) {
		nanosleep(&wait, NULL);
		err = look_through(rules, &own, &pids, found);
	}
	process_list_release(&pids);
	return err;
}

/* "--comm 'a' or 'b'" */
static void add_rules(struct err *why, const char *option, const struct texts *texts)
{
	for (size_t i = 0; i < texts->cnt; i++)
		err_add(why, "%s '%s'", i ? " or" : option, texts->data[i]);
}

/* -ESRCH */
static int explain_none(const struct whom *w, struct err *why)
{
	err_set(why, -ESRCH, "no running process matches ");
	add_rules(why, "--comm", &w->comms);
	err_add(why, "%s", w->comms.cnt && w->cgroups.cnt ? " and is in " : "");
	add_rules(why, "--cgroup", &w->cgroups);
	err_add(why,
		": ps -e lists names, of which the kernel keeps %d characters. Processes that "
		"start later: heaptap serve",
		SELECT_COMM_CHARS);
	return -ESRCH;
}

static int find_by_rules(const struct whom *w, struct whom *found, struct err *why)
{
	VEC(struct cgroup_place) places = { 0 };
	struct select_options opts = { .comm = w->comms };
	struct select_rules *rules = NULL;
	struct cgroup_place *place;
	int err = vec_reserve(&places, w->cgroups.cnt);

	for (size_t i = 0; i < w->cgroups.cnt && !err; i++) {
		err = cgroup_find(w->cgroups.data[i], &places.data[places.cnt], why);
		places.cnt += !err || err == -ENOENT;
		if (err == -ENOENT)
			err = -ESRCH;
	}
	opts.cgroups = places.data;
	opts.cgroup_cnt = places.cnt;
	if (!err)
		err = select_rules_new(&opts, &rules, why);
	if (!err) {
		err = look_through_all(rules, found);
		if (err)
			err_set_os(why, err, "cannot read /proc");
	}
	select_rules_free(rules);
	vec_each(&places, place)
		cgroup_release(place);
	vec_release(&places);
	return err;
}

int whom_find(const struct whom *w, struct whom_found *ret, struct err *why)
{
	struct whom found = { 0 };
	const pid_t *pid;
	int err = 0;

	err_set(why, -ENOMEM, "out of memory");
	vec_each(&w->pids, pid)
		if (!err)
			err = vec_push(&found.pids, *pid);
	if (!err && whom_has_rules(w)) {
		err = find_by_rules(w, &found, why);
		if (!err && found.pids.cnt == w->pids.cnt && !w->pids.cnt)
			err = explain_none(w, why);
	}
	if (err) {
		vec_release(&found.pids);
		return err;
	}
	ret->pids.data = found.pids.data;
	ret->pids.cnt = found.pids.cnt;
	ret->pids.cap = found.pids.cap;
	ret->named_cnt = w->pids.cnt;
	return 0;
}

static bool is_pid(const char *word)
{
	return isdigit((unsigned char)*word) && !word[strspn(word, "0123456789,")];
}

static size_t pid_cnt(char *const operands[])
{
	size_t cnt = 0;

	while (operands[cnt] && is_pid(operands[cnt]))
		cnt++;
	return cnt;
}

/* Are all words pids? */
static bool whom_are_pids(char *const operands[])
{
	return !operands[pid_cnt(operands)];
}

/* Has it exactly this name? *ret_is_cut: as far as the kernel keeps it; the rest is not known. */
static bool has_name(const struct process_info *info, const char *name, bool *ret_is_cut)
{
	const char *whole = select_name(info->comm, info->exe);

	*ret_is_cut = whole == info->comm && strlen(name) > SELECT_COMM_CHARS;
	return *ret_is_cut ? !strncmp(info->comm, name, SELECT_COMM_CHARS) :
			     !strcmp(info->comm, name) || !strcmp(whole, name);
}

/* Add the processes with exactly this name. *ret_is_cut: of one only what the kernel keeps of it is known. */
static int add_named(const char *name, struct whom *found, bool *ret_is_cut)
{
	struct process_info info;
	struct process_list all;
	struct own own;
	const pid_t *pid;
	int err = process_list_read(&all);

	if (err)
		return err;
	*ret_is_cut = false;
	read_own(&own);
	vec_each(&all.pids, pid) {
		bool is_cut;

		if (err || glance(*pid, &info) || !is_candidate(&own, &info) ||
		    !has_name(&info, name, &is_cut))
			continue;
		*ret_is_cut |= is_cut;
		err = add_pid(found, *pid);
	}
	process_list_release(&all);
	return err;
}

/* *ret_chars: so many of the name --comm matches. */
static size_t running_cnt(const char *name, size_t *ret_chars)
{
	struct whom found = { 0 };
	bool is_cut = false;
	size_t cnt;

	(void)add_named(name, &found, &is_cut);
	*ret_chars = is_cut ? SELECT_COMM_CHARS : strlen(name);
	cnt = found.pids.cnt;
	whom_release(&found);
	return cnt;
}

#define NAMED_SHOWN 8

/* Written as a number or several: nobody means a name by it. */
static bool is_numeric(const char *word)
{
	return strpbrk(word, "0123456789") && !word[strspn(word, "0123456789+-, \t\n")];
}

int whom_find_one(const char *word, pid_t *ret, struct err *why)
{
	struct whom found = { 0 };
	bool is_cut;
	int err = whom_add_pids(&found, word);
	bool is_list = !err && found.pids.cnt > 1;

	if (err == -EINVAL && is_numeric(word)) {
		whom_release(&found);
		return err_set(why, err, "'%s' is not a process ID", word);
	}
	if (err == -EINVAL) {
		found.pids.cnt = 0;
		err = *word ? add_named(word, &found, &is_cut) : 0;
	}
	if (err) {
		err_set_os(why, err, "cannot look for process '%s'", word);
	} else if (!found.pids.cnt) {
		err = err_set(why, -ESRCH,
			      "no running process has the name '%s' (ps -e lists them)", word);
	} else if (found.pids.cnt > 1) {
		err = err_set(why, is_list ? -EINVAL : -ENOTUNIQ,
			      "'%s' means %zu processes; give one: -p", word, found.pids.cnt);
		for (size_t i = 0; i < found.pids.cnt && i < NAMED_SHOWN; i++)
			err_add(why, "%s %d", i ? "," : "", found.pids.data[i]);
		if (found.pids.cnt > NAMED_SHOWN)
			err_add(why, ", ...");
	} else {
		*ret = found.pids.data[0];
	}
	whom_release(&found);
	return err;
}

#define PATTERN_BYTES (2 * NAME_MAX + 4)

/* Write so much of a name as a regular expression, in quotes where the shell needs them. */
static void escape(const char *name, size_t chars, char pattern[static PATTERN_BYTES])
{
	static const char special[] = ".[]{}()*+?|^$\\";
	bool is_plain = true;
	size_t len = 0;

	pattern[0] = '\0';
	for (size_t i = 0; i < chars && i < NAME_MAX && name[i]; i++) {
		bool is_special = strchr(special, name[i]) != NULL;

		is_plain &= isalnum((unsigned char)name[i]) || name[i] == '-' || name[i] == '_';
		len += (size_t)snprintf(pattern + len, PATTERN_BYTES - len, "%s%c",
					is_special ? "\\" : "", printable(name[i]));
	}
	if (!is_plain) {
		memmove(pattern + 1, pattern, len + 1);
		pattern[0] = pattern[len + 1] = '\'';
		pattern[len + 2] = '\0';
	}
}

static void add_option(struct err *why, const struct option_given *given)
{
	const char *text = given->text, *quote;

	if (given->row->letter)
		err_add(why, " -%c", given->row->letter);
	else
		err_add(why, " --%s", given->row->name);
	if (!text)
		return;
	quote = !*text || strpbrk(text, " \t\n\"$&|;<>()*?[]{}^#~\\`!") ? "'" : "";
	err_add(why, "%c%s%s%s", given->row->letter ? ' ' : '=', quote, text, quote);
}

/* "heaptap record -d 5 -p 1,2" for "1 2 -d 5" and for "-d 5 1 2" */
static void suggest_pids(const char *command, const struct whom *w, const struct option_args *args,
			 char *const operands[], struct err *why)
{
	const struct option_given *given;
	const pid_t *pid;
	size_t cnt = pid_cnt(operands);

	err_set(why, 0, "did you mean: heaptap %s", command);
	vec_each(&args->given, given)
		if (strcmp(given->row->name, "pid") != 0)
			add_option(why, given);
	for (size_t i = cnt; operands[i]; i++)
		err_add(why, " %s", operands[i]);
	err_add(why, " -p ");
	vec_each(&w->pids, pid)
		err_add(why, "%d,", *pid);
	for (size_t i = 0; i < cnt; i++)
		err_add(why, "%s%s", i ? "," : "", operands[i]);
}

bool whom_is_mistaken(const char *command, const struct whom *w, const struct option_args *args,
		      char *const operands[], struct err *why)
{
	char pattern[PATTERN_BYTES];
	const char *name = operands[0], *behind = operands[pid_cnt(operands)];
	size_t cnt, chars;

	if (is_pid(name) && (!behind || *behind == '-')) {
		suggest_pids(command, w, args, operands, why);
		return true;
	}
	/* with arguments, or as a path, it is a command */
	if (operands[1] || strchr(name, '/') || !*name)
		return false;
	cnt = running_cnt(name, &chars);
	if (!cnt)
		return false;
	escape(name, chars, pattern);
	err_set(why, 0,
		"%zu process%s with the name '%s' run%s; did you mean: heaptap %s --comm %s, or "
		"to start it: heaptap %s -- %s",
		cnt, cnt == 1 ? "" : "es", name, cnt == 1 ? "s" : "", command, pattern, command,
		name);
	return true;
}

int whom_explain_pids(const char *list, struct err *why)
{
	char pattern[PATTERN_BYTES];
	size_t chars = 0, cnt = *list ? running_cnt(list, &chars) : 0;

	if (!*list || *list == '-')
		return err_set(why, -EINVAL,
			       "it is empty: is the program running? Give process ids: 12,34");
	if (!cnt)
		return err_set(why, -EINVAL, "give process ids: 12,34; by name: --comm");
	escape(list, chars, pattern);
	return err_set(why, -EINVAL, "%zu process%s with this name run%s: use --comm %s, not -p",
		       cnt, cnt == 1 ? "" : "es", cnt == 1 ? "s" : "", pattern);
}

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

int record_settings_operands(struct record_settings *s, const char *command,
			     const struct option_args *args, char **operands)
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
	    whom_is_mistaken(command, &s->whom, args, operands, &why)) {
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
