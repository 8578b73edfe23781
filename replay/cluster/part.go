// Package cluster coordinates the processes of a distributed run: they connect to part 1,
// verify that they replay the same schedule, start together and end together. It starts no
// processes: [Detect] reads the number of a process from the environment that Slurm, MPI or
// Kubernetes set.
//
//	part, err := cluster.Join(ctx, cluster.Config{Number: 2, Of: 4, Dir: "runs/today"})
//	...
//	defer part.Close(nil)
//	_, err = part.Agree(ctx, facts, cluster.Progress{}) // all have loaded, and replay the same
//	record, start, err := part.Begin(ctx) // all are prepared
//	...
//	err = part.End(ctx, record, "") // measured, saved
//
// Parts are numbered from 1. Part 1 leads: it serves HTTP, and the others report to it at
// least every second. A part that is silent for [Silence], disagrees or does not arrive in
// time ends the run of all.
//
// Each part compares its clock with that of part 1 by exchanges of four timestamps. The
// exchange with the shortest round trip counts; half of that bounds the error. Requests
// carry a token, see [Config].
package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// Folder returns the folder of this part's records.
func (c *Config) Folder() string { return filepath.Join(c.Dir, folder(c.Number)) }

// EndedError reports that a run ended for all parts.
type EndedError struct {
	Reason string
	// Resumable means that the run can be resumed as it is: another part was lost or
	// interrupted.
	Resumable bool
}

func (e *EndedError) Error() string { return "the run has ended: " + e.Reason }

// Part is a part of a run. Its methods are safe for concurrent use, except those that
// take a context.
type Part struct {
	Config
	server    *server  // of part 1, else nil
	tokenFile *os.File // that part 1 made, or nil
	client    http.Client
	part1     meeting // its address and token

	leave       context.CancelFunc // ends poll
	polling     context.Context    // ends when poll has returned
	running     context.Context    // ends, with its cause, when the run ends for this part
	end         context.CancelCauseFunc
	sending     context.Context // ends when sending is to stop
	stopSending context.CancelFunc

	mu     sync.Mutex
	order  order // the newest
	report report
	status func() replay.Status
}

// Join connects to part 1, which leads. The caller must call Close.
func Join(ctx context.Context, c Config) (*Part, error) {
	c.By, c.Timeout = cmp.Or(c.By, trace.BySession), cmp.Or(c.Timeout, DefaultTimeout)
	if c.Clock == nil {
		c.Clock = steadyClock()
	}
	if c.Message == nil {
		c.Message = func(string) {}
	}
	p := &Part{Config: c, client: http.Client{Transport: &http.Transport{ // ignores a proxy of the environment
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		MaxIdleConnsPerHost: connsOfPart, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: 30 * time.Second,
	}}}
	p.running, p.end = context.WithCancelCause(context.Background())
	p.sending, p.stopSending = context.WithCancel(context.Background())
	host, _ := os.Hostname()
	p.report = report{Number: c.Number, Of: c.Of, Version: c.Version, Process: rand.Text(), Host: host, Seq: 1, Phase: loading}
	if c.Number == 1 {
		if err := p.lead(); err != nil {
			return nil, err
		}
	}
	if err := p.arrive(ctx); err != nil {
		p.release()
		return nil, err
	}
	leaving, leave := context.WithCancel(context.Background())
	polling, polled := context.WithCancel(context.Background())
	p.leave, p.polling = leave, polling
	go func() {
		defer polled()
		p.poll(leaving)
	}()
	return p, nil
}

// arrive reports to part 1 until it responds or Timeout has passed.
func (p *Part) arrive(ctx context.Context) error {
	begun := p.Clock()
	lastMessage := begun.Add(Silence - messageEvery)
	for {
		err := p.findPart1()
		if err == nil {
			_, err = p.send(ctx, 0)
		}
		switch now := p.Clock(); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(*refusal)):
			return fmt.Errorf("joining part 1: %w", err)
		case now.Sub(begun) >= p.Timeout:
			return fmt.Errorf("part %d of %d did not reach part 1 within %v: %w", p.Number, p.Of, p.Timeout, err)
		case now.Sub(lastMessage) >= messageEvery:
			lastMessage = now
			p.Message(fmt.Sprintf("waiting for part 1: %v", err))
		}
		pause(ctx)
	}
}

// findPart1 takes the address and the token that are not configured from the token file,
// which may be that of an earlier run.
func (p *Part) findPart1() error {
	p.part1 = meeting{p.Address, p.Token}
	if p.Address != "" && p.Token != "" {
		return nil
	}
	m, err := readTokenFile(p.Dir)
	if err != nil {
		return fmt.Errorf("no token: %w; the parts must share the folder, or %s must be set", err, TokenVariable)
	}
	p.part1 = meeting{cmp.Or(p.Address, m.Address), cmp.Or(p.Token, m.Token)}
	return nil
}

// Leads reports whether this is part 1.
func (p *Part) Leads() bool { return p.server != nil }

// OpenFiles returns how many connections to other parts there may be, 0 for a nil Part.
func (p *Part) OpenFiles() int {
	switch {
	case p == nil:
		return 0
	case p.Leads():
		return connsOfPart + p.server.conns.Most
	}
	return connsOfPart
}

