// Ollama's caches over slices, for tools/peers/run.
module peers

go 1.24.1

require github.com/ollama/ollama v0.15.4
