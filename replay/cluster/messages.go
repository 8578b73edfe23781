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

// Progress is how far an earlier run came that is resumed. The zero value is a new run.
type Progress struct {
	RunID   string        `json:"run_id,omitempty"`
	Clock   time.Duration `json:"clock_ns"` // where the run's clock continues
	LastRow int           `json:"last_row"` // the last recorded row that was due at its arrival
	// Complete is set if nothing is left to send.
	Complete bool `json:"complete,omitempty"`
}

// phase is how far a part is.
type phase string

const (
	loading  phase = "loading"
	loaded   phase = "loaded"   // it told its facts
	prepared phase = "prepared" // it can start
	ended    phase = "ended"
	left     phase = "left"
)

var phases = []phase{"", loading, loaded, prepared, ended, left}

// step is how far all parts are.
type step int

const (
	gathering step = iota
	agreed
	started
	over
)

// report is what a part tells the leader.
type report struct {
	Number     int           `json:"number"`
	Of         int           `json:"of"`
	Process    string        `json:"process"` // random, to tell two processes of one number apart
	Version    string        `json:"version"`
	Host       string        `json:"host"`
	Seq        uint64        `json:"seq"` // counts the changes
	Phase      phase         `json:"phase"`
	Facts      []Fact        `json:"facts,omitempty"`
	Clock      runfile.Clock `json:"clock,omitzero"`
	Status     replay.Status `json:"status"`
	Interrupts int           `json:"interrupts,omitempty"` // 1: stop sending, 2: end at once
	Failure    string        `json:"failure,omitempty"`
	Done       Progress      `json:"done,omitzero"`
	// Seen is the version of the order that the part has: the answer may wait for a
	// newer one.
	Seen uint64 `json:"seen"`
}

// order is what the leader tells all parts.
type order struct {
	Version uint64    `json:"version"`
	RunID   string    `json:"run_id"`
	Step    step      `json:"step"`
	Start   time.Time `json:"start,omitzero"`   // from started on, by the leader's clock
	Drain   string    `json:"drain,omitempty"`  // why to stop sending
	Cancel  string    `json:"cancel,omitempty"` // why to end at once
	// Resumable is set with Cancel if the run can be resumed as it is: a part was lost
	// or interrupted.
	Resumable bool     `json:"resumable,omitempty"`
	Done      Progress `json:"done,omitzero"` // from agreed on, of all parts together
}

// stamps are the leader's timestamps of an exchange.
type stamps struct {
	Received time.Time `json:"received"`
	Sent     time.Time `json:"sent"`
}