// Share returns this part's equal share of a limit of the whole run, which only the first
// parts have. The remainder goes to the first of them, one each.
func (p *Part) Share(limit, parts int) int {
	if p.Number > parts {
		return 0
	}
	return (limit + parts - p.Number) / parts
}

// Drained is closed when all parts are to stop sending.
func (p *Part) Drained() <-chan struct{} { return p.sending.Done() }

// Ending returns a context that also ends when the run is ended for all parts.
func (p *Part) Ending(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.running, cancel)
	return ctx, func() { stop(); cancel() }
}

// Err returns why the run has ended for this part, or that another part was interrupted,
// or nil.
func (p *Part) Err() error {
	if ended := context.Cause(p.running); ended != nil {
		return ended
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.order.Drain != "" && p.report.Interrupts == 0 {
		return &EndedError{p.order.Drain, true}
	}
	return nil
}

// Interrupt makes all parts stop sending; requests in flight finish. The second time, it
// ends the run of all parts at once.
func (p *Part) Interrupt(times int) {
	p.stopSending()
	p.change(p.running, func(r *report) { r.Interrupts = max(r.Interrupts, times) })
}

// Progress sets the function for the status of this part. It returns one for the status of
// all parts or, if this part does not lead, of this one.
func (p *Part) Progress(own func() replay.Status) func() replay.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = own
	if !p.Leads() {
		return own
	}
	return func() (all replay.Status) {
		p.server.with(func(l *coordinator) { all = l.status() })
		all.Start = own().Start
		return all
	}
}

// Close leaves the run. An error that is not nil ends it for all parts. Part 1 waits for
// the others to leave.
func (p *Part) Close(err error) {
	leaving, cancel := context.WithTimeout(context.Background(), Silence)
	defer cancel()
	p.change(leaving, func(r *report) {
		r.Phase = left
		if errors.Is(err, context.Canceled) {
			r.Interrupts = max(r.Interrupts, 1)
		}
		if err != nil {
			r.Failure = short(err.Error())
		}
	})
	p.leave()
	<-p.polling.Done()
	p.release()
}

// release releases the resources of the part.
func (p *Part) release() {
	if p.server != nil {
		p.server.close()
	}
	if p.tokenFile != nil {
		atomicfile.Remove(p.tokenFile)
	}
	p.client.CloseIdleConnections()
}

// send reports to part 1 and follows its order. If the order is that of a version, part 1
// waits a while for a newer one.
func (p *Part) send(ctx context.Context, seen uint64) (o order, err error) {
	p.mu.Lock()
	r := p.report
	if p.status != nil {
		r.Status = p.status()
	}
	p.mu.Unlock()
	r.Seen = seen
	if err = p.request(ctx, http.MethodPost, "/v1/report", r, &o); err == nil {
		o.Cancel, o.Drain = oneLine(o.Cancel), oneLine(o.Drain)
		p.follow(o)
	}
	return o, err
}

// follow follows an order, even if a newer one has overtaken it.
func (p *Part) follow(o order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case o.Cancel != "":
		p.end(&EndedError{o.Cancel, o.Resumable && p.report.Interrupts == 0})
		p.stopSending()
	case o.Drain != "":
		if p.report.Interrupts == 0 && p.sending.Err() == nil {
			p.Message(o.Drain + ": all parts stop sending")
		}
		p.stopSending()
	}
	if o.Version > p.order.Version {
		p.order = o
	}
}

// requestTime is the time limit of a request, except for files.
const requestTime = pollTime + 2*time.Second

// request sends a message, or a file, to part 1 and reads the response. Its error is a
// [*refusal] if part 1 does not accept the message.
func (p *Part) request(ctx context.Context, method, path string, message, response any) error {
	body, isFile := message.(io.Reader)
	if !isFile {
		text, err := json.Marshal(message)
		if err != nil {
			return err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, requestTime)
		defer cancel()
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.part1.Address+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.part1.Token)
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	reason := short(strings.TrimSpace(string(text)))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusConflict:
		return &refusal{reason}
	case resp.StatusCode == http.StatusUnauthorized && p.Token != "":
		return refuse("wrong token: part 1 at %s has another %s", p.part1.Address, TokenVariable)
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("part 1 at %s responds with %d: %s", p.part1.Address, resp.StatusCode, reason)
	case response == nil:
		return nil
	}
	return json.Unmarshal(text, response)
}

// poll reports to part 1 until the part leaves. If part 1 rejects a report or does not
// respond, the run ends for this part.
func (p *Part) poll(ctx context.Context) {
	for lastResponse := p.Clock(); ctx.Err() == nil; {
		p.mu.Lock()
		p.report.Seq++ // the status is new
		seen := p.order.Version
		p.mu.Unlock()
		_, err := p.send(ctx, seen)
		var refused *refusal
		switch {
		case err == nil:
			lastResponse = p.Clock()
		case errors.As(err, &refused):
			p.follow(order{Cancel: refused.text})
			return
		case p.Clock().Sub(lastResponse) > Silence:
			p.follow(order{Cancel: fmt.Sprintf("part 1 of %d has not responded for %v: %v", p.Of, Silence, err), Resumable: true})
			return
		default:
			pause(ctx)
		}
	}
}

