// Command caches has a cache of kind layered.vector and one of kind prefix.blocks. An argument is the
// name of a fault that they have.
package main

import (
	"os"

	"kvoracle"
)

var fault = append(os.Args, "")[1]

func main() {
	kvoracle.Serve("caches", "1", layeredVector, prefixBlocks)
}
