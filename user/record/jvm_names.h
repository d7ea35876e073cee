/* SPDX-License-Identifier: MIT */
/* jvm_names.h - at the end of a recording, JVMs are asked for the names of their code. */
#ifndef HT_RECORD_JVM_NAMES_H
#define HT_RECORD_JVM_NAMES_H

struct tracker;

/* All that are followed and run. Says which of them were asked in vain. */
void jvm_names_ask(const struct tracker *t);

#endif
