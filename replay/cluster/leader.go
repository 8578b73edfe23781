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

// leader gives orders to the parts of a run. It reads no clock and sends nothing: times
// are arguments. It is not safe for concurrent use.
type leader struct {
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

func newLeader(c Config, now time.Time) *leader {
	return &leader{Config: c, started: now, parts: make([]partState, c.Of), order: order{Version: 1, RunID: rand.Text()}}
}

// errEnding makes a process wait that replaces another.
var errEnding = errors.New("the run of the previous processes is ending")

// name returns the name of a part in messages.
func (l *leader) name(number int) string {
	text := fmt.Sprintf("part %d of %d", number, l.Of)
	if host := l.parts[number-1].Host; host != "" {
		text += " (" + host + ")"
	}
	return text
}

// report handles a report of a part. Its error is a [*refusal] or errEnding.
func (l *leader) report(now time.Time, r report) error {
	switch {
	case r.Of != l.Of || r.Number < 1 || r.Number > l.Of:
		return refuse("part %d (%s) is of %d parts, part 1 of %d", r.Number, r.Host, r.Of, l.Of)
	case r.Version != l.Version:
		return refuse("part %d of %d (%s) is moontide %s, part 1 is %s: run the same version everywhere", r.Number, l.Of, r.Host, r.Version, l.Version)
	}
	p := &l.parts[r.Number-1]
	if p.Process != "" && p.Process != r.Process {
		if p.state == "" && p.Phase != left && now.Sub(p.lastSeen) > 2*pollTime {
			l.lose(r.Number, runfile.PartLost, "another process replaced it")
		}
		if l.order.Cancel != "" || l.order.Drain != "" {
			return errEnding
		}
		return refuse("there are two processes of part %d of %d: one on %s, one on %s", r.Number, l.Of, p.Host, r.Host)
	}
	if p.Process == "" && l.order.Phase != "" {
		return refuse("part %d of %d (%s) came too late: the run has started without it", r.Number, l.Of, r.Host)
	}
	overtaken := r.Seq <= p.Seq && !p.lastSeen.IsZero()
	p.lastSeen = now
	if overtaken {
		return nil
	}
	before := p.report
	p.report = r
	if r.Interrupts > 0 && l.order.Drain == "" {
		l.order.Drain = l.name(r.Number) + " was interrupted"
		l.order.Version++
	}
	switch {
	case l.order.Cancel != "", before.Phase.reached(ended): // caused by the end of the run
	case r.Interrupts > 1:
		l.cancel(l.name(r.Number)+" was interrupted twice", true)
	case r.Failure != "":
		l.lose(r.Number, runfile.PartFailed, r.Failure)
	case r.Phase == left:
		l.lose(r.Number, runfile.PartFailed, "it left before the end of the run")
	}
	l.advance(now)
	return nil
}

// lose ends the run because of a part.
func (l *leader) lose(number int, state, reason string) {
	p := &l.parts[number-1]
	p.state, p.reason = state, reason
	if state == runfile.PartFailed {
		l.cancel(fmt.Sprintf("%s failed: %s", l.name(number), reason), p.Interrupts > 0)
	} else {
		l.cancel(fmt.Sprintf("%s is %s: %s", l.name(number), state, reason), state == runfile.PartLost)
	}
}

func (l *leader) cancel(reason string, resumable bool) {
	if l.order.Cancel == "" {
		l.order.Cancel, l.order.Resumable = reason, resumable
		l.order.Version++
	}
}

// tick checks for silent and missing parts.
func (l *leader) tick(now time.Time) {
	for i := range l.parts {
		p := &l.parts[i]
		switch {
		case p.state != "" || p.Phase == left:
		case p.lastSeen.IsZero() && now.Sub(l.started) >= l.Timeout:
			l.lose(i+1, runfile.PartAbsent, fmt.Sprintf("it did not arrive within %v", l.Timeout))
		case !p.lastSeen.IsZero() && now.Sub(p.lastSeen) > Silence:
			l.lose(i+1, runfile.PartLost, fmt.Sprintf("it has not responded for %v", Silence))
		}
	}
	l.advance(now)
}

// advance takes all parts to the phases that each of them has reached.
func (l *leader) advance(now time.Time) {
	for _, next := range []phase{loaded, prepared, ended} {
		switch {
		case l.order.Cancel != "" || slices.ContainsFunc(l.parts, func(p partState) bool { return !p.Phase.reached(next) }):
			return
		case l.order.Phase.reached(next):
			continue
		case next == loaded:
			l.compare()
		case next == prepared:
			l.order.Start = now.Add(startLead + time.Duration(l.Of)*startLeadPart)
		}
		l.order.Phase = next
		l.order.Version++
	}
}

// compare ends the run if a part has other facts than part 1 or resumes another run, and
// adds up the progress of the parts.
func (l *leader) compare() {
	all, first := Progress{LastRow: -1, Complete: true}, 0
	for i := range l.parts {
		p, facts := &l.parts[i], l.parts[0].Facts
		if !slices.Equal(p.Facts, facts) {
			l.lose(i+1, runfile.PartFailed, "it disagrees with part 1: "+difference(p.Facts, facts))
		}
		all.Complete = all.Complete && p.Done.Complete
		if p.Done.RunID == "" {
			continue
		}
		if all.RunID == "" {
			all.RunID, first = p.Done.RunID, i+1
		}
		if p.Done.RunID != all.RunID {
			l.lose(i+1, runfile.PartFailed, fmt.Sprintf("it resumes another run than part %d", first))
		}
		all.Clock, all.LastRow = max(all.Clock, p.Done.Clock), max(all.LastRow, p.Done.LastRow)
	}
	if l.order.Done = all; all.Complete {
		l.cancel("it is complete: there is nothing to resume", false)
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
func (l *leader) status() (sum replay.Status) {
	for i := range l.parts {
		s := l.parts[i].Status
		sum.Sent, sum.Done, sum.Failed = sum.Sent+s.Sent, sum.Done+s.Done, sum.Failed+s.Failed
		sum.InFlight, sum.OutputTokens = sum.InFlight+s.InFlight, sum.OutputTokens+s.OutputTokens
	}
	return sum
}

// states returns the states of the parts.
func (l *leader) states() (states []runfile.PartState) {
	for i := range l.parts {
		p := &l.parts[i]
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
func (l *leader) othersLeft(waits bool) bool {
	return !slices.ContainsFunc(l.parts[1:], func(p partState) bool {
		learns := waits && l.order.Cancel != "" && (p.state == "" || p.state == runfile.PartFailed)
		runs := p.state == "" && !p.lastSeen.IsZero()
		return (runs || learns) && p.Phase != left
	})
}

// missing names the parts that have not loaded, for messages.
func (l *leader) missing() string {
	var numbers []string
	for i, p := range l.parts {
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
