package main

import (
	"fmt"
	"log"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	analysis "moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
)

// law adds a row to the results.
func (s *session) law(law, expected, measured string, ok bool) {
	measured = strings.NewReplacer(s.server.url, "URL", s.tools.out, "OUT", s.tools.models, "MODELS").Replace(measured)
	mark := "ok"
	if !ok {
		mark = "FAILED"
	}
	log.Printf("%s: %s: %s: expected %s, measured %s: %s", s.engine.name, s.check.name, law, expected, measured, mark)
	s.rows = append(s.rows, result{s.engine.name, s.check.name, law, expected, measured, ok})
}

func (s *session) equal(law string, expected, measured any) {
	a, b := fmt.Sprint(expected), fmt.Sprint(measured)
	s.law(law, a, b, a == b)
}

// says checks that a text has all of some words; the table shows the text.
func (s *session) says(law, text string, words ...string) {
	ok := text != ""
	for _, word := range words {
		ok = ok && strings.Contains(text, word)
	}
	if text == "" {
		text = "nothing"
	}
	s.law(law, `says "`+strings.Join(words, `", "`)+`"`, text, ok)
}

// within checks that a number is close to another.
func (s *session) within(law string, expected, measured, share float64) {
	off := math.Abs(measured/expected - 1)
	s.law(law, fmt.Sprintf("%.4g ms within %g %%", expected, 100*share), fmt.Sprintf("%.4g ms (%.2f %% off)", measured, 100*off), off <= share)
}

// soon checks that something is late by little, and that nothing was early.
func (s *session) soon(law string, late, most time.Duration, early int) {
	s.law(law, fmt.Sprintf("within %v", most), fmt.Sprintf("within %.2f ms, %d early", float64(late)/1e6, early), early == 0 && late <= most)
}

// Counts of a record.
func input(r replay.Record) trace.Opt[int]  { return r.Counts.Input }
func output(r replay.Record) trace.Opt[int] { return r.Counts.Output }
func cached(r replay.Record) trace.Opt[int] { return r.Counts.Cached }

// each checks that every request has the count that it must have.
func (s *session) each(law string, o *outcome, want []int, count func(replay.Record) trace.Opt[int]) {
	right, sum, wanted, first := 0, 0, 0, ""
	for i, w := range want {
		wanted += w
		if i >= len(o.records) {
			continue
		}
		got := count(o.records[i])
		sum += got.Value
		if got.Set && got.Value == w {
			right++
		} else if first == "" {
			first = fmt.Sprintf("; request %d: %d, not %d", i, got.Value, w)
		}
	}
	s.law(law, fmt.Sprintf("%d of %d requests, %d tokens", len(want), len(want), wanted),
		fmt.Sprintf("%d of %d requests, %d tokens%s", right, len(want), sum, first), right == len(want) && len(o.records) == len(want))
}

// counts checks the token counts of requests that were sent one after the other: shorter
// by some tokens than the trace has them, and with tokens of the server's chat template, in
// all and before the prompt.
func counts(shorter, before, added int) law {
	return func(s *session, o *outcome) {
		sent := prompts(s.check.rows, shorter, before, added)
		var isl, osl []int
		for _, p := range sent {
			isl, osl = append(isl, p.length()), append(osl, p.osl)
		}
		s.each("input tokens", o, isl, input)
		s.each("output tokens", o, osl, output)
		s.each("cached tokens", o, s.engine.cached(s.server.opts, sent), cached)
	}
}

// trusted checks that the run ended well: its verdict may be SUSPECT on a busy
// machine.
func trusted(s *session, o *outcome) { s.trusted("", o) }

func (s *session) trusted(what string, o *outcome) {
	s.law(what+"exit status and verdict", "0, not INVALID", fmt.Sprintf("%d, %s", o.exit, o.Verdict.Level), len(o.records) > 0 && o.exit == 0 && o.Verdict.Level != analysis.Invalid)
}

// refused checks that there was no run.
func refused(s *session, o *outcome) {
	s.equal("exit status and requests", "1 and 0", fmt.Sprint(o.exit, " and ", len(o.records)))
}

// says checks what a line of the output says.
func says(words ...string) law {
	return func(s *session, o *outcome) { s.says("message", o.reason(words...), words...) }
}

func completed(n int) law {
	return func(s *session, o *outcome) { s.equal("completed", n, o.Completed) }
}

// turnsInTime checks that each turn is sent when the turn before it has ended and its
// delay is over, and finds that turn in the cache.
func turnsInTime(s *session, o *outcome) {
	var late time.Duration
	early := 0
	var want []int
	for i, r := range o.records {
		n := 0
		if row := s.check.rows[i]; row.Delay.Set {
			before := o.records[i-1]
			due := before.Done + time.Duration(row.Delay.Value*1e6)
			if r.Sent.Value < due {
				early++
			}
			late = max(late, r.Sent.Value-due)
			n = before.InputLength / s.engine.blockOf * s.engine.blockOf
		}
		want = append(want, n)
	}
	s.soon("later turns are sent after turn and delay", late, 20*time.Millisecond, early)
	s.each("cached tokens are the turn before", o, want, cached)
}

