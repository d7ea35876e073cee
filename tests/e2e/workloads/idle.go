// SPDX-License-Identifier: MIT

// idle.go - a program without libc: it allocates all the time, from Go's own heap.
package main

import (
	"fmt"
	"os"
	"time"
)

var kept [64][]byte

func main() {
	fmt.Printf("READY %d\n", os.Getpid())
	for i := 0; i < 20000; i++ {
		kept[i%64] = make([]byte, 1000+i%5000)
		if i%100 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	fmt.Println("DONE")
	buf := make([]byte, 16)
	os.Stdin.Read(buf)
}
