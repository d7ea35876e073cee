/* SPDX-License-Identifier: MIT */
/*
 * mute_fuse.c - a file system of one file, which stops answering. Needs root, /dev/fuse and nothing else.
 *
 *   mute_fuse FOLDER FILE [USER [alone]]    mounts FOLDER for the user (65534); FOLDER/file has the content of FILE,
 *                                           for everybody, or for that user alone, without root. Of user 0 it
 *                                           stands for a network's file system that hangs
 *
 * It says READY, takes commands, one a line, and says DONE after each:
 *
 *   mute          reads are not answered from now on; what was read before is dropped from the page cache
 *   mute OFFSET   reads of the page at OFFSET are not
 *   mute all      nothing about the file is, its attributes and being opened included
 *   speak         all is, to those who have waited as well
 *   count         says "WAITING N" before DONE: requests that wait for their answer
 *
 * No signal ends the waiting, because the request has been taken over here: who waits is in state S, and
 * after a kill -9 in state D. At the end of its input, or when it is killed, the mount is taken away, and
 * whoever waits has an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_INO 2
#define FILE_NAME "file"
#define PAGE_BYTES 4096
#define WAITING_CAP 1024
#define REQUEST_CAP (1 << 17) /* the kernel wants room for what could be written */

union request {
	struct {
		struct fuse_in_header head;
		union {
			struct fuse_init_in init;
			struct fuse_read_in read;
			char name[256];
		};
	};
	char bytes[REQUEST_CAP];
};

/* What is needed to answer later. */
struct waiting {
	struct fuse_in_header head;
	struct fuse_read_in read;
};

static union request req;
static struct waiting waiting[WAITING_CAP];
static size_t waiting_cnt;
static enum { SPEAKS, MUTE_READS, MUTE_PAGE, MUTE_ALL } state;
static uint64_t mute_off;
static int fuse_fd;
static char *content;
static size_t content_bytes;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void reply(uint64_t unique, int err, const void *data, size_t bytes)
{
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + bytes),
					.error = -err,
					.unique = unique };
	struct iovec part[] = { { &head, sizeof(head) }, { (void *)data, bytes } };

	/* ENOENT: who asked is gone */
	if (writev(fuse_fd, part, bytes ? 2 : 1) < 0 && errno != ENOENT)
		perror("mute_fuse: write");
}

static struct fuse_attr attr_of(uint64_t ino)
{
	struct fuse_attr a = { .ino = ino, .nlink = 1, .blksize = PAGE_BYTES };

	a.mode = ino == FILE_INO ? S_IFREG | 0755 : S_IFDIR | 0755;
	a.size = ino == FILE_INO ? content_bytes : 0;
	a.blocks = (a.size + 511) / 512;
	a.ctime = a.mtime = 1;
	return a;
}

static void answer_init(const struct fuse_in_header *head)
{
	/* Without FUSE_ASYNC_READ whoever reads waits for the answer himself, and not for a page. */
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_write = PAGE_BYTES };

	reply(head->unique, 0, &out, sizeof(out));
}

static void answer_lookup(const struct fuse_in_header *head, const char *name)
{
	struct fuse_entry_out out = { .nodeid = FILE_INO, .attr = attr_of(FILE_INO) };

	if (head->nodeid != FUSE_ROOT_ID || strcmp(name, FILE_NAME))
		reply(head->unique, ENOENT, NULL, 0);
	else
		reply(head->unique, 0, &out, sizeof(out));
}

static void answer_read(const struct fuse_in_header *head, const struct fuse_read_in *in)
{
	uint64_t left = in->offset < content_bytes ? content_bytes - in->offset : 0;

	reply(head->unique, 0, content + (left ? in->offset : 0),
	      left < in->size ? left : in->size);
}

