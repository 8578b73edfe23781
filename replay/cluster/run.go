package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"moontide/replay/runfile"
)

// Agree tells what this part replays and waits until all parts do. The names of the facts
// must be the same in all parts. Its error is an [*EndedError] if a part is missing or
// disagrees. done is how far this part came in a run that is resumed; Agree returns how
// far all came.
func (m *Member) Agree(ctx context.Context, facts []Fact, done Progress) (Progress, error) {
	m.change(ctx, func(r *report) { r.Phase, r.Facts, r.Done = loaded, facts, done })
	o, err := m.awaitStep(ctx, agreed)
	return o.Done, err
}

// Begin waits until all parts are prepared. It returns the place of this part in the
// run, for its record, and the common start, with a monotonic reading.
func (m *Member) Begin(ctx context.Context) (runfile.Part, time.Time, error) {
	clock := runfile.Clock{Reference: runfile.ClockOfPart1}
	var err error
	if clock.Before, err = m.compareClocks(ctx); err != nil {
		return runfile.Part{}, time.Time{}, err
	}
	m.change(ctx, func(r *report) { r.Phase, r.Clock = prepared, clock })
	o, err := m.awaitStep(ctx, started)
	if err != nil {
		return runfile.Part{}, time.Time{}, err
	}
	part := runfile.Part{RunID: o.RunID, Number: m.Number, Of: m.Of, By: m.By, Host: m.mine.Host, Start: o.Start.UTC(), Clock: clock}
	return part, time.Now().Add(o.Start.Sub(clock.ToReference(m.Clock()))), nil
}

// ClockAfter adds a second measurement of the clock of this part. It leaves the clock
// as it is if the leader is gone.
func (m *Member) ClockAfter(ctx context.Context, clock *runfile.Clock) {
	if after, err := m.compareClocks(ctx); err == nil {
		clock.After = after
	}
}

// compareClocks measures the offset of this part's clock from that of part 1.
func (m *Member) compareClocks(ctx context.Context) (runfile.ClockOffset, error) {
	if m.Leads() {
		return runfile.ClockOffset{At: m.Clock()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var all []exchange
	shortest, vain := time.Duration(math.MaxInt64), 0
	for len(all) < mostExchanges && vain < vainExchanges {
		var s stamps
		e := exchange{sent: m.Clock()}
		err := m.client.post(ctx, "/v1/clock", struct{}{}, &s)
		if err != nil {
			break
		}
		e.back, e.received, e.answered = m.Clock(), s.Received, s.Sent
		all = append(all, e)
		if vain++; e.roundTrip() < shortest*9/10 {
			vain = 0
		}
		shortest = min(shortest, e.roundTrip())
	}
	return best(all)
}

// End tells that this part has measured and saved its run, with its failure if it
// failed, passes on its records if part 1 does not share its folder, and waits for the
// other parts. saved is the record of the part.
func (m *Member) End(ctx context.Context, saved runfile.Part, failure string) error {
	passing, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(m.cutOff, cancel)()
	passErr := m.passRecords(passing, saved.RunID)
	if passErr != nil && failure == "" {
		failure = passErr.Error()
	}
	m.change(ctx, func(r *report) { r.Phase, r.Clock, r.Failure = ended, saved.Clock, failure })
	_, err := m.awaitStep(ctx, over)
	return errors.Join(passErr, err)
}

// AwaitOthers waits until the other parts have left, if the run was ended before its
// end. Their records are then here, except those of parts that are lost.
func (m *Member) AwaitOthers() {
	if m.Leads() && m.Err() != nil {
		m.change(context.Background(), func(r *report) { r.Phase = left })
		m.server.awaitGone()
	}
}

// Parts returns what is known of the parts, for [runfile.PartsFile].
func (m *Member) Parts() runfile.Parts {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	l := m.server.leader
	p := runfile.Parts{RunID: l.order.RunID, Of: m.Of, By: m.By, Start: l.order.Start.UTC(), Parts: l.states()}
	for i := range p.Parts {
		if hasPart(m.Dir, i+1) {
			p.Parts[i].Folder = folder(i + 1)
		}
	}
	return p
}

// passRecords sends the files of this part to part 1, unless they share the folder.
func (m *Member) passRecords(ctx context.Context, runID string) error {
	if m.Leads() || runID == "" {
		return nil
	}
	if all, err := runfile.ReadParts(m.Dir); err == nil && all.RunID == runID {
		return nil
	}
	for _, name := range partFiles {
		f, err := os.Open(filepath.Join(m.Folder(), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = m.client.do(ctx, http.MethodPut, fmt.Sprintf("/v1/parts/%d/%s", m.Number, name), f, nil)
			f.Close()
		}
		if err != nil {
			return fmt.Errorf("passing the records of part %d to part 1: %w; they are in %s", m.Number, err, m.Folder())
		}
	}
	return nil
}
