package replay

import (
	"context"
	"fmt"
	"time"

	"moontide/replay/monotonic"
)

// early is how long before the due time the precise timer wakes dispatch, which
// spins for the rest: waking takes tens of microseconds.
const early = 60 * time.Microsecond

// dispatch is the main loop: it sends due requests and waits for the next event.
// It returns when no request is in flight and nothing is left to send or sending
// has ended.
func (r *run) dispatch(ctx context.Context) {
	wakeUp := make(chan struct{}, 1)
	newTimer, lead := monotonic.NewGoTimer, time.Duration(0)
	if r.Precise {
		newTimer, lead = monotonic.NewTimer, early
	}
	timer := newTimer(func() {
		select {
		case wakeUp <- struct{}{}:
		default: // a wake-up is pending
		}
	})
	defer timer.Stop()
	rows, inFlight, failures := r.rows, 0, 0
	for {
		r.checkStops(ctx)
		now := time.Since(r.start)
		if !r.isOver() {
			inFlight += r.sendDue(ctx)
		}
		if !r.isOver() {
			r.open(ctx)
			r.checkDuration(now)
		}
		if inFlight == 0 && (r.isOver() || rows == nil && r.schedule.idle()) {
			return
		}
		now = time.Since(r.start)
		wake, waits := r.wake(now)
		if waits && !r.isOver() {
			timer.Set(r.start.Add(wake - lead))
		}
		// Rows stay in their channel while enough are scheduled, which bounds the
		// memory for bodies.
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
			switch {
			case !ok:
				rows = nil
			case j.outgrown:
				r.schedule.outgrow(j, now)
			default:
				r.schedule.add(j)
			}
		case turns <- turn:
			r.schedule.takeTurn()
		case j := <-r.prepared:
			if j.outgrown {
				r.schedule.outgrow(j, now)
			} else {
				r.schedule.push(j)
			}
		case e := <-r.ended:
			inFlight--
			if e.unsent {
				r.undoSend()
				continue
			}
			r.schedule.ended(e.j, e.at, resultOf(e.class))
			if e.class == OK || e.class == Abandoned {
				continue
			}
			if failures++; failures == r.MaxErrors {
				r.fail(fmt.Errorf("%w: %d", ErrTooManyErrors, failures))
				r.stopSending() // before the next request
			}
		case <-wakeUp:
			r.spin(wake)
		case <-r.whileSending(r.Drain): // see checkStops
		case <-r.whileSending(r.failed):
		case <-ctx.Done():
			r.stopSending()
			for ; inFlight > 0; inFlight-- {
				if e := <-r.ended; e.unsent {
					r.undoSend()
				} else {
					r.schedule.sessions.ended(e.j.row, e.at, resultOf(e.class))
				}
			}
		}
	}
}

// isOver reports whether sending has ended.
func (r *run) isOver() bool { return r.tally.Stopped || r.tally.TimeUp }

func (r *run) stopSending() {
	if !r.isOver() {
		close(r.notSending)
	}
	r.tally.Stopped = true
}

// checkStops ends sending if requested. The select in dispatch picks any ready
// case: it might handle the end of a request first and use its slot for another.
func (r *run) checkStops(ctx context.Context) {
	select {
	case <-ctx.Done():
		r.stopSending()
	case <-r.whileSending(r.Drain):
		r.stopSending()
	case <-r.whileSending(r.failed):
		r.stopSending()
	default:
	}
}

// undoSend uncounts a request that was not sent because the journal failed.
func (r *run) undoSend() {
	r.stopSending()
	r.tally.Sent--
	r.live.sent.Add(-1)
}

// checkDuration ends sending once Duration has passed.
func (r *run) checkDuration(now time.Duration) {
	if r.Duration > 0 && now >= r.Duration {
		close(r.notSending)
		r.tally.TimeUp = true
	}
}

