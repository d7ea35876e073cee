/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor.c - `heaptap doctor [-p PID] [-v | --json]`: can this machine, and this process, be
 * recorded; how, at what cost, and what would be missing. Attaches nothing to the process.
 *
 * Exit status: 0 = can be recorded (limits or not), 1 = cannot, 2 = wrong usage.
 */
#include "cmd/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/terminal.h"
#include "cmd/cmd.h"
#include "config/read_option.h"
#include "kernel/seccomp_probe.h"

#define COLUMNS_MIN 80
#define COLUMNS_MAX 100 /* longer lines read badly */

struct doctor_options {
	pid_t pid; /* 0 = the machine only */
	bool json, verbose, help, version;
};

static const char usage[] =
	"usage: heaptap doctor [-p PID] [-v | --json]\n"
	"\n"
	"Say whether heaptap can record on this machine, or the process PID: what, at what cost,\n"
	"what would be missing, and what to do about it. Nothing is attached to the process.\n"
	"\n"
	"  -p, --pid PID   look at this process too\n"
	"  -v, --verbose   show every probed function, mapped file, kernel feature and privilege\n"
	"      --json      print everything as JSON\n"
	"  -h, --help      print this\n"
	"  -V, --version   print the version\n"
	"\n"
	"Exit status: 0 it can be recorded, 1 it cannot, 2 wrong usage.\n";

static int parse_pid(const char *text, pid_t *ret)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v <= 0 || v > INT_MAX)
		return -EINVAL;
	*ret = (pid_t)v;
	return 0;
}

static int parse_options(int argc, char **argv, struct doctor_options *ret)
{
	static const struct option options[] = {
		{ "pid", required_argument, NULL, 'p' }, { "verbose", no_argument, NULL, 'v' },
		{ "json", no_argument, NULL, 'j' },	 { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },	 { NULL, 0, NULL, 0 },
	};
	char why[READ_OPTION_WHY_BYTES];
	int opt;

	optind = 1;
	while ((opt = read_option(argc, argv, ":p:vhV", options, why)) != -1) {
		switch (opt) {
		case 'p':
			if (parse_pid(optarg, &ret->pid)) {
				log_error("doctor: '%s' is not a process id: give a number, as ps "
					  "prints it",
					  optarg);
				return -EINVAL;
			}
			break;
		case 'v':
			ret->verbose = true;
			break;
		case 'j':
			ret->json = true;
			break;
		case 'h':
			ret->help = true;
			break;
		case 'V':
			ret->version = true;
			break;
		default:
			log_error("doctor: %s", why);
			return -EINVAL;
		}
	}
	if (optind < argc) {
		log_error("doctor: unexpected argument '%s': a process is named by -p PID",
			  argv[optind]);
		return -EINVAL;
	}
	return 0;
}

static int examine_machine(struct doctor_report *r)
{
	int err;

	uname(&r->uts);
	r->cpu_cnt = sysconf(_SC_NPROCESSORS_ONLN);
	err = privileges_read(&r->privileges);
	if (err)
		return err;
	privileges_suffice(&r->privileges, r->missing_capabilities,
			   sizeof(r->missing_capabilities));
	err = kernel_features_probe(&r->features);
	if (err)
		return err;
	r->has_mode = !kernel_features_choose_mode(&r->features, ATTACH_AUTO, &r->mode);
	r->has_costs = r->has_mode && !probe_costs_measure(&r->features, &r->costs);
	return 0;
}

static void examine_process(struct doctor_report *r, pid_t pid)
{
	bool is_safe;

	r->has_process = true;
	r->pid = pid;
	r->process_err = process_info_read(pid, &r->info);
	if (r->process_err) {
		snprintf(r->process_why, sizeof(r->process_why),
			 "there is no process %d: see 'ps -e' for those there are", pid);
		return;
	}
	r->has_info = true;
	process_read_pss(&r->info);
	if (r->info.seccomp && !seccomp_probe_returns(&is_safe))
		r->seccomp_kills_returns = !is_safe;
	r->process_err = process_check(&r->info, r->process_why, sizeof(r->process_why));
	if (r->process_err)
		return;
	heap_kind_read(&r->info, &r->heap);
	r->process_err = survey_process(&r->info, &r->survey);
	if (r->process_err)
		snprintf(r->process_why, sizeof(r->process_why),
			 "process %d (%s) could not be looked at: %s", pid, r->info.comm,
			 r->process_err == -ESRCH ? "it has just ended" :
						    strerror(-r->process_err));
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_report report = { 0 };
	struct doctor_options opts = { 0 };
	int err, status = 2;

	if (parse_options(argc, argv, &opts)) {
		fputs("Try 'heaptap doctor --help'.\n", stderr);
		return 2;
	}
	if (opts.help || opts.version) {
		fputs(opts.help ? usage : VERSION_LINE, stdout);
		return 0;
	}
	report.columns = terminal_columns(STDOUT_FILENO, COLUMNS_MIN, COLUMNS_MAX);
	report.is_verbose = opts.verbose;
	err = examine_machine(&report);
	if (!err && opts.pid)
		examine_process(&report, opts.pid);
	if (!err)
		err = doctor_find(&report);
	if (err) {
		log_error("doctor: cannot examine this machine: %s", strerror(-err));
		status = 1;
	} else {
		(opts.json ? doctor_print_json : doctor_print_text)(&report, stdout);
		status = report.verdict == DOCTOR_BLOCK;
	}
	survey_free(report.survey);
	vec_release(&report.findings);
	return status;
}
