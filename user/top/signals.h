/* SPDX-License-Identifier: MIT */
/* signals.h - SIGINT, SIGTERM and SIGHUP end heaptap top as `q` does: in their turn, with the terminal restored. */
#ifndef HT_TOP_SIGNALS_H
#define HT_TOP_SIGNALS_H

/* Let them wait from now on. Return a descriptor that is readable when one has come, or -errno. */
int top_signals_open(void);

#endif
