package runfile

// Window says which part of a run is measured: what lies between its first and
// its last seconds. The zero Window is all of it.
type Window struct {
	WarmupSeconds   float64 `json:"warmup_s"`
	CooldownSeconds float64 `json:"cooldown_s"`
}

// Thresholds are what a run's verdict goes by. A threshold of 0 is the default.
type Thresholds struct {
	MaxLagMS      float64 `json:"max_lag_ms,omitempty"`      // default 10
	MaxLagShare   float64 `json:"max_lag_share,omitempty"`   // of the median TTFT; default 0.05
	MaxPromptsOff float64 `json:"max_prompts_off,omitempty"` // share of the prompts; default 0.01
}

// Merges tells how much of a run the client read at once that may have come
// apart: token chunks that were read together with the next one, and so bear
// an instant that may be too late. How late at most is told of all token
// chunks; it is 0 for the others. Without Chunks it was not measured.
type Merges struct {
	Chunks uint64  `json:"chunks"` // all that the kernel stamped
	Merged uint64  `json:"merged"` // read together with the next
	P99MS  float64 `json:"p99_ms"`
	MaxMS  float64 `json:"max_ms"`
}
