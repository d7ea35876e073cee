/* SPDX-License-Identifier: MIT */
/* main.c - the table of commands, and what shells complete of them. */
#include <signal.h>

#include "base/log.h"
#include "base/names.h"
#include "cmd/cmd.h"

static int run_completion(int argc, char **argv, const struct option_args *args);

static const struct option_row completion_rows[] = { COMMAND_HELP_ROW, COMMAND_VERSION_ROW };
static const struct option_table completion_table = { .rows = completion_rows, .cnt = 2 };

static const struct command command_completion = {
	.name = "completion",
	.summary = "print the completion script for a shell",
	.options = &completion_table,
	.usage = "usage: heaptap completion bash | zsh | fish\n"
		 "\n"
		 "Print the completion script for a shell. 'make install' installs it.\n"
		 "For a single session of bash: . <(heaptap completion bash)\n"
		 "\n",
	.more = "",
	.run = run_completion,
};

/* Most needed first. */
static const struct command *const commands[] = {
	&command_record,  &command_report,    &command_doctor,	&command_explain,
	&command_top,	  &command_serve,     &command_diff,	&command_check,
	&command_convert, &command_symbolize, &command_version, &command_completion
};
#define COMMAND_CNT ARRAY_CNT(commands)

static void print_usage(FILE *out)
{
	fputs("usage: heaptap COMMAND [OPTIONS]\n\n"
	      "heaptap shows which code holds the memory of a running native process, from "
	      "outside it.\n\n",
	      out);
	for (size_t i = 0; i < COMMAND_CNT && commands[i]->example; i++)
		fprintf(out, "  %-9s %s\n              $ %s\n", commands[i]->name,
			commands[i]->summary, commands[i]->example);
	fputs("\n"
	      "Options of a command: heaptap COMMAND --help; in detail: man heaptap-COMMAND.\n"
	      "Licences: heaptap version --licences. Completion in shells: heaptap completion.\n",
	      out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_CNT; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void reject_option(const char *name)
{
	static const char *const names[] = { "--version", "--help" };
	size_t nearest = nearest_name(name, names, 2);

	if (nearest < 2)
		log_error("unknown option '%s': did you mean %s?", name, names[nearest]);
	else
		log_error("unknown option '%s': options follow a command, as in 'heaptap record -p "
			  "PID'",
			  name);
}

static int reject(const char *name)
{
	const char *names[COMMAND_CNT];
	size_t nearest;

	for (size_t i = 0; i < COMMAND_CNT; i++)
		names[i] = commands[i]->name;
	nearest = nearest_name(name, names, COMMAND_CNT);
	if (name[0] == '-')
		reject_option(name);
	else if (nearest < COMMAND_CNT)
		log_error("unknown command '%s': did you mean %s?", name, names[nearest]);
	else if (name[strspn(name, "0123456789")] == '\0')
		log_error("unknown command '%s': did you mean 'heaptap record -p %s'?", name, name);
	else
		log_error("unknown command '%s'", name);
	fputs("Try 'heaptap --help'.\n", stderr);
	return 2;
}

static int run_help(int argc, char **argv)
{
	const struct command *c = argc > 2 ? find_command(argv[2]) : NULL;
	char *args[] = { NULL, "--help", NULL };

	if (!c && argc > 2)
		return reject(argv[2]);
	if (!c) {
		print_usage(stdout);
		return 0;
	}
	args[0] = argv[2];
	return command_run(c, 2, args);
}

/*
 * `heaptap completion SHELL`: a script with which bash, zsh or fish completes command lines.
 *
 * All of it comes from the tables of options: names, letters, whether there is a value, and the possible values,
 * from the value's name (FILE, DIR, PID, USER) or its choices. Descriptions are the beginnings of the help.
 */

#define BRIEF_BYTES 96

/* How each shell completes a value of this name. */
static const struct kind {
	const char *arg, *bash, *zsh, *fish;
} kinds[] = {
	{ "FILE", "return", "_files", "-rF" }, /* bash itself completes files */
	{ "DIR", "compopt +o default -o dirnames 2>/dev/null; return", "_files -/",
	  "-xa '(__fish_complete_directories)'" },
	{ "PID", "words=$(cd /proc && echo [0-9]*)", "_pids", "-xa '(__fish_complete_pids)'" },
	{ "USER", "words=$(compgen -u)", "_users", "-xa '(__fish_complete_users)'" },
};

static const struct kind *kind_of(const struct option_row *row)
{
	size_t len = strcspn(row->arg, "[");

	for (size_t i = 0; i < ARRAY_CNT(kinds); i++)
		if (strlen(kinds[i].arg) == len && !strncmp(row->arg, kinds[i].arg, len))
			return &kinds[i];
	return NULL;
}

static bool is_told(const struct option_row *row)
{
	return row->type != OPTION_HEADING && !(row->flags & OPTION_HIDDEN);
}

/* True if it needs a value, in the next word if not in its own. */
static bool needs_value(const struct option_row *row)
{
	return row->arg && !(row->flags & OPTION_MAY_HAVE_VALUE);
}

static bool is_repeated(const struct option_row *row)
{
	return row->type == OPTION_TEXTS || row->type == OPTION_NUMBERS;
}

/* The first words of the help, before the details. */
static const char *brief(const char *help, char buf[BRIEF_BYTES])
{
	static const char *const ends[] = { ";", ": ", " (", ". ", ", such as" };
	size_t len;

	help += strspn(help, ". ");
	len = strlen(help);
	for (size_t i = 0; i < ARRAY_CNT(ends); i++) {
		const char *end = strstr(help, ends[i]);

		if (end && (size_t)(end - help) < len)
			len = (size_t)(end - help);
	}
	snprintf(buf, BRIEF_BYTES, "%.*s", (int)len, help);
	return buf;
}

/* Write text between single quotes: each of the special characters becomes `escape`. */
static void put_quoted(FILE *out, const char *text, const char *special, const char *escape)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs(escape, out);
		else
			fprintf(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
	}
}

static void put_choices(FILE *out, const struct option_row *row, const char *special)
{
	for (size_t i = 0; row->choices[i]; i++) {
		fputs(i ? " " : "", out);
		put_quoted(out, row->choices[i], special, "");
	}
}

static void put_names(FILE *out)
{
	for (size_t i = 0; i < COMMAND_CNT; i++)
		fprintf(out, "%s ", commands[i]->name);
}

/* Write what may stand for the value of an option. */
static void bash_value(FILE *out, const struct command *c, const struct option_row *row)
{
	const struct kind *kind = kind_of(row);

	fprintf(out, "\t%s:--%s", c->name, row->name);
	if (row->letter)
		fprintf(out, " | %s:-%c", c->name, row->letter);
	if (row->choices) {
		fputs(") words=\"", out);
		put_choices(out, row, "");
		fputs("\" ;;\n", out);
	} else {
		fprintf(out, ") %s ;;\n",
			kind ? kind->bash : "compopt +o default 2>/dev/null; return");
	}
}

static void print_bash(FILE *out)
{
	fputs("# What bash completes of heaptap's command line, as 'heaptap completion bash' prints it.\n"
	      "_heaptap()\n"
	      "{\n"
	      "\tlocal command=${COMP_WORDS[1]} cur=${COMP_WORDS[COMP_CWORD]} words=\n"
	      "\tlocal prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	      "\n"
	      "\tCOMPREPLY=()\n"
	      "\tif [ \"$cur\" = = ]; then # --name=value is three words\n"
	      "\t\tcur=\n"
	      "\telif [ \"$prev\" = = ]; then\n"
	      "\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	      "\tfi\n"
	      "\t[ \"$COMP_CWORD\" = 1 ] && command=\n"
	      "\tcase $command:$prev in\n",
	      out);
	for (size_t i = 0; i < COMMAND_CNT; i++)
		for (size_t k = 0; k < commands[i]->options->cnt; k++)
			if (is_told(&commands[i]->options->rows[k]) &&
			    needs_value(&commands[i]->options->rows[k]))
				bash_value(out, commands[i], &commands[i]->options->rows[k]);
	fputs("\tcompletion:completion) words=\"bash zsh fish\" ;;\n"
	      "\t:* | help:help) words=\"",
	      out);
	put_names(out);
	fputs("help --help --version\" ;;\n\tesac\n\t[ -n \"$words\" ] || case $command:$cur in\n",
	      out);
	for (size_t i = 0; i < COMMAND_CNT; i++) {
		fprintf(out, "\t%s:-*) words=\"", commands[i]->name);
		for (size_t k = 0; k < commands[i]->options->cnt; k++)
			if (is_told(&commands[i]->options->rows[k]))
				fprintf(out, "--%s ", commands[i]->options->rows[k].name);
		fputs("\" ;;\n", out);
	}
	fputs("\tesac\n"
	      "\t[ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "}\n"
	      "complete -o default -F _heaptap heaptap\n",
	      out);
}

