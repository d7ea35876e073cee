/* SPDX-License-Identifier: MIT */
/*
 * mapping.bpf.h - finds the mapping of the process that an address is in.
 *
 * User space has stored the mappings that it knows. A mapping that is newer than user space's last read is
 * found by asking the kernel for the vma of the address, and by the inode of its file. Executable memory
 * without a file has code that the process made at run time.
 */
#ifndef HT_MAPPING_BPF_H
#define HT_MAPPING_BPF_H

const volatile bool ht_use_find_vma = true; /* needs 5.17 */

#define FIND_VMA_TRIES 32
#define VMA_EXEC 0x4 /* the kernel's VM_EXEC */

struct vma_query {
	__u32 jit_file_id;
	__u32 reserved;
	struct ht_mapping map;
};

/* A file of overlayfs is mapped through this struct since 6.5; it has this member since 6.8. */
struct backing_file___ht {
	struct file file;
	struct path user_path;
} __attribute__((preserve_access_index));

static __always_inline struct ht_inode_file *inode_find(const struct inode *inode)
{
	struct ht_inode key = {};

	key.ino = BPF_CORE_READ(inode, i_ino);
	key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	return bpf_map_lookup_elem(&inodes, &key);
}

/*
 * User space knows a file by the inode in /proc/PID/maps. For a file on overlayfs since 6.8, this is the inode
 * that was opened, while the mapped file is that of the layer below. No member of a file that is the same in
 * all versions tells which files are of this kind. So we read behind every unknown file: for a file of another
 * kind this read, which cannot fault, finds no known inode.
 */
static __always_inline struct ht_inode_file *file_find(struct file *file)
{
	struct ht_inode_file *f = inode_find(BPF_CORE_READ(file, f_inode));
	const struct backing_file___ht *backing = (void *)file;

	if (!f && bpf_core_field_exists(backing->user_path))
		f = inode_find(BPF_CORE_READ(backing, user_path.dentry, d_inode));
	return f;
}

static long vma_found(struct task_struct *task, struct vm_area_struct *vma, struct vma_query *q)
{
	struct file *file = vma->vm_file;
	struct ht_inode_file *f;

	if (!file) {
		/* Areas with operations are the kernel's own: the vDSO, a return probe's trampoline. */
		if (!(vma->vm_flags & VMA_EXEC) || vma->vm_ops)
			return 0;
		q->map.start_addr = vma->vm_start;
		q->map.end_addr = vma->vm_end;
		q->map.file_id = q->jit_file_id;
		q->map.flags = HT_MAPPING_JIT;
		return 0;
	}
	f = file_find(file);
	if (!f)
		return 0;
	q->map.start_addr = vma->vm_start;
	q->map.end_addr = vma->vm_end;
	q->map.bias = vma->vm_start - (vma->vm_pgoff << 12) - f->vaddr_minus_off;
	q->map.file_id = f->file_id;
	return 0;
}

/*
 * The kernel's last answer for a page of code, for moments when it cannot answer: while a thread that changes
 * the address space waits for a CPU, the other threads get no answer. Used only then; and not after user space
 * has read a change of mappings, because that changes the salt (step.bpf.h).
 */
struct vma_page {
	__u64 salt; /* of the walk */
	__u64 page;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct vma_page);
	__type(value, struct ht_mapping);
} vma_pages SEC(".maps");

static __always_inline struct vma_page page_of(const struct ht_walk *w, __u64 pc)
{
	return (struct vma_page){ .salt = w->salt, .page = pc >> 12 };
}

/*
 * Ask the kernel once. 0: the mapping is in w->map; -HT_EBUSY; -1: none. A global function, which the verifier
 * walks once: as a part of the loop below it was half of what the verifier walked of a program, and half of the
 * time to load it.
 */
__noinline int walk_ask_vma(struct ht_walk *w, __u64 pc)
{
	struct vma_query q = {};
	struct vma_page key;
	long err;

	if (!w || !ht_use_find_vma)
		return -1;
	q.jit_file_id = w->jit_file_id;
	err = bpf_find_vma(bpf_get_current_task_btf(), pc, vma_found, &q, 0);
	if (err == -HT_EBUSY)
		return -HT_EBUSY;
	if (!q.map.end_addr)
		return -1;
	key = page_of(w, pc);
	bpf_map_update_elem(&vma_pages, &key, &q.map, BPF_ANY);
	w->map = q.map;
	return 0;
}

/* Return the kernel's earlier answer, if any. */
static __noinline int walk_known_vma(struct ht_walk *w, __u64 pc)
{
	struct vma_page key = page_of(w, pc);
	struct ht_mapping *known = bpf_map_lookup_elem(&vma_pages, &key);

	if (!known)
		return -1;
	w->map = *known;
	return 0;
}

static __always_inline int walk_find_vma(struct ht_walk *w, __u64 pc)
{
	int err = 0;

	/* Busy: another thread is changing the address space, usually for a moment. */
	for (int i = 0; i < FIND_VMA_TRIES; i++) {
		err = walk_ask_vma(w, pc);
		if (err != -HT_EBUSY)
			break;
	}
	if (err == -HT_EBUSY)
		err = walk_known_vma(w, pc);
	if (err)
		return -1;
	w->is_map_known = 0;
	w->has_new_jit |= w->map.flags & HT_MAPPING_JIT;
	stat_inc(HT_STAT_FIND_VMA);
	return 0;
}

/* Find the mapping of pc and store it in w->map. 0, or -1: no mapping of a known file. */
__noinline int walk_find_mapping(struct ht_walk *w, __u64 pc)
{
	__u32 zero = 0, base = 0, tgid, cnt, *set;
	struct ht_mappings *m = NULL;
	void *inner;

	if (!w)
		return -1;
	/* Copied to the stack: 6.1's verifier takes no key from the memory of a global function's argument. */
	tgid = w->tgid;
	set = bpf_map_lookup_elem(&maps_of, &tgid);
	inner = set ? bpf_map_lookup_elem(&mapping_sets, set) : NULL;
	if (inner)
		m = bpf_map_lookup_elem(inner, &zero);
	w->jit_file_id = m && m->jit_generation == w->generation ? m->jit_file_id : 0;
	if (m && m->generation == w->generation) {
		cnt = m->mapping_cnt;
		for (int i = 0; i < 10; i++) {
			__u32 half = cnt >> 1;
			__u32 idx = (base + half) & (HT_MAPPINGS_CAP - 1);
			/* all ones when start <= pc */
			__s64 mask = (__s64)(m->mapping[idx].start_addr - pc - 1) >> 63;

			asm volatile("" : "+r"(mask));
			base += half & mask;
			cnt -= half;
		}
		base &= HT_MAPPINGS_CAP - 1;
		if (m->mapping_cnt && pc >= m->mapping[base].start_addr &&
		    pc < m->mapping[base].end_addr) {
			w->map = m->mapping[base];
			w->is_map_known = 1;
			return w->map.file_id ? 0 : -1;
		}
	}
	if (ht_use_find_vma)
		return walk_find_vma(w, pc);
	return -1;
}

#endif
