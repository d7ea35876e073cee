/* SPDX-License-Identifier: MIT */
/*
 * requests.h - the daemon's HTTP side: what is asked for, and which part of the daemon answers it.
 *
 * Pages and metrics are written here, of a view that live_view.h shares among those who ask.
 * Profiles and names of addresses take longer: profiles.h holds the exchange and answers later.
 * What was kept is handed out as it is. A request for what does not exist is told what there is
 * instead.
 *
 * The server runs in the event loop, which calls http_run() and the like on requests_server().
 */
#ifndef HT_SERVE_REQUESTS_H
#define HT_SERVE_REQUESTS_H

struct requests;
struct follow;
struct http_server;
struct saver;
struct live_view;
struct profiles;
struct profile_source;
struct pushes;
struct tracker;

/* Who knows what is asked for. */
struct requests_parts {
	struct tracker *tracker;
	const struct profile_source *source;
	struct follow *follow;
	struct live_view *live_view;
	struct profiles *profiles;
	struct pushes *pushes;
	struct saver *saver; /* NULL: nothing is saved */
};

/*
 * Before anything is attached: the port may be in use, which is said on stderr, as is what is
 * wrong with the token. listen is as in http/http.h, token_file may be NULL: none.
 */
int requests_open(const char *listen, const char *token_file, struct requests **ret);
/* Before the server runs for the first time. parts is copied. What it points to must stay as long
 * as the server runs, and profiles until requests_close(). */
void requests_start(struct requests *as, const struct requests_parts *parts);
/* Who waits is answered that the server ends. */
void requests_close(struct requests *as);

/* Another token, NULL: none. On failure, which is said, the old one counts. */
int requests_set_token(struct requests *as, const char *token_file);

/* Owned by the answers. */
struct http_server *requests_server(const struct requests *as);

#endif
