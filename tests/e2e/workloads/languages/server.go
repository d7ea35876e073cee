// SPDX-License-Identifier: MIT
// For the manual: memory of C, and Go's own, which has a profile of its own.
package main

/*
#include <stdlib.h>
#include <string.h>

static void *load_document(size_t bytes)
{
	void *p = malloc(bytes);

	if (p)
		memset(p, 1, bytes);
	return p;
}
*/
import "C"

import (
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"time"
	"unsafe"
)

var (
	kept   []unsafe.Pointer
	goKept [][]byte
)

//go:noinline
func parse() {
	goKept = append(goKept, make([]byte, 50000))
}

func main() {
	go func() { fmt.Println(http.ListenAndServe("localhost:6060", nil)) }()
	fmt.Println("READY")
	for {
		kept = append(kept, C.load_document(20000))
		parse()
		time.Sleep(10 * time.Millisecond)
	}
}