/* '(-d --duration)'{-d+,--duration=}'[stop after TIME]:TIME:' */
static void zsh_option(FILE *out, const struct option_row *row)
{
	const char *with = !row->arg ? "" : needs_value(row) ? "=" : "=-";
	const char *colons = needs_value(row) ? ":" : "::";
	const struct kind *kind = row->arg ? kind_of(row) : NULL;
	char text[BRIEF_BYTES];

	fputs(" \\\n\t\t\t", out);
	if (is_repeated(row))
		fputs("'*'", out);
	else if (row->letter)
		fprintf(out, "'(-%c --%s)'", row->letter, row->name);
	if (row->letter)
		fprintf(out, "{-%c%s,--%s%s}'[", row->letter, row->arg ? "+" : "", row->name, with);
	else
		fprintf(out, "--%s%s'[", row->name, with);
	put_quoted(out, brief(row->help, text), "[]", "'\\''");
	fputc(']', out);
	if (row->arg) {
		fputs(colons, out);
		put_quoted(out, row->arg, ":", "");
		fputc(':', out);
	}
	if (row->choices) {
		fputc('(', out);
		put_choices(out, row, ":");
		fputc(')', out);
	} else if (kind) {
		fputs(kind->zsh, out);
	}
	fputc('\'', out);
}

