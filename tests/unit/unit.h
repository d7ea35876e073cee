/* SPDX-License-Identifier: MIT */
/* unit.h - what every test with cmocka begins with: the C library's common headers and cmocka's. */
#ifndef HT_TESTS_UNIT_H
#define HT_TESTS_UNIT_H

#include "base/std.h"

#include <setjmp.h>

#include <cmocka.h>

/* cmocka hands each test a state, which most have no use for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#endif
