/* SPDX-License-Identifier: MIT */
/* scope_note.c - see scope_note.h. */
#include "profile/scope_note.h"

/* What was found in a note: one bit for each key that it must have. */
enum { SEEN_BYTES = 1, SEEN_TASK = 2, SEEN_STATE = 4, SEEN_INUSE = 8 };

static bool parse_number(const char *text, size_t len, int64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return !errno && end == text + len;
}

/* A task is any 64 bits; pprof's labels hold it as a signed number. */
static bool parse_task(const char *text, size_t len, int64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret = (int64_t)strtoull(text, &end, 10);
	return !errno && end == text + len;
}

static bool parse_time(const char *text, size_t len, int64_t *ret_ns)
{
	struct tm tm = { 0 };
	int ms, end = 0;
	time_t s;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &end) != 7 ||
	    !end || (size_t)end != len)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	s = timegm(&tm);
	if (s <= 0 || s > INT64_MAX / 1000000000 - 1 || ms < 0)
		return false;
	*ret_ns = (int64_t)s * 1000000000 + (int64_t)ms * 1000000;
	return true;
}

static bool is_key(const char *text, size_t len, const char *key)
{
	return strlen(key) == len && !strncmp(text, key, len);
}

static bool parse_state(const char *value, size_t len, bool *ret_is_exited)
{
	*ret_is_exited = is_key(value, len, "exited");
	return *ret_is_exited || is_key(value, len, "live");
}

static bool parse_field(const char *key, size_t key_len, const char *value, size_t len,
			struct scope_note *n, unsigned int *seen)
{
	if (is_key(key, key_len, n->kind == SCOPE_NOTE_PEAK ? "bytes" : "peak_bytes")) {
		*seen |= SEEN_BYTES;
		return parse_number(value, len, &n->peak_bytes);
	}
	if (is_key(key, key_len, n->kind == SCOPE_NOTE_PEAK ? "time" : "peak_time"))
		return parse_time(value, len, &n->peak_time_ns);
	if (is_key(key, key_len, "pid"))
		return parse_number(value, len, &n->pid);
	if (n->kind == SCOPE_NOTE_PEAK)
		return !is_key(key, key_len, "scope_cnt") ||
		       parse_number(value, len, &n->scope_cnt);
	if (is_key(key, key_len, "task")) {
		*seen |= SEEN_TASK;
		return parse_task(value, len, &n->task);
	}
	if (is_key(key, key_len, "state")) {
		*seen |= SEEN_STATE;
		return parse_state(value, len, &n->is_exited);
	}
	if (is_key(key, key_len, "inuse_bytes")) {
		*seen |= SEEN_INUSE;
		return parse_number(value, len, &n->inuse_bytes);
	}
	if (is_key(key, key_len, "inuse_objects"))
		return parse_number(value, len, &n->inuse_objects);
	if (is_key(key, key_len, "alloc_bytes"))
		return parse_number(value, len, &n->alloc_bytes);
	if (is_key(key, key_len, "alloc_objects"))
		return parse_number(value, len, &n->alloc_objects);
	if (is_key(key, key_len, "alloc_samples"))
		return parse_number(value, len, &n->alloc_samples);
	if (is_key(key, key_len, "alloc_error"))
		return parse_number(value, len, &n->alloc_error);
	return true;
}

bool scope_note_parse(const char *text, struct scope_note *ret, const char **ret_path)
{
	static const char peak[] = "scope_peak: ", instance[] = "instance: ";
	struct scope_note n = { .kind = SCOPE_NOTE_PEAK, .alloc_error = -1 };
	unsigned int seen = 0, needs = SEEN_BYTES;

	if (!strncmp(text, peak, sizeof(peak) - 1)) {
		text += sizeof(peak) - 1;
	} else if (!strncmp(text, instance, sizeof(instance) - 1)) {
		text += sizeof(instance) - 1;
		n.kind = SCOPE_NOTE_INSTANCE;
		needs = SEEN_TASK | SEEN_STATE | SEEN_INUSE;
	} else {
		return false;
	}
	while (strncmp(text, "scope=", 6) != 0) {
		size_t len = strcspn(text, " "), key_len = strcspn(text, "= ");

		if (!text[len] || key_len >= len ||
		    !parse_field(text, key_len, text + key_len + 1, len - key_len - 1, &n, &seen))
			return false;
		text += len + 1;
	}
	if ((seen & needs) != needs)
		return false;
	*ret = n;
	*ret_path = text + 6;
	return true;
}

/* Write "" for 0 (not said). */
static void format_time(int64_t ns, const char *key, char *ret, size_t ret_bytes)
{
	time_t s = ns / 1000000000;
	struct tm tm;

	ret[0] = '\0';
	if (ns <= 0 || !gmtime_r(&s, &tm))
		return;
	snprintf(ret, ret_bytes, " %s=%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", key, tm.tm_year + 1900,
		 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		 (int)(ns / 1000000 % 1000));
}

char *scope_note_text(const struct scope_note *note, const char *path)
{
	char pid[32] = "", scopes[48] = "", peak_time[64], alloc_error[64] = "", *text = NULL;
	int len;

	if (note->pid)
		snprintf(pid, sizeof(pid), " pid=%lld", (long long)note->pid);
	if (note->kind == SCOPE_NOTE_PEAK) {
		format_time(note->peak_time_ns, "time", peak_time, sizeof(peak_time));
		if (note->scope_cnt)
			snprintf(scopes, sizeof(scopes), " scope_cnt=%lld",
				 (long long)note->scope_cnt);
		len = asprintf(&text, "scope_peak: bytes=%lld%s%s%s scope=%s",
			       (long long)note->peak_bytes, peak_time, scopes, pid, path);
		return len < 0 ? NULL : text;
	}
	format_time(note->peak_time_ns, "peak_time", peak_time, sizeof(peak_time));
	if (note->alloc_error >= 0)
		snprintf(alloc_error, sizeof(alloc_error), " alloc_samples=%lld alloc_error=%lld",
			 (long long)note->alloc_samples, (long long)note->alloc_error);
	len = asprintf(&text,
		       "instance: task=%llu state=%s inuse_bytes=%lld inuse_objects=%lld "
		       "alloc_bytes=%lld alloc_objects=%lld%s peak_bytes=%lld%s%s scope=%s",
		       (unsigned long long)note->task, note->is_exited ? "exited" : "live",
		       (long long)note->inuse_bytes, (long long)note->inuse_objects,
		       (long long)note->alloc_bytes, (long long)note->alloc_objects, alloc_error,
		       (long long)note->peak_bytes, peak_time, pid, path);
	return len < 0 ? NULL : text;
}
