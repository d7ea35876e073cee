/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor.c - `heaptap doctor [-p PID] [-v | --json]`: whether this machine, and this process, can be recorded;
 * how, at what cost, and what would be missing. Attaches nothing to the process.
 *
 * Exit status: 0 = can be recorded (limits or not), 1 = cannot, 2 = wrong usage.
 */
#include "cmd/doctor.h"
#include "track/tap_orders.h"

#include "base/log.h"
#include "base/sandbox.h"
#include "base/terminal.h"
#include "cmd/cmd.h"

#define COLUMNS_MIN 80
#define COLUMNS_MAX 100 /* longer lines are hard to read */
#define CLEAR_RETRIES 9
#define CLEAR_PAUSE_US 300000
#define WALL_S 60 /* for a process of many large files */

static const char usage[] =
	"usage: heaptap doctor [-p PID] [-v | --json | --remove-tap]\n\n"
	"Check what heaptap can record on this machine, or of the process PID: the cost, what would\n"
	"be missing, and what to do about it. Nothing is attached to the process.\n\n";

static const char more[] = "\nExit status: 0 recording is possible, 1 it is not, 2 wrong usage.\n";

#define AT(member) offsetof(struct doctor_report, member)

static const struct option_row rows[] = {
	OPTION(COUNT, 'p', "pid", "PID", AT(pid), "also examine this process", .min = 1,
	       .max = INT_MAX, .wanted = "a process id, as pidof -s NAME prints it"),
	OPTION(FLAG, 'v', "verbose", NULL, AT(is_verbose),
	       "show every probed function, mapped file, kernel feature and privilege"),
	OPTION(FLAG, 0, "json", NULL, AT(is_json), "print everything as JSON"),
	OPTION(FLAG, 0, "remove-tap", NULL, AT(removes_tap),
	       "remove a tap that a killed heaptap left in the process, and print nothing else"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = ARRAY_CNT(rows) };

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

static void examine_process(struct doctor_report *r)
{
	const pid_t pid = (pid_t)r->pid;

	r->process_err = process_info_read(NULL, pid, &r->info);
	if (r->process_err) {
		err_set(&r->process_why, r->process_err,
			"there is no process %d (ps -e lists them)", pid);
		return;
	}
	r->has_info = true;
	process_read_pss(&r->info);
	r->seccomp_kills_returns &= r->info.seccomp != 0;
	r->process_err = process_check_probing(&r->info, &r->process_why);
	if (r->process_err)
		return;
	heap_kind_read(NULL, &r->info, &r->heap);
	r->process_err = survey_process(&r->info, &r->survey);
	if (r->process_err)
		err_set(&r->process_why, r->process_err, "cannot read process %d (%s): %s", pid,
			r->info.comm,
			r->process_err == -ESRCH ? "it has just ended" : strerror(-r->process_err));
}

/* Print what was found. Return the exit status. */
static int examine_and_print(void *arg)
{
	struct doctor_report *r = arg;
	int err, status = 1;

	if (r->pid)
		examine_process(r);
	err = doctor_find(r);
	if (err) {
		log_error("doctor: cannot examine this machine: %s", strerror(-err));
	} else {
		(r->is_json ? doctor_print_json : doctor_print_text)(r, stdout);
		status = r->verdict == DOCTOR_BLOCK;
	}
	survey_free(r->survey);
	vec_release(&r->findings);
	return status;
}

/* A hostile file could take over its reader, so a child reads it that can do nothing else. */
static int print_report(struct doctor_report *r)
{
	bool is_safe;
	int status, err;

	r->columns = terminal_columns(STDOUT_FILENO, COLUMNS_MIN, COLUMNS_MAX);
	err = examine_machine(r);
	if (err) {
		log_error("doctor: cannot examine this machine: %s", strerror(-err));
		return 1;
	}
	if (!r->pid)
		return examine_and_print(r);
	r->seccomp_kills_returns = !seccomp_probe_returns(&is_safe) && !is_safe;
	status = sandbox_run_reading(examine_and_print, r, WALL_S);
	if (status >= 0)
		return status;
	log_error("doctor: cannot read process %llu: %s", (unsigned long long)r->pid,
		  sandbox_reading_error(status));
	return 1;
}

/* A process that gets no processor, or executes another program, may be as it should in a moment. */
static int clear_taps(pid_t pid, pid_t live_tid, uint32_t *ret_cnt, struct err *why)
{
	int err = tap_orders_clear(NULL, pid, live_tid, ret_cnt, why);

	for (int i = 0; i < CLEAR_RETRIES && (err == -ETIME || err == -EAGAIN); i++) {
		usleep(CLEAR_PAUSE_US);
		err = tap_orders_clear(NULL, pid, live_tid, ret_cnt, why);
	}
	return err;
}

static int remove_tap(pid_t pid)
{
	struct process_info info;
	struct err why;
	uint32_t cnt;
	int err = process_info_read(NULL, pid, &info);

	if (err)
		err_set(&why, err, "there is no process %d (ps -e lists them)", pid);
	else
		err = clear_taps(pid, info.live_tid, &cnt, &why);
	if (err) {
		log_error("doctor: --remove-tap: PID %d: %s", pid, why.text);
		return 1;
	}
	printf("PID %d: %s\n", pid,
	       cnt ? "the tap that was left in it is removed" : "no tap was left in it");
	return 0;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct doctor_report r = { 0 };

	if (command_settings(&command_doctor, args, &r))
		return 2;
	if (args->first < (size_t)argc) {
		log_error("doctor: unexpected argument '%s'; did you mean heaptap doctor -p %s?",
			  argv[args->first], argv[args->first]);
		return 2;
	}
	if (r.removes_tap && !r.pid) {
		log_error("doctor: --remove-tap needs -p PID");
		return 2;
	}
	return r.removes_tap ? remove_tap((pid_t)r.pid) : print_report(&r);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check what can be recorded here, and what would be missing",
	.example = "heaptap doctor -p PID",
	.options = &table,
	.usage = usage,
	.more = more,
	.run = run,
};
