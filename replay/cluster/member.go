package cluster

import (
	"cmp"
	"context"
	"errors"
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
	Message func(text string) // called from any goroutine; may be nil
	// Clock returns the time of day and must not step; nil is such a clock.
	Clock func() time.Time
}

// DefaultTimeout is the default of [Config.Timeout].
const DefaultTimeout = 5 * time.Minute

// EndedError reports that a run ended for all parts.
type EndedError struct {
	Reason string
	// Resumable reports that nothing has to be mended before the run is resumed: another
	// part was lost or interrupted.
	Resumable bool
}

func (e *EndedError) Error() string { return "the run has ended: " + e.Reason }

var errLeft = errors.New("the part has left the run")

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
	cutOff context.Context // ends when part 1 does not respond any more
	cut    context.CancelFunc

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

// Folder returns the folder of this part's records.
func (m *Member) Folder() string { return filepath.Join(m.Dir, folder(m.Number)) }

// Share returns this part's share of a limit of the whole run of which only the first
// parts have one: an equal share, and the first of them one more.
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

// Err returns why the run has ended for this part, or ends because another part was
// interrupted. It is nil if neither is so.
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
	m.cut()
}
