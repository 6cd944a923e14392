// Compiled into ztensor's package compute (an overlay): an engine on the host that has a stream.
package compute

import (
	"github.com/zerfoo/ztensor/internal/gpuapi"
	"github.com/zerfoo/ztensor/tensor"
)

// Streamed is an engine with a stream of the device.
type Streamed[T tensor.Numeric] struct {
	Engine[T]
	stream gpuapi.Stream
}

// NewStreamed gives an engine a stream.
func NewStreamed[T tensor.Numeric](engine Engine[T]) *Streamed[T] {
	stream, err := gpuapi.NewCUDARuntime().CreateStream()
	if err != nil {
		panic(err)
	}
	return &Streamed[T]{engine, stream}
}

// GPUStream is the stream.
func (s *Streamed[T]) GPUStream() gpuapi.Stream { return s.stream }
