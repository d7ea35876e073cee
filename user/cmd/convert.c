/* SPDX-License-Identifier: MIT */
/* cmd/convert.c - `heaptap convert`: converts a profile from one form to another. Wiring only. */

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/names.h"
#include "cmd/cmd.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/out_file.h"
#include "report/report.h"

static const char usage[] =
	"usage: heaptap convert [OPTIONS] IN OUT\n\nWrite a heap profile in another format. IN is "
	"anything that heaptap report reads: pprof, a heap dump\nof jemalloc, a heap profile of "
	"gperftools. The ending of OUT selects the format:\n "
	" .pb.gz, .pprof       pprof, for go tool pprof, Parca, Pyroscope; has everything\n "
	" .collapsed, .folded  one line per stack with its bytes, for flame graph programs\n "
	" .heap                heap_v2, a dump as jemalloc writes it, for jeprof; by "
	"thread\nSamples are scaled up as by jeprof. Names come from the files on this "
	"machine.\nIN may be - for standard input, OUT - for standard output.\n\n";

static const char more[] = "\n"
			   "examples:\n"
			   "  heaptap convert jeprof.1234.0.f.heap x.pb.gz\n"
			   "  heaptap convert --to collapsed x.pb.gz - | flamegraph.pl >x.svg\n";

enum form { FORM_PPROF, FORM_COLLAPSED, FORM_HEAP_V2 };
static const char *const form_names[] = { "pprof", "collapsed", "heap_v2", NULL };
static const enum report_format report_formats[] = {
	[FORM_COLLAPSED] = REPORT_COLLAPSED,
	[FORM_HEAP_V2] = REPORT_HEAP_V2,
};
static const struct ending endings[] = {
	{ ".pb.gz", FORM_PPROF },      { ".pprof", FORM_PPROF },  { ".collapsed", FORM_COLLAPSED },
	{ ".folded", FORM_COLLAPSED }, { ".heap", FORM_HEAP_V2 },
};

static const char *const value_names[] = { "inuse", "alloc", NULL };

struct convert_options {
	int to, value; /* indexes in form_names, value_names */
	bool is_forced;
	const char *in, *out;
	enum form form;
	struct report_options report;
};

#define AT(member) offsetof(struct convert_options, member)

static const struct option_row rows[] = {
	OPTION(CHOICE, 't', "to", "FORM", AT(to),
	       "format of OUT, whatever its ending: pprof, collapsed or heap_v2",
	       .choices = form_names),
	OPTION(CHOICE, 0, "value", "WHAT", AT(value),
	       "values of collapsed: inuse (default), or alloc: all allocations, freed or "
	       "not",
	       .choices = value_names),
	OPTION(FLAG, 0, "force", NULL, AT(is_forced), "replace OUT if it exists"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = ARRAY_CNT(rows) };

static int choose_form(struct convert_options *o, bool is_given)
{
	int form = ending_meaning(o->out, endings, ARRAY_CNT(endings), -1);

	o->form = (enum form)(is_given || form < 0 ? o->to : form);
	if (is_given || form >= 0)
		return 0;
	if (!strcmp(o->out, "-"))
		log_error("convert: standard output has no ending: give the format, --to pprof, "
			  "collapsed or heap_v2");
	else
		log_error("convert: cannot tell the format from '%s': use the ending .pb.gz, "
			  ".collapsed or .heap, or --to pprof, collapsed or heap_v2",
			  o->out);
	return -EINVAL;
}

static int settle(struct convert_options *o, const struct option_args *args)
{
	bool has_value = option_args_find(args, "value");
	int err = choose_form(o, option_args_find(args, "to"));

	if (err)
		return err;
	if (has_value && o->form != FORM_COLLAPSED) {
		log_error("convert: --value does not apply to %s, which has all values",
			  form_names[o->form]);
		return -EINVAL;
	}
	if (o->form == FORM_PPROF && !strcmp(o->out, "-") && isatty(STDOUT_FILENO)) {
		log_error("convert: pprof is not text, and standard output is a terminal: redirect "
			  "it, or give a file");
		return -EINVAL;
	}
	o->report.format = report_formats[o->form];
	o->report.value = o->value ? REPORT_VALUE_ALLOC : REPORT_VALUE_INUSE;
	o->report.path = strcmp(o->in, "-") ? o->in : NULL;
	return 0;
}

static int take_operands(int argc, char **argv, const struct option_args *args,
			 struct convert_options *o)
{
	size_t cnt = (size_t)argc - args->first;

	if (cnt < 2) {
		log_error("convert: give IN and OUT");
		return -EINVAL;
	}
	if (cnt > 2) {
		log_error("convert: unexpected argument '%s' after IN and OUT",
			  argv[args->first + 2]);
		return -EINVAL;
	}
	o->in = argv[args->first];
	o->out = argv[args->first + 1];
	return 0;
}

/* Make it in memory first: if that fails, nothing is written. */
static int write_text(const struct convert_options *o, const struct profile *p, int fd)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	int err;

	if (!out)
		return -ENOMEM;
	err = report_write(p, &o->report, out);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (!err)
		err = write_all(fd, text, bytes);
	free(text);
	return err;
}

static int write_form(const struct convert_options *o, const struct profile *p, int fd)
{
	return o->form == FORM_PPROF ? pprof_write(p, fd) : write_text(o, p, fd);
}

static int write_file(const struct convert_options *o, const struct profile *p)
{
	struct out_file *file = NULL;
	struct err why;
	int err = out_file_open(o->out, o->is_forced, "", &file, &why);

	if (err) {
		log_error("convert: %s", why.text);
		return err;
	}
	err = write_form(o, p, out_file_fd(file));
	if (!err)
		err = out_file_commit(file);
	if (err)
		log_error("convert: cannot write '%s': %s", o->out, strerror(-err));
	else if (strcmp(out_file_path(file), o->out) != 0) /* somebody else made it first */
		log_warn("convert: '%s' was created by another program: written to '%s'", o->out,
			 out_file_path(file));
	out_file_free(file);
	return err;
}

static int write_out(const struct convert_options *o, const struct profile *p)
{
	int err;

	if (strcmp(o->out, "-") != 0)
		return write_file(o, p);
	err = write_form(o, p, STDOUT_FILENO);
	if (err)
		log_error("convert: cannot write to standard output: %s", strerror(-err));
	return err;
}

static int convert(const struct convert_options *o)
{
	struct profile *p = NULL;
	struct err why;
	int err = profile_in_read("convert", o->in, NULL, &p);

	if (!err && o->form != FORM_PPROF) {
		err = report_check(p, &o->report, &why);
		if (err)
			log_error("convert: cannot convert '%s' to %s: "
				  "%s",
				  o->in, form_names[o->form],
				  err == -ENODATA ? why.text : strerror(-err));
	}
	if (!err)
		err = profile_in_name("convert", p);
	if (!err)
		err = write_out(o, p);
	profile_free(p);
	return err;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct convert_options o = { 0 };
	int err = command_settings(&command_convert, args, &o), status = 2;

	if (!err)
		err = take_operands(argc, argv, args, &o);
	if (!err)
		err = settle(&o, args);
	if (!err)
		status = convert(&o) ? 1 : 0;
	option_release(&table, &o);
	return status;
}

const struct command command_convert = {
	.name = "convert",
	.summary = "write a profile, or another allocator's dump, in another format",
	.example = "heaptap convert x.heap x.pb.gz",
	.options = &table,
	.usage = usage,
	.more = more,
	.run = run,
};