static void answer(const struct fuse_in_header *head, const struct fuse_read_in *in)
{
	struct fuse_attr_out attr = { .attr = attr_of(head->nodeid) };
	struct fuse_open_out open = { .fh = 1 };
	struct fuse_statfs_out statfs = { .st.bsize = PAGE_BYTES, .st.namelen = 255 };

	switch (head->opcode) {
	case FUSE_GETATTR:
		reply(head->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(head->unique, 0, &open, sizeof(open));
		break;
	case FUSE_STATFS:
		reply(head->unique, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_READ:
		answer_read(head, in);
		break;
	case FUSE_READDIR: /* looks empty */
	case FUSE_ACCESS:
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(head->unique, 0, NULL, 0);
		break;
	default:
		reply(head->unique, ENOSYS, NULL, 0);
	}
}

static bool is_muted(void)
{
	const struct fuse_read_in *in = &req.read;

	if (req.head.nodeid != FILE_INO || state == SPEAKS || req.head.opcode == FUSE_RELEASE)
		return false;
	if (state == MUTE_ALL)
		return true;
	return req.head.opcode == FUSE_READ &&
	       (state == MUTE_READS ||
		(in->offset < mute_off + PAGE_BYTES && mute_off < in->offset + in->size));
}

static bool take_request(void)
{
	ssize_t n = read(fuse_fd, &req, sizeof(req));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN || errno == ENOENT;
	if (req.head.opcode == FUSE_FORGET || req.head.opcode == FUSE_BATCH_FORGET ||
	    req.head.opcode == FUSE_INTERRUPT)
		return true;
	if (is_muted() && waiting_cnt < WAITING_CAP)
		waiting[waiting_cnt++] = (struct waiting){ req.head, req.read };
	else if (req.head.opcode == FUSE_INIT)
		answer_init(&req.head);
	else if (req.head.opcode == FUSE_LOOKUP)
		answer_lookup(&req.head, req.name);
	else
		answer(&req.head, &req.read);
	return true;
}

/* While nobody waits: the kernel would wait for the pages that are being read. */
static void drop_pages(void)
{
	struct fuse_notify_inval_inode_out out = { .ino = FILE_INO };
	struct fuse_out_header head = { .len = sizeof(head) + sizeof(out),
					.error = FUSE_NOTIFY_INVAL_INODE };
	struct iovec part[] = { { &head, sizeof(head) }, { &out, sizeof(out) } };

	/* ENOENT: nobody has looked at it yet */
	if (!waiting_cnt && writev(fuse_fd, part, 2) < 0 && errno != ENOENT)
		perror("mute_fuse: invalidate");
}

static void mute(const char *what)
{
	state = !*what ? MUTE_READS : strcmp(what, " all") ? MUTE_PAGE : MUTE_ALL;
	mute_off = strtoull(what, NULL, 0) / PAGE_BYTES * PAGE_BYTES;
	drop_pages();
}

static void speak(void)
{
	state = SPEAKS;
	for (size_t i = 0; i < waiting_cnt; i++)
		answer(&waiting[i].head, &waiting[i].read);
	waiting_cnt = 0;
}

static void obey(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, "mute", 4))
		mute(line + 4);
	else if (!strcmp(line, "speak"))
		speak();
	else if (!strcmp(line, "count"))
		printf("WAITING %zu\n", waiting_cnt);
	puts("DONE");
	fflush(stdout);
}

static void load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t at = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	content_bytes = (size_t)st.st_size;
	content = malloc(content_bytes + 1);
	if (!content)
		fail("malloc");
	while (at < content_bytes && (n = read(fd, content + at, content_bytes - at)) > 0)
		at += (size_t)n;
	close(fd);
}

/* A process that takes the mount away when the server is gone, however it ended. Forked before there is the
 * descriptor, whose last copy must go with the server. */
static void start_janitor(const char *folder)
{
	int fd[2];
	char c;

	if (pipe2(fd, O_CLOEXEC))
		fail("pipe");
	if (fork()) {
		close(fd[0]);
		return;
	}
	close(fd[1]);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	if (freopen("/dev/null", "r+", stdin) && freopen("/dev/null", "r+", stdout) &&
	    read(fd[0], &c, 1) == 0)
		umount2(folder, MNT_DETACH);
	_exit(0);
}

int main(int argc, char **argv)
{
	char opts[128], line[64];
	struct pollfd from[2] = { { .events = POLLIN }, { .fd = STDIN_FILENO, .events = POLLIN } };

	if (argc < 3 || argc > 5) {
		fputs("usage: mute_fuse FOLDER FILE [USER [alone]]\n", stderr);
		return 2;
	}
	load(argv[2]);
	start_janitor(argv[1]);
	from[0].fd = fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse_fd < 0)
		fail("/dev/fuse");
	snprintf(opts, sizeof(opts), "fd=%d,rootmode=40000,user_id=%lu,group_id=65534%s", fuse_fd,
		 argc > 3 ? strtoul(argv[3], NULL, 10) : 65534, argc > 4 ? "" : ",allow_other");
	if (mount("mute_fuse", argv[1], "fuse.mute", MS_NOSUID | MS_NODEV, opts))
		fail("mount");
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() tells of what is not read yet */
	puts("READY");
	fflush(stdout);
	for (;;) {
		if (poll(from, 2, -1) < 0)
			continue;
		if (from[1].revents) {
			if (!fgets(line, sizeof(line), stdin))
				break;
			obey(line);
		}
		if (from[0].revents && !take_request())
			break;
	}
	umount2(argv[1], MNT_DETACH);
	return 0;
}
