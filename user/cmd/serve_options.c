/* SPDX-License-Identifier: MIT */
/* cmd/serve_options.c - see cmd/serve_options.h. */
#include "cmd/serve_options.h"

#include "base/clock.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "http/http.h"
#include "proc/facts.h"
#include "serve/push_http.h"
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
	{ .type = OPTION_HEADING, .help = "which processes" },
	{ .name = "pid",
	  .letter = 'p',
	  .type = OPTION_NUMBERS,
	  .at = AT(pids),
	  .arg = "PID",
	  .min = 1,
	  .max = INT32_MAX,
	  .wanted = "a process id; by name: --comm NAME",
	  .help = "follow this process until it ends; may be repeated" },
	{ .name = "all",
	  .letter = 'a',
	  .type = OPTION_FLAG,
	  .at = AT(daemon.select.is_all),
	  .help = "follow every process with a known allocator, except heaptap itself" },
	{ .name = "comm",
	  .type = OPTION_TEXTS,
	  .at = AT(daemon.select.comm),
	  .arg = "RE",
	  .check = select_check_pattern,
	  .help = "follow the processes whose name matches this POSIX extended regular expression "
		  "anywhere. This and the next may be repeated; different options combine with AND, "
		  "repeats of one with OR." },
	{ .name = "exe",
	  .type = OPTION_TEXTS,
	  .at = AT(daemon.select.exe),
	  .arg = "RE",
	  .check = select_check_pattern,
	  .help = "... whose executable's path matches" },
	{ .name = "user",
	  .type = OPTION_TEXTS,
	  .at = AT(daemon.select.users),
	  .arg = "USER",
	  .check = select_check_user,
	  .help = "... that run as this user (name or number)" },
	{ .name = "cgroup",
	  .type = OPTION_TEXTS,
	  .at = AT(cgroups),
	  .arg = "PATH",
	  .check = check_cgroup,
	  .help = "... that are in this cgroup or below it: its folder, or its path in "
		  "/proc/PID/cgroup" },
	{ .name = "container",
	  .type = OPTION_TEXTS,
	  .at = AT(daemon.select.containers),
	  .arg = "ID",
	  .check = container_check_given,
	  .help = "... that run in this container (the beginning of its id is enough)" },
	{ .name = "min-rss",
	  .type = OPTION_SIZE,
	  .at = AT(daemon.select.min_rss_bytes),
	  .arg = "SIZE",
	  .help = "... and have at least this much resident memory" },
	{ .name = "exclude",
	  .type = OPTION_TEXTS,
	  .at = AT(daemon.select.exclude),
	  .arg = "RE",
	  .check = select_check_pattern,
	  .help = "... except those whose name or executable matches" },

	{ .type = OPTION_HEADING, .help = "recording" },
	{ .name = "rate",
	  .letter = 'r',
	  .type = OPTION_SIZE,
	  .at = AT(daemon.rate_bytes),
	  .arg = "BYTES",
	  .value = "64k",
	  .min = 1,
	  .max = 1ULL << 40,
	  .flags = OPTION_AT_START,
	  .help = "one sample per BYTES allocated, on average; 1 = every allocation" },
	{ .name = "max-overhead",
	  .type = OPTION_LIMIT,
	  .at = AT(max_overhead),
	  .arg = "PCT",
	  .max = 99,
	  .help = "maximum overhead of probes, in % of each process's CPU time (default 5, never below "
		  "1 % of one CPU unless written 5!; off with --rate 1). Above it, heaptap first stops "
		  "tracking frees, so that heap in use becomes unknown, then stops recording. 0 or "
		  "off = no limit" },
	{ .name = "max-overhead-host",
	  .type = OPTION_PERCENT,
	  .at = AT(max_overhead_host),
	  .arg = "PCT",
	  .max = 99,
	  .help = "... and of all probes together, in % of the time of all CPUs (default 2; off with "
		  "--rate 1); 0 or off = no limit" },
	{ .name = "max-live",
	  .type = OPTION_COUNT,
	  .at = AT(daemon.live_cap),
	  .arg = "N",
	  .value = "1000000",
	  .min = 1,
	  .max = 1 << 28,
	  .flags = OPTION_AT_START,
	  .help = "at most N sampled blocks in use" },
	{ .name = "max-stacks",
	  .type = OPTION_COUNT,
	  .at = AT(daemon.stack_cap),
	  .arg = "N",
	  .value = "65536",
	  .min = 1,
	  .max = 1 << 24,
	  .flags = OPTION_AT_START,
	  .help = "at most N distinct call stacks" },
	{ .name = "source",
	  .type = OPTION_CHOICE,
	  .at = AT(daemon.source),
	  .arg = "auto|probes|usdt",
	  .choices = probes_source_names,
	  .flags = OPTION_AT_START,
	  .help = "source of samples: probes on the allocator, or the USDT probes of a sampler in "
		  "the program (otel_memory, ddheap). auto: probes, until such a sampler "
		  "reports" },
	{ .name = "tap",
	  .type = OPTION_TEXTS,
	  .at = AT(daemon.tap),
	  .arg = "RE",
	  .check = select_check_pattern,
	  .flags = OPTION_AT_START,
	  .help = "tap the followed processes whose name matches, so that only samples trap. "
		  "Pauses their threads for milliseconds and patches their allocator (THE TAP in "
		  "heaptap-record(1)); may be repeated" },
	{ .name = "tap-exe",
	  .type = OPTION_TEXTS,
	  .at = AT(daemon.tap_exe),
	  .arg = "RE",
	  .check = select_check_pattern,
	  .flags = OPTION_AT_START,
	  .help = "the same for those whose executable's path matches; with --tap both must match" },
	{ .name = "tap-auto",
	  .type = OPTION_FLAG,
	  .at = AT(daemon.taps_on_request),
	  .flags = OPTION_AT_START,
	  .help = "tap them only when probes cost more than --max-overhead; without --tap and "
		  "--tap-exe, all followed processes" },
	{ .name = "attach-mode",
	  .type = OPTION_CHOICE,
	  .at = AT(daemon.mode),
	  .arg = "MODE",
	  .choices = attach_modes,
	  .flags = OPTION_HIDDEN | OPTION_AT_START,
	  .help = "" },
	{ .name = "sharing",
	  .type = OPTION_CHOICE,
	  .at = AT(daemon.sharing),
	  .arg = "SHARING",
	  .choices = sharings,
	  .flags = OPTION_HIDDEN | OPTION_AT_START,
	  .help = "" },

	{ .type = OPTION_HEADING, .help = "serving" },
	{ .name = "listen",
	  .type = OPTION_TEXT,
	  .at = AT(daemon.listen),
	  .arg = "ADDR",
	  .value = HTTP_LISTEN_DEFAULT,
	  .check = check_listen,
	  .flags = OPTION_AT_START,
	  .help = "listen on ADDR:PORT, or unix:PATH" },
	{ .name = "token-file",
	  .type = OPTION_TEXT,
	  .at = AT(daemon.token_file),
	  .arg = "FILE",
	  .check = check_token,
	  .help = "clients must send the secret in FILE; needed to listen on an address that other "
		  "machines can reach" },
	{ .name = "metrics-scopes",
	  .type = OPTION_COUNT,
	  .at = AT(daemon.metrics_scopes),
	  .arg = "N",
	  .value = "20",
	  .max = 1000,
	  .flags = OPTION_AT_START,
	  .help = "in /metrics, series for the first N pairs of scope and thread pool of each "
		  "process; 0 = none" },

	{ .name = "past-interval",
	  .type = OPTION_TIME,
	  .at = AT(daemon.past_interval_ns),
	  .arg = "TIME",
	  .value = "10s",
	  .max = 3600 * NS_PER_S,
	  .flags = OPTION_AT_START,
	  .help = "read heap in use per stack every TIME, to show growth and changes of a day; 0 "
		  "= never" },
	{ .name = "rows-interval",
	  .type = OPTION_TIME,
	  .at = AT(daemon.rows_interval_ns),
	  .arg = "TIME",
	  .value = "1m",
	  .max = 24 * 3600 * NS_PER_S,
	  .flags = OPTION_AT_START,
	  .help = "break down the resident memory of each process every TIME, at least 1m; 0 = "
		  "never" },

	{ .type = OPTION_HEADING, .help = "pushing" },
	{ .name = "push",
	  .type = OPTION_TEXTS,
	  .flags = OPTION_UNSAID,
	  .at = AT(push_urls),
	  .arg = "URL",
	  .check = check_push,
	  .help = "push a profile of each process to parca+http://HOST:PORT, "
		  "pyroscope+http://HOST:PORT[/PREFIX], or ...+https://; may be repeated" },
	{ .name = "push-interval",
	  .type = OPTION_TIME,
	  .at = AT(daemon.pushes.interval_ns),
	  .arg = "TIME",
	  .value = "10s",
	  .min = NS_PER_S,
	  .max = 24 * 3600 * NS_PER_S,
	  .help = "... every TIME" },
	{ .name = "push-token-file",
	  .type = OPTION_TEXT,
	  .at = AT(daemon.pushes.token_file),
	  .arg = "FILE",
	  .check = check_push_token,
	  .help = "send destinations the secret in FILE" },
	{ .name = "push-basic-file",
	  .type = OPTION_TEXT,
	  .at = AT(daemon.pushes.basic_file),
	  .arg = "FILE",
	  .check = check_push_basic,
	  .help = "... or the USER:PASSWORD in FILE (basic authentication)" },
	{ .name = "push-tenant",
	  .type = OPTION_TEXT,
	  .at = AT(daemon.pushes.tenant),
	  .arg = "NAME",
	  .check = check_push_tenant,
	  .help = "the tenant, for a Pyroscope that has several" },
	{ .name = "push-ca-file",
	  .type = OPTION_TEXT,
	  .flags = OPTION_AT_START,
	  .at = AT(daemon.pushes.ca_file),
	  .arg = "FILE",
	  .check = check_push_ca,
	  .help = "trust these certificates (PEM) with +https, instead of the system's" },
	{ .name = "push-spool",
	  .type = OPTION_TEXT,
	  .flags = OPTION_AT_START,
	  .at = AT(daemon.pushes.spool_dir),
	  .arg = "DIR",
	  .check = check_folder,
	  .help = "keep profiles that wait in DIR (default: in memory)" },
	{ .name = "push-debuginfo",
	  .type = OPTION_FLAG,
	  .at = AT(daemon.pushes.sends_debuginfo),
	  .flags = OPTION_AT_START,
	  .help = "send Parca destinations the debug information of followed programs and "
		  "libraries, for names; never code and data" },
	{ .name = "push-debuginfo-cap",
	  .type = OPTION_SIZE,
	  .at = AT(daemon.pushes.debuginfo_bytes_max),
	  .arg = "SIZE",
	  .value = "500m",
	  .min = 1,
	  .flags = OPTION_AT_START,
	  .help = "... at most SIZE per file" },
	{ .name = "label",
	  .type = OPTION_TEXTS,
	  .at = AT(labels),
	  .arg = "KEY=VALUE",
	  .check = check_label,
	  .help = "add this label to pushed profiles; may be repeated" },

	{ .type = OPTION_HEADING, .help = "saved profiles" },
	{ .name = "keep-dir",
	  .type = OPTION_TEXT,
	  .at = AT(daemon.keep.dir),
	  .arg = "DIR",
	  .check = check_folder,
	  .flags = OPTION_AT_START,
	  .help = "save profiles in DIR: of each process at its peak, when its cgroup is near its "
		  "memory limit, and before it ends. Only the owner of DIR may be able to write to "
		  "it (default: in memory, at most 64 and 32m)" },
	{ .name = "keep-files",
	  .type = OPTION_COUNT,
	  .at = AT(daemon.keep.file_max),
	  .arg = "N",
	  .value = "1000",
	  .max = 100000,
	  .help = "... at most N; 0 = save none, not even in memory" },
	{ .name = "keep-bytes",
	  .type = OPTION_SIZE,
	  .at = AT(daemon.keep.bytes_max),
	  .arg = "SIZE",
	  .value = "256m",
	  .min = 1,
	  .help = "... of at most SIZE in all" },
	{ .name = "keep-at",
	  .type = OPTION_PERCENT,
	  .at = AT(daemon.keep.limit_percent),
	  .arg = "PCT",
	  .value = "90",
	  .min = 1,
	  .max = 100,
	  .help = "a cgroup is near its limit when it uses this much of it, without reclaimable "
		  "page cache" },

	{ .type = OPTION_HEADING, .help = "general" },
	{ .name = "config",
	  .type = OPTION_TEXT,
	  .at = AT(config_file),
	  .arg = "FILE",
	  .flags = OPTION_NOT_IN_FILE,
	  .help = "read options from FILE (TOML): keys are the names of options; repeated ones "
		  "are a list. The command line wins. SIGHUP reads it again" },
	{ .name = "check-config",
	  .type = OPTION_FLAG,
	  .at = AT(checks_config),
	  .flags = OPTION_NOT_IN_FILE,
	  .help = "only check the configuration: print its errors, or the configuration in "
		  "effect" },
	{ .name = "quiet",
	  .letter = 'q',
	  .type = OPTION_FLAG,
	  .at = AT(is_quiet),
	  .help = "errors and losses only" },
	{ .name = "verbose",
	  .letter = 'v',
	  .type = OPTION_FLAG,
	  .at = AT(is_verbose),
	  .help = "log what heaptap does" },
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

const struct option_table serve_option_table = { .rows = rows,
						 .cnt = sizeof(rows) / sizeof(*rows) };
