/* SPDX-License-Identifier: MIT */
/* keyed_hash.c - see keyed_hash.h. */
#include "base/keyed_hash.h"

#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

static uint64_t process_key[2];
static pthread_once_t has_key = PTHREAD_ONCE_INIT;

/* The kernel gives each program 16 random bytes as well, even where a filter forbids the call. */
static void make_key(void)
{
	const void *given = (const void *)getauxval(AT_RANDOM);

	if (getrandom(process_key, sizeof(process_key), GRND_NONBLOCK) != sizeof(process_key) &&
	    given)
		memcpy(process_key, given, sizeof(process_key));
}

static inline uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

uint64_t siphash13(const uint64_t key[2], const void *p, size_t n)
{
	uint64_t v[4] = { key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL,
			  key[0] ^ 0x6c7967656e657261ULL, key[1] ^ 0x7465646279746573ULL };
	uint64_t word, last = (uint64_t)n << 56;
	const uint8_t *s = p;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&word, s, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = 0;
	if (n)
		memcpy(&word, s, n);
	last |= word;
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t keyed_hash(const void *p, size_t n)
{
	pthread_once(&has_key, make_key);
	return siphash13(process_key, p, n);
}
