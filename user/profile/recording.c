/* SPDX-License-Identifier: MIT */
/*
 * recording.c - see recording.h.
 *
 * The advice is computed from a measured number, not a rule of thumb: even when only allocations of a process were
 * watched, they tell what frees would have cost, because a free costs the same as an allocation.
 */
#include "profile/recording.h"

#include "base/printable.h"
#include "base/units.h"

/* The default rate of `record`. */
#define RATE_DEFAULT_BYTES (64 << 10)
/*
 * Factor on the probes' cost per unit of the program's own work: loads change, and the cost of a hit was seen to double
 * on a machine that became busy. A limit that is wider than needed costs nothing, because the probes take what they
 * need anyway; with one that is too narrow, in-use stays unknown once more.
 */
#define ADVICE_FACTOR 3
#define ADVICE_PERCENT_MORE 2
#define ADVICE_STEP 5
/* A larger limit spares the program next to nothing, and may be too small once more. */
#define ADVICE_PERCENT_MAX 80

unsigned recording_advised_percent(const struct recording *r)
{
	double per_work = ADVICE_FACTOR * r->full_share / (1 - r->full_share);
	double percent = 100 * per_work / (1 + per_work) + ADVICE_PERCENT_MORE;

	/* also false for NAN */
	if (!(percent > 0 && percent <= ADVICE_PERCENT_MAX))
		return 0;
	/* It was too little at times, whatever it is on the average. */
	if (percent <= 100 * r->limit.cpu_share)
		return 0;
	/* 53.0 must not be rounded up as 53.0000001. */
	return ADVICE_STEP * (unsigned)ceil(percent / ADVICE_STEP - 1e-9);
}

static char *command_text(const struct recording *r, unsigned percent, uint64_t rate_bytes,
			  char buf[RECORDING_TEXT_BUF])
{
	const char *follow = r->follows_children ? " --follow" : "";
	char limit[16] = "off", rate[48] = "";
	size_t used;

	if (percent)
		snprintf(limit, sizeof(limit), "%u", percent);
	if (rate_bytes == 1)
		snprintf(rate, sizeof(rate), " --rate %llu", (unsigned long long)rate_bytes);
	else if (rate_bytes > RATE_DEFAULT_BYTES)
		snprintf(rate, sizeof(rate), " --rate %lluk",
			 (unsigned long long)rate_bytes / 1024);
	used = (size_t)snprintf(buf, RECORDING_TEXT_BUF, "heaptap record --max-overhead %s%s%s",
				limit, rate, follow);
	if (r->program[0])
		snprintf(buf + used, RECORDING_TEXT_BUF - used, " -- %s", r->program);
	else if (r->has_ended)
		snprintf(buf + used, RECORDING_TEXT_BUF - used, " -d 10s -p PID");
	else if (r->pid > 0)
		snprintf(buf + used, RECORDING_TEXT_BUF - used, " -d 10s -p %d", r->pid);
	else
		snprintf(buf + used, RECORDING_TEXT_BUF - used, " -d 10s");
	return buf;
}

char *recording_program_text(char *const *argv, char *buf, size_t bytes)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_./=:,+@%";
	size_t len = 0;

	buf[0] = '\0';
	for (; *argv; argv++) {
		const char *arg = *argv, *space = len ? " " : "";

		if (!*arg || arg[strspn(arg, plain)] || len + strlen(arg) + 6 > bytes) {
			snprintf(buf + len, bytes - len, "%s...", space);
			return buf;
		}
		len += (size_t)snprintf(buf + len, bytes - len, "%s%s", space, arg);
	}
	return buf;
}

char *recording_advice(const struct recording *r, uint64_t rate_bytes, char buf[RECORDING_TEXT_BUF])
{
	unsigned percent = recording_advised_percent(r);

	if (r->has_nameless_frees) {
		snprintf(buf, RECORDING_TEXT_BUF,
			 "use a build that keeps the names of its "
			 "allocator");
		return buf;
	}
	return command_text(r, percent, rate_bytes, buf);
}

