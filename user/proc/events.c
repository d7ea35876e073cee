/* SPDX-License-Identifier: MIT */
/*
 * events.c - executable mappings of all processes, as they happen.
 *
 * A perf "dummy" event counts nothing but carries the kernel's side-band records; with mmap and
 * mmap2 set and mmap_data clear it carries exactly one record per executable mapping (mmap, the
 * loader's and the kernel's own at exec, and mprotect to executable). System-wide means one event
 * and one ring per CPU.
 *
 * Promises: one readable fd; every record wakes it (a watermark of one byte), so that a dlopen is seen as soon
 * as this process is scheduled; lost records are reported, with their number.
 *
 * Does not order records of different CPUs, and does not see CPUs that come online later: mappings made there
 * are found when a stack walk meets them.
 */
#include "proc/events.h"

#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/vec.h"

/* A record is some 100 bytes: room for about 1000, a few hundred program starts, per CPU. */
#define RING_BYTES ((size_t)128 << 10)

struct cpu_ring {
	int fd;
	struct perf_event_mmap_page *header; /* a page, then RING_BYTES of data */
};

struct process_events {
	const struct process_events_ops *ops;
	void *ctx;
	int epoll_fd;
	VEC(struct cpu_ring) rings;
	/* a record that wraps around the ring's end is put together here; sizes have 16 bits */
	uint8_t *record;
};

/* PERF_RECORD_MMAP2 without build id; filename is NUL-padded to 8 bytes. Each record ends with its time. */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, bytes, off;
	uint32_t major, minor;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char path[];
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, cnt;
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_dummy_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.watermark = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.wakeup_watermark = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void ring_close(struct cpu_ring *ring)
{
	if (ring->header)
		munmap(ring->header, page_bytes() + RING_BYTES);
	if (ring->fd >= 0)
		close(ring->fd);
}

static int add_cpu(struct process_events *ev, int cpu)
{
	struct epoll_event wait = { .events = EPOLLIN };
	struct cpu_ring ring = { .fd = open_dummy_event(cpu) };
	void *mem;
	int err;

	if (ring.fd == -ENODEV) /* went offline meanwhile */
		return 0;
	if (ring.fd < 0)
		return ring.fd;
	mem = mmap(NULL, page_bytes() + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
	if (mem == MAP_FAILED) {
		err = -errno;
		goto out;
	}
	ring.header = mem;
	if (epoll_ctl(ev->epoll_fd, EPOLL_CTL_ADD, ring.fd, &wait)) {
		err = -errno;
		goto out;
	}
	err = vec_push(&ev->rings, ring);
	if (err)
		goto out;
	return 0;
out:
	ring_close(&ring);
	return err;
}

/* "0-3,8,10-11" */
static int add_online_cpus(struct process_events *ev)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	char list[4096], *p = list;
	int fd, err = 0;
	ssize_t n;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, list, sizeof(list) - 1);
	close(fd);
	if (n <= 0)
		return -EIO;
	list[n] = '\0';
	while (!err && *p >= '0' && *p <= '9') {
		long first = strtol(p, &p, 10), last = first;

		if (*p == '-')
			last = strtol(p + 1, &p, 10);
		for (; !err && first <= last; first++)
			err = add_cpu(ev, (int)first);
		if (*p == ',')
			p++;
	}
	if (!err && !ev->rings.cnt)
		err = -ENODEV;
	return err;
}

int process_events_open(const struct process_events_ops *ops, void *ctx,
			struct process_events **ret)
{
	struct process_events *ev = calloc(1, sizeof(*ev));
	int err = -ENOMEM;

	if (!ev)
		return err;
	ev->ops = ops;
	ev->ctx = ctx;
	ev->epoll_fd = -1;
	ev->record = malloc(UINT16_MAX + 1);
	if (!ev->record)
		goto out;
	ev->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ev->epoll_fd < 0) {
		err = -errno;
		goto out;
	}
	err = add_online_cpus(ev);
	if (err)
		goto out;
	*ret = ev;
	return 0;
out:
	process_events_close(ev);
	return err;
}

int process_events_fd(const struct process_events *ev)
{
	return ev->epoll_fd;
}

static void handle_mmap2(struct process_events *ev, const struct mmap2_record *r)
{
	size_t path_cap = r->header.size - offsetof(struct mmap2_record, path) - sizeof(uint64_t);
	struct process_events_map map = {
		.pid = (pid_t)r->pid,
		.dev = r->major << 20 | r->minor,
		.ino = r->ino,
		.addr = r->addr,
		.bytes = r->bytes,
		.off = r->off,
		.path = r->path,
	};

	memcpy(&map.time_ns, r->path + path_cap, sizeof(map.time_ns));
	if (!(r->prot & PROT_EXEC) || strnlen(r->path, path_cap) == path_cap)
		return;
	/* no inode: memory without a file; or the kernel's own, such as "[vdso]" */
	if (!r->ino && ev->ops->on_code && r->path[0] != '[')
		ev->ops->on_code(ev->ctx, (pid_t)r->pid);
	if (r->ino && ev->ops->on_mmap)
		ev->ops->on_mmap(ev->ctx, &map);
}

static void handle_record(struct process_events *ev, const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_MMAP2 &&
	    header->size > sizeof(struct mmap2_record) + sizeof(uint64_t)) {
		handle_mmap2(ev, (const void *)header);
	} else if (header->type == PERF_RECORD_LOST && header->size >= sizeof(struct lost_record)) {
		const struct lost_record *lost = (const void *)header;

		if (ev->ops->on_lost)
			ev->ops->on_lost(ev->ctx, lost->cnt);
	}
}

/*
 * Handle the records that are in the ring now; later ones wake the fd again. Each record is copied out and its
 * space given back before the callback, which may take its time.
 */
static int drain_ring(struct process_events *ev, struct cpu_ring *ring)
{
	const uint8_t *data = (const uint8_t *)ring->header + page_bytes();
	uint64_t head = __atomic_load_n(&ring->header->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->header->data_tail;
	const struct perf_event_header *header = (const void *)ev->record;

	while (tail != head) {
		size_t at = tail % RING_BYTES, until_end = RING_BYTES - at, size;

		/* records are multiples of 8 bytes: a header never wraps */
		memcpy(ev->record, data + at, sizeof(*header));
		size = header->size;
		if (size < sizeof(*header) || size % 8 || size > head - tail) {
			/* only a kernel bug gets here: drop the content of the ring */
			__atomic_store_n(&ring->header->data_tail, head, __ATOMIC_RELEASE);
			return -EBADMSG;
		}
		if (size <= until_end) {
			memcpy(ev->record, data + at, size);
		} else {
			memcpy(ev->record, data + at, until_end);
			memcpy(ev->record + until_end, data, size - until_end);
		}
		tail += size;
		__atomic_store_n(&ring->header->data_tail, tail, __ATOMIC_RELEASE);
		handle_record(ev, header);
	}
	return 0;
}

int process_events_drain(struct process_events *ev)
{
	struct cpu_ring *ring;
	int err = 0;

	vec_each(&ev->rings, ring) {
		int ring_err = drain_ring(ev, ring);

		if (ring_err)
			err = ring_err;
	}
	return err;
}

void process_events_close(struct process_events *ev)
{
	struct cpu_ring *ring;

	if (!ev)
		return;
	vec_each(&ev->rings, ring)
		ring_close(ring);
	vec_release(&ev->rings);
	if (ev->epoll_fd >= 0)
		close(ev->epoll_fd);
	free(ev->record);
	free(ev);
}
