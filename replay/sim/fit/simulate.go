package fit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"moontide/replay/sim/engine"
	"moontide/replay/transcript"
	"moontide/trace"
)

// simulation is a load on a deployment in virtual time.
type simulation struct {
	preparedLoad
	cluster  *engine.Cluster
	flights  []engine.Request
	sent     []time.Duration
	first    []time.Duration
	last     []time.Duration
	next     int // the first request not sent
	inFlight int
	running  int // the most sequences in flight at once
	events   []engine.Event
}

// Simulate returns the metrics of a load on a deployment, and the most requests in
// flight. The seed selects the order of lengths and the arrivals. Prompts share
// nothing but the tokens that are recorded as cached.
func Simulate(d engine.Deployment, l Load, seed uint64) (v Values, inFlight int, err error) {
	return prepare(l, d.Engine.WithDefaults().BlockSize, seed).simulate(d)
}

// preparedLoad holds what simulations of a load have in common. It may be simulated
// concurrently.
type preparedLoad struct {
	requests    []Request
	prompts     []*engine.Prompt
	concurrency int
}

func prepare(l Load, blockSize int, seed uint64) preparedLoad {
	p := preparedLoad{requests: l.requests(seed), concurrency: l.Concurrency}
	equal := map[[2]int]*engine.Prompt{}
	for i, r := range p.requests {
		key := [2]int{r.Input, r.CachedInput}
		if equal[key] == nil {
			equal[key] = engine.TracePrompt(transcript.New(trace.Request{InputLength: r.Input}, i, blockSize), 0, blockSize)
			equal[key].AssumeCached(r.CachedInput)
		}
		p.prompts = append(p.prompts, equal[key])
	}
	return p
}

func (p preparedLoad) simulate(d engine.Deployment) (v Values, inFlight int, err error) {
	n := len(p.requests)
	if n == 0 {
		return v, 0, errors.New("fit: the load has no requests")
	}
	d.Engine.NoPrefixCache = true // equal prompts share nothing
	cluster, err := d.NewCoarse()
	if err != nil {
		return v, 0, err
	}
	times := make([]time.Duration, 3*n)
	s := &simulation{
		preparedLoad: p, cluster: cluster, flights: make([]engine.Request, n),
		sent: times[:n], first: times[n : 2*n], last: times[2*n:],
	}
	if err := s.run(); err != nil {
		return v, 0, err
	}
	return s.values(), s.running, nil
}

func (s *simulation) run() error {
	for now, ended := time.Duration(0), 0; ended < len(s.requests); {
		if err := s.send(now); err != nil {
			return err
		}
		at, ok := s.cluster.Next()
		if s.next < len(s.requests) && s.hasSlot() {
			if due := s.requests[s.next].Arrival; !ok || due <= at {
				at, ok = due, true
			}
		}
		if !ok {
			return fmt.Errorf("fit: simulation ended with %d of %d requests complete", ended, len(s.requests))
		}
		now = at
		ended += s.advance(now)
	}
	return nil
}

func (s *simulation) hasSlot() bool {
	return s.concurrency == 0 || s.inFlight < s.concurrency
}

// send sends the requests that are due and have a slot.
func (s *simulation) send(now time.Duration) error {
	for s.next < len(s.requests) && s.hasSlot() && s.requests[s.next].Arrival <= now {
		i := s.next
		r := s.requests[i]
		s.sent[i] = now
		s.flights[i] = engine.Request{Prompt: s.prompts[i], Output: r.Output, Owner: i}
		if err := s.cluster.Submit(now, &s.flights[i]); err != nil {
			return err
		}
		s.next++
		s.inFlight++
	}
	s.running = max(s.running, s.inFlight)
	return nil
}

// advance records the events until now and returns the number of ended requests.
func (s *simulation) advance(now time.Duration) (ended int) {
	s.events = s.cluster.Advance(now, s.events[:0])
	for _, e := range s.events {
		switch e.Kind {
		case engine.First:
			s.first[e.Request.Owner.(int)] = e.At
		case engine.Finished:
			s.last[e.Request.Owner.(int)] = e.At
			s.inFlight--
			ended++
		}
	}
	return ended
}

// values computes the metrics.
func (s *simulation) values() (v Values) {
	n := len(s.requests)
	var ttft, e2el, tpot []float64
	tokens := 0
	for i, r := range s.requests {
		tokens += r.Output
		ttft = append(ttft, milliseconds(s.first[i]-s.sent[i]))
		e2el = append(e2el, milliseconds(s.last[i]-s.sent[i]))
		if r.Output > 1 {
			tpot = append(tpot, milliseconds(s.last[i]-s.first[i])/float64(r.Output-1))
		}
	}
	duration := (slices.Max(s.last) - slices.Min(s.sent)).Seconds()
	v[RequestThroughput], v[OutputThroughput] = float64(n)/duration, float64(tokens)/duration
	v[MeanE2EL], v[P99E2EL] = meanAndP99(e2el)
	v[MeanTTFT], v[P99TTFT] = meanAndP99(ttft)
	v[MeanTPOT], v[P99TPOT] = meanAndP99(tpot)
	return v
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func meanAndP99(sample []float64) (mean, p99 float64) {
	if len(sample) == 0 {
		return 0, 0
	}
	slices.Sort(sample)
	for _, x := range sample {
		mean += x
	}
	return mean / float64(len(sample)), quantile(sample, 0.99)
}

// quantile returns a quantile of an ascending sample, linear between closest ranks.
func quantile(sample []float64, p float64) float64 {
	if len(sample) == 0 {
		return 0
	}
	at := p * float64(len(sample)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(sample)-1)
	return sample[low] + (at-float64(low))*(sample[high]-sample[low])
}
