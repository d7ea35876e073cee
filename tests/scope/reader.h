/* SPDX-License-Identifier: MIT */
/*
 * reader.h - what a program publishes with heaptap/scope.h, read as heaptap reads it: the ELF file
 * of an image is searched for the note whose semaphore is the descriptor, then everything comes
 * from the descriptor's bytes. Nothing of scope.h is used: numbers are those of the specification,
 * version 1. In C and C++, without allocating.
 */
#ifndef SCOPE_READER_H
#define SCOPE_READER_H

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READER_FN __attribute__((unused)) static

/* Of one image: addresses at run time. */
struct reader_notes {
	unsigned tls_cnt, node_cnt, task_exit_cnt; /* notes of that name */
	uintptr_t descriptor, tls_probe, node_probe, task_exit_probe;
	char tls_args[32], node_args[32], task_exit_args[48];
	int differ; /* two notes name different descriptors */
};

READER_FN uint64_t reader_u64(uintptr_t addr)
{
	uint64_t v;

	memcpy(&v, (const void *)addr, 8);
	return v;
}
READER_FN uint32_t reader_u32(uintptr_t addr)
{
	uint32_t v;

	memcpy(&v, (const void *)addr, 4);
	return v;
}
READER_FN uint16_t reader_u16(uintptr_t addr)
{
	uint16_t v;

	memcpy(&v, (const void *)addr, 2);
	return v;
}

READER_FN void reader_one_note(const char *desc, uintptr_t bias, struct reader_notes *n)
{
	uintptr_t probe = bias + reader_u64((uintptr_t)desc);
	uintptr_t semaphore = bias + reader_u64((uintptr_t)desc + 16);
	const char *provider = desc + 24, *name = provider + strlen(provider) + 1;
	const char *args = name + strlen(name) + 1;

	if (strcmp(provider, "heaptap"))
		return;
	if (n->descriptor && n->descriptor != semaphore)
		n->differ = 1;
	n->descriptor = semaphore;
	if (!strcmp(name, "tls_v1")) {
		n->tls_cnt++;
		n->tls_probe = probe;
		snprintf(n->tls_args, sizeof(n->tls_args), "%s", args);
	} else if (!strcmp(name, "node")) {
		n->node_cnt++;
		n->node_probe = probe;
		snprintf(n->node_args, sizeof(n->node_args), "%s", args);
	} else if (!strcmp(name, "task_exit")) {
		n->task_exit_cnt++;
		n->task_exit_probe = probe;
		snprintf(n->task_exit_args, sizeof(n->task_exit_args), "%s", args);
	}
}

READER_FN void reader_notes_of(const char *elf, uintptr_t bias, struct reader_notes *n)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf;
	const Elf64_Shdr *section = (const Elf64_Shdr *)(elf + header->e_shoff);
	const char *names = elf + section[header->e_shstrndx].sh_offset;

	for (unsigned i = 0; i < header->e_shnum; i++) {
		const char *at = elf + section[i].sh_offset, *end = at + section[i].sh_size;

		if (section[i].sh_type != SHT_NOTE ||
		    strcmp(names + section[i].sh_name, ".note.stapsdt"))
			continue;
		while (at < end) {
			const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
			const char *desc = at + sizeof(*note) + ((note->n_namesz + 3) & ~3U);

			if (note->n_type == 3)
				reader_one_note(desc, bias, n);
			at = desc + ((note->n_descsz + 3) & ~3U);
		}
	}
}

/* 0, or -1 when the file cannot be read. */
READER_FN int reader_open(const char *file, uintptr_t bias, struct reader_notes *ret)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *elf;

	memset(ret, 0, sizeof(*ret));
	if (fd < 0 || fstat(fd, &st))
		return -1;
	elf = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (elf == MAP_FAILED)
		return -1;
	reader_notes_of((const char *)elf, bias, ret);
	munmap(elf, (size_t)st.st_size);
	return 0;
}

/* The image that an address of code or data lies in. */
struct reader_image {
	uintptr_t addr, bias;
	char file[512];
};
READER_FN int reader_is_image(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct reader_image *image = (struct reader_image *)arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD || image->addr < start ||
		    image->addr >= start + info->dlpi_phdr[i].p_memsz)
			continue;
		image->bias = info->dlpi_addr;
		snprintf(image->file, sizeof(image->file), "%s",
			 info->dlpi_name && strchr(info->dlpi_name, '.') ? info->dlpi_name :
									   "/proc/self/exe");
		return 1;
	}
	return 0;
}
READER_FN int reader_image_of(const void *addr, struct reader_notes *ret)
{
	struct reader_image image;

	memset(&image, 0, sizeof(image));
	image.addr = (uintptr_t)addr;
	if (!dl_iterate_phdr(reader_is_image, &image))
		return -1;
	return reader_open(image.file, image.bias, ret);
}

