package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"moontide/replay"
	"moontide/trace"
)

// oneByOne are the flags of a run whose cached tokens can be told from its trace.
var oneByOne = []string{"--closed", "--max-concurrency", "1"}

// tokenizer is the flag for words of the server's model.
func (s *session) tokenizer() []string {
	return []string{"--tokenizer", filepath.Join(s.tools.models, s.server.opts.model.name, "tokenizer.json")}
}

// lengths replays prompts that share prefixes, one by one, and checks the counts.
func (s *session) lengths(shorter, before, added int, flags ...string) error {
	rows := shared(60, 0)
	o, err := s.run("run", rows, append(flags, oneByOne...)...)
	if err != nil {
		return err
	}
	sent := prompts(rows, before, added)
	for i := range sent {
		sent[i].isl -= shorter
	}
	s.counts(o, sent)
	return nil
}

func tokenIDs(s *session) error { return s.lengths(0, 0, 0) }

func words(s *session) error {
	return s.lengths(0, 0, 0, append(s.tokenizer(), "--prompt", "words")...)
}

func chat(s *session) error {
	return s.lengths(0, templateBefore, templateBefore+templateAfter, append(s.tokenizer(), "--endpoint", "chat")...)
}

func chatExact(s *session) error {
	const added = templateBefore + templateAfter
	return s.lengths(added, templateBefore, added, append(s.tokenizer(), "--endpoint", "chat", "--exact-isl")...)
}

// sessionsWithDelays checks that each turn is sent when the turn before it has ended
// and its delay is over, and finds that turn in the cache.
func sessionsWithDelays(s *session) error {
	const turns, delay = 4, 300
	rows := conversations(4, turns, delay)
	o, err := s.run("run", rows)
	if err != nil {
		return err
	}
	var late time.Duration
	early, later := 0, 0
	var cached []int
	for i, r := range o.records {
		n := 0
		if i%turns > 0 {
			later++
			due := o.records[i-1].Done + delay*time.Millisecond
			if r.Sent.Value < due {
				early++
			}
			late = max(late, r.Sent.Value-due)
			n = rows[i-1].ISL / s.engine.blockOf * s.engine.blockOf
		}
		cached = append(cached, n)
	}
	s.law("later turns are sent after turn and delay", fmt.Sprintf("%d of %d, at most 20 ms late", later, later),
		fmt.Sprintf("%d of %d, at most %.1f ms late", later-early, later, ms(late)), early == 0 && later > 0 && late < 20*time.Millisecond)
	s.each("cached tokens are the turn before", o, cached, func(r replay.Record) trace.Opt[int] { return r.Counts.Cached })
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// closedLoop checks that as many requests as wanted are in flight, until the last.
func closedLoop(s *session) error {
	const streams, n = 4, 24
	o, err := s.run("run", equal(n, 200, 24, 0), "--closed", "--max-concurrency", fmt.Sprint(streams))
	if err != nil {
		return err
	}
	var sent, done []time.Duration
	for _, r := range o.records {
		sent, done = append(sent, r.Sent.Value), append(done, r.Done)
	}
	slices.Sort(sent)
	slices.Sort(done)
	early, late := 0, time.Duration(0)
	for i := range n - streams {
		if sent[i+streams] < done[i] {
			early++
		}
		late = max(late, sent[i+streams]-done[i])
	}
	s.equal("requests beyond the limit", 0, early)
	s.law("requests that took the place of one that ended", "within 20 ms", fmt.Sprintf("within %.2f ms", ms(late)), late < 20*time.Millisecond)
	s.equal("output tokens", n*24, o.summary.Output)
	return nil
}

// rate checks that requests are sent at their times whatever the server does.
func rate(s *session) error {
	const n, perSecond = 40, 8.0
	o, err := s.run("run", equal(n, 100, 8, 0), "--rate", fmt.Sprint(perSecond), "--arrival", "constant")
	if err != nil {
		return err
	}
	var late time.Duration
	for i, r := range o.records {
		due := time.Duration(float64(i) / perSecond * float64(time.Second))
		late = max(late, (r.Sent.Value - o.records[0].Sent.Value - due).Abs())
	}
	s.law("requests are sent at their times", "each within 10 ms", fmt.Sprintf("each within %.2f ms", ms(late)), late <= 10*time.Millisecond)
	s.equal("completed", n, o.summary.Completed)
	return nil
}

// eviction checks that cached tokens follow the server's list of free blocks, and
// that moontide finds what is missing.
func eviction(s *session) error {
	var rows []row
	for i, group := range []uint64{1, 2, 1, 3, 1, 4, 2, 1, 3, 2, 4, 1} {
		r := row{ISL: 1970, OSL: 9}
		for j := range uint64(24) {
			r.IDs = append(r.IDs, group*100+j)
		}
		r.IDs = append(r.IDs, uint64(1000+i))
		rows = append(rows, r)
	}
	o, err := s.run("run", rows, append([]string{"--server-metrics", s.server.url}, oneByOne...)...)
	if err != nil {
		return err
	}
	sent := prompts(rows, 0, 0)
	s.counts(o, sent)
	missing := 0
	unbounded := vllmCached(options{}, sent)
	for i, n := range s.engine.cached(s.server.opts, sent) {
		missing += unbounded[i] - n
	}
	s.equal("tokens reported as evicted", missing, o.summary.Moontide.Cache.Causes["evicted"].Tokens)
	return nil
}
