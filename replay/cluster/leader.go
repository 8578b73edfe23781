package cluster

import (
	"cmp"
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
	of      int
	version string
	begun   time.Time     // of the rendezvous
	timeout time.Duration // for parts to arrive

	order order
	parts []partState
}

// partState is the state of a part.
type partState struct {
	report
	lastSeen time.Time // zero: it has not arrived
	state    string    // PartLost, PartAbsent or PartFailed of runfile; "" in the run
	reason   string
}

func newLeader(of int, now time.Time, c Config) *leader {
	return &leader{of: of, version: c.Version, begun: now, timeout: c.Timeout, parts: make([]partState, of), order: order{Version: 1, RunID: newID()}}
}

// refusal is the reason to reject a report. It ends the part.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// errEnding makes a process wait that replaces another.
var errEnding = errors.New("the run of the previous processes is ending")

// name returns the name of a part in messages.
func (l *leader) name(number int) string {
	text := fmt.Sprintf("part %d of %d", number, l.of)
	if host := l.parts[number-1].Host; host != "" {
		text += " (" + host + ")"
	}
	return text
}

// report handles a report of a part. Its error is a [*refusal].
func (l *leader) report(now time.Time, r report) error {
	switch {
	case r.Of != l.of:
		return refuse("part %d (%s) is of %d parts, part 1 of %d", r.Number, r.Host, r.Of, l.of)
	case r.Number < 1 || r.Number > l.of:
		return refuse("there is no part %d of %d", r.Number, l.of)
	case !slices.Contains(phases, r.Phase):
		return refuse("part %d is in an unknown phase %q", r.Number, short(string(r.Phase)))
	case r.Version != l.version:
		return refuse("part %d of %d (%s) is moontide %s, part 1 is %s: run the same version everywhere", r.Number, l.of, r.Host, r.Version, l.version)
	}
	p := &l.parts[r.Number-1]
	replaced := p.Process != "" && p.Process != r.Process
	if replaced && p.state == "" && p.Phase != left && now.Sub(p.lastSeen) > 2*pollTime {
		l.lose(r.Number, runfile.PartLost, "another process replaced it")
	}
	switch {
	case replaced && (l.order.Cancel != "" || l.order.Drain != ""):
		return errEnding
	case replaced:
		return refuse("there are two processes of part %d of %d: one on %s, one on %s", r.Number, l.of, p.Host, r.Host)
	case p.Process == "" && l.order.Step > gathering:
		return refuse("part %d of %d (%s) came too late: the run has begun without it", r.Number, l.of, r.Host)
	}
	fresh := r.Seq > p.Seq || p.lastSeen.IsZero()
	p.lastSeen = now
	if !fresh {
		return nil
	}
	before := p.report
	p.report = r
	if r.Interrupts > 0 && l.order.Drain == "" {
		l.order.Drain = l.name(r.Number) + " was interrupted"
		l.order.Version++
	}
	switch {
	case l.order.Cancel != "", before.Phase == ended, before.Phase == left: // caused by the end of the run
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
		case p.lastSeen.IsZero() && now.Sub(l.begun) >= l.timeout:
			l.lose(i+1, runfile.PartAbsent, fmt.Sprintf("it did not arrive within %v", l.timeout))
		case !p.lastSeen.IsZero() && now.Sub(p.lastSeen) > Silence:
			l.lose(i+1, runfile.PartLost, fmt.Sprintf("it has not responded for %v", Silence))
		}
	}
	l.advance(now)
}

// advance starts the next step when all parts have finished the one before.
func (l *leader) advance(now time.Time) {
	for l.order.Cancel == "" && l.order.Step < over && l.all(map[step]phase{gathering: loaded, agreed: prepared, started: ended}[l.order.Step]) {
		switch l.order.Step {
		case gathering:
			if l.compareFacts(); l.order.Cancel != "" {
				return
			}
			if l.order.Done = l.done(); l.order.Done.Complete {
				l.cancel("it is complete: there is nothing to resume", false)
				return
			}
		case agreed:
			l.order.Start = now.Add(startLead + time.Duration(l.of)*startLeadPart)
		}
		l.order.Step++
		l.order.Version++
	}
}

// all reports whether all parts have reached a phase.
func (l *leader) all(reached phase) bool {
	for i := range l.parts {
		if p := &l.parts[i]; slices.Index(phases, p.Phase) < slices.Index(phases, reached) {
			return false
		}
	}
	return true
}