// streams is the number of requests in flight in a closed loop.
const streams = 4

// streamsInFlight checks that as many requests as wanted are in flight, until the last.
func streamsInFlight(s *session, o *outcome) {
	var sent, done []time.Duration
	for _, r := range o.records {
		sent, done = append(sent, r.Sent.Value), append(done, r.Done)
	}
	slices.Sort(sent)
	slices.Sort(done)
	early, late := 0, time.Duration(0)
	for i := range max(0, len(sent)-streams) {
		if sent[i+streams] < done[i] {
			early++
		}
		late = max(late, sent[i+streams]-done[i])
	}
	s.soon("requests take the place of one that ended", late, 20*time.Millisecond, early)
	s.equal("output tokens", 24*24, o.Output)
}

// perSecond is the rate of requests whose times are checked.
const perSecond = 8

// sentInTime checks that requests are sent at their times whatever the server does.
func sentInTime(s *session, o *outcome) {
	var late time.Duration
	for i, r := range o.records {
		due := time.Duration(i) * time.Second / perSecond
		late = max(late, (r.Sent.Value - o.records[0].Sent.Value - due).Abs())
	}
	s.soon("requests are sent at their times", late, 10*time.Millisecond, 0)
}

// vllmMetrics checks that the run's figures of the server are those of its page.
func vllmMetrics(s *session, o *outcome) {
	m := o.Samples.Server
	s.equal("engine and block size", "vllm, 32", fmt.Sprint(m.Engine, ", ", m.BlockSize))
	s.equal("tokens looked up, and those found, are those of the records", fmt.Sprint(o.Input, " and ", o.Cached.Value), fmt.Sprint(m.QueriedTokens.Value, " and ", m.HitTokens.Value))
	probes := int(o.grew["vllm:prefix_cache_queries_total"]) - m.QueriedTokens.Value
	s.law("tokens of the probe", "fewer than 1,000", fmt.Sprint(probes), probes >= 0 && probes < 1000)
}

// llamacppMetrics is the same with a page that counts what was computed, of the probe too.
func llamacppMetrics(s *session, o *outcome) {
	s.equal("engine of the metrics", "llamacpp", o.Samples.Server.Engine)
	computed, least := int(o.grew["llamacpp:prompt_tokens_total"]), o.Input-o.Cached.Value
	s.law("prompt tokens that the server computed", fmt.Sprint(least, ", and up to 1,000 of the probe"), fmt.Sprint(computed), computed >= least && computed < least+1000)
}

// tooLong is the row of a prompt that does not fit.
const tooLong = 4

// oneFails checks that a prompt that does not fit fails alone.
func oneFails(s *session, o *outcome) {
	s.equal("completed and failed", "9 and 1", fmt.Sprint(o.Completed, " and ", o.Failed))
	s.equal("exit status with more than 5 % failed", 3, o.exit)
	if len(o.records) > tooLong {
		r := o.records[tooLong]
		s.equal("class and status", fmt.Sprint(replay.HTTPError, " 400"), fmt.Sprint(r.Class, " ", r.Status))
		s.says("error of the request", r.Error, "context")
	}
	s.says("the verdict", o.evidence("failed"), "INVALID", "1 of 10", "context")
}

// evictedTokens checks that moontide finds what the server's list of free blocks lost.
func evictedTokens(s *session, o *outcome) {
	sent, missing := prompts(s.check.rows, 0, 0, 0), 0
	unbounded := vllmCached(options{}, sent)
	for i, n := range s.engine.cached(s.server.opts, sent) {
		missing += unbounded[i] - n
	}
	s.equal("tokens reported as evicted", missing, o.Cache.Prediction.Causes[analysis.Evicted].Tokens)
}

// chunksOfFive checks the latencies of a server that sends five tokens a chunk.
func chunksOfFive(s *session, o *outcome) {
	right := 0
	for _, r := range o.records {
		sum := 0
		for _, n := range r.ChunkTokens {
			sum += int(n)
		}
		if sum == 58 && len(r.ChunkTokens) == 13 { // 1, 11 times 5, 2
			right++
		}
	}
	n := len(s.check.rows)
	s.equal("answers whose 13 chunks have 58 tokens", n, right)
	const itl = "vllm:inter_token_latency_seconds"
	s.within("mean ITL per token", 1000*o.grew[itl+"_sum"]/o.grew[itl+"_count"], o.ITLPerToken.Mean, 0.02)
	// The probe's answers of one token count as requests with a TPOT of 0.
	s.within("mean TPOT", 1000*o.grew["vllm:request_time_per_output_token_seconds_sum"]/float64(n), o.TPOT.Mean, 0.01)
}

// noLeaks checks that no file of a run contains the key.
func noLeaks(s *session, o *outcome) {
	names, leaks := []string{o.dir + ".out"}, 0
	files, _ := os.ReadDir(o.dir)
	for _, f := range files {
		names = append(names, o.dir+"/"+f.Name())
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err != nil || strings.Contains(string(text), s.server.opts.key) {
			leaks++
		}
	}
	s.equal("files and output with the key in them", 0, leaks)
}
