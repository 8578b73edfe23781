package runfile

import "time"

// Range is what a client was seen to drive with errors within a limit. Each
// number was reached by itself, not all of them at once.
type Range struct {
	Streams           int     `json:"streams"`        // in flight at once
	EventsPerSecond   float64 `json:"events_per_s"`   // of all streams
	RequestsPerSecond float64 `json:"requests_per_s"` // sent
}

// Calibrated is the range of the client that drove a run, as it was found on
// the same machine, at another time.
type Calibrated struct {
	Taken time.Time `json:"taken"`
	Range
}
