/* SPDX-License-Identifier: MIT */
/*
 * costly_maps.c - a process that harms whoever reads the files that it maps.
 *
 *   costly_maps FOLDER leases COUNT       files on which it holds write leases
 *   costly_maps FOLDER tiny COUNT         small ELF files
 *   costly_maps FOLDER KIND BYTES COUNT   files of costly_elf.h: KIND is its number there
 *
 * It says READY, maps them when it is told to, says DONE, and waits for its end. Run by root it becomes a
 * user of no rights first.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../unit/costly_elf.h"

#define NOBODY 65534

static const char *folder;

/* Without a descriptor left, but of a lease. */
static void map_file(const void *data, size_t bytes, int number, int is_leased)
{
	char path[512];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/f%d-%d.so", folder, (int)getpid(), number);
	fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	map = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		abort();
	if (!is_leased)
		close(fd);
	else if (fcntl(fd, F_SETLEASE, F_WRLCK))
		perror("F_SETLEASE");
}

static void map_all(int argc, char **argv)
{
	int cnt = atoi(argv[argc - 1]);
	struct costly c;

	if (argc == 5) {
		costly_kinds[atoi(argv[2])].make(&c, (size_t)atol(argv[3]));
	} else {
		costly_begin(&c, 1);
		costly_end(&c);
	}
	for (int i = 0; i < cnt; i++)
		map_file(c.data, c.bytes, i, !strcmp(argv[2], "leases"));
	free(c.data);
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc < 4)
		return 2;
	folder = argv[1];
	signal(SIGIO, SIG_IGN);
	if (!getuid() && (setgid(NOBODY) || setuid(NOBODY)))
		return 1;
	puts("READY");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	map_all(argc, argv);
	puts("DONE");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}
