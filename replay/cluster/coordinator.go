package cluster

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/replay/weblog"
)

// Silence is the time without a report after which a part is lost.
const Silence = 5 * time.Second

// Time from the decision to start until the start: the parts learn of it and open
// connections.
const (
	startLead     = 250 * time.Millisecond
	startLeadPart = 2 * time.Millisecond // for each part
)

// coordinator gives orders to the parts of a run. It reads no clock and sends nothing: times
// are arguments. It is not safe for concurrent use.
type coordinator struct {
	Config
	started time.Time
	order   order
	parts   []partState
}

// partState is the state of a part.
type partState struct {
	report
	lastSeen time.Time // zero: it has not arrived
	state    string    // PartLost, PartAbsent or PartFailed of runfile; "" in the run
	reason   string
}

func newCoordinator(c Config, now time.Time) *coordinator {
	return &coordinator{Config: c, started: now, parts: make([]partState, c.Of), order: order{Version: 1, RunID: rand.Text()}}
}

// errEnding makes a process wait that replaces another.
var errEnding = errors.New("the run of the previous processes is ending")

// name returns the name of a part in messages.
func (c *coordinator) name(number int) string {
	text := fmt.Sprintf("part %d of %d", number, c.Of)
	if host := c.parts[number-1].Host; host != "" {
		text += " (" + host + ")"
	}
	return text
}

// report handles a report of a part. Its error is a [*refusal] or errEnding.
func (c *coordinator) report(now time.Time, r report) error {
	switch {
	case r.Of != c.Of || r.Number < 1 || r.Number > c.Of:
		return refuse("part %d (%s) is of %d parts, part 1 of %d", r.Number, r.Host, r.Of, c.Of)
	case r.Version != c.Version:
		return refuse("part %d of %d (%s) is moontide %s, part 1 is %s: run the same version everywhere", r.Number, c.Of, r.Host, r.Version, c.Version)
	}
	p := &c.parts[r.Number-1]
	if p.Process != "" && p.Process != r.Process {
		if p.state == "" && p.Phase != left && now.Sub(p.lastSeen) > 2*pollTime {
			c.lose(r.Number, runfile.PartLost, "another process replaced it")
		}
		if c.order.Cancel != "" || c.order.Drain != "" {
			return errEnding
		}
		return refuse("there are two processes of part %d of %d: one on %s, one on %s", r.Number, c.Of, p.Host, r.Host)
	}
	if p.Process == "" && c.order.Phase != "" {
		return refuse("part %d of %d (%s) came too late: the run has started without it", r.Number, c.Of, r.Host)
	}
	overtaken := r.Seq <= p.Seq && !p.lastSeen.IsZero()
	p.lastSeen = now
	if overtaken {
		return nil
	}
	before := p.report
	p.report = r
	if r.Interrupts > 0 && c.order.Drain == "" {
		c.order.Drain = c.name(r.Number) + " was interrupted"
		c.order.Version++
	}
	switch {
	case c.order.Cancel != "", before.Phase.reached(ended): // caused by the end of the run
	case r.Interrupts > 1:
		c.cancel(c.name(r.Number)+" was interrupted twice", true)
	case r.Failure != "":
		c.lose(r.Number, runfile.PartFailed, r.Failure)
	case r.Phase == left:
		c.lose(r.Number, runfile.PartFailed, "it left before the end of the run")
	}
	c.advance(now)
	return nil
}

// lose ends the run because of a part.
func (c *coordinator) lose(number int, state, reason string) {
	p := &c.parts[number-1]
	p.state, p.reason = state, reason
	if state == runfile.PartFailed {
		c.cancel(fmt.Sprintf("%s failed: %s", c.name(number), reason), p.Interrupts > 0)
	} else {
		c.cancel(fmt.Sprintf("%s is %s: %s", c.name(number), state, reason), state == runfile.PartLost)
	}
}

func (c *coordinator) cancel(reason string, resumable bool) {
	if c.order.Cancel == "" {
		c.order.Cancel, c.order.Resumable = reason, resumable
		c.order.Version++
	}
}

// tick checks for silent and missing parts.
func (c *coordinator) tick(now time.Time) {
	for i := range c.parts {
		p := &c.parts[i]
		switch {
		case p.state != "" || p.Phase == left:
		case p.lastSeen.IsZero() && now.Sub(c.started) >= c.Timeout:
			c.lose(i+1, runfile.PartAbsent, fmt.Sprintf("it did not arrive within %v", c.Timeout))
		case !p.lastSeen.IsZero() && now.Sub(p.lastSeen) > Silence:
			c.lose(i+1, runfile.PartLost, fmt.Sprintf("it has not responded for %v", Silence))
		}
	}
	c.advance(now)
}

// advance takes all parts to the phases that each of them has reached.
func (c *coordinator) advance(now time.Time) {
	for _, next := range []phase{loaded, prepared, ended} {
		switch {
		case c.order.Cancel != "" || slices.ContainsFunc(c.parts, func(p partState) bool { return !p.Phase.reached(next) }):
			return
		case c.order.Phase.reached(next):
			continue
		case next == loaded:
			c.compare()
		case next == prepared:
			c.order.Start = now.Add(startLead + time.Duration(c.Of)*startLeadPart)
		}
		c.order.Phase = next
		c.order.Version++
	}
}

