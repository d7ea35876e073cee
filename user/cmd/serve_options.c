/* SPDX-License-Identifier: MIT */
/* cmd/serve_options.c - see cmd/serve_options.h. */
#include "cmd/serve_options.h"

#include "base/clock.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "http/http.h"
#include "proc/facts.h"
#include "serve/push_queue.h"

static int check_listen(const char *text, struct err *why)
{
	char host[LISTEN_HOST_BYTES];
	const char *port;

	if (!strncmp(text, "unix:", 5) ? text[5] != '\0' : !listen_parse(text, host, &port))
		return 0;
	return err_set(why, -EINVAL, "expected ADDR:PORT, [V6]:PORT or unix:PATH");
}

static int check_token(const char *text, struct err *why)
{
	char token[TOKEN_BYTES_CAP + 2] = "";
	int err = token_read(text, token, why);

	explicit_bzero(token, sizeof(token));
	return err;
}

static int check_push_token(const char *text, struct err *why)
{
	char secret[PUSH_SECRET_MAX] = "";
	int err = push_secret_read(text, secret, why);

	explicit_bzero(secret, sizeof(secret));
	return err;
}

static int check_push_basic(const char *text, struct err *why)
{
	char secret[PUSH_SECRET_MAX] = "";
	int err = push_secret_read(text, secret, why);

	if (!err && !strchr(secret, ':'))
		err = err_set(why, -EINVAL, "its first line must be USER:PASSWORD");
	explicit_bzero(secret, sizeof(secret));
	return err;
}

static int check_push_tenant(const char *text, struct err *why)
{
	if (push_tenant_is_valid(text))
		return 0;
	return err_set(why, -EINVAL, "expected 1 to %d printable characters", PUSH_TENANT_MAX);
}

