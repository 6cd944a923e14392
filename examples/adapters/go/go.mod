module caches

go 1.20

require kvoracle v0.0.0

replace kvoracle => ../../../tools/adapters/go/kvoracle