// compare ends the run if a part has other facts than part 1 or resumes another run, and
// adds up the progress of the parts.
func (c *coordinator) compare() {
	all, first := Progress{LastRow: -1, Complete: true}, 0
	for i := range c.parts {
		p, facts := &c.parts[i], c.parts[0].Facts
		if !slices.Equal(p.Facts, facts) {
			c.lose(i+1, runfile.PartFailed, "it disagrees with part 1: "+difference(p.Facts, facts))
		}
		all.Complete = all.Complete && p.Done.Complete
		if p.Done.RunID == "" {
			continue
		}
		if all.RunID == "" {
			all.RunID, first = p.Done.RunID, i+1
		}
		if p.Done.RunID != all.RunID {
			c.lose(i+1, runfile.PartFailed, fmt.Sprintf("it resumes another run than part %d", first))
		}
		all.Clock, all.LastRow = max(all.Clock, p.Done.Clock), max(all.LastRow, p.Done.LastRow)
	}
	if c.order.Done = all; all.Complete {
		c.cancel("it is complete: there is nothing to resume", false)
	}
}

// difference names the first fact that differs.
func difference(facts, want []Fact) string {
	for i, w := range want {
		if i < len(facts) && facts[i] != w {
			return fmt.Sprintf("%s: it has %s, part 1 has %s", w.Name, cmp.Or(short(facts[i].Value), "none"), cmp.Or(short(w.Value), "none"))
		}
	}
	return "it has other facts"
}

// status adds up the progress of all parts.
func (c *coordinator) status() (sum replay.Status) {
	for i := range c.parts {
		s := c.parts[i].Status
		sum.Sent, sum.Done, sum.Failed = sum.Sent+s.Sent, sum.Done+s.Done, sum.Failed+s.Failed
		sum.InFlight, sum.OutputTokens = sum.InFlight+s.InFlight, sum.OutputTokens+s.OutputTokens
	}
	return sum
}

// states returns the states of the parts.
func (c *coordinator) states() (states []runfile.PartState) {
	for i := range c.parts {
		p := &c.parts[i]
		state := cmp.Or(p.state, runfile.PartRunning)
		if p.state == "" && p.Phase.reached(ended) {
			state = runfile.PartEnded
		}
		states = append(states, runfile.PartState{Number: i + 1, Host: p.Host, State: state, Reason: p.reason, Clock: p.Clock})
	}
	return states
}

// othersLeft reports whether all parts but part 1 have left or are lost. While waits is true, it
// also waits for parts that have not arrived or disagree, which must learn that the run
// was ended, and why.
func (c *coordinator) othersLeft(waits bool) bool {
	return !slices.ContainsFunc(c.parts[1:], func(p partState) bool {
		learns := waits && c.order.Cancel != "" && (p.state == "" || p.state == runfile.PartFailed)
		runs := p.state == "" && !p.lastSeen.IsZero()
		return (runs || learns) && p.Phase != left
	})
}

// missing names the parts that have not loaded, for messages.
func (c *coordinator) missing() string {
	var numbers []string
	for i, p := range c.parts {
		if p.state == "" && !p.Phase.reached(loaded) {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
	}
	return short(strings.Join(numbers, ", "))
}

// Fact is a property that must be the same in all parts of a run.
type Fact struct {
	Name  string `json:"name"` // in messages: "the trace (SHA-256)"
	Value string `json:"value"`
}

// Progress is the progress of an earlier run that is resumed. The zero value is a new run.
type Progress struct {
	RunID   string        `json:"run_id,omitempty"`
	Clock   time.Duration `json:"clock_ns"` // where the run's clock continues
	LastRow int           `json:"last_row"` // the last recorded row that was due at its arrival
	// Complete means that nothing is left to send.
	Complete bool `json:"complete,omitempty"`
}

// phase is the progress of a part, and that of all parts: of the slowest of them.
type phase string

const (
	loading  phase = "loading"
	loaded   phase = "loaded"   // it has reported its facts
	prepared phase = "prepared" // it can start
	ended    phase = "ended"
	left     phase = "left"
)

var phases = []phase{"", loading, loaded, prepared, ended, left}

// reached reports whether p is the other phase or a later one.
func (p phase) reached(other phase) bool {
	return slices.Index(phases, p) >= slices.Index(phases, other)
}

// report is a message from a part to part 1.
type report struct {
	Number     int           `json:"number"`
	Of         int           `json:"of"`
	Process    string        `json:"process"` // random: two processes may have one number
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
	// Seen is the version of the part's order: the response may wait for a newer one.
	Seen uint64 `json:"seen"`
}

// order is the response of part 1, the same for all parts.
type order struct {
	Version uint64    `json:"version"`
	RunID   string    `json:"run_id"`
	Phase   phase     `json:"phase"`            // that all parts have reached
	Start   time.Time `json:"start,omitzero"`   // from prepared on, by the clock of part 1
	Drain   string    `json:"drain,omitempty"`  // why to stop sending
	Cancel  string    `json:"cancel,omitempty"` // why to end at once
	// Resumable means that the canceled run can be resumed: a part was lost or
	// interrupted.
	Resumable bool     `json:"resumable,omitempty"`
	Done      Progress `json:"done,omitzero"` // from loaded on, of all parts together
}

// refusal is why part 1 rejects a report. It ends the part.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// short returns a text as one line for a message. It escapes what would end the line or
// control a terminal: the text may come from anybody who has the token.
func short(text string) string {
	const most = 300
	text = oneLine(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

func oneLine(text string) string {
	return strings.ReplaceAll(weblog.Escape(text), "\n", `\n`)
}
