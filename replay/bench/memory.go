package bench

import "runtime"

// ballast is the number of bytes of garbage that a run may create between two
// collections, in addition to Go's default.
const ballast = 64 << 20

// delayGC makes garbage collections rare until the returned function is called.
// The live heap of a run is small, so Go would collect several times a second,
// and each collection briefly stops all threads. The ballast is never touched,
// so it uses no memory; it only makes the heap look larger.
func delayGC() (end func()) {
	spare := make([]byte, ballast)
	return func() { runtime.KeepAlive(spare) }
}
