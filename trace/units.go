package trace

// TooSlow reports whether arrivals are too slow to be in milliseconds: a production
// trace of many rows has at least one request a minute, or pauses, as at night. The
// gaps between arrivals are in milliseconds.
func TooSlow(rows int, meanGap, longestGap float64) bool {
	const (
		minRows        = 100
		slowGap        = 60_000.0 // ms
		pauseMeanRatio = 30       // longest gap over mean gap in a trace with pauses
	)
	return rows >= minRows && meanGap >= slowGap && longestGap <= pauseMeanRatio*meanGap
}
