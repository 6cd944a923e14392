// Package cuda is that of zerfoo, and of ztensor. This file is in the place of the one for machines
// on which no CUDA library can be opened (an overlay): it opens the library that the adapter has.
package cuda

import "adapter/device"

func dlopenImpl(string, int) uintptr           { return 1 }
func dlsymImpl(_ uintptr, name string) uintptr { return device.Symbol(name) }
func dlcloseImpl(uintptr) int                  { return 0 }
func dlerrorImpl() string                      { return "not in the adapter's library" }

// Callers hand on addresses of variables as numbers: these must not lie on a stack, which moves.
//
//go:uintptrescapes
func ccall(function uintptr, arguments ...uintptr) uintptr { return device.Call(function, arguments) }