// compareFacts ends the run if the facts of a part differ from those of part 1.
func (l *leader) compareFacts() {
	want := l.parts[0].Facts
	for i := range l.parts[1:] {
		p := &l.parts[i+1]
		if !slices.Equal(p.Facts, want) {
			l.lose(i+2, runfile.PartFailed, "it disagrees with part 1: "+difference(p.Facts, want))
		}
	}
	first := 0
	for i := range l.parts {
		switch p := &l.parts[i]; {
		case p.Done.RunID == "":
		case l.parts[first].Done.RunID == "":
			first = i
		case p.Done.RunID != l.parts[first].Done.RunID:
			l.lose(i+1, runfile.PartFailed, fmt.Sprintf("it resumes another run than part %d", first+1))
		}
	}
}

// done returns the progress of all parts together in the run that they resume.
func (l *leader) done() Progress {
	all := Progress{LastRow: -1, Complete: true}
	for i := range l.parts {
		done := l.parts[i].Done
		if done.RunID == "" {
			all.Complete = false
			continue
		}
		all.RunID, all.Complete = done.RunID, all.Complete && done.Complete
		all.Clock, all.LastRow = max(all.Clock, done.Clock), max(all.LastRow, done.LastRow)
	}
	return all
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

// short shortens a value for a message.
func short(text string) string {
	const most = 300
	cut := ""
	if len(text) > most {
		text, cut = strings.ToValidUTF8(text[:most], ""), "..."
	}
	return oneLine(text) + cut
}

// oneLine escapes what would end a line or control a terminal: it may come from anybody
// who has the token.
func oneLine(text string) string {
	return strings.ReplaceAll(weblog.Escape(text), "\n", `\n`)
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
		s := runfile.PartState{Number: i + 1, Host: p.Host, State: p.state, Reason: p.reason, Clock: p.Clock}
		if s.State == "" {
			s.State = runfile.PartRunning
			if p.Phase == ended || p.Phase == left {
				s.State = runfile.PartEnded
			}
		}
		states = append(states, s)
	}
	return states
}

// gone reports whether all parts but part 1 have left or are lost. While waits is true, it
// also waits for parts that have not arrived or disagree, which must learn that the run
// was ended, and why.
func (l *leader) gone(waits bool) bool {
	for i := range l.parts[1:] {
		p := &l.parts[i+1]
		learns := waits && l.order.Cancel != "" && (p.state == "" || p.state == runfile.PartFailed)
		if runs := p.state == "" && !p.lastSeen.IsZero(); (runs || learns) && p.Phase != left {
			return false
		}
	}
	return true
}

// missing names the parts that have not loaded, for messages.
func (l *leader) missing() string {
	var numbers []string
	for i := range l.parts {
		if p := &l.parts[i]; p.state == "" && (p.Phase == "" || p.Phase == loading) {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
	}
	const most = 8
	if len(numbers) > most {
		numbers = append(numbers[:most:most], fmt.Sprintf("and %d more", len(numbers)-most))
	}
	return strings.Join(numbers, ", ")
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

// phase is the progress of a part.
type phase string

const (
	loading  phase = "loading"
	loaded   phase = "loaded"   // it has reported its facts
	prepared phase = "prepared" // it can start
	ended    phase = "ended"
	left     phase = "left"
)

var phases = []phase{"", loading, loaded, prepared, ended, left}

// step is the progress of all parts.
type step int

const (
	gathering step = iota
	agreed
	started
	over
)

// report is a message from a part to the leader.
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
	// Seen is the version of the part's order: the answer may wait for a newer one.
	Seen uint64 `json:"seen"`
}

// order is a message from the leader to all parts.
type order struct {
	Version uint64    `json:"version"`
	RunID   string    `json:"run_id"`
	Step    step      `json:"step"`
	Start   time.Time `json:"start,omitzero"`   // from started on, by the leader's clock
	Drain   string    `json:"drain,omitempty"`  // why to stop sending
	Cancel  string    `json:"cancel,omitempty"` // why to end at once
	// Resumable means that the canceled run can be resumed: a part was lost or
	// interrupted.
	Resumable bool     `json:"resumable,omitempty"`
	Done      Progress `json:"done,omitzero"` // from agreed on, of all parts together
}

// stamps are the leader's timestamps of an exchange.
type stamps struct {
	Received time.Time `json:"received"`
	Sent     time.Time `json:"sent"`
}
