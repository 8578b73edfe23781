package replay

import (
	"context"
	"fmt"
	"time"

	"moontide/replay/monotonic"
)

// early is how long before its instant the precise timer wakes dispatch, which
// spins for the rest: waking takes some ten microseconds.
const early = 60 * time.Microsecond

// dispatch is the loop that reads the clock: it sends what is due and waits
// for what comes next. It returns when nothing is left to send or sending was
// stopped, and no request is in flight.
func (r *run) dispatch(ctx context.Context) {
	rung := make(chan struct{}, 1)
	newTimer, lead := monotonic.NewGoTimer, time.Duration(0)
	if r.Precise {
		newTimer, lead = monotonic.NewTimer, early
	}
	timer := newTimer(func() {
		select {
		case rung <- struct{}{}:
		default: // it has not seen the last one yet
		}
	})
	defer timer.Stop()
	rows, inFlight, failed := r.rows, 0, 0
	for {
		r.heedStops(ctx)
		now := time.Since(r.start)
		if !r.isOver() {
			inFlight += r.sendDue(ctx)
		}
		if !r.isOver() {
			r.open(ctx)
			r.endInTime(now)
		}
		if inFlight == 0 && (r.isOver() || rows == nil && r.schedule.idle()) {
			return
		}
		now = time.Since(r.start)
		wake, waits := r.wake(now)
		if waits && !r.isOver() {
			timer.Set(r.start.Add(wake - lead))
		}
		// Rows wait in their channel while enough are at hand, so that the
		// bodies in memory stay bounded.
		more := rows
		if r.schedule.rows >= r.ahead() {
			more = nil
		}
		var turns chan<- job
		turn, near := r.schedule.toPrepare(now)
		if near {
			turns = r.turns
		}
		select {
		case j, ok := <-more:
			if !ok {
				rows = nil
				continue
			}
			r.schedule.add(j)
		case turns <- turn:
			r.schedule.takeTurn()
		case j := <-r.prepared:
			r.schedule.push(j)
		case e := <-r.ended:
			inFlight--
			if e.unsent {
				r.takeBack()
				continue
			}
			r.schedule.ended(e.j, e.at, e.ok)
			if !e.ok {
				failed++
			}
			if failed == r.MaxErrors && !e.ok {
				r.fail(fmt.Errorf("%w: %d", ErrTooManyErrors, failed))
				r.stopSending() // and not one request later
			}
		case <-rung:
			r.spin(wake)
		case <-r.unlessOver(r.Drain):
			r.stopSending()
		case <-r.unlessOver(r.halt):
			r.stopSending()
		case <-ctx.Done():
			r.stopSending()
			for ; inFlight > 0; inFlight-- {
				if e := <-r.ended; e.unsent {
					r.takeBack()
				}
			}
		}
	}
}

// isOver reports whether nothing is sent any more.
func (r *run) isOver() bool { return r.tally.Stopped || r.tally.TimeUp }

func (r *run) stopSending() {
	if !r.isOver() {
		close(r.over)
	}
	r.tally.Stopped = true
}

// heedStops stops the sending if it was asked for: the loop's select takes any
// of what is there, and may see the end of a request first, whose slot would
// let another one go.
func (r *run) heedStops(ctx context.Context) {
	select {
	case <-ctx.Done():
		r.stopSending()
	case <-r.unlessOver(r.Drain):
		r.stopSending()
	case <-r.unlessOver(r.halt):
		r.stopSending()
	default:
	}
}

// takeBack counts a request as not sent that was to be sent and could not be
// noted.
func (r *run) takeBack() {
	r.stopSending()
	r.tally.Sent--
	r.live.sent.Add(-1)
}

// endInTime ends the sending when, at now, Duration had passed.
func (r *run) endInTime(now time.Duration) {
	if r.Duration > 0 && now >= r.Duration {
		close(r.over)
		r.tally.TimeUp = true
	}
}

// wake is the next instant at which there is something to do if nothing else
// happens before.
func (r *run) wake(now time.Duration) (at time.Duration, ok bool) {
	at, ok = r.schedule.wake(now)
	if r.Duration > 0 && (!ok || at > r.Duration) {
		return r.Duration, true
	}
	return at, ok
}

