package run

import (
	"time"

	"moontide/replay/runfile"
)

// LatenessSoFar is the level that the verdict will give to a client lag at p99, and
// the limit above which the run is INVALID, while the run goes on.
func LatenessSoFar(lag, medianTTFT time.Duration, t runfile.Thresholds) (Level, time.Duration) {
	t = withDefaults(t)
	limit := max(t.MaxLagMS, t.MaxLagShare*ms(medianTTFT))
	return grade(ms(lag), limit), time.Duration(limit * float64(time.Millisecond))
}