static void print_zsh(FILE *out)
{
	fputs("#compdef heaptap\n"
	      "# What zsh completes of heaptap's command line, as 'heaptap completion zsh' prints it.\n"
	      "_heaptap()\n"
	      "{\n"
	      "\tlocal curcontext=$curcontext state line ret=1\n"
	      "\tlocal -a commands\n"
	      "\ttypeset -A opt_args\n"
	      "\n"
	      "\tcommands=(",
	      out);
	for (size_t i = 0; i < COMMAND_CNT; i++) {
		fprintf(out, "\n\t\t'%s:", commands[i]->name);
		put_quoted(out, commands[i]->summary, ":", "'\\''");
		fputc('\'', out);
	}
	fputs(")\n"
	      "\t_arguments -C '1:command:->command' '*::argument:->argument' && ret=0\n"
	      "\tcase $state in\n"
	      "\tcommand) _describe command commands && ret=0 ;;\n"
	      "\targument)\n"
	      "\t\tcase $words[1] in\n",
	      out);
	for (size_t i = 0; i < COMMAND_CNT; i++) {
		fprintf(out, "\t\t%s) _arguments -s -S", commands[i]->name);
		for (size_t k = 0; k < commands[i]->options->cnt; k++)
			if (is_told(&commands[i]->options->rows[k]))
				zsh_option(out, &commands[i]->options->rows[k]);
		fprintf(out, " \\\n\t\t\t'%s' && ret=0 ;;\n",
			!strcmp(commands[i]->name, "completion") ? "1:shell:(bash zsh fish)" :
			commands[i]->options->ends_at_operand	 ? "*::command:_normal" :
								   "*:file:_files");
	}
	fputs("\t\tesac\n"
	      "\tesac\n"
	      "\treturn ret\n"
	      "}\n"
	      "_heaptap \"$@\"\n",
	      out);
}

static void fish_option(FILE *out, const struct command *c, const struct option_row *row)
{
	const struct kind *kind = row->arg ? kind_of(row) : NULL;
	char text[BRIEF_BYTES];

	fprintf(out, "complete -c heaptap -n '__fish_seen_subcommand_from %s'", c->name);
	if (row->letter)
		fprintf(out, " -s %c", row->letter);
	fprintf(out, " -l %s", row->name);
	if (needs_value(row) && row->choices) {
		fputs(" -xa '", out);
		put_choices(out, row, "");
		fputc('\'', out);
	} else if (needs_value(row)) {
		fprintf(out, " %s", kind ? kind->fish : "-x");
	}
	fputs(" -d '", out);
	put_quoted(out, brief(row->help, text), "\\", "\\'");
	fputs("'\n", out);
}

static void print_fish(FILE *out)
{
	fputs("# What fish completes of heaptap's command line, as 'heaptap completion fish' prints it.\n"
	      "complete -c heaptap -f\n",
	      out);
	for (size_t i = 0; i < COMMAND_CNT; i++) {
		fprintf(out, "complete -c heaptap -n __fish_use_subcommand -a %s -d '",
			commands[i]->name);
		put_quoted(out, commands[i]->summary, "\\", "\\'");
		fputs("'\n", out);
		for (size_t k = 0; k < commands[i]->options->cnt; k++)
			if (is_told(&commands[i]->options->rows[k]))
				fish_option(out, commands[i], &commands[i]->options->rows[k]);
	}
	fputs("complete -c heaptap -n '__fish_seen_subcommand_from record report' -F\n"
	      "complete -c heaptap -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n",
	      out);
}

static int run_completion(int argc, char **argv, const struct option_args *args)
{
	static const struct {
		const char *name;
		void (*print)(FILE *out);
	} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
	const char *name = args->first + 1 == (size_t)argc ? argv[args->first] : "";

	for (size_t i = 0; i < ARRAY_CNT(shells); i++) {
		if (!strcmp(name, shells[i].name)) {
			shells[i].print(stdout);
			return 0;
		}
	}
	log_error("completion: which shell: bash, zsh or fish?");
	return 2;
}

static int run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *c = find_command(name);

	if (c)
		return command_run(c, argc - 1, argv + 1);
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		fputs(VERSION_LINE, stdout);
		return 0;
	}
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return run_help(argc, argv);
	if (name[0])
		return reject(name);
	print_usage(stderr);
	return 2;
}

/* A reader that has left (EPIPE) wanted no more. */
static int finish_output(int status)
{
	if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE && !status) {
		log_error("cannot write to standard output: %s", strerror(errno));
		return 1;
	}
	return status;
}

int main(int argc, char **argv)
{
	signal(SIGXFSZ, SIG_IGN); /* no room is a reported error, here and in children */
	errno = 0;
	return finish_output(run(argc, argv));
}
