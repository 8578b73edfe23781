package bench

import "runtime"

// ballast is how many bytes of garbage a run may make between two collections,
// in addition to what Go allows.
const ballast = 64 << 20

// delayGC makes garbage collections rare until the returned function is called.
// The live heap of a run is small, so Go would collect several times a second,
// and each collection stops all threads for a moment. The ballast is never
// touched, so it takes no memory; it only makes the heap look larger.
func delayGC() (end func()) {
	spare := make([]byte, ballast)
	return func() { runtime.KeepAlive(spare) }
}
