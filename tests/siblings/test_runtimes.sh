#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 1800
# Runtimes with a heap of their own, and some without: what they hold in it is seen, or it is said that it is not, and
# which switch shows it. SIBLINGS_ONLY, SIBLINGS_WAYS: as in test_libraries.sh.
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/lib.sh"
e2e_init runtimes
run=$here/runtimes
of() { only "$1" || return 0; have "$4" || [ "$4" = env ] || [ -x "$4" ] && sibling "$@" || skip "$1" "no $4"; }

of php own USE_ZEND_ALLOC=0 php -d memory_limit=-1 "$run/hold.php"
of php-malloc seen - env USE_ZEND_ALLOC=0 php -d memory_limit=-1 "$run/hold.php"
of ruby own 'Ruby keeps objects in its own pages' ruby "$run/hold.rb"
of lua seen - lua5.4 "$run/hold.lua"
of perl seen - perl "$run/hold.pl"
of node own "V8's own heap" node "$here/library.js" v8
of python own PYTHONMALLOC=malloc python3 "$here/library.py" pymalloc
of python-malloc any - env PYTHONMALLOC=malloc python3 "$here/library.py" pymalloc
of erlang own ERL_ZFLAGS escript "$run/hold.escript"
of bun own "JavaScriptCore's own heap" "$got/bun" "$here/library.js" v8
if have mcs && mcs -out:"$work/hold.dll" "$run/hold.cs" 2>"$work/mcs.log"; then
	version=$(basename "$(echo "$got"/dotnet/shared/Microsoft.NETCore.App/*)")
	echo '{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"'"$version"'"}}}' >"$work/hold.runtimeconfig.json"
	# Globalization asks for a library of its own.
	export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
	of dotnet own ".NET's objects" "$got/dotnet/dotnet" exec "$work/hold.dll"
	of mono own "Mono's own heap" mono "$work/hold.dll"
fi
have javac && javac -d "$work" "$run/Hold.java" 2>"$work/javac.log"
READY=READY of java own "JVM's own heap" java -Xmx256m -cp "$work" Hold
have go && GO111MODULE=off CGO_ENABLED=1 GOFLAGS= GOCACHE="$bin/go-cache" go build -o "$work/go_hold" "$run/hold.go" 2>"$work/go.log"
of go own "Go's own heap" "$work/go_hold"
sed '/^import "C"/d' "$run/hold.go" >"$work/pure.go"
# Without C there is no malloc, and so no profile that says 0 B.
GO111MODULE=off CGO_ENABLED=0 GOFLAGS= GOCACHE="$bin/go-cache" go build -o "$work/go_pure" "$work/pure.go" 2>>"$work/go.log"
if only go-pure && [ -x "$work/go_pure" ]; then
	start "$work/go_pure"
	record_work --rate 1
	[ "$record_status" = 1 ] && grep -q 'a Go program, whose heap is not malloc' "$work/heaptap.err" && ok "go-pure: said" ||
		not_ok "go-pure: said" "status $record_status" "$work/heaptap.err"
fi
e2e_end
