package run

import (
	"time"

	"moontide/replay/runfile"
)

// LatenessSoFar weighs the client lag of a run that is still going on, at its
// 99th percentile, as the verdict will: what level it means, and above which
// limit the run is INVALID. What else the verdict weighs is known at the end.
func LatenessSoFar(lag, medianTTFT time.Duration, t runfile.Thresholds) (Level, time.Duration) {
	t = withDefaults(t)
	limit := max(t.MaxLagMS, t.MaxLagShare*ms(medianTTFT))
	return grade(ms(lag), limit), time.Duration(limit * float64(time.Millisecond))
}
