/* SPDX-License-Identifier: MIT */
/*
 * daemon.h - `heaptap serve`: follows the selected processes and serves what they hold.
 *
 * It says on stderr what it does and why it cannot: callers only pass the error on.
 */
#ifndef HT_SERVE_DAEMON_H
#define HT_SERVE_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "saved/saver.h"
#include "serve/pushes.h"
#include "proc/select.h"
#include "kernel/attach.h"
#include "profile/recording.h"
#include "track/plan.h"
#include "track/probes.h"

struct daemon;

/* What is pointed to must stay. The values of options are written here by cmd/serve_options.c. */
struct daemon_options {
	struct select_options select;
	const pid_t *pids;
	size_t pid_cnt;
	char *listen; /* as in http/http.h */
	char *token_file; /* NULL: none */
	uint64_t rate_bytes;
	struct recording_limit max_overhead; /* of each process */
	double max_overhead_host; /* of the time of all CPUs */
	uint64_t live_cap, stack_cap;
	uint64_t past_interval_ns; /* between looks at what stacks hold; 0: none */
	uint64_t metrics_scopes; /* series of a process in the metrics; 0: of processes only */
	enum attach_mode mode;
	enum probes_source source;
	struct texts tap,
		tap_exe; /* expressions of names and executables of processes that may be tapped */
	enum sharing
		sharing; /* SHARING_AUTO: the best for each file; SHARING_ALL agrees to it as well */
	struct saver_options keep;
	struct pushes_options pushes; /* target_cnt 0: nothing is pushed */
	char *const *command_argv; /* for comments of profiles */
	int command_argc;
	bool can_reload; /* SIGHUP asks for daemon_reconfigure(); else it ends */
};

enum daemon_wish { DAEMON_END, DAEMON_RELOAD };

/* Everything that can be refused is, before anything is attached. Then follows and listens. */
int daemon_open(const struct daemon_options *opts, struct daemon **ret);
/*
 * Until SIGTERM or SIGINT: 0 and DAEMON_END; a last profile is pushed, for some seconds, and a second
 * signal ends that. SIGHUP: 0 and DAEMON_RELOAD, to be called again. SIGUSR1 takes all probes out,
 * SIGUSR2 puts them in again.
 */
int daemon_run(struct daemon *d, enum daemon_wish *ret);
/*
 * Other options. Selection, token_file, the budget, bounds and limit of what is kept, and pushes change;
 * the others need a new start, and have to be the old ones, as have the spool's folder, certificates
 * and debug information of pushes. All that can be refused is refused before anything is changed: then
 * it was said why, and the old ones count.
 */
int daemon_reconfigure(struct daemon *d, const struct daemon_options *opts);
/* Takes every probe out. */
void daemon_close(struct daemon *d);

#endif
