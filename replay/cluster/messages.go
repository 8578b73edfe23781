package cluster

import (
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// Fact is something in which all parts of a run must agree.
type Fact struct {
	Name  string `json:"name"` // in messages: "the trace (SHA-256)"
	Value string `json:"value"`
}

// phase is how far a part is in a round.
type phase string

const (
	loading  phase = "loading"
	loaded   phase = "loaded"   // it told its facts
	prepared phase = "prepared" // it can start
	ended    phase = "ended"
	left     phase = "left" // for good
)

var phases = []phase{"", loading, loaded, prepared, ended, left}

// step is how far all parts are in a round.
type step int

const (
	gathering step = iota
	agreed
	started
	over
)

// report is what a part tells the leader.
type report struct {
	Number      int           `json:"number"`
	Of          int           `json:"of"`
	Process     string        `json:"process"` // random, to tell two processes of one number apart
	Version     string        `json:"version"`
	Host        string        `json:"host"`
	Seq         uint64        `json:"seq"` // counts the changes
	Round       int           `json:"round"`
	Phase       phase         `json:"phase"`
	Facts       []Fact        `json:"facts,omitempty"`
	Clock       runfile.Clock `json:"clock,omitzero"`
	Status      replay.Status `json:"status"`
	Interrupted bool          `json:"interrupted,omitempty"`
	Failure     string        `json:"failure,omitempty"`
	// Seen is the version of the order that the part has: the answer may wait for a
	// newer one.
	Seen uint64 `json:"seen"`
}

// order is what the leader tells all parts.
type order struct {
	Version uint64    `json:"version"`
	RunID   string    `json:"run_id"` // of the round
	Round   int       `json:"round"`
	Step    step      `json:"step"`
	Start   time.Time `json:"start,omitzero"`   // from started on, by the leader's clock
	Drain   string    `json:"drain,omitempty"`  // why to stop sending
	Cancel  string    `json:"cancel,omitempty"` // why to end at once
}

// stamps are the leader's timestamps of an exchange.
type stamps struct {
	Received time.Time `json:"received"`
	Sent     time.Time `json:"sent"`
}
