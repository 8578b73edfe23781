package main

import "runtime"

// spareGarbage is how much garbage a run may make between two collections, in
// bytes, besides what Go allows anyway.
const spareGarbage = 64 << 20

// collectSeldom has garbage collected seldom until the returned function is
// called. A run keeps little, so Go would collect several times a second; each
// time all threads are stopped for a moment, and on a busy machine, where one
// of them waits for a processor, sending waits along. What is allocated here is
// never touched, so it takes no memory; it only makes the heap look larger.
func collectSeldom() (end func()) {
	spare := make([]byte, spareGarbage)
	return func() { runtime.KeepAlive(spare) }
}
