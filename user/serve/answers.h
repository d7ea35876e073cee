/* SPDX-License-Identifier: MIT */
/*
 * answers.h - the daemon's HTTP side: what is asked for, and which part of the daemon answers it.
 *
 * Pages and metrics are written here, of a view that live_view.h shares among those who ask.
 * Profiles and names of addresses take longer: profiles.h holds the exchange and answers later.
 * What was kept is handed out as it is. A request for what does not exist is told what there is
 * instead.
 *
 * The server runs in the event loop, which calls http_run() and the like on answers_server().
 */
#ifndef HT_SERVE_ANSWERS_H
#define HT_SERVE_ANSWERS_H

struct answers;
struct follow;
struct http_server;
struct keeper;
struct live_view;
struct profiles;
struct pushes;
struct tracker;

/* Who knows what is asked for. */
struct answers_parts {
	struct tracker *tracker;
	struct follow *follow;
	struct live_view *live_view;
	struct profiles *profiles;
	struct pushes *pushes;
	struct keeper *keeper; /* NULL: nothing is kept */
};

/*
 * Before anything is attached: the port may be in use, which is said on stderr, as is what is
 * wrong with the token. listen is as in http/http.h, token_file may be NULL: none.
 */
int answers_open(const char *listen, const char *token_file, struct answers **ret);
/* Before the server runs for the first time. parts is copied. What it points to must stay as long
 * as the server runs, and profiles until answers_close(). */
void answers_start(struct answers *as, const struct answers_parts *parts);
/* Who waits is answered that the server ends. */
void answers_close(struct answers *as);

/* Another token, NULL: none. On failure, which is said, the old one counts. */
int answers_set_token(struct answers *as, const char *token_file);

/* Owned by the answers. */
struct http_server *answers_server(const struct answers *as);

#endif