static int check_push_ca(const char *text, struct err *why)
{
	int fd = open(text, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = fd < 0 ? -errno : 0;
	struct stat st;

	if (!err && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
		err = -EINVAL;
	if (fd >= 0)
		close(fd);
	if (err)
		err_set(why, err, "cannot read it: %s",
			err == -EINVAL ? "not a file" : strerror(-err));
	return err;
}

static int check_push(const char *text, struct err *why)
{
	struct push_target target;

	return push_target_parse(text, &target, why);
}

/* Backends accept ASCII everywhere; labels that heaptap sets itself cannot be set. */
static bool label_is_valid(const char *name, const char *value)
{
	if (!push_label_name_is_valid(name) || !strncmp(name, "__", 2) || !strcmp(name, "pid") ||
	    !strcmp(name, "scope") || !strcmp(name, "thread") || !*value)
		return false;
	for (; *value; value++)
		if (*value < ' ' || *value > '~')
			return false;
	return true;
}

static int check_label(const char *text, struct err *why)
{
	const char *equals = strchr(text, '=');
	char *name = equals ? strndup(text, (size_t)(equals - text)) : NULL;
	bool is_valid = name && label_is_valid(name, equals + 1);

	free(name);
	if (is_valid)
		return 0;
	return err_set(
		why, -EINVAL,
		"expected KEY=VALUE, such as env=test; KEY of letters, digits and '_', not pid, "
		"scope, thread or __*; VALUE of printable ASCII");
}

/* find_cgroups() checks whether it exists. */
static int check_cgroup(const char *text, struct err *why)
{
	struct cgroup_place place;
	int err = cgroup_find(text, &place, why);

	if (err && err != -ENOENT)
		return err;
	cgroup_release(&place);
	return 0;
}

static int check_folder(const char *text, struct err *why)
{
	if (*text)
		return 0;
	return err_set(why, -EINVAL, "expected the path of a folder");
}

/* In the order of enum attach_mode. */
static const char *const attach_modes[] = { "auto", "session", "multi", "perf", NULL };
/* In the order of enum sharing. */
static const char *const sharings[] = { "auto", "own", "event", "all", NULL };

#define AT(member) offsetof(struct serve_settings, member)

static const struct option_row rows[] = {
	{ .type = OPTION_HEADING, .help = "selection" },
	OPTION(NUMBERS, 'p', "pid", "PID", AT(pids),
	       "track this process until it ends; may be repeated", .min = 1, .max = INT32_MAX,
	       .wanted = "a process id; by name: --comm NAME"),
	OPTION(FLAG, 'a', "all", NULL, AT(daemon.select.is_all),
	       "track every process with a known allocator, except heaptap itself"),
	OPTION(TEXTS, 0, "comm", "RE", AT(daemon.select.comm),
	       "track the processes whose name matches this POSIX extended regular expression "
	       "anywhere. This and the next four may be repeated; different options combine with "
	       "AND, repeats of one with OR.",
	       .check = select_check_pattern),
	OPTION(TEXTS, 0, "exe", "RE", AT(daemon.select.exe), "... whose executable's path matches",
	       .check = select_check_pattern),
	OPTION(TEXTS, 0, "user", "USER", AT(daemon.select.users),
	       "... that run as this user (name or number)", .check = select_check_user),
	OPTION(TEXTS, 0, "cgroup", "PATH", AT(cgroups),
	       "... that are in this cgroup or below it: its folder, or its path in "
	       "/proc/PID/cgroup",
	       .check = check_cgroup),
	OPTION(TEXTS, 0, "container", "ID", AT(daemon.select.containers),
	       "... that run in this container (the beginning of its id is enough)",
	       .check = container_check_given),
	OPTION(SIZE, 0, "min-rss", "SIZE", AT(daemon.select.min_rss_bytes),
	       "... and have at least this much resident memory"),
	OPTION(TEXTS, 0, "exclude", "RE", AT(daemon.select.exclude),
	       "... except those whose name or executable matches", .check = select_check_pattern),

	{ .type = OPTION_HEADING, .help = "recording" },
	OPTION(SIZE, 'r', "rate", "BYTES", AT(daemon.rate_bytes),
	       "one sample per BYTES allocated, on average; 1 = every allocation", .value = "64k",
	       .min = 1, .max = 1ULL << 40, .flags = OPTION_AT_START),
	OPTION(LIMIT, 0, "max-overhead", "PCT", AT(max_overhead),
	       "maximum overhead of probes, in % of each process's CPU time (default 5, never "
	       "below 1 % of one CPU unless written with ! as in 5!; off with --rate 1). Above "
	       "it, heaptap samples more coarsely, then stops tracking frees (heap in use "
	       "becomes unknown), then stops recording. 0 or off = no limit",
	       .max = 99),
	OPTION(PERCENT, 0, "max-overhead-host", "PCT", AT(max_overhead_host),
	       "... and of all probes together, in % of the time of all CPUs (default 2; off with "
	       "--rate 1); 0 or off = no limit",
	       .max = 99),
	OPTION(COUNT, 0, "max-live", "N", AT(daemon.live_cap), "at most N sampled blocks in use",
	       .value = "1000000", .min = 1, .max = 1 << 28, .flags = OPTION_AT_START),
	OPTION(COUNT, 0, "max-stacks", "N", AT(daemon.stack_cap), "at most N distinct call stacks",
	       .value = "65536", .min = 1, .max = 1 << 24, .flags = OPTION_AT_START),
	OPTION(CHOICE, 0, "source", "auto|probes|usdt", AT(daemon.source),
	       "source of samples: probes on the allocator, or the USDT probes of a sampler in "
	       "the program (otel_memory, ddheap). auto: probes, until such a sampler "
	       "reports",
	       .choices = probes_source_names, .flags = OPTION_AT_START),
	OPTION(TEXTS, 0, "tap", "RE", AT(daemon.tap),
	       "tap the tracked processes whose name matches, so that only samples trap. "
	       "Pauses their threads for milliseconds and patches their allocator (THE TAP in "
	       "heaptap-record(1)); may be repeated",
	       .check = select_check_pattern, .flags = OPTION_AT_START),
	OPTION(TEXTS, 0, "tap-exe", "RE", AT(daemon.tap_exe),
	       "the same for those whose executable's path matches; with --tap both must match",
	       .check = select_check_pattern, .flags = OPTION_AT_START),
	OPTION(FLAG, 0, "tap-auto", NULL, AT(daemon.taps_on_request),
	       "tap them only when probes cost more than --max-overhead; without --tap and "
	       "--tap-exe, all tracked processes",
	       .flags = OPTION_AT_START),
	OPTION(CHOICE, 0, "attach-mode", "MODE", AT(daemon.mode), "", .choices = attach_modes,
	       .flags = OPTION_HIDDEN | OPTION_AT_START),
	OPTION(CHOICE, 0, "sharing", "SHARING", AT(daemon.sharing), "", .choices = sharings,
	       .flags = OPTION_HIDDEN | OPTION_AT_START),

	{ .type = OPTION_HEADING, .help = "serving" },
	OPTION(TEXT, 0, "listen", "ADDR", AT(daemon.listen), "listen on ADDR:PORT, or unix:PATH",
	       .value = HTTP_LISTEN_DEFAULT, .check = check_listen, .flags = OPTION_AT_START),
	OPTION(TEXT, 0, "token-file", "FILE", AT(daemon.token_file),
	       "clients must send the secret in FILE; needed to listen on an address that other "
	       "machines can reach",
	       .check = check_token),
	OPTION(COUNT, 0, "metrics-scopes", "N", AT(daemon.metrics_scopes),
	       "in /metrics, series for the first N pairs of scope and thread pool of each "
	       "process; 0 = none",
	       .value = "20", .max = 1000, .flags = OPTION_AT_START),

	OPTION(TIME, 0, "past-interval", "TIME", AT(daemon.past_interval_ns),
	       "read heap in use per stack every TIME, to show growth and changes of a day; 0 "
	       "= never",
	       .value = "10s", .max = 3600 * NS_PER_S, .flags = OPTION_AT_START),
	OPTION(TIME, 0, "rows-interval", "TIME", AT(daemon.rows_interval_ns),
	       "break down the resident memory of each process every TIME, at least 1m; 0 = "
	       "never",
	       .value = "1m", .max = 24 * 3600 * NS_PER_S, .flags = OPTION_AT_START),

	{ .type = OPTION_HEADING, .help = "pushing" },
	OPTION(TEXTS, 0, "push", "URL", AT(push_urls),
	       "push a profile of each process to parca+http://HOST:PORT, "
	       "pyroscope+http://HOST:PORT[/PREFIX], or ...+https://; may be repeated",
	       .flags = OPTION_UNSAID, .check = check_push),
	OPTION(TIME, 0, "push-interval", "TIME", AT(daemon.pushes.interval_ns), "... every TIME",
	       .value = "10s", .min = NS_PER_S, .max = 24 * 3600 * NS_PER_S),
	OPTION(TEXT, 0, "push-token-file", "FILE", AT(daemon.pushes.token_file),
	       "send destinations the secret in FILE", .check = check_push_token),
	OPTION(TEXT, 0, "push-basic-file", "FILE", AT(daemon.pushes.basic_file),
	       "... or the USER:PASSWORD in FILE (basic authentication)",
	       .check = check_push_basic),
	OPTION(TEXT, 0, "push-tenant", "NAME", AT(daemon.pushes.tenant),
	       "the tenant, for a Pyroscope that has several", .check = check_push_tenant),
	OPTION(TEXT, 0, "push-ca-file", "FILE", AT(daemon.pushes.ca_file),
	       "trust these certificates (PEM) with +https, instead of the system's",
	       .flags = OPTION_AT_START, .check = check_push_ca),
	OPTION(TEXT, 0, "push-spool", "DIR", AT(daemon.pushes.spool_dir),
	       "keep profiles that wait in DIR (default: in memory)", .flags = OPTION_AT_START,
	       .check = check_folder),
	OPTION(FLAG, 0, "push-debuginfo", NULL, AT(daemon.pushes.sends_debuginfo),
	       "send Parca destinations the debug information of tracked programs and "
	       "libraries, for names; never code and data",
	       .flags = OPTION_AT_START),
	OPTION(SIZE, 0, "push-debuginfo-cap", "SIZE", AT(daemon.pushes.debuginfo_bytes_max),
	       "... at most SIZE per file", .value = "500m", .min = 1, .flags = OPTION_AT_START),
	OPTION(TEXTS, 0, "label", "KEY=VALUE", AT(labels),
	       "add this label to pushed profiles; may be repeated", .check = check_label),

	{ .type = OPTION_HEADING, .help = "saved profiles" },
	OPTION(TEXT, 0, "keep-dir", "DIR", AT(daemon.keep.dir),
	       "save profiles in DIR: of each process at its peak, when its cgroup is near its "
	       "memory limit, and before it ends. Nobody but its owner may be allowed to "
	       "write to DIR (default: in memory, at most 64 profiles and 32m)",
	       .check = check_folder, .flags = OPTION_AT_START),
	OPTION(COUNT, 0, "keep-files", "N", AT(daemon.keep.file_max),
	       "... at most N; 0 = save none, not even in memory", .value = "1000", .max = 100000),
	OPTION(SIZE, 0, "keep-bytes", "SIZE", AT(daemon.keep.bytes_max),
	       "... of at most SIZE in all", .value = "256m", .min = 1),
	OPTION(PERCENT, 0, "keep-at", "PCT", AT(daemon.keep.limit_percent),
	       "a cgroup is near its limit when it uses this much of it, without reclaimable "
	       "page cache",
	       .value = "90", .min = 1, .max = 100),

	{ .type = OPTION_HEADING, .help = "general" },
	OPTION(TEXT, 0, "config", "FILE", AT(config_file),
	       "read options from FILE (TOML): keys are the names of options; repeatable ones "
	       "are arrays. The command line wins. SIGHUP reads it again",
	       .flags = OPTION_NOT_IN_FILE),
	OPTION(FLAG, 0, "check-config", NULL, AT(checks_config),
	       "only check the configuration: print its errors, or the configuration in "
	       "effect",
	       .flags = OPTION_NOT_IN_FILE),
	OPTION(FLAG, 'q', "quiet", NULL, AT(is_quiet), "errors and losses only"),
	OPTION(FLAG, 'v', "verbose", NULL, AT(is_verbose), "log what heaptap does"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

const struct option_table serve_option_table = { .rows = rows,
						 .cnt = sizeof(rows) / sizeof(*rows) };
