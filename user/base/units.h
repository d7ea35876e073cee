/* SPDX-License-Identifier: MIT */
/* units.h - sizes and times as people write them. */
#ifndef HT_BASE_UNITS_H
#define HT_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* "4096", "64k", "1m", "2GiB": powers of 1024, case-insensitive. 0, -EINVAL or -ERANGE. */
int parse_size(const char *s, uint64_t *ret_bytes);
/* "30s", "500ms", "5m", "1m30s", "1h": plain numbers ("30", "0.5") are seconds. 0, -EINVAL or -ERANGE. */
int parse_duration(const char *s, uint64_t *ret_ns);
/* "12.3 MiB", exact below 1 KiB ("17 B"). Returns buf. */
char *format_bytes(double bytes, char *buf, size_t buf_bytes);
/* "12.3k", "4.56M" for counts. */
char *format_count(double n, char *buf, size_t buf_bytes);
/* "1.2 s", "350 ms", "2m 10s". */
char *format_duration(uint64_t ns, char *buf, size_t buf_bytes);
/* A share in percent: "53", "9.1", "0.38", "0". */
char *format_percent(double share, char *buf, size_t buf_bytes);
#define UNITS_BUF 32

#endif