// spin waits for an instant that the timer woke dispatch for early. It does not
// yield: whoever got the CPU core would keep it for longer.
func (r *run) spin(until time.Duration) {
	if until-time.Since(r.start) > early { // the timer was set for another instant
		return
	}
	for time.Since(r.start) < until {
	}
}

// unlessOver is c until sending is over, then a channel that is silent.
func (r *run) unlessOver(c <-chan struct{}) <-chan struct{} {
	if r.isOver() {
		return nil
	}
	return c
}

// sendDue starts every request whose time has come.
func (r *run) sendDue(ctx context.Context) (started int) {
	for {
		j, ready, ok := r.schedule.next(time.Since(r.start))
		if !ok {
			return started
		}
		if !r.begin(&j) {
			r.stopSending()
			return started
		}
		started++
		r.tally.Sent++
		r.live.sent.Add(1)
		r.requests.Go(func() { r.send(ctx, j, ready) })
	}
}

// begin begins to send what can be sent without waiting. It is false if the
// request is not to be sent.
func (r *run) begin(j *job) bool {
	starter, can := j.call.(Starter)
	if !can || !j.isOpened() {
		return true
	}
	if j.begun = r.note(*j); j.begun {
		starter.Start()
	}
	return j.begun
}

// note tells the journal of a request. What it cannot take is not sent: the run
// fails, and what was opened for the request is given back.
func (r *run) note(j job) bool {
	if r.journal == nil {
		return true
	}
	err := r.journal.Sending(j.row)
	if err != nil {
		r.fail(err)
		j.discard()
	}
	return err == nil
}

// isOpened reports whether there is nothing to wait for that Open does.
func (j *job) isOpened() bool {
	if j.opened == nil {
		return true
	}
	select {
	case <-j.opened:
		return true
	default:
		return false
	}
}

// awaitOpened returns when Open has, and how long that took.
func (j *job) awaitOpened() time.Duration {
	if j.isOpened() {
		return 0
	}
	began := time.Now()
	<-j.opened
	return time.Since(began)
}

// open begins to open what will be sent soon.
func (r *run) open(ctx context.Context) {
	for {
		j, ok := r.schedule.toOpen(time.Since(r.start))
		if !ok {
			return
		}
		if call, can := j.call.(Opener); can {
			j.opened = make(chan struct{})
			r.requests.Go(func() {
				call.Open(ctx)
				close(j.opened)
			})
		}
		r.schedule.pushOpened(j)
	}
}

// discard gives back what was opened for requests that are not sent.
func (r *run) discard() {
	for _, j := range r.schedule.near {
		j.discard()
	}
}

// discard gives back what was opened for a request that is not sent.
func (j job) discard() {
	if j.opened != nil {
		<-j.opened
		j.call.(Opener).Discard()
	}
}

func (r *run) send(ctx context.Context, j job, ready time.Duration) {
	var opening time.Duration
	if !j.begun {
		opening = j.awaitOpened()
		if !r.note(j) {
			r.ended <- ending{j: j, unsent: true}
			return
		}
	}
	o := j.call.Send(ctx)
	o.ConnectTime += opening
	j.call = nil
	o, ready, retries := r.persist(ctx, j, o, ready)
	rec := newRecord(j, ready, r.start, o)
	rec.Retries = retries
	r.ended <- ending{j: j, at: rec.Done, ok: rec.Class == OK}
	r.records <- rec
}

// record hands each record over. Once the recorder has failed, sending stops
// and what still ends is counted as unrecorded.
func (r *run) record() {
	broken := false
	for rec := range r.records {
		r.live.done.Add(1)
		r.live.tokens.Add(int64(rec.Counts.Output.Value))
		if rec.Class != OK {
			r.tally.Failed++
			r.live.failed.Add(1)
		}
		if rec.Class == Canceled {
			r.tally.Canceled++
		}
		if !broken {
			if err := r.Recorder.Record(rec); err != nil {
				broken = true
				r.fail(err)
			}
		}
		if broken {
			r.tally.Unrecorded++
		}
	}
}

// fail notes the first failure of the run and stops the sending.
func (r *run) fail(err error) {
	r.errMu.Lock()
	defer r.errMu.Unlock()
	if r.err == nil {
		r.err = err
		close(r.halt)
	}
}

func (r *run) failure() error {
	r.errMu.Lock()
	defer r.errMu.Unlock()
	return r.err
}
