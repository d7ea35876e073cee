/* SPDX-License-Identifier: MIT */
/*
 * daemon.h - `heaptap serve`: follows the selected processes and serves what they hold.
 *
 * The daemon itself reports on stderr what it does and why it fails: callers only pass the error on.
 */
#ifndef HT_SERVE_DAEMON_H
#define HT_SERVE_DAEMON_H

#include "base/std.h"
#include "kernel/attach.h"
#include "proc/select.h"
#include "profile/recording.h"
#include "record/saver.h"
#include "serve/pushes.h"
#include "track/policy.h"

struct daemon;

#define ROWS_INTERVAL_MIN_NS 60000000000ULL

/* Everything pointed to must stay valid. cmd/serve_options.c writes the values of options here. */
struct daemon_options {
	struct select_options select;
	const pid_t *pids;
	size_t pid_cnt;
	char *listen; /* as in http/http.h */
	char *token_file; /* NULL: none */
	uint64_t rate_bytes;
	struct recording_limit max_overhead; /* of each process */
	double max_overhead_host; /* share of the time of all CPUs */
	uint64_t live_cap, stack_cap;
	uint64_t past_interval_ns; /* between reads of what stacks hold; 0: never read */
	/* Between readings of resident memory by row, at least ROWS_INTERVAL_MIN_NS; 0: never read. */
	uint64_t rows_interval_ns;
	uint64_t metrics_scopes; /* series of a process in the metrics; 0: of processes only */
	enum attach_mode mode;
	enum probes_source source;
	struct texts tap,
		tap_exe; /* names and executables (expressions) of processes that may be tapped */
	bool taps_on_request; /* as in struct track_policy; of all processes if there are no expressions */
	enum sharing
		sharing; /* SHARING_AUTO: the best for each file; SHARING_ALL agrees to it as well */
	struct saver_options keep;
	struct pushes_options pushes; /* target_cnt 0: nothing is pushed */
	char *const *command_argv; /* for the notes of profiles */
	int command_argc;
	bool can_reload; /* SIGHUP asks for daemon_reconfigure(); false: it ends heaptap */
};

enum daemon_wish { DAEMON_END, DAEMON_RELOAD };

/* Refuse all that can be refused before anything is attached. Then follow processes and listen. */
int daemon_open(const struct daemon_options *opts, struct daemon **ret);
/*
 * Run until SIGTERM or SIGINT: 0 and DAEMON_END, after pushing last profiles for some seconds, which a second
 * signal cuts short. After SIGHUP: 0 and DAEMON_RELOAD; call it again. SIGUSR1 takes all probes out, SIGUSR2 puts
 * them in again. Logs why it ends. -EPIPE, after the same: the guardian was killed, so no probe is left, and heaptap's
 * starter starts it anew.
 */
int daemon_run(struct daemon *d, enum daemon_wish *ret);
/*
 * Apply other options. Selection, token_file, budget, the bounds and limit of saved profiles, and pushes may
 * change. All others must be the old ones, because they need a new start; so must the spool's folder, certificates
 * and debug information of pushes. All refusals come before any change: then the reason was logged and the old
 * options stay in force.
 */
int daemon_reconfigure(struct daemon *d, const struct daemon_options *opts);
/* Take every probe out. */
void daemon_close(struct daemon *d);

#endif
