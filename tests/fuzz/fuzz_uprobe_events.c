/* SPDX-License-Identifier: MIT */
/* fuzz_uprobe_events.c - lines of the kernel's list of probes, which anybody with the right to may have defined. */
#include "fuzz.h"

#include "kernel/uprobe_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *line = fuzz_text(data, bytes);
	struct uprobe_owner owner;
	const char *name;
	size_t name_len;
	int err;

	err = uprobe_event_owner(line, &owner, &name, &name_len);
	if (err && err != -ENOENT)
		abort();
	/* What is removed is a definition of ours, and nothing behind its name. */
	if (!err && (owner.pid <= 0 || name <= line || name[-1] != ':' ||
		     strncmp(name, "heaptap_", 8) || !memchr(name, '/', name_len) ||
		     name_len > strlen(name) || strcspn(name, " \t\n") != name_len))
		abort();
	free(line);
	return 0;
}
