#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 1800
# Libraries that contain an allocator, and those that use malloc, as they come from the registries: what heaptap says is held
# against the library's own counter. `make siblings` gets them (get_libraries).
# SIBLINGS_ONLY=PATTERN: these; SIBLINGS_WAYS='rate1 sampled tap': in these ways.
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/lib.sh"
e2e_init libraries
# A jemalloc that was not built to be loaded late wants more of glibc's room for thread-local data.
py() { only "$1" && sibling "$1" "$2" "$3" env GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536 "$got/venv/bin/python" "$here/library.py" "${@:4}"; }
js() { only "$1" && mkdir -p "$work/js" && sibling "$1" "$2" "$3" env NODE_PATH="$got/node_modules" node "$here/library.js" "$1" "$work/js"; }

[ -x "$got/venv/bin/python" ] || skip_all "nothing from PyPI is there: make siblings"
py pyarrow-mimalloc seen - pyarrow mimalloc
py pyarrow-jemalloc seen - pyarrow jemalloc
py pyarrow-system seen - pyarrow system
py polars any _polars_runtime polars
py duckdb any _duckdb duckdb
py numpy seen - numpy
py orjson any orjson orjson
py tokenizers seen - tokenizers
py cryptography seen - cryptography
py lxml seen - lxml
py pydantic seen - pydantic
for kind in system mi jemalloc unprefixed; do
	[ -e "$got/libown_$kind.so" ] || { skip "rust-$kind" "not built"; continue; }
	py rust-$kind seen - cdylib "$got/libown_$kind.so"
	strip -o "$got/libown_stripped_$kind.so" "$got/libown_$kind.so"
	py rust-$kind-stripped any libown_stripped cdylib "$got/libown_stripped_$kind.so"
done
# A program with an allocator that has no names: nobody counts what it holds at its end.
if only ruff && [ -x "$got/venv/bin/ruff" ]; then
	for i in {1..2000}; do printf 'def f%d(a, b):\n    c = a + 1\n    return b\n' $i; done >"$work/big.py"
	launch --rate 1 -- "$got/venv/bin/ruff" check --exit-zero --no-cache -q "$work/big.py"
	answer "ruff, rate1" -1 named ruff
fi
py python-pymalloc own 'CPython keeps small objects' pymalloc

[ -d "$got/node_modules" ] && have node || { skip add-ons "nothing from npm is there"; e2e_end; }
js better-sqlite3 seen -
js sharp seen -
js lightningcss any lightningcss
js @swc/core named swc
js oxc-parser named parser.linux
js @rspack/core named rspack
js v8 own "V8's own heap"
e2e_end
