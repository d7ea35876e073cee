/* SPDX-License-Identifier: MIT */
/*
 * debuginfod.h - fetches files by build id from servers that speak debuginfod's protocol.
 *
 * It waits for the network: only for commands that read profiles, when the user asked for it; never for a
 * recording. Each request tells the server which builds the user looks at.
 */
#ifndef HT_SYMBOL_DEBUGINFOD_H
#define HT_SYMBOL_DEBUGINFOD_H

#include <stddef.h>

struct debuginfod;

enum debuginfod_kind { DEBUGINFOD_DEBUGINFO, DEBUGINFOD_EXECUTABLE, DEBUGINFOD_KIND_CNT };

/* Uses the servers in DEBUGINFOD_URLS. -ENOENT: it names none. */
int debuginfod_open(struct debuginfod **ret);
void debuginfod_close(struct debuginfod *d);
/*
 * Return an fd of the file, whose build id is checked. It is kept in the cache of debuginfod's other clients
 * (DEBUGINFOD_CACHE_PATH, else debuginfod_client in XDG_CACHE_HOME or ~/.cache) if that is the user's own.
 * -ENOENT: no server has it. Others: debuginfod_why().
 */
int debuginfod_fetch(struct debuginfod *d, const char *build_id_hex, enum debuginfod_kind kind);
/* The failure of the last server that did not answer: a sentence. */
const char *debuginfod_why(const struct debuginfod *d);

#endif
