/* SPDX-License-Identifier: MIT */
/* cmd_report.c - `heaptap report`: read a profile, print it another way. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "cmd.h"
#include "format/pprof.h"
#include "format/report.h"
#include "model/profile.h"

enum { OPT_FRAMES = 256 };

static const char usage[] =
	"usage: heaptap report [OPTIONS] FILE\n"
	"\n"
	"Read a profile that heaptap, or any other tool, wrote in pprof's format. '-' is stdin.\n"
	"\n"
	"  -b, --by WHAT           a row for each stack, function, module or thread (default: stack)\n"
	"  -f, --format FORMAT     text, json, or collapsed (for flame graph tools; default: text)\n"
	"  -s, --sort KEY          inuse, objects, alloc or name (default: inuse)\n"
	"  -n, --top N             at most N rows, the rest in one (default: 20; 0 = all)\n"
	"  -m, --module A,B        with --by module: charge each stack to the first frame, from the\n"
	"                          leaf, whose module or function begins with A or B\n"
	"      --frames N          at most N frames of each stack (default: 16; 0 = all)\n"
	"  -h, --help              show this\n"
	"\n"
	"examples:\n"
	"  heaptap report heaptap-1234.pb.gz\n"
	"  heaptap report --by module --module my_app,libmine heaptap-1234.pb.gz\n"
	"  heaptap report --format collapsed heaptap-1234.pb.gz > stacks.txt\n";

static const struct option long_options[] = {
	{ "by", required_argument, NULL, 'b' },	   { "format", required_argument, NULL, 'f' },
	{ "sort", required_argument, NULL, 's' },  { "top", required_argument, NULL, 'n' },
	{ "module", required_argument, NULL, 'm' }, { "frames", required_argument, NULL, OPT_FRAMES },
	{ "help", no_argument, NULL, 'h' },	   { NULL, 0, NULL, 0 },
};

static const char *const by_names[] = { "stack", "function", "module", "thread", NULL };
static const char *const format_names[] = { "text", "json", "collapsed", NULL };
static const char *const sort_names[] = { "inuse", "objects", "alloc", "name", NULL };

struct report_command {
	struct report_options opts;
	VEC(const char *) modules;
	char *module_text; /* owns the names */
	bool wants_help, has_row_cap;
	const char *file;
};

/* Index of text in names, or -EINVAL with a message that lists them. */
static int choose(const char *option, const char *text, const char *const *names)
{
	char list[128] = "";
	size_t used = 0;

	for (int i = 0; names[i]; i++) {
		if (!strcmp(text, names[i]))
			return i;
		used += snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
				 names[i]);
	}
	log_error("report: bad value '%s' for --%s: one of %s", text, option, list);
	return -EINVAL;
}

static int parse_count(const char *option, const char *text, size_t *ret)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-') {
		log_error("report: bad value '%s' for --%s: a number", text, option);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

static int parse_modules(struct report_command *c, const char *text)
{
	char *save = NULL, *name;

	free(c->module_text);
	c->modules.cnt = 0;
	c->module_text = strdup(text);
	if (!c->module_text)
		return -ENOMEM;
	for (name = strtok_r(c->module_text, ",", &save); name; name = strtok_r(NULL, ",", &save))
		if (vec_push(&c->modules, (const char *)name))
			return -ENOMEM;
	if (!c->modules.cnt) {
		log_error("report: bad value '%s' for --module: names, separated by commas", text);
		return -EINVAL;
	}
	return 0;
}

static int parse_one(int c, const char *arg, struct report_command *cmd)
{
	int n = 0;

	switch (c) {
	case 'b':
		n = choose("by", arg, by_names);
		cmd->opts.by = n < 0 ? 0 : n;
		break;
	case 'f':
		n = choose("format", arg, format_names);
		cmd->opts.format = n < 0 ? 0 : n;
		break;
	case 's':
		n = choose("sort", arg, sort_names);
		cmd->opts.sort = n < 0 ? 0 : n;
		break;
	case 'n':
		cmd->has_row_cap = true;
		return parse_count("top", arg, &cmd->opts.row_cap);
	case OPT_FRAMES:
		return parse_count("frames", arg, &cmd->opts.frame_cap);
	case 'm':
		return parse_modules(cmd, arg);
	case 'h':
		cmd->wants_help = true;
		break;
	default:
		return -EINVAL;
	}
	return n < 0 ? n : 0;
}

static int parse_options(int argc, char **argv, struct report_command *cmd)
{
	int c, err = 0;

	optind = 1;
	while (!err && (c = getopt_long(argc, argv, "b:f:s:n:m:h", long_options, NULL)) != -1)
		err = parse_one(c, optarg, cmd);
	if (err || cmd->wants_help)
		return err;
	if (optind + 1 != argc) {
		log_error(optind == argc ? "report: which file?" :
					   "report: one file at a time, not also '%s'",
			  optind == argc ? "" : argv[optind + 1]);
		return -EINVAL;
	}
	cmd->file = argv[optind];
	if (cmd->modules.cnt && cmd->opts.by != REPORT_BY_MODULE) {
		log_error("report: --module goes with --by module");
		return -EINVAL;
	}
	/* People want the top; programs want everything unless they say otherwise. */
	if (!cmd->has_row_cap)
		cmd->opts.row_cap = cmd->opts.format == REPORT_TEXT ? 20 : 0;
	cmd->opts.module = cmd->modules.data;
	cmd->opts.module_cnt = cmd->modules.cnt;
	return 0;
}

static int read_profile(const char *file, struct profile **ret)
{
	bool is_stdin = !strcmp(file, "-");
	int fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC), err;
	struct format_error why = { 0 };

	if (fd < 0) {
		log_error("report: cannot open '%s': %s", file, strerror(errno));
		return -errno;
	}
	err = pprof_read(fd, ret, &why);
	if (err == -EBADMSG)
		log_error("report: '%s': %s (at byte %llu of the unpacked data)", file, why.text,
			  (unsigned long long)why.offset);
	else if (err)
		log_error("report: cannot read '%s': %s", file, strerror(-err));
	if (!is_stdin)
		close(fd);
	return err;
}

int cmd_report(int argc, char **argv)
{
	struct report_command cmd = { .opts.frame_cap = 16 };
	struct profile *p = NULL;
	int err = parse_options(argc, argv, &cmd), status = 0;

	if (err) {
		fprintf(stderr, "Try 'heaptap report --help'.\n");
		status = 2;
	} else if (cmd.wants_help) {
		fputs(usage, stdout);
	} else {
		err = read_profile(cmd.file, &p);
		if (!err) {
			err = report_write(p, &cmd.opts, stdout);
			if (err)
				log_error("report: cannot write the report: %s", strerror(-err));
		}
		status = err ? 1 : 0;
	}
	profile_free(p);
	vec_release(&cmd.modules);
	free(cmd.module_text);
	return status;
}
