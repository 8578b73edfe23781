package capture

import (
	"fmt"
	"maps"
	"slices"

	"moontide/replay"
	"moontide/replay/live"
)

// Counts are the counters of a capture.
type Counts struct {
	Requests   int64 // to the APIs of models
	InFlight   int64 // Requests that have not ended
	Other      int64 // requests that are not recorded, such as for /v1/models
	Rows       int64 // written and flushed
	SampledOut int64 // requests of sessions that are not in the sample
	Ended      map[replay.Class]int64
	// LostRows counts missing rows by reason, NoBlocks rows without block ids.
	LostRows, NoBlocks map[string]int64
	HeldBytes          int64 // of bodies and responses
	Faults             int64 // of the capture itself; they did not stop the traffic
	WriteError         error // the first
	// PromptBytes and PromptTokens are the lengths of prompts that were not encoded and
	// whose tokens the server counted: their ratio is the bytes per token.
	PromptBytes, PromptTokens int64
}

// gap is a reason why a row is missing, or lacks its block ids.
type gap string

const (
	noMemory   gap = "memory"
	tooLarge   gap = "too_large"
	incomplete gap = "incomplete"
	encoded    gap = "encoding"
	unreadable gap = "unreadable"
	batch      gap = "batch"
	failed     gap = "failed"
	slow       gap = "slow"
	writing    gap = "writing"
	notSampled gap = "sample" // the session is not in the sample
)

var reasons = map[gap]string{
	noMemory:   "too many bytes were held at a time",
	tooLarge:   "a body was too large",
	incomplete: "the client did not send the whole body",
	encoded:    "the body has a Content-Encoding other than gzip",
	unreadable: "the body is not that of a request",
	batch:      "a request has several prompts",
	failed:     "the tokenizer or the capture failed",
	slow:       "rows came faster than they could be written",
	writing:    "the file could not be written",
}

// Reason explains a key of Counts.LostRows or Counts.NoBlocks.
func Reason(key string) string { return reasons[gap(key)] }

func newCounts() Counts {
	return Counts{Ended: map[replay.Class]int64{}, LostRows: map[string]int64{}, NoBlocks: map[string]int64{}}
}

// count changes the counts.
func (p *Proxy) count(change func(sum *Counts)) {
	p.countsMu.Lock()
	defer p.countsMu.Unlock()
	change(&p.counts)
}

// lose counts missing rows and keeps the first error, which may be nil.
func (p *Proxy) lose(why gap, rows int, err error) {
	p.count(func(sum *Counts) {
		sum.LostRows[string(why)] += int64(rows)
		if sum.WriteError == nil {
			sum.WriteError = err
		}
	})
}

// Counts returns the counts so far. It may be called from any goroutine.
func (p *Proxy) Counts() (s Counts) {
	p.count(func(sum *Counts) {
		s = *sum
		s.Ended, s.LostRows, s.NoBlocks = maps.Clone(s.Ended), maps.Clone(s.LostRows), maps.Clone(s.NoBlocks)
	})
	s.HeldBytes = p.memory.held.Load()
	return s
}

// AppendText appends the counts in Prometheus' text format. It may be called from any
// goroutine.
func (p *Proxy) AppendText(b []byte) []byte {
	c := p.Counts()
	metric := func(name, kind, help string, samples ...any) {
		b = live.AppendMetric(b, "moontide_capture_"+name, kind, help, samples...)
	}
	by := func(label string, values map[string]int64) (samples []any) {
		for _, value := range slices.Sorted(maps.Keys(values)) {
			samples = append(samples, fmt.Sprintf("%s=%q", label, value), values[value])
		}
		return samples
	}
	ended := map[string]int64{}
	for class, n := range c.Ended {
		ended[outcome(class)] = n
	}
	metric("requests_total", "counter", "Requests to the APIs of models.", "", c.Requests)
	metric("requests_in_flight", "gauge", "Requests that have not ended.", "", c.InFlight)
	metric("other_requests_total", "counter", "Requests that are passed on and not recorded.", "", c.Other)
	metric("requests_ended_total", "counter", "Requests that have ended, by outcome.", by("outcome", ended)...)
	metric("rows_total", "counter", "Rows written.", "", c.Rows)
	metric("sampled_out_total", "counter", "Requests of sessions notSampled of the sample.", "", c.SampledOut)
	metric("lost_rows_total", "counter", "Rows that are missing in the trace.", by("reason", c.LostRows)...)
	metric("rows_without_blocks_total", "counter", "Rows without block ids.", by("reason", c.NoBlocks)...)
	metric("held_bytes", "gauge", "Bytes of bodies and responses in memory.", "", c.HeldBytes)
	metric("faults_total", "counter", "Faults of the capture that did not stop the traffic.", "", c.Faults)
	return b
}