// pause waits before something is tried again.
func pause(ctx context.Context) {
	select {
	case <-time.After(tickTime):
	case <-ctx.Done():
	}
}

// change changes and sends the report of this part. If sending fails, poll tries again.
func (p *Part) change(ctx context.Context, change func(r *report)) {
	p.mu.Lock()
	change(&p.report)
	p.report.Seq++
	p.mu.Unlock()
	p.send(ctx, 0)
}

// reach reports that this part has reached a phase, waits until all parts have, and
// returns the order for it.
func (p *Part) reach(ctx context.Context, reached phase, change func(r *report)) (o order, err error) {
	p.change(ctx, func(r *report) {
		r.Phase = reached
		change(r)
	})
	sending, stop := p.Ending(ctx)
	defer stop()
	for {
		if o, err = p.send(sending, o.Version); err != nil {
			pause(sending)
		}
		switch {
		case p.running.Err() != nil:
			return o, context.Cause(p.running)
		case err == nil && o.Phase.reached(reached):
			return o, nil
		case ctx.Err() != nil:
			return o, ctx.Err()
		}
	}
}

// Agree reports the facts of this part, and its progress in a run that is resumed. It waits
// until all parts have reported the same facts, under the same names, and returns the
// progress of all. The error is an [*EndedError] if a part is missing or disagrees.
func (p *Part) Agree(ctx context.Context, facts []Fact, done Progress) (Progress, error) {
	o, err := p.reach(ctx, loaded, func(r *report) { r.Facts, r.Done = facts, done })
	return o.Done, err
}

// Begin waits until all parts are prepared. It returns what to record of this part, and
// the common start, with a monotonic reading.
func (p *Part) Begin(ctx context.Context) (runfile.Part, time.Time, error) {
	clock := runfile.Clock{Reference: runfile.ClockOfPart1}
	var err error
	if clock.Before, err = p.compareClocks(ctx); err != nil {
		return runfile.Part{}, time.Time{}, err
	}
	o, err := p.reach(ctx, prepared, func(r *report) { r.Clock = clock })
	if err != nil {
		return runfile.Part{}, time.Time{}, err
	}
	record := runfile.Part{RunID: o.RunID, Number: p.Number, Of: p.Of, By: p.By, Host: p.report.Host, Start: o.Start.UTC(), Clock: clock}
	return record, time.Now().Add(o.Start.Sub(clock.ToReference(p.Clock()))), nil
}

// ClockAfter adds a second measurement of the clock of this part, if part 1 responds.
func (p *Part) ClockAfter(ctx context.Context, clock *runfile.Clock) {
	if after, err := p.compareClocks(ctx); err == nil {
		clock.After = after
	}
}

// End reports that this part has measured and saved its run, or why it failed. It sends
// the records to part 1 unless they share a folder, and waits for the other parts. saved
// is the record of the part.
func (p *Part) End(ctx context.Context, saved runfile.Part, failure string) error {
	passing, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.polling, cancel)() // part 1 no longer responds
	passErr := p.passRecords(passing, saved.RunID)
	if passErr != nil && failure == "" {
		failure = passErr.Error()
	}
	_, err := p.reach(ctx, ended, func(r *report) { r.Clock, r.Failure = saved.Clock, failure })
	return errors.Join(passErr, err)
}

// passRecords sends the files of this part to part 1, unless they share the folder.
func (p *Part) passRecords(ctx context.Context, runID string) error {
	if p.Leads() || runID == "" {
		return nil
	}
	if all, err := runfile.ReadParts(p.Dir); err == nil && all.RunID == runID {
		return nil
	}
	for _, name := range partFiles {
		f, err := os.Open(filepath.Join(p.Folder(), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = p.request(ctx, http.MethodPut, fmt.Sprintf("/v1/parts/%d/%s", p.Number, name), f, nil)
			f.Close()
		}
		if err != nil {
			return fmt.Errorf("sending the records of part %d to part 1: %w; they are in %s", p.Number, err, p.Folder())
		}
	}
	return nil
}

// AwaitOthers waits until the other parts have left, if the run ended early. It then has
// the records of all parts that are not lost.
func (p *Part) AwaitOthers() {
	if p.Leads() && p.Err() != nil {
		p.change(context.Background(), func(r *report) { r.Phase = left })
		p.server.awaitOthers()
	}
}

// Parts returns the state of all parts, for [runfile.PartsFile].
func (p *Part) Parts() runfile.Parts {
	all := runfile.Parts{Of: p.Of, By: p.By}
	p.server.with(func(l *coordinator) {
		all.RunID, all.Start, all.Parts = l.order.RunID, l.order.Start.UTC(), l.states()
	})
	for i := range all.Parts {
		name := folder(i + 1)
		if _, err := os.Stat(filepath.Join(p.Dir, name, runfile.RunFile)); err == nil {
			all.Parts[i].Folder = name
		}
	}
	return all
}
