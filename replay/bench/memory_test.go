package bench

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Garbage smaller than the ballast is not collected. The test is not parallel
// because other tests create garbage too.
func TestDelayGC(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever GOGC is
	const piece = 64 << 10
	collections := func() uint32 {
		runtime.GC() // resets the heap goal to the live heap
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range ballast / 2 / piece {
			garbage = make([]byte, piece)
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	often := collections()
	end := delayGC()
	seldom := collections()
	end()
	if often == 0 || seldom > 0 {
		t.Errorf("collected %d times, and %d times with spare garbage", often, seldom)
	}
}

var garbage []byte
