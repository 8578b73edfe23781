package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"moontide/replay"
	"moontide/trace"
)

// Config is what a process knows of the run that it is a part of. Number, Of and Dir
// are required.
type Config struct {
	Number, Of int    // from 1
	By         string // what stays together, for the record; "" is [trace.BySession]
	Version    string // of moontide; all parts must have the same
	// Dir is the folder of the whole run. If all parts share it, part 1 writes its
	// address and token beside it.
	Dir string
	// Address is HOST:PORT of part 1; "" reads it from the token file.
	Address string
	// Token is the secret of the job; "" makes part 1 draw one and write it to the token
	// file, from which the others read it.
	Token string
	// OneMachine makes part 1 listen on loopback only if Address is "".
	OneMachine bool
	// Timeout is how long all parts may take to arrive; 0 is 5 minutes.
	Timeout time.Duration
	// StartAt is the start by the clock of part 1; zero starts when all are prepared.
	StartAt time.Time
	// Alone makes the part start at StartAt without meeting the others.
	Alone bool
	// AllowLost lets the run go on without a part that is lost.
	AllowLost bool
	Message   func(text string) // called from any goroutine; may be nil
	// Clock returns the time of day and must not step; nil is such a clock.
	Clock func() time.Time
}

// DefaultTimeout is the default of [Config.Timeout].
const DefaultTimeout = 5 * time.Minute

// EndedError reports that a run ended for all parts.
type EndedError struct{ Reason string }

func (e *EndedError) Error() string { return "the run has ended: " + e.Reason }

var (
	errNotSynchronized = errors.New("the clock of this machine is not synchronized, says the kernel: run NTP on all machines, or let the parts meet")
	errLeft            = errors.New("the part has left the run")
)

// Member is a part of a run. Its methods may be called from any goroutine, those that
// take a context from one at a time.
type Member struct {
	Config
	server *server  // nil but for part 1
	token  *os.File // its token file, or nil
	client *client
	closed context.CancelFunc // ends poll
	polled chan struct{}      // closed when poll has returned
	gone   context.Context    // ends, with its cause, when the run ends for this part
	fail   context.CancelCauseFunc

	mu      sync.Mutex
	mine    report
	order   order
	changed chan struct{} // closed and replaced with each new order
	drained chan struct{} // closed when sending is to stop
	status  func() replay.Status
}

// Join meets the other parts of a run: it returns when part 1 knows this one. Part 1
// leads. The caller must call Close.
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
	host, _ := os.Hostname()
	m.mine = report{Number: c.Number, Of: c.Of, Version: c.Version, Process: newID(), Host: host, Seq: 1, Round: 1, Phase: loading}
	if !c.StartAt.IsZero() && !c.StartAt.After(c.Clock()) {
		return nil, fmt.Errorf("the start at %s is in the past", c.StartAt.Format(time.RFC3339))
	}
	if c.Alone {
		_, err := ClockError()
		close(m.polled)
		return m, err
	}
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

// lead starts the leader.
func (m *Member) lead() (err error) {
	if m.Token == "" {
		if m.token, err = lockMeeting(m.Dir); err != nil {
			return err
		}
	}
	ln, err := m.listen()
	if err != nil {
		m.end()
		return fmt.Errorf("meeting the other parts: %w", err)
	}
	if m.token != nil {
		m.Token = newID()
		if err := (meeting{addresses(ln, m.Address), m.Token}).write(m.token); err != nil {
			ln.Close()
			m.end()
			return err
		}
	}
	m.server = serve(ln, newLeader(m.Of, m.Clock(), m.Config), m.Config)
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	m.Address = ln.Addr().String()
	if host, _, _ := net.SplitHostPort(m.Address); net.ParseIP(host).IsUnspecified() {
		m.Address = net.JoinHostPort("127.0.0.1", port)
	}
	return nil
}

func (m *Member) listen() (net.Listener, error) {
	switch {
	case m.Address == "" && m.OneMachine:
		return net.Listen("tcp", "127.0.0.1:0")
	case m.Address == "":
		return net.Listen("tcp", ":0")
	}
	ln, err := net.Listen("tcp", m.Address)
	if err == nil || isInUse(err) {
		return ln, err
	}
	var unresolved *net.DNSError
	if errors.As(err, &unresolved) {
		return nil, err
	}
	_, port, err := net.SplitHostPort(m.Address) // the address may be that of a proxy or of another network
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", ":"+port)
}