READER_FN uintptr_t reader_thread_pointer(void)
{
	uintptr_t thread;

#if defined(__x86_64__)
	__asm__ volatile("mov{q}\t{%%fs:0, %0|%0, QWORD PTR fs:0}" : "=r"(thread));
#else
	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(thread));
#endif
	return thread;
}

/* The record of the calling thread: 0 when there is none. */
READER_FN uintptr_t reader_record(uintptr_t descriptor)
{
	unsigned mode = *(const uint8_t *)(descriptor + 20);
	uintptr_t registry = reader_u64(descriptor + 88);
	uint32_t tid, slot, shift;

	if (mode == 1)
		return reader_thread_pointer() + reader_u64(descriptor + 24);
	if (mode != 3 || reader_u32(registry) != 1)
		return 0;
	tid = (uint32_t)syscall(SYS_gettid);
	shift = reader_u32(registry + 4);
	slot = (tid * 0x9e3779b1U) >> (32 - shift);
	for (unsigned i = 0; i < 16; i++) {
		uintptr_t at = registry + 16 + 16 * ((slot + i) & ((1U << shift) - 1));

		if (reader_u32(at) == tid)
			return reader_u64(at + 8);
	}
	return 0;
}

/* NULL, or what is wrong with a descriptor. */
READER_FN const char *reader_complaint(uintptr_t d)
{
	uint32_t cnt = reader_u32(d + 52), cap = reader_u32(d + 48);

	if (d % 64)
		return "alignment";
	if (reader_u16(d + 2) != 1 || reader_u16(d + 4) != 0 || reader_u16(d + 6) != 640)
		return "version or size";
	if (memcmp((const void *)(d + 8), "HEAPTAP", 8))
		return "magic";
	if (reader_u16(d + 16) != 32 || reader_u16(d + 18) != 32 || *(uint8_t *)(d + 21) != 8)
		return "sizes of record, node, pointer";
	if (*(uint8_t *)(d + 20) != 1 && *(uint8_t *)(d + 20) != 3)
		return "mode";
	if (reader_u32(d + 56) != 12 || cap != 262144 || cnt < 1 || cnt > cap)
		return "counts";
	if (reader_u32(d + 80) != (uint32_t)getpid())
		return "pid";
	for (uint32_t i = 1; i < cnt; i++) {
		uintptr_t node = reader_u64(d + 128 + 8 * (i >> 12)) + 32 * (i & 4095);

		if (reader_u32(node) >= i || reader_u16(node + 4) < 1 || reader_u16(node + 4) > 4 ||
		    reader_u16(node + 24) > 255 || reader_u16(node + 26) > 255)
			return "a node";
	}
	return NULL;
}

READER_FN uintptr_t reader_node(uintptr_t descriptor, uint32_t id)
{
	return reader_u64(descriptor + 128 + 8 * (id >> 12)) + 32 * (id & 4095);
}

READER_FN void reader_append(char *text, size_t cap, const char *s, size_t len)
{
	size_t used = strlen(text);

	if (len > cap - used - 1)
		len = cap - used - 1;
	memcpy(text + used, s, len);
	text[used + len] = '\0';
}

/* "Top/A/key=value/task", "" for the root; nothing is escaped here. */
READER_FN const char *reader_path(uintptr_t descriptor, uint32_t id, char *text, size_t cap)
{
	uint32_t chain[65];
	unsigned depth = 0;

	text[0] = '\0';
	for (; id && depth < 65; id = reader_u32(reader_node(descriptor, id)))
		chain[depth++] = id;
	while (depth--) {
		uintptr_t node = reader_node(descriptor, chain[depth]);

		if (text[0])
			reader_append(text, cap, "/", 1);
		reader_append(text, cap, (const char *)(uintptr_t)reader_u64(node + 8),
			      reader_u16(node + 24));
		if (reader_u16(node + 4) != 2)
			continue;
		reader_append(text, cap, "=", 1);
		reader_append(text, cap, (const char *)(uintptr_t)reader_u64(node + 16),
			      reader_u16(node + 26));
	}
	return text;
}

/*
 * Path of the scope that an allocation made now in this thread would be charged to. A thread that a
 * registry does not have (yet) is in no scope.
 */
READER_FN const char *reader_current(uintptr_t descriptor, char *text, size_t cap)
{
	uintptr_t record = reader_record(descriptor);

	return reader_path(descriptor, record ? reader_u32(record) : 0, text, cap);
}

#endif