/* The lost part, for a program that has nothing to spare: the probes take their time from its work. */
static const char *part_words(double share)
{
	static const struct {
		double below;
		const char *words;
	} parts[] = {
		{ 0.07, "about a twentieth of" }, { 0.15, "about a tenth of" },
		{ 0.22, "about a fifth of" },	  { 0.29, "about a quarter of" },
		{ 0.42, "about a third of" },	  { 0.58, "about half" },
		{ 0.71, "about two thirds of" },  { 0.85, "about three quarters of" },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (share < parts[i].below)
			return parts[i].words;
	return share >= 0.85 ? "most of" : "an unknown part of";
}

char *recording_advice_cost(const struct recording *r, char buf[RECORDING_TEXT_BUF])
{
	if (r->has_nameless_frees)
		snprintf(buf, RECORDING_TEXT_BUF, "or install its debug file (found by build id)");
	else
		snprintf(buf, RECORDING_TEXT_BUF,
			 "costs %s the throughput%s; nothing remains afterwards",
			 part_words(r->full_share), r->program[0] ? "" : " for 10 s");
	return buf;
}

char *recording_advice_tap(const struct recording *r, char buf[RECORDING_TEXT_BUF])
{
	buf[0] = '\0';
	if (r->pid > 0 && !r->has_nameless_frees && !r->has_ended)
		snprintf(buf, RECORDING_TEXT_BUF, "heaptap record --tap%s -d 10s -p %d",
			 r->follows_children ? " --follow" : "", r->pid);
	return buf;
}

char *recording_advice_best(const struct recording *r, uint64_t rate_bytes,
			    char buf[RECORDING_TEXT_BUF])
{
	return recording_advice_tap(r, buf)[0] ? buf : recording_advice(r, rate_bytes, buf);
}

char *recording_limit_text(const struct recording_limit *l, char buf[RECORDING_TEXT_BUF])
{
	double share = 100 * l->cpu_share, one_cpu = 100 * l->one_cpu;

	if (share > 0 && one_cpu > 0)
		snprintf(buf, RECORDING_TEXT_BUF, "%.3g %% (or %.3g %% of one CPU)", share,
			 one_cpu);
	else if (one_cpu > 0)
		snprintf(buf, RECORDING_TEXT_BUF, "%.3g %% of one CPU", one_cpu);
	else if (share > 0)
		snprintf(buf, RECORDING_TEXT_BUF, "%.3g %%", share);
	else
		snprintf(buf, RECORDING_TEXT_BUF, "none");
	return buf;
}

bool recording_is_of_one_cpu(const struct recording *r)
{
	return r->limit.one_cpu > 0 && r->limit.cpu_share <= 0;
}

/* The average says nothing of why frees were given up. */
static bool is_within_limit(const struct recording *r)
{
	if (recording_is_of_one_cpu(r))
		return r->full_one_cpu <= r->limit.one_cpu;
	return r->full_share <= r->limit.cpu_share;
}

char *recording_why_unknown(const struct recording *r, const char *comm,
			    char buf[RECORDING_TEXT_BUF])
{
	char limit[RECORDING_TEXT_BUF], cost[UNITS_BUF], whose[48] = "its";

	if (r->has_nameless_frees) {
		snprintf(buf, RECORDING_TEXT_BUF,
			 "The free function of its allocator has no name (a stripped program).");
		return buf;
	}
	if (r->has_no_tap) {
		snprintf(buf, RECORDING_TEXT_BUF, "No process was tapped before it ended.");
		return buf;
	}
	recording_limit_text(&r->limit, limit);
	if (comm[0])
		snprintf(whose, sizeof(whose), "%.32s's", comm);
	make_printable(whose);
	if (is_within_limit(r))
		snprintf(buf, RECORDING_TEXT_BUF,
			 "At times, tracking frees cost more than the limit of %.60s; on average "
			 "it costs %s %%.",
			 limit,
			 format_percent(recording_is_of_one_cpu(r) ? r->full_one_cpu :
								     r->full_share,
					cost, sizeof(cost)));
	else if (recording_is_of_one_cpu(r) && !isnan(r->full_one_cpu))
		snprintf(buf, RECORDING_TEXT_BUF,
			 "Tracking frees costs %s %% of one CPU; the limit is %.3g %%.",
			 format_percent(r->full_one_cpu, cost, sizeof(cost)),
			 100 * r->limit.one_cpu);
	else if (isnan(r->full_share))
		snprintf(buf, RECORDING_TEXT_BUF, "Frees were not tracked; the limit is %.60s.",
			 limit);
	else
		snprintf(buf, RECORDING_TEXT_BUF,
			 "Tracking frees costs %s %% of %s CPU time; the limit is %.60s.",
			 format_percent(r->full_share, cost, sizeof(cost)), whose, limit);
	return buf;
}