// addresses returns where a listener can be reached, the likeliest first.
func addresses(ln net.Listener, given string) (all []string) {
	if given != "" {
		return []string{given}
	}
	at := ln.Addr().(*net.TCPAddr)
	if !at.IP.IsUnspecified() {
		return []string{at.String()}
	}
	add := func(host string) { all = append(all, net.JoinHostPort(host, fmt.Sprint(at.Port))) }
	if host, err := os.Hostname(); err == nil {
		add(host)
	}
	local, _ := net.InterfaceAddrs()
	for _, a := range local {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLinkLocalUnicast() && !ip.IP.IsLoopback() {
			add(ip.IP.String())
		}
	}
	return append(all, net.JoinHostPort("127.0.0.1", fmt.Sprint(at.Port)))
}

// arrive reports to the leader until it answers or Timeout has passed.
func (m *Member) arrive(ctx context.Context) error {
	begun, said := m.Clock(), m.Clock()
	for {
		err := m.client.find()
		if err == nil {
			err = m.send(ctx, 0)
		}
		var refused *refusal
		switch now := m.Clock(); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused):
			return fmt.Errorf("meeting part 1: %w", refused)
		case now.Sub(begun) >= m.Timeout:
			return fmt.Errorf("part %d of %d did not reach part 1 within %v: %w", m.Number, m.Of, m.Timeout, err)
		case now.Sub(said) >= sayMissing:
			said = now
			m.Message(fmt.Sprintf("waiting for part 1: %v", err))
		}
		select {
		case <-time.After(tickTime):
		case <-ctx.Done():
		}
	}
}

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
		m.fail(&EndedError{o.Cancel})
	}
	if o.Drain != "" || o.Cancel != "" {
		m.stopSending()
	}
}

// stopSending closes drained. mu must be locked.
func (m *Member) stopSending() {
	select {
	case <-m.drained:
	default:
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
			m.lose(refused.Error())
			return
		case m.Clock().Sub(heard) > Silence:
			m.lose(fmt.Sprintf("part 1 of %d has not responded for %v: %v", m.Of, Silence, err))
			return
		}
		select {
		case <-time.After(tickTime):
		case <-ctx.Done():
		}
	}
}

// lose ends the run for this part alone.
func (m *Member) lose(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail(&EndedError{reason})
	m.stopSending()
}

// change changes what this part reports. If it cannot be sent at once, poll sends it.
func (m *Member) change(ctx context.Context, change func(r *report)) {
	m.mu.Lock()
	change(&m.mine)
	m.mine.Seq++
	m.mu.Unlock()
	if !m.Alone {
		m.send(ctx, 0)
	}
}

// await waits for an order.
func (m *Member) await(ctx context.Context, until func(o order) bool) (order, error) {
	for {
		m.mu.Lock()
		o, changed := m.order, m.changed
		m.mu.Unlock()
		if m.gone.Err() != nil {
			return o, context.Cause(m.gone)
		}
		if until(o) {
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

// reached returns whether an order is at a step of this part's round, or later.
func (m *Member) reached(s step) func(o order) bool {
	round := m.mine.Round
	return func(o order) bool { return o.Round > round || o.Round == round && o.Step >= s }
}

// Leads reports whether this is part 1 of parts that meet.
func (m *Member) Leads() bool { return m.server != nil }

// Folder returns the folder of this part's records.
func (m *Member) Folder() string { return filepath.Join(m.Dir, folder(m.Number)) }

// Share returns this part's share of a limit of the whole run: an n-th, and the first
// parts one more. 0 is no limit.
func (m *Member) Share(limit int) int {
	share := limit / m.Of
	if m.Number <= limit%m.Of {
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

// Err returns why the run has ended for this part, or nil.
func (m *Member) Err() error { return context.Cause(m.gone) }

// Interrupt makes all parts stop sending; requests in flight finish.
func (m *Member) Interrupt() {
	m.mu.Lock()
	m.stopSending()
	m.mu.Unlock()
	m.change(m.gone, func(r *report) { r.Interrupted = true })
}

// Progress sets the function that returns the progress of this part, and returns one
// for that of all parts, or of this one if it does not lead.
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

// Close leaves the run: with an error for all parts, unless it is nil. Part 1 waits
// for the others to leave.
func (m *Member) Close(err error) {
	if m.Alone {
		m.fail(errLeft)
		return
	}
	leaving, cancel := context.WithTimeout(context.Background(), Silence)
	defer cancel()
	m.change(leaving, func(r *report) {
		r.Phase = left
		if err != nil {
			r.Failure = short(err.Error())
		}
	})
	m.closed()
	<-m.polled
	m.end()
}

// end frees what the member has.
func (m *Member) end() {
	if m.server != nil {
		m.server.close()
	}
	if m.token != nil {
		os.Remove(m.token.Name())
		m.token.Close()
	}
	if m.client != nil {
		m.client.http.CloseIdleConnections()
	}
	m.fail(errLeft)
}
