/* SPDX-License-Identifier: MIT */
/*
 * address_map.h - run-time addresses of one process <-> places in files.
 *
 * Profiles know a place by file and ELF address, because processes come and go. Tools that ask a
 * server for names (the remote protocol of gperftools) know run-time addresses only. A file that the
 * process does not map now (a library that was closed) has none: its places get an address that no
 * process can have, made of the file's id, which means the same as long as a stack is known that
 * goes through the file.
 */
#ifndef HT_TRACK_ADDRESS_MAP_H
#define HT_TRACK_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct address_map;
struct proc_maps;
struct track_file;
struct track_files;

/* The mappings as they are now; files is referred to. -ESRCH: the process has ended. */
int address_map_new(const struct track_files *files, pid_t pid, struct address_map **ret);
/* From mappings that are owned from here on, whatever is returned. */
int address_map_of(const struct track_files *files, struct proc_maps *maps,
		   struct address_map **ret);
void address_map_free(struct address_map *m);

/* Does the process map the file? */
bool address_map_has(const struct address_map *m, const struct track_file *file);
/* 0: vaddr lies beyond what an address can be made of. */
uint64_t address_map_addr(const struct address_map *m, const struct track_file *file,
			  uint64_t vaddr);
/* NULL: in no file that heaptap knows; *ret_vaddr is addr then. */
const struct track_file *address_map_place(const struct address_map *m, uint64_t addr,
					   uint64_t *ret_vaddr);

/* Executable mappings of files, in order of their addresses. */
const struct proc_maps *address_map_maps(const struct address_map *m);

#endif
