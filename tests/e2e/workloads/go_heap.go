// SPDX-License-Identifier: MIT
// go_heap.go - a heap of small objects, of which nine in ten are freed, with what the runtime counts of it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
)

type node struct{ words [14]uint64 }

var keep []*node

// say prints the bytes of spans in use, of free memory, and how much of that was not returned.
func say() {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	fmt.Println("READY", m.HeapInuse+m.StackInuse, m.HeapIdle, m.HeapIdle-m.HeapReleased)
}

func main() {
	in := bufio.NewReader(os.Stdin)
	for i := 0; i < 400000; i++ {
		keep = append(keep, &node{[14]uint64{1, 13: 1}})
	}
	say()
	in.ReadString('\n')
	keep = append([]*node(nil), keep[:40000]...)
	say()
	in.ReadString('\n')
	fmt.Println(len(keep))
}
