/* SPDX-License-Identifier: MIT */
/*
 * address_map.h - maps run-time addresses of one process to places in files, and back.
 *
 * Profiles name a place by file and ELF address, because processes come and go. Tools that ask a
 * server for names (the remote protocol of gperftools) know run-time addresses only. A file that
 * the process no longer maps (a closed library) has no run-time address. Its places get an address
 * that no process can have, made from the file's id; its meaning stays the same as long as a known
 * stack goes through the file.
 */
#ifndef HT_RESULT_ADDRESS_MAP_H
#define HT_RESULT_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct address_map;
struct proc_maps;
struct track_file;
struct track_files;

/* Read the present mappings. Keeps a reference to files. -ESRCH: the process has ended. */
int address_map_new(const struct track_files *files, pid_t pid, struct address_map **ret);
/* Build from maps; takes ownership of them, also on failure. */
int address_map_of(const struct track_files *files, struct proc_maps *maps,
		   struct address_map **ret);
void address_map_free(struct address_map *m);

/* Does the process map the file? */
bool address_map_has(const struct address_map *m, const struct track_file *file);
/* 0: vaddr is too large to be encoded in an address. */
uint64_t address_map_addr(const struct address_map *m, const struct track_file *file,
			  uint64_t vaddr);
/* NULL: addr is in no file that heaptap knows; *ret_vaddr is addr then. */
const struct track_file *address_map_place(const struct address_map *m, uint64_t addr,
					   uint64_t *ret_vaddr);

/* Executable mappings of files, by address. */
const struct proc_maps *address_map_maps(const struct address_map *m);

#endif
