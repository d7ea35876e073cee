/* SPDX-License-Identifier: MIT */
/*
 * fuzz_debug_files.c - which file an ELF file makes heaptap open as its debug file.
 *
 * The input is a build id, the names of .gnu_debuglink and .gnu_debugaltlink, and the file's own path, each with its
 * length before it. The root in which they are looked for has what a hostile one would: links that lead out, a
 * FIFO, a device, a file of 2 GB of nothing. What is opened is a regular file in that root.
 */
#include "fuzz.h"

#include <sys/sysmacros.h>
#include <zlib.h>

#include "cost.h"
#include "elf/elf_file.h"
#include "symbol/debug_files.h"
#include "../unit/made_elf.h"

static char root[] = "/tmp/heaptap-fuzz-debug-XXXXXX";
static uint32_t debug_crc;

struct text {
	uint8_t data[256];
	size_t bytes;
};

static void remove_root(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command))
		fprintf(stderr, "%s is left\n", root);
}

static int file_at(const char *path)
{
	char full[128];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static void make_link(const char *target, const char *path)
{
	char full[128];

	snprintf(full, sizeof(full), "%s%s", root, path);
	if (symlink(target, full))
		abort();
}

static struct made_elf make_elf(const struct text *id, const struct text *link,
				const struct text *alt, uint8_t note[static 256 + 16])
{
	const uint32_t head[3] = { 4, (uint32_t)id->bytes, 3 /* NT_GNU_BUILD_ID */ };
	struct made_section secs[3] = { { .name = ".note.gnu.build-id",
					  .type = SHT_NOTE,
					  .flags = SHF_ALLOC,
					  .data = note,
					  .bytes = 16 + id->bytes },
					{ .name = ".gnu_debuglink",
					  .type = SHT_PROGBITS,
					  .data = link->data,
					  .bytes = link->bytes },
					{ .name = ".gnu_debugaltlink",
					  .type = SHT_PROGBITS,
					  .data = alt->data,
					  .bytes = alt->bytes } };

	memcpy(note, head, sizeof(head));
	memcpy(note + 12, "GNU", 4);
	memcpy(note + 16, id->data, id->bytes);
	return made_elf_new(secs, 3);
}

static void make_root(void)
{
	static const char *const folders[] = { "/app",
					       "/usr",
					       "/usr/lib",
					       "/usr/lib/debug",
					       "/usr/lib/debug/.build-id",
					       "/usr/lib/debug/.build-id/11" };
	const struct text id = { { 0x11, 0x22, 0x33, 0x44 }, 4 }, none = { .bytes = 0 };
	uint8_t note[256 + 16];
	struct made_elf elf = make_elf(&id, &none, &none, note);
	char path[128];
	int fd;

	if (!mkdtemp(root))
		abort();
	atexit(remove_root);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, sizeof(path), "%s%s", root, folders[i]);
		if (mkdir(path, 0700))
			abort();
	}
	fd = file_at("/app/p.debug");
	if (fd < 0 || write(fd, elf.data, elf.bytes) != (ssize_t)elf.bytes)
		abort();
	close(fd);
	debug_crc = (uint32_t)crc32(crc32(0, NULL, 0), elf.data, (uInt)elf.bytes);
	free(elf.data);
	fd = file_at("/app/big");
	if (fd < 0 || ftruncate(fd, 2LL << 30))
		abort();
	close(fd);
	make_link("../../../../../../../../../app/p.debug",
		  "/usr/lib/debug/.build-id/11/223344.debug");
	make_link("/", "/app/.debug");
	make_link("../../../../../../../..", "/app/up");
	make_link("/app/loop", "/app/loop");
	make_link("/etc/passwd", "/app/passwd");
	make_link("/proc/self/fd/0", "/app/magic");
	snprintf(path, sizeof(path), "%s/app/pipe", root);
	if (mkfifo(path, 0600))
		abort();
	snprintf(path, sizeof(path), "%s/app/device", root);
	(void)!mknod(path, S_IFCHR | 0600, makedev(1, 5)); /* where that is allowed */
}

static void check_opened(int fd)
{
	char self[64], path[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0 && fd != -ENOENT)
		abort();
	if (fd < 0)
		return;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || strncmp(path, root, strlen(root)) ||
	    (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY || !(fcntl(fd, F_GETFD) & FD_CLOEXEC)) {
		fprintf(stderr, "opened: %s\n", path);
		abort();
	}
	close(fd);
}

static struct text take(const uint8_t **data, size_t *bytes, size_t cap)
{
	struct text t = { .bytes = 0 };

	if (!*bytes)
		return t;
	t.bytes = **data < *bytes - 1 ? **data : *bytes - 1;
	if (t.bytes > cap)
		t.bytes = cap;
	memcpy(t.data, *data + 1, t.bytes);
	*data += 1 + t.bytes;
	*bytes -= 1 + t.bytes;
	return t;
}

/* Padded, with the sum of the debug file that is there behind it. */
static void add_crc(struct text *link)
{
	link->bytes = (link->bytes + 1 + 3) & ~(size_t)3;
	memcpy(link->data + link->bytes, &debug_crc, 4);
	link->bytes += 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char found[PATH_MAX], name[256], hex[2 * BUILD_ID_BYTES_CAP + 1];
	uint8_t note[256 + 16];
	struct elf_file *ef = NULL;
	struct text id, link, alt, path;
	struct made_elf elf;
	uint64_t start_ns;
	bool is_right;

	if (!debug_crc)
		make_root();
	if (!bytes)
		return 0;
	is_right = *data++ % 2;
	bytes--;
	id = take(&data, &bytes, 255);
	link = take(&data, &bytes, 240);
	alt = take(&data, &bytes, 255);
	path = take(&data, &bytes, 250);
	if (is_right)
		add_crc(&link);
	snprintf(name, sizeof(name), "/%.*s", (int)path.bytes, (const char *)path.data);
	elf = make_elf(&id, &link, &alt, note);
	start_ns = cost_now_ns();
	if (!elf_file_open_mem(elf.data, elf.bytes, &ef)) {
		check_opened(debug_files_open(ef, name, root, found));
		check_opened(debug_files_open_alt(ef, name, root));
		elf_file_build_id_hex(ef, hex);
		check_opened(debug_files_open_id(hex, root, found));
		cost_check(ef, start_ns, elf.bytes);
		elf_file_close(ef);
	}
	free(elf.data);
	snprintf(hex, sizeof(hex), "%.*s", (int)path.bytes, (const char *)path.data);
	check_opened(debug_files_open_id(hex, root, found));
	return 0;
}
