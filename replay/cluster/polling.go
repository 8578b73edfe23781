package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// send reports to the leader and takes its order.
func (m *Member) send(ctx context.Context, seen uint64) error {
	m.mu.Lock()
	r := m.mine
	if m.status != nil {
		r.Status = m.status()
	}
	m.mu.Unlock()
	r.Seen = seen
	var o order
	if err := m.client.post(ctx, "/v1/report", r, &o); err != nil {
		return err
	}
	m.take(o)
	return nil
}

// take follows an order.
func (m *Member) take(o order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.Version <= m.order.Version {
		return
	}
	m.order = o
	close(m.changed)
	m.changed = make(chan struct{})
	if o.Cancel != "" {
		m.fail(&EndedError{o.Cancel, o.Resumable && m.mine.Interrupts == 0})
	}
	if o.Drain != "" || o.Cancel != "" {
		if o.Cancel == "" && m.mine.Interrupts == 0 && !m.isDrained() {
			m.Message(o.Drain + ": all parts stop sending")
		}
		m.stopSending()
	}
}

func (m *Member) isDrained() bool {
	select {
	case <-m.drained:
		return true
	default:
		return false
	}
}

// stopSending closes drained. mu must be locked.
func (m *Member) stopSending() {
	if !m.isDrained() {
		close(m.drained)
	}
}

// poll reports to the leader until the part leaves.
func (m *Member) poll(ctx context.Context) {
	defer close(m.polled)
	heard := m.Clock()
	for ctx.Err() == nil {
		m.mu.Lock()
		m.mine.Seq++ // the status is new
		seen := m.order.Version
		m.mu.Unlock()
		err := m.send(ctx, seen)
		var refused *refusal
		switch {
		case err == nil:
			heard = m.Clock()
			continue
		case errors.As(err, &refused):
			m.lose(refused.Error(), false)
			return
		case m.Clock().Sub(heard) > Silence:
			m.cut()
			m.lose(fmt.Sprintf("part 1 of %d has not responded for %v: %v", m.Of, Silence, err), true)
			return
		}
		select {
		case <-time.After(tickTime):
		case <-ctx.Done():
		}
	}
}

// lose ends the run for this part alone.
func (m *Member) lose(reason string, resumable bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail(&EndedError{reason, resumable && m.mine.Interrupts == 0})
	m.stopSending()
}

// change changes what this part reports. If it cannot be sent at once, poll sends it.
func (m *Member) change(ctx context.Context, change func(r *report)) {
	m.mu.Lock()
	change(&m.mine)
	m.mine.Seq++
	m.mu.Unlock()
	m.send(ctx, 0)
}

// awaitStep waits until all parts are at a step, and returns the order then.
func (m *Member) awaitStep(ctx context.Context, s step) (order, error) {
	for {
		m.mu.Lock()
		o, changed := m.order, m.changed
		m.mu.Unlock()
		switch {
		case m.gone.Err() != nil:
			return o, context.Cause(m.gone)
		case o.Step >= s:
			return o, nil
		}
		select {
		case <-changed:
		case <-m.gone.Done():
		case <-ctx.Done():
			return o, ctx.Err()
		}
	}
}
