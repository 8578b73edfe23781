package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"moontide/replay/runfile"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// crew drives a coordinator with n parts in virtual time.
type crew struct {
	t   *testing.T
	l   *coordinator
	now time.Time
	seq uint64
}

func newCrew(t *testing.T, n int, c Config) *crew {
	c.Of, c.Version, c.Timeout = n, "1", 5*time.Minute
	return &crew{t: t, l: newCoordinator(c, day), now: day}
}

// say makes a part report.
func (c *crew) say(number int, p phase, change ...func(*report)) error {
	c.seq++
	r := report{Number: number, Of: c.l.Of, Process: "p", Version: "1", Host: "node", Seq: c.seq, Phase: p, Facts: []Fact{{"the trace", "a"}}}
	for _, f := range change {
		f(&r)
	}
	return c.l.report(c.now, r)
}

func (c *crew) all(p phase) {
	c.t.Helper()
	for i := range c.l.Of {
		if err := c.say(i+1, p); err != nil {
			c.t.Fatal(err)
		}
	}
}

// pass lets time pass while some parts go on reporting.
func (c *crew) pass(d time.Duration, p phase, alive ...int) {
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(time.Second) {
		for _, number := range alive {
			c.say(number, p)
		}
		c.l.tick(c.now)
	}
}

func TestPartsGoThroughTheStepsTogether(t *testing.T) {
	c := newCrew(t, 3, Config{})
	all := phase("")
	for _, p := range []phase{loaded, prepared, ended} {
		for number := 1; number <= 3; number++ {
			if c.l.order.Phase != all {
				t.Fatalf("all are %s before part %d is %s", c.l.order.Phase, number, p)
			}
			if err := c.say(number, p); err != nil {
				t.Fatal(err)
			}
		}
		all = p
	}
	if o := c.l.order; o.Phase != ended || !o.Start.After(c.now) || o.Cancel != "" {
		t.Fatalf("the run ends with %+v", o)
	}
}

// What goes wrong with a part ends the run of all, naming it and the reason.
func TestPartsThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		fail   func(c *crew)
		reason string
		state  string
	}{
		"never arrives": {func(c *crew) {
			c.say(1, loaded)
			c.say(2, loaded)
			c.pass(6*time.Minute, loaded, 1, 2)
		}, "part 3 of 3 is absent: it did not arrive within 5m0s", runfile.PartAbsent},
		"dies while running": {func(c *crew) {
			c.all(loaded)
			c.all(prepared)
			c.pass(8*time.Second, prepared, 1, 2)
		}, "part 3 of 3 (node) is lost: it has not responded for 5s", runfile.PartLost},
		"other trace": {func(c *crew) {
			c.say(3, loaded, func(r *report) { r.Facts = []Fact{{"the trace", "b"}} })
			c.say(1, loaded)
			c.say(2, loaded)
		}, "part 3 of 3 (node) failed: it disagrees with part 1: the trace: it has b, part 1 has a", runfile.PartFailed},
		"fails": {func(c *crew) {
			c.all(loaded)
			c.say(3, loaded, func(r *report) { r.Failure = "no such file" })
		}, "part 3 of 3 (node) failed: no such file", runfile.PartFailed},
		"leaves early": {func(c *crew) {
			c.all(loaded)
			c.say(3, left)
		}, "part 3 of 3 (node) failed: it left before the end of the run", runfile.PartFailed},
	} {
		c := newCrew(t, 3, Config{})
		test.fail(c)
		if got := c.l.order.Cancel; got != test.reason {
			t.Errorf("%s: the run ends because %q, want %q", name, got, test.reason)
		}
		if s := c.l.states()[2]; s.State != test.state || !strings.Contains(test.reason, s.Reason) {
			t.Errorf("%s: part 3 is %+v", name, s)
		}
		for _, p := range []phase{loaded, prepared, ended} {
			c.say(1, p)
			c.say(2, p)
		}
		if c.l.order.Phase == ended {
			t.Errorf("%s: the run goes on", name)
		}
	}
}

func TestRefusedReports(t *testing.T) {
	for name, test := range map[string]struct {
		number int
		change func(r *report)
		text   string
	}{
		"two rank 0s":   {1, func(r *report) { r.Process, r.Host = "q", "other" }, "two processes of part 1 of 2: one on node, one on other"},
		"other version": {2, func(r *report) { r.Version = "2" }, "is moontide 2, part 1 is 1"},
		"other number":  {2, func(r *report) { r.Of = 3 }, "of 3 parts, part 1 of 2"},
		"no part":       {3, func(r *report) {}, "part 3 (node) is of 2 parts, part 1 of 2"},
	} {
		c := newCrew(t, 2, Config{})
		c.say(1, loading)
		err := c.say(test.number, loading, test.change)
		var refused *refusal
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want %q", name, err, test.text)
		}
		if c.l.order.Cancel != "" {
			t.Errorf("%s: a refused report ends the run: %s", name, c.l.order.Cancel)
		}
	}
}

// An interrupt of any part stops the sending of all, and a second one ends the run of all.
func TestInterrupts(t *testing.T) {
	c := newCrew(t, 2, Config{})
	c.all(loaded)
	before := c.l.order.Version
	c.say(2, loaded, func(r *report) { r.Interrupts = 1 })
	if o := c.l.order; o.Drain != "part 2 of 2 (node) was interrupted" || o.Version <= before || o.Cancel != "" {
		t.Errorf("after an interrupt: %+v", o)
	}
	c.say(2, loaded, func(r *report) { r.Interrupts = 2 })
	if got := c.l.order.Cancel; got != "part 2 of 2 (node) was interrupted twice" {
		t.Errorf("the run ends because %q", got)
	}
}

