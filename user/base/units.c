/* SPDX-License-Identifier: MIT */
/* units.c - see units.h. */
#include "base/units.h"

static const char digits[] = "0123456789";

/* Parse digits, and a point with digits behind it; *ret_end is the text after them. */
static int parse_number(const char *s, double *ret, const char **ret_end)
{
	size_t len = strspn(s, digits);
	char *end;

	if (!len)
		return -EINVAL;
	if (s[len] == '.' && isdigit((unsigned char)s[len + 1]))
		len += 1 + strspn(s + len + 1, digits);
	errno = 0;
	*ret = strtod(s, &end);
	if (end != s + len) /* strtod also takes "1e3" and "0x10" */
		return -EINVAL;
	if (errno)
		return -ERANGE;
	*ret_end = end;
	return 0;
}

struct unit {
	const char *name;
	double factor;
};

/* 0: there is no such unit. */
static double find_factor(const struct unit *units, size_t cnt, const char *name, size_t len)
{
	for (size_t i = 0; i < cnt; i++)
		if (strlen(units[i].name) == len && !strncasecmp(name, units[i].name, len))
			return units[i].factor;
	return 0;
}

/* Below 2^62: sums of two, and with the time of a clock, are numbers still. */
static int to_u64(double n, uint64_t *ret)
{
	if (n >= 0x1p62)
		return -ERANGE;
	*ret = n;
	return 0;
}

int parse_size(const char *s, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },	   { "b", 1 },	      { "k", 0x1p10 },	 { "kb", 0x1p10 },
		{ "kib", 0x1p10 }, { "m", 0x1p20 },   { "mb", 0x1p20 },	 { "mib", 0x1p20 },
		{ "g", 0x1p30 },   { "gb", 0x1p30 },  { "gib", 0x1p30 }, { "t", 0x1p40 },
		{ "tb", 0x1p40 },  { "tib", 0x1p40 },
	};
	const char *end;
	double n, factor;
	int err = parse_number(s, &n, &end);

	if (err)
		return err;
	factor = find_factor(units, ARRAY_CNT(units), end, strlen(end));
	return factor > 0 ? to_u64(n * factor, ret_bytes) : -EINVAL;
}

/* Take a number and its unit from the text: "1m30s" has two. */
static int parse_one_duration(const char **text, bool is_first, double *ret_ns)
{
	static const struct unit units[] = {
		{ "", 1e9 },	{ "ns", 1 },   { "us", 1e3 },	{ "ms", 1e6 },	 { "s", 1e9 },
		{ "sec", 1e9 }, { "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 },
	};
	const char *end;
	size_t len;
	double n, factor;
	int err = parse_number(*text, &n, &end);

	if (err)
		return err;
	len = strcspn(end, digits);
	factor = find_factor(units, ARRAY_CNT(units), end, len);
	if (factor <= 0 || (!len && !is_first)) /* a number without a unit must be alone */
		return -EINVAL;
	*ret_ns = n * factor;
	*text = end + len;
	return 0;
}

int parse_duration(const char *s, uint64_t *ret_ns)
{
	double ns, sum_ns = 0;
	bool is_first = true;
	int err;

	do {
		err = parse_one_duration(&s, is_first, &ns);
		if (err)
			return err;
		sum_ns += ns;
		is_first = false;
	} while (*s);
	return to_u64(sum_ns, ret_ns);
}

int parse_percent(const char *s, double *ret_percent)
{
	const char *end;
	int err = parse_number(s, ret_percent, &end);

	return err ? err : *end && strcmp(end, "%") != 0 ? -EINVAL : 0;
}

/* Three significant digits: "1.23", "12.3", "123". */
static int decimals_of(double n)
{
	n = fabs(n);
	return n < 9.995 ? 2 : n < 99.95 ? 1 : 0;
}

char *format_bytes(double bytes, char *buf, size_t buf_bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t i = 0;

	while (fabs(bytes) >= 1023.5 && i < 6) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, buf_bytes, "%.*f %s", i ? decimals_of(bytes) : 0, bytes, unit[i]);
	return buf;
}

char *format_count(double n, char *buf, size_t buf_bytes)
{
	static const char *const unit[] = { "", "k", "M", "G", "T" };
	size_t i = 0;

	while (fabs(n) >= 999.5 && i < 4) {
		n /= 1000;
		i++;
	}
	snprintf(buf, buf_bytes, "%.*f%s", i ? decimals_of(n) : 0, n, unit[i]);
	return buf;
}

char *format_duration(uint64_t ns, char *buf, size_t buf_bytes)
{
	uint64_t s = ns / 1000000000;

	if (ns < 1000)
		snprintf(buf, buf_bytes, "%d ns", (int)ns);
	else if (ns < 999500) /* more would be "1e+03 us" */
		snprintf(buf, buf_bytes, "%.3g us", ns / 1e3);
	else if (ns < 999500000)
		snprintf(buf, buf_bytes, "%.3g ms", ns / 1e6);
	else if (s < 60)
		snprintf(buf, buf_bytes, "%.1f s", ns / 1e9);
	else if (s < 3600)
		snprintf(buf, buf_bytes, "%dm %02ds", (int)(s / 60), (int)(s % 60));
	else
		snprintf(buf, buf_bytes, "%dh %02dm", (int)(s / 3600), (int)(s / 60 % 60));
	return buf;
}

char *format_percent(double share, char *buf, size_t buf_bytes)
{
	if (share < 0.0001)
		snprintf(buf, buf_bytes, "0");
	else
		snprintf(buf, buf_bytes, share < 0.0995 ? "%.2g" : "%.0f", 100 * share);
	return buf;
}

size_t word_with_unit(const char *text)
{
	static const char *const units[] = { "B",  "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
					     "ns", "us",  "ms",	 "s",	"min", "%" };
	size_t len = strcspn(text, " ");
	const char *next = text + len + 1;

	if (!len || !text[len] || !isdigit((unsigned char)text[len - 1]))
		return len;
	for (size_t i = 0; i < ARRAY_CNT(units); i++) {
		size_t unit_len = strlen(units[i]);

		if (!strncmp(next, units[i], unit_len) && !isalnum((unsigned char)next[unit_len]))
			return len + 1 + strcspn(next, " ");
	}
	return len;
}
