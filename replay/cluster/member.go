package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/atomicfile"
)

// Config configures a part of a run. Number, Of and Dir are required.
type Config struct {
	Number, Of int    // from 1
	By         string // what stays together, for the record; "" is [trace.BySession]
	Version    string // of moontide; all parts must have the same
	// Dir is the folder of the whole run. Part 1 writes its address and token to a file
	// beside it, for the parts that share it.
	Dir string
	// Address is HOST:PORT of part 1; "" reads it from the token file.
	Address string
	// Token is the secret of the job; "" is a random one in the token file.
	Token string
	// OneMachine makes part 1 listen on loopback unless Address is set.
	OneMachine bool
	// Timeout is the time for all parts to arrive; 0 is 5 minutes.
	Timeout time.Duration
	Message func(text string) // called from any goroutine; may be nil
	// Clock returns the time of day and must not step; nil is the default.
	Clock func() time.Time
}

// DefaultTimeout is the default of [Config.Timeout].
const DefaultTimeout = 5 * time.Minute

// EndedError reports that a run ended for all parts.
type EndedError struct {
	Reason string
	// Resumable means that the run can be resumed as it is: another part was lost or
	// interrupted.
	Resumable bool
}

func (e *EndedError) Error() string { return "the run has ended: " + e.Reason }

var errLeft = errors.New("the part has left the run")

// Member is a part of a run. Its methods are safe for concurrent use, except those that
// take a context.
type Member struct {
	Config
	server *server  // of part 1, else nil
	token  *os.File // its token file, or nil
	client *client
	closed context.CancelFunc // ends poll
	polled chan struct{}      // closed when poll has returned
	gone   context.Context    // ends, with its cause, when the run ends for this part
	fail   context.CancelCauseFunc
	cutOff context.Context // ends when part 1 stops responding
	cut    context.CancelFunc

	mu      sync.Mutex
	mine    report
	order   order
	changed chan struct{} // closed and replaced with each new order
	drained chan struct{} // closed when sending is to stop
	status  func() replay.Status
}

// Join connects to part 1, which leads. The caller must call Close.
func Join(ctx context.Context, c Config) (*Member, error) {
	c.By, c.Timeout = cmp.Or(c.By, trace.BySession), cmp.Or(c.Timeout, DefaultTimeout)
	if c.Clock == nil {
		c.Clock = steadyClock()
	}
	if c.Message == nil {
		c.Message = func(string) {}
	}
	m := &Member{Config: c, changed: make(chan struct{}), drained: make(chan struct{}), polled: make(chan struct{})}
	m.gone, m.fail = context.WithCancelCause(context.Background())
	m.cutOff, m.cut = context.WithCancel(context.Background())
	host, _ := os.Hostname()
	m.mine = report{Number: c.Number, Of: c.Of, Version: c.Version, Process: newID(), Host: host, Seq: 1, Phase: loading}
	if c.Number == 1 {
		if err := m.lead(); err != nil {
			return nil, err
		}
	}
	m.client = newClient(m.Config)
	if err := m.arrive(ctx); err != nil {
		m.end()
		return nil, err
	}
	polling, closed := context.WithCancel(context.Background())
	m.closed = closed
	go m.poll(polling)
	return m, nil
}

// Leads reports whether this is part 1.
func (m *Member) Leads() bool { return m.server != nil }

// OpenFiles returns how many connections to other parts there may be, 0 for a nil Member.
func (m *Member) OpenFiles() int {
	switch {
	case m == nil:
		return 0
	case m.Leads():
		return connsOfPart + m.server.conns.Most
	}
	return connsOfPart
}

// Folder returns the folder of this part's records.
func (m *Member) Folder() string { return filepath.Join(m.Dir, folder(m.Number)) }

// Share returns this part's equal share of a limit of the whole run, which only the first
// parts have. The remainder goes to the first of them, one each.
func (m *Member) Share(limit, parts int) int {
	if m.Number > parts {
		return 0
	}
	share := limit / parts
	if m.Number <= limit%parts {
		share++
	}
	return share
}

