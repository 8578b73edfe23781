package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/stats"
)

// source is a trace to learn from.
type source struct {
	name, about string
	rows        int
	path        string
	make        func(path string) error // nil if the trace is there
}

// rows makes a source of rows.
func rows(name, about string, draw func() []trace.Request) source {
	return source{name: name, about: about, make: func(path string) error {
		return write(path, draw())
	}}
}

func write(path string, rows []trace.Request) error {
	w, err := format.Create(path)
	if err != nil {
		return err
	}
	if _, err := w.WriteAll(trace.FromSlice(rows)); err != nil {
		w.Discard()
		return err
	}
	return w.Close()
}

// generated returns the sources that are drawn here. They are the same every time.
func generated(moontide string) []source {
	return []source{
		rows("drift", "one hour of chat; prompts, questions and answers in the last third are twice as long as in the first", drift),
		rows("regimes", "chat, then a batch job with templates, then chat again, 20 minutes each", regimes),
		rows("diurnal", "one day with a daily cycle of 90 % amplitude, and prompts twice as long at night", diurnal),
		rows("bursts", "3,000 requests at 15 timestamps", bursts),
		converted(moontide, "agents", "60 coding agents with sub-agents, 40 sessions an hour", coding{"agents", 60, 12, 2}.write, "--session-rate", "0.0111"),
		converted(moontide, "weka100", "100 conversations of coding agents, similar to WEKA's, a few with sub-agents; all start at 0", coding{"weka100", 100, 20, 0.3}.write),
		converted(moontide, "thinking", "one hour of a reasoning model in Bailian's layout: API requests, and chats that omit reasoning from later prompts", bailian("thinking", thinking())),
		converted(moontide, "coder", "one hour of a coding model in Bailian's layout: completions, and agents with fast-growing prompts", bailian("coder", coder())),
		converted(moontide, "tracelab", "three days of 150 coding sessions in TraceLab's layout, with compactions", traceLab),
		rows("opposite", "two clients with different lengths and templates, one busy while the other is idle", opposite),
		rows("giant", "one conversation with 1,500 turns, and 4,000 single requests", giant),
		rows("hourly", "a burst of 500 requests every hour, 12 times", hourly),
		rows("seven", "two conversations with seven rows in total", seven),
		rows("compacted", "agents whose context grows to 60,000 tokens and is then compacted to the system prompt and a summary", compacted),
		rows("retried", "chat with a three-minute outage, during which requests are retried after 1, 2, 4, ... seconds", retried),
		rows("evaluated", "chat, plus a burst every ten minutes: 30 questions each about 20 new documents", evaluated),
		rows("batch", "conversations in which all turns have timestamp 0", batch),
		rows("constant", "500 identical rows, one every 333.333 ms", constant),
		rows("documents", "prompts with a system prompt, three of 60 documents in any order, and a question", documents),
		rows("searched", "tree searches: three of nine steps are extended three times each, six deep", searched),
		rows("captured", "an hour of chat on a grid of 3 s, replayed ten times as fast and captured: bursts every 300 ms", captured),
		rows("herds", "chat in bursts at random times, most of a few requests and some of hundreds", herds),
	}
}

// converted makes a source of a trace of another layout.
func converted(moontide, name, about string, write func(path string) error, flags ...string) source {
	return source{name: name, about: about, make: func(path string) error {
		published := strings.TrimSuffix(path, ".jsonl") + ".published"
		if err := write(published); err != nil {
			return err
		}
		_, err := command(moontide, append([]string{"convert", published, "-o", path}, flags...)...)
		return err
	}}
}

// chat is the client that most sources vary.
func chat(span float64) chats {
	return chats{
		span: span, starts: always(1), most: 1, first: always(1500), more: always(300), answer: always(250),
		turns: 2.5, think: 40 * second, templates: 10, prefix: 4,
	}
}

// longer rises from 1 to 2: the mean of its last third is twice that of its first.
func longer(x float64) float64 { return 1 + min(1, max(0, 3*x-1)) }

func drift() []trace.Request {
	c := chat(hour)
	c.first, c.more, c.answer = course(longer).times(1500), course(longer).times(300), course(longer).times(250)
	return draw("drift", c)
}

func regimes() []trace.Request {
	c := chat(hour)
	c.starts = func(x float64) float64 {
		if x > 1./3 && x < 2./3 {
			return 0.2
		}
		return 1
	}
	job := chat(hour)
	job.turns, job.templates, job.prefix = 1, 3, 12
	job.first, job.answer, job.most = always(400), always(40), 3
	job.starts = func(x float64) float64 { return 3 * (1 - c.starts(x)) / 0.8 }
	return draw("regimes", c, job)
}

