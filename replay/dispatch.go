package replay

import (
	"context"
	"time"
)

// dispatch is the loop that reads the clock: it sends what is due and waits
// for what comes next. It returns when nothing is left to send or sending was
// stopped, and no request is in flight.
func (r *run) dispatch(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	rows, inFlight := r.rows, 0
	for {
		if !r.tally.Stopped {
			inFlight += r.sendDue(ctx)
		}
		if inFlight == 0 && (r.tally.Stopped || rows == nil && r.schedule.idle()) {
			return
		}
		var wake <-chan time.Time
		now := time.Since(r.start)
		if at, ok := r.schedule.wake(now); ok && !r.tally.Stopped {
			timer.Reset(at - now)
			wake = timer.C
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
			r.schedule.ended(e.j, e.at, e.ok)
		case <-wake:
		case <-r.unlessStopped(r.Drain):
			r.tally.Stopped = true
		case <-r.unlessStopped(r.halt):
			r.tally.Stopped = true
		case <-ctx.Done():
			r.tally.Stopped = true
			for ; inFlight > 0; inFlight-- {
				<-r.ended
			}
		}
	}
}

// unlessStopped is c until sending was stopped, then a channel that is silent.
func (r *run) unlessStopped(c <-chan struct{}) <-chan struct{} {
	if r.tally.Stopped {
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
		started++
		r.tally.Sent++
		r.live.sent.Add(1)
		r.requests.Go(func() { r.send(ctx, j, ready) })
	}
}

func (r *run) send(ctx context.Context, j job, ready time.Duration) {
	o := j.call.Send(ctx)
	j.call = nil
	rec := newRecord(j, ready, r.start, o)
	r.ended <- ending{j, rec.Done, rec.Class == OK}
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
