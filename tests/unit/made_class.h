/* SPDX-License-Identifier: MIT */
/* made_class.h - the tables of a C++ class, as a compiler would leave them in a file's data. */
#ifndef TEST_MADE_CLASS_H
#define TEST_MADE_CLASS_H

#include <stdint.h>
#include <string.h>

#define MADE_CLASS_BYTES 192
#define MADE_CLASS_VTABLE 16
#define MADE_CLASS_INFO 32
#define MADE_CLASS_ROOT 64 /* the vtable of the type_info's own class */
#define MADE_CLASS_ROOT_INFO 80
#define MADE_CLASS_ROOT_NAME 96
#define MADE_CLASS_NAME 144

/* The class ns::Foo with one function in code. words: what is at the address `at`. */
static inline void made_class(uint64_t *words, uint64_t at, uint64_t code)
{
	static const char root[] = "N10__cxxabiv117__class_type_infoE", name[] = "N2ns3FooE";

	memset(words, 0, MADE_CLASS_BYTES);
	words[MADE_CLASS_VTABLE / 8 - 1] = at + MADE_CLASS_INFO;
	words[MADE_CLASS_VTABLE / 8] = code;
	words[MADE_CLASS_INFO / 8] = at + MADE_CLASS_ROOT;
	words[MADE_CLASS_INFO / 8 + 1] = at + MADE_CLASS_NAME;
	words[MADE_CLASS_ROOT / 8 - 1] = at + MADE_CLASS_ROOT_INFO;
	words[MADE_CLASS_ROOT / 8] = code;
	words[MADE_CLASS_ROOT_INFO / 8] = at + MADE_CLASS_ROOT;
	words[MADE_CLASS_ROOT_INFO / 8 + 1] = at + MADE_CLASS_ROOT_NAME;
	memcpy((char *)words + MADE_CLASS_ROOT_NAME, root, sizeof(root));
	memcpy((char *)words + MADE_CLASS_NAME, name, sizeof(name));
}

#endif