// day is a daily cycle around 1, highest in the middle of the trace.
func day(amplitude float64) course {
	return func(x float64) float64 { return 1 - amplitude*math.Cos(2*math.Pi*x) }
}

func diurnal() []trace.Request {
	c := chat(24 * hour)
	night := func(x float64) float64 { return 1.5 - 0.5*(day(1)(x)-1) } // 1 to 2
	c.starts, c.most = day(0.9).times(0.04), 0.08
	c.first, c.answer = course(night).times(1500), course(night).times(250)
	return draw("diurnal", c)
}

func bursts() []trace.Request {
	c := chat(15 * minute)
	c.starts, c.most = always(1.5), 1.5
	all := draw("bursts", c)
	all = all[:min(len(all), 3000)]
	random := stats.NewStream(0, "bursts at")
	var at []float64
	for range 15 {
		at = append(at, math.Round(random.Float64()*float64(15*minute)))
	}
	slices.Sort(at)
	at[0] = 0
	size := stats.NewZipf(len(at), 0.5)
	order := make([]int, len(all))
	for i := range order {
		order[i] = size.At(random.Float64())
	}
	slices.Sort(order)
	for i := range all {
		all[i].Timestamp = trace.Some(at[order[i]])
	}
	return all
}

func opposite() []trace.Request {
	const days = 4
	a, b := chat(4*hour), chat(4*hour)
	a.name, b.name = "assistant", "extraction"
	rhythm := func(x float64) float64 { return day(1)(math.Mod(x*days, 1)) }
	a.starts, a.most = course(rhythm).times(0.15), 0.3
	b.starts, b.most = func(x float64) float64 { return 0.5 * (2 - rhythm(x)) }, 1
	b.turns, b.templates, b.prefix = 1, 2, 20
	b.first, b.answer = always(600), always(20)
	return draw("opposite", a, b)
}

func giant() []trace.Request {
	single, one := chat(hour), chat(hour)
	single.turns, single.starts, single.most = 1, always(1.1), 1.1
	d := drawn{ids: 1 << 32}
	one.turns, one.more, one.answer, one.think = 1e9, always(60), always(30), second
	one.conversation(stats.NewStream(0, "giant one"), minute, d.fresh(4), &d)
	all := slices.Concat(draw("giant", single), d.rows[:min(len(d.rows), 1500)])
	slices.SortStableFunc(all, func(a, b trace.Request) int { return int(a.Timestamp.Value - b.Timestamp.Value) })
	return all
}

func hourly() []trace.Request {
	c := chat(12 * hour)
	c.starts, c.most, c.turns = always(0.15), 0.15, 1
	all := draw("hourly", c)
	all = all[:min(len(all), 6000)]
	for i := range all {
		all[i].Timestamp = trace.Some(float64(i/500) * hour)
	}
	return all
}

func seven() (all []trace.Request) {
	for i, blocks := range [][]uint64{{0, 1}, {0, 2, 3}, {0, 1, 4}, {0, 2, 3, 5}, {0, 1, 4, 6}, {0, 2, 3, 5, 7}, {0, 1, 4, 6, 8}} {
		all = append(all, trace.Request{Timestamp: trace.Some(float64(i*i) * second), InputLength: len(blocks)*blockSize - 100 - i, OutputLength: 50 + 10*i, HashIDs: blocks})
	}
	return all
}

// found returns the traces of a folder, before other sources.
func found(folder string, others []source) (all []source, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if requests, err := read(path); err == nil && len(requests) > 0 { // else no trace
			name, _, _ := strings.Cut(e.Name(), ".")
			all = append(all, source{name: name, about: e.Name() + " of `--traces`", path: path})
		}
	}
	return append(all, others...), nil
}

func read(path string) ([]trace.Request, error) {
	r, err := format.Open(path, format.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return trace.Collect(r.Requests())
}

// prepare makes a source, unless it is there, and counts its rows.
func (s *source) prepare(work string) error {
	if s.make != nil {
		s.path = filepath.Join(work, s.name+".jsonl")
		if err := s.make(s.path); err != nil {
			return fmt.Errorf("making %s: %w", s.name, err)
		}
	}
	requests, err := read(s.path)
	s.rows = len(requests)
	return err
}
