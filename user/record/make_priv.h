/* SPDX-License-Identifier: MIT */
/* make_priv.h - the parts of make.c. */
#ifndef HT_RECORD_MAKE_PRIV_H
#define HT_RECORD_MAKE_PRIV_H

#include "base/std.h"
#include "base/hmap.h"
#include "proc/facts.h"

struct profile;
struct reader;
struct result_request;
struct result_source;
struct symbol_options;
struct track_file;
struct track_files;

/* How names are looked up for a result that begins now. */
struct symbol_options result_symbol_options(const struct result_source *src,
					    const struct result_request *r);

/*
 * process_text.c: one process in the form of gperftools' remote protocol: a heap profile in run-time addresses, and
 * the names of such addresses.
 *
 * The addresses are those of the process as it is mapped now. A frame that is not in a file has an address below
 * the first page that a process may map, or is of code made at run time.
 */

/* Write p, a profile of that process alone, whose locations and mappings are replaced; for ENDPOINT_REMOTE_GROWTH what
 * was allocated, whether it is still in use or not. -ESRCH: the process has ended. */
int process_text_write(const struct result_source *src, const struct result_request *r,
		       struct profile *p, int fd);
/* Write a line "0xADDR\tNAME" for each address. Names are demangled; inlined functions are written as
 * "CALLER--INLINED", as the protocol separates them. */
int process_names_write(const struct result_source *src, const struct result_request *r, int fd);

/*
 * Run-time addresses of one process <-> places in files.
 *
 * Profiles name a place by file and ELF address, because processes come and go. Tools that ask a
 * server for names know run-time addresses only. A file that the process no longer maps (a closed
 * library) has no run-time address. Its places get an address that no process can have, made from
 * the file's id; its meaning stays the same as long as a known stack goes through the file.
 */
struct address_map {
	const struct track_files *files;
	pid_t pid; /* 0: no process */
	struct proc_maps maps; /* executable mappings of files, by address */
	struct hmap bias_by_file; /* file id -> bias of its first mapping */
};

/* Read the present mappings. Keeps a reference to files. -ESRCH: the process has ended. To be released in any case. */
int address_map_read(struct reader *reader, const struct track_files *files, pid_t pid,
		     struct address_map *ret);
void address_map_release(struct address_map *m);

/* 0: vaddr is too large to be encoded in an address. */
uint64_t address_map_addr(const struct address_map *m, const struct track_file *file,
			  uint64_t vaddr);
/* NULL: addr is in no file that heaptap knows; *ret_vaddr is addr then. */
const struct track_file *address_map_place(const struct address_map *m, uint64_t addr,
					   uint64_t *ret_vaddr);

#endif
