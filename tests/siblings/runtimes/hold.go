package main

import "C" // with cgo, so that malloc is there

import (
	"bufio"
	"fmt"
	"os"
)

var keep [][]byte

func main() {
	in := bufio.NewReader(os.Stdin)
	fmt.Println("READY")
	in.ReadString('\n')
	for i := 0; i < 30000; i++ {
		b := make([]byte, 1000)
		b[0] = 1
		keep = append(keep, b)
	}
	fmt.Println("EXPECT", len(keep)*1000)
	fmt.Println("DONE")
	in.ReadString('\n')
}
