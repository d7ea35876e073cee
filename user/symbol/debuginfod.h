/* SPDX-License-Identifier: MIT */
/*
 * debuginfod.h - files by build id from servers that speak debuginfod's protocol.
 *
 * Waits: for commands that read profiles, when the user asked for it; never for a recording. Who asks tells
 * the server which builds he looks at.
 */
#ifndef HT_SYMBOL_DEBUGINFOD_H
#define HT_SYMBOL_DEBUGINFOD_H

#include <stddef.h>

struct debuginfod;

enum debuginfod_kind { DEBUGINFOD_DEBUGINFO, DEBUGINFOD_EXECUTABLE, DEBUGINFOD_KIND_CNT };

/* The servers are those of DEBUGINFOD_URLS. -ENOENT: it names none. */
int debuginfod_open(struct debuginfod **ret);
void debuginfod_close(struct debuginfod *d);
/*
 * An fd of the file, which has that build id. Kept in the cache that debuginfod's other clients use
 * (DEBUGINFOD_CACHE_PATH, else debuginfod_client in XDG_CACHE_HOME or ~/.cache) where that is the user's own.
 * -ENOENT: no server has it. Others: debuginfod_why().
 */
int debuginfod_fetch(struct debuginfod *d, const char *build_id_hex, enum debuginfod_kind kind);
/* What went wrong with the last server that did not answer: a sentence. */
const char *debuginfod_why(const struct debuginfod *d);

#endif
