// SPDX-License-Identifier: MIT

// go_grows.go - a program without libc that goes on: a hundred blocks a second, from Go's own heap.
package main

import "time"

var kept [][]byte

func main() {
	for {
		kept = append(kept, make([]byte, 1000))
		time.Sleep(10 * time.Millisecond)
	}
}