// Drained is closed when all parts are to stop sending.
func (m *Member) Drained() <-chan struct{} { return m.drained }

// Ending returns a context that also ends when the run is ended for all parts.
func (m *Member) Ending(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.gone, cancel)
	return ctx, func() { stop(); cancel() }
}

// Err returns why the run has ended for this part, or that another part was interrupted,
// or nil.
func (m *Member) Err() error {
	if ended := context.Cause(m.gone); ended != nil {
		return ended
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.order.Drain != "" && m.mine.Interrupts == 0 {
		return &EndedError{m.order.Drain, true}
	}
	return nil
}

// Interrupt makes all parts stop sending; requests in flight finish.
func (m *Member) Interrupt() { m.interrupt(1) }

// Abort ends the run of all parts at once.
func (m *Member) Abort() { m.interrupt(2) }

func (m *Member) interrupt(times int) {
	m.mu.Lock()
	m.stopSending()
	m.mu.Unlock()
	m.change(m.gone, func(r *report) { r.Interrupts = max(r.Interrupts, times) })
}

// Progress sets the function for the status of this part. It returns one for the status of
// all parts or, if this part does not lead, of this one.
func (m *Member) Progress(own func() replay.Status) func() replay.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = own
	if !m.Leads() {
		return own
	}
	return func() replay.Status {
		all := m.server.status()
		all.Start = own().Start
		return all
	}
}

// Close leaves the run. An error that is not nil ends it for all parts. Part 1 waits for
// the others to leave.
func (m *Member) Close(err error) {
	leaving, cancel := context.WithTimeout(context.Background(), Silence)
	defer cancel()
	m.change(leaving, func(r *report) {
		r.Phase = left
		if errors.Is(err, context.Canceled) {
			r.Interrupts = max(r.Interrupts, 1)
		}
		if err != nil {
			r.Failure = short(err.Error())
		}
	})
	m.closed()
	<-m.polled
	m.end()
}

// end releases the resources of the member.
func (m *Member) end() {
	if m.server != nil {
		m.server.close()
	}
	if m.token != nil {
		atomicfile.Remove(m.token)
	}
	if m.client != nil {
		m.client.http.CloseIdleConnections()
	}
	m.fail(errLeft)
	m.cut()
}

// send reports to the leader and follows its order.
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
	o.Cancel, o.Drain = oneLine(o.Cancel), oneLine(o.Drain)
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

// change changes and sends the report of this part. If sending fails, poll tries again.
func (m *Member) change(ctx context.Context, change func(r *report)) {
	m.mu.Lock()
	change(&m.mine)
	m.mine.Seq++
	m.mu.Unlock()
	m.send(ctx, 0)
}

// awaitStep waits until all parts are at a step, and returns its order.
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

// Agree reports the facts of this part, and its progress in a run that is resumed. It waits
// until all parts have reported the same facts, under the same names, and returns the
// progress of all. The error is an [*EndedError] if a part is missing or disagrees.
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

// ClockAfter adds a second measurement of the clock of this part, if the leader responds.
func (m *Member) ClockAfter(ctx context.Context, clock *runfile.Clock) {
	if after, err := m.compareClocks(ctx); err == nil {
		clock.After = after
	}
}

// compareClocks measures this part's clock offset from part 1.
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

// End reports that this part has measured and saved its run, or why it failed. It sends
// the records to part 1 unless they share a folder, and waits for the other parts. saved
// is the record of the part.
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

// AwaitOthers waits until the other parts have left, if the run ended early. It then has
// the records of all parts that are not lost.
func (m *Member) AwaitOthers() {
	if m.Leads() && m.Err() != nil {
		m.change(context.Background(), func(r *report) { r.Phase = left })
		m.server.awaitGone()
	}
}

// Parts returns the state of all parts, for [runfile.PartsFile].
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
			return fmt.Errorf("sending the records of part %d to part 1: %w; they are in %s", m.Number, err, m.Folder())
		}
	}
	return nil
}