// wake returns the time of the next scheduled action.
func (r *run) wake(now time.Duration) (at time.Duration, ok bool) {
	at, ok = r.schedule.wake(now)
	if r.Duration > 0 && (!ok || at > r.Duration) {
		return r.Duration, true
	}
	return at, ok
}

// spin busy-waits until the due time after the timer woke dispatch early. It does
// not yield: another goroutine would occupy the CPU core for longer.
func (r *run) spin(until time.Duration) {
	if until-time.Since(r.start) > early { // the timer was set for another time
		return
	}
	for time.Since(r.start) < until {
	}
}

// whileSending returns c until sending has ended, then a channel that blocks.
func (r *run) whileSending(c <-chan struct{}) <-chan struct{} {
	if r.isOver() {
		return nil
	}
	return c
}

// sendDue starts every request that is due.
func (r *run) sendDue(ctx context.Context) (started int) {
	for {
		j, ready, ok := r.schedule.next(time.Since(r.start))
		if !ok {
			return started
		}
		if !r.startSending(&j) {
			r.stopSending()
			return started
		}
		started++
		r.tally.Sent++
		r.live.sent.Add(1)
		r.requests.Go(func() { r.send(ctx, j, ready) })
	}
}

// startSending starts a request that can be sent without blocking. It returns
// false if the request must not be sent.
func (r *run) startSending(j *job) bool {
	starter, can := j.call.(Starter)
	if !can || !j.isOpened() {
		return true
	}
	if j.started = r.noteSending(*j); j.started {
		starter.Start()
	}
	return j.started
}

// noteSending writes a request to the journal. If that fails, the run fails and
// the request is not sent.
func (r *run) noteSending(j job) bool {
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

// isOpened reports whether Open has returned or was not called.
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

// awaitOpened waits for Open and returns the time waited.
func (j *job) awaitOpened() time.Duration {
	if j.isOpened() {
		return 0
	}
	began := time.Now()
	<-j.opened
	return time.Since(began)
}

// open opens connections for requests that are due soon.
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
		r.schedule.pushOpening(j)
	}
}

// discard closes connections opened for requests that are not sent.
func (r *run) discard() {
	for _, j := range r.schedule.opening {
		j.discard()
	}
}

// discard closes a connection opened for a request that is not sent.
func (j job) discard() {
	if j.opened != nil {
		<-j.opened
		j.call.(Opener).Discard()
	}
}

func (r *run) send(ctx context.Context, j job, ready time.Duration) {
	var waited time.Duration
	if !j.started {
		waited = j.awaitOpened()
		if !r.noteSending(j) {
			r.ended <- requestEnd{j: j, unsent: true}
			return
		}
	}
	o := j.call.Send(ctx)
	o.ConnectTime += waited
	j.call = nil
	o, ready, retries := r.sendWithRetries(ctx, j, o, ready)
	rec := newRecord(j, ready, r.start, o)
	rec.Retries = retries
	r.ended <- requestEnd{j: j, at: rec.Done, class: rec.Class}
	r.records <- rec
}

// record passes each record to the Recorder. After the Recorder fails, sending
// ends and the remaining requests are counted as unrecorded.
func (r *run) record() {
	broken := false
	for rec := range r.records {
		r.live.done.Add(1)
		tokens, _ := rec.OutputTokens()
		r.live.tokens.Add(int64(tokens))
		switch rec.Class {
		case OK:
		case Abandoned:
			r.tally.Abandoned++
		case Canceled:
			r.tally.Canceled++
			fallthrough
		default:
			r.tally.Failed++
			r.live.failed.Add(1)
		}
		if !broken && r.Recorder != nil {
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

// fail stores the run's first error and ends sending.
func (r *run) fail(err error) {
	r.errMu.Lock()
	defer r.errMu.Unlock()
	if r.err == nil {
		r.err = err
		close(r.failed)
	}
}

func (r *run) failure() error {
	r.errMu.Lock()
	defer r.errMu.Unlock()
	return r.err
}
