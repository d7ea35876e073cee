// SPDX-License-Identifier: MIT
// go_heap.go - a heap of small objects, of which nine in ten are freed, with what the runtime counts of it.
// MIB: so many large objects of a MiB beside them.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

type node struct{ words [14]uint64 }

var keep []*node
var large [][]byte

// say prints the bytes of spans in use, of free memory, and how much of that was not returned.
func say() {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	fmt.Println("READY", m.HeapInuse+m.StackInuse, m.HeapIdle, m.HeapIdle-m.HeapReleased)
}

func main() {
	if len(os.Args) > 1 {
		mib, _ := strconv.Atoi(os.Args[1])
		for i := 0; i < mib; i++ {
			block := make([]byte, 1<<20)
			for at := 0; at < len(block); at += 4096 {
				block[at] = 1
			}
			large = append(large, block)
		}
	}
	in := bufio.NewReader(os.Stdin)
	for i := 0; i < 400000; i++ {
		keep = append(keep, &node{[14]uint64{1, 13: 1}})
	}
	say()
	in.ReadString('\n')
	keep = append([]*node(nil), keep[:40000]...)
	say()
	in.ReadString('\n')
	fmt.Println(len(keep), len(large))
}
