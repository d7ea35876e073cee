/* SPDX-License-Identifier: MIT */
/*
 * kernel_objects.c - what of BPF there is on this machine, as "name value" lines: the number of
 * maps, programs and links, and for each hash map that is named on the command line its entries
 * (of all maps of that name together).
 *
 *	kernel_objects [MAP...]
 */
#include <bpf/bpf.h>
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

static long entries_of(const char *name)
{
	uint32_t id = 0;
	long total = 0;

	while (!bpf_map_get_next_id(id, &id)) {
		struct bpf_map_info info = { 0 };
		uint32_t bytes = sizeof(info);
		int fd = bpf_map_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &bytes) && !strcmp(info.name, name))
			total += count_entries(fd, &info);
		close(fd);
	}
	return total;
}

int main(int argc, char **argv)
{
	printf("maps %u\n", count(bpf_map_get_next_id));
	printf("programs %u\n", count(bpf_prog_get_next_id));
	printf("links %u\n", count(bpf_link_get_next_id));
	for (int i = 1; i < argc; i++)
		printf("map_%s %ld\n", argv[i], entries_of(argv[i]));
	return 0;
}
