/* SPDX-License-Identifier: MIT */
/*
 * kernel_objects.c - what of BPF there is, as "name value" lines: the number of maps, programs and links on this
 * machine, and for each hash map that is named on the command line its entries. Only maps that the process PID has open
 * count, for others may have maps of these names.
 *
 *	kernel_objects PID [MAP...]
 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_CNT 2048

static unsigned count(int (*get_next)(uint32_t, uint32_t *))
{
	uint32_t id = 0;
	unsigned cnt = 0;

	while (!get_next(id, &id))
		cnt++;
	return cnt;
}

static long count_entries(int fd, const struct bpf_map_info *info)
{
	uint32_t batch_cnt = BATCH_CNT, cnt;
	uint64_t position[8];
	char *keys = NULL, *values = NULL;
	int has_begun = 0, err;
	long total = 0;

	do {
		cnt = batch_cnt;
		keys = realloc(keys, (size_t)batch_cnt * info->key_size);
		values = realloc(values, (size_t)batch_cnt * info->value_size);
		if (!keys || !values)
			abort();
		err = bpf_map_lookup_batch(fd, has_begun ? position : NULL, position, keys, values,
					   &cnt, NULL);
		if (err == -ENOSPC && batch_cnt < 1 << 20) {
			batch_cnt *= 4;
			err = 0;
			continue;
		}
		has_begun = 1;
		if (!err || err == -ENOENT)
			total += cnt;
	} while (!err);
	free(keys);
	free(values);
	return err == -ENOENT ? total : -1;
}

/* A map that the process has open, from /proc/PID/fdinfo; 0: the descriptor is none. */
static uint32_t map_id_of(const char *pid, const char *fd)
{
	char path[300], line[128];
	unsigned id = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "map_id: %u", &id);
	if (f)
		fclose(f);
	return id;
}

/* -1: there is no such map. */
static long entries_of_id(uint32_t id, const char *name)
{
	struct bpf_map_info info = { 0 };
	uint32_t bytes = sizeof(info);
	int fd = bpf_map_get_fd_by_id(id);
	long cnt = -1;

	if (fd < 0)
		return -1;
	if (!bpf_obj_get_info_by_fd(fd, &info, &bytes) && !strcmp(info.name, name))
		cnt = count_entries(fd, &info);
	close(fd);
	return cnt;
}

static long entries_of(const char *pid, const char *name)
{
	char path[64];
	const struct dirent *entry;
	long cnt = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
	dir = opendir(path);
	while (dir && cnt < 0 && (entry = readdir(dir))) {
		uint32_t id = map_id_of(pid, entry->d_name);

		if (id)
			cnt = entries_of_id(id, name);
	}
	if (dir)
		closedir(dir);
	return cnt;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: kernel_objects PID [MAP...]\n");
		return 2;
	}
	printf("maps %u\n", count(bpf_map_get_next_id));
	printf("programs %u\n", count(bpf_prog_get_next_id));
	printf("links %u\n", count(bpf_link_get_next_id));
	for (int i = 2; i < argc; i++)
		printf("map_%s %ld\n", argv[i], entries_of(argv[1], argv[i]));
	return 0;
}
