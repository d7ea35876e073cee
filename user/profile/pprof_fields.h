/* SPDX-License-Identifier: MIT */
/*
 * pprof_fields.h - field numbers of Profile (profile.proto) for the fields that are read and written one by one,
 * because a whole profile need not fit into memory twice. protobuf-c knows the numbers, but has no names for them.
 */
#ifndef HT_PROFILE_PPROF_FIELDS_H
#define HT_PROFILE_PPROF_FIELDS_H

enum {
	FIELD_SAMPLE_TYPE = 1,
	FIELD_SAMPLE = 2,
	FIELD_MAPPING = 3,
	FIELD_LOCATION = 4,
	FIELD_FUNCTION = 5,
	FIELD_STRING = 6,
	FIELD_PERIOD_TYPE = 11,
};

#endif