// Parts that have ended may leave, in any number of reports.
func TestLeaving(t *testing.T) {
	c := newCrew(t, 2, Config{})
	for _, p := range []phase{loaded, prepared, ended, left, left} {
		c.all(p)
	}
	if o := c.l.order; o.Cancel != "" || c.l.states()[1].State != runfile.PartEnded {
		t.Errorf("after all left: %+v, %+v", o, c.l.states())
	}
}

// Part 1 waits until a part that disagrees has learned that the run was ended, for a
// limited time, and not for one that is lost.
func TestPartsThatPart1WaitsFor(t *testing.T) {
	c := newCrew(t, 3, Config{})
	c.say(1, loaded)
	c.say(2, loaded, func(r *report) { r.Facts[0].Value = "b" })
	c.say(3, loaded)
	c.say(3, left)
	if c.l.order.Cancel == "" || c.l.othersLeft(true) || !c.l.othersLeft(false) {
		t.Errorf("the run ends because %q, part 2 may need part 1: %v", c.l.order.Cancel, !c.l.othersLeft(true))
	}
	c.say(2, left)
	if !c.l.othersLeft(true) {
		t.Error("all have left, and part 1 waits")
	}
	c = newCrew(t, 2, Config{})
	c.all(loaded)
	c.pass(Silence+2*time.Second, loaded, 1)
	if !c.l.othersLeft(true) {
		t.Errorf("part 1 waits for a lost part: %+v", c.l.states())
	}
}

// Parts go on where the last of them was, and only in one run.
func TestResumedProgress(t *testing.T) {
	resume := func(run string, clock time.Duration, row int) func(*report) {
		return func(r *report) { r.Done = Progress{RunID: run, Clock: clock, LastRow: row} }
	}
	c := newCrew(t, 3, Config{})
	c.say(1, loaded)
	c.say(2, loaded, resume("a", time.Second, 9))
	c.say(3, loaded, resume("a", 2*time.Second, 7))
	if got := c.l.order.Done; got != (Progress{RunID: "a", Clock: 2 * time.Second, LastRow: 9}) || c.l.order.Phase != loaded {
		t.Errorf("progress %+v", got)
	}
	c = newCrew(t, 3, Config{})
	c.say(1, loaded)
	c.say(2, loaded, resume("a", time.Second, 9))
	c.say(3, loaded, resume("b", time.Second, 9))
	if got, want := c.l.order.Cancel, "part 3 of 3 (node) failed: it resumes another run than part 2"; got != want {
		t.Errorf("the run ends because %q, want %q", got, want)
	}
}

// A report that was overtaken by a newer one changes nothing.
func TestOldReports(t *testing.T) {
	c := newCrew(t, 2, Config{})
	c.all(loaded)
	if err := c.say(2, loading, func(r *report) { r.Seq = 1 }); err != nil || c.l.parts[1].Phase != loaded {
		t.Errorf("%v, phase %s", err, c.l.parts[1].Phase)
	}
}

// A run that ends because a part was lost or interrupted can be resumed as it is, unlike
// one that ends because of a failure.
func TestResumable(t *testing.T) {
	for name, test := range map[string]struct {
		fail      func(c *crew)
		resumable bool
	}{
		"silent":      {func(c *crew) { c.pass(8*time.Second, prepared, 1) }, true},
		"absent":      {func(c *crew) { c.l.parts[1] = partState{}; c.pass(6*time.Minute, prepared, 1) }, false},
		"failed":      {func(c *crew) { c.say(2, left, func(r *report) { r.Failure = "disk full" }) }, false},
		"interrupted": {func(c *crew) { c.say(2, left, func(r *report) { r.Failure, r.Interrupts = "canceled", 1 }) }, true},
		"twice":       {func(c *crew) { c.say(2, prepared, func(r *report) { r.Interrupts = 2 }) }, true},
		"replaced": {func(c *crew) {
			c.pass(3*time.Second, prepared, 1)
			c.say(2, loading, func(r *report) { r.Process = "q" })
		}, true},
	} {
		c := newCrew(t, 2, Config{})
		c.all(loaded)
		c.all(prepared)
		test.fail(c)
		if o := c.l.order; o.Cancel == "" || o.Resumable != test.resumable {
			t.Errorf("%s: the run ends because %q, resumable: %v", name, o.Cancel, o.Resumable)
		}
	}
}

// The new process of a part waits for the run of the previous processes to end, so that
// it can join the next. While the previous process of the part is alive, it is refused.
func TestReplacedProcess(t *testing.T) {
	c := newCrew(t, 2, Config{})
	c.all(loaded)
	fresh := func(r *report) { r.Process = "q" }
	var refused *refusal
	if err := c.say(2, loading, fresh); !errors.As(err, &refused) || c.l.order.Cancel != "" {
		t.Errorf("beside a live process: %v, %+v", err, c.l.order)
	}
	c.say(1, loaded, func(r *report) { r.Interrupts = 1 })
	for _, number := range []int{1, 2} {
		if err := c.say(number, loading, fresh); !errors.Is(err, errEnding) {
			t.Errorf("part %d of a run that is ending: %v", number, err)
		}
	}
}
