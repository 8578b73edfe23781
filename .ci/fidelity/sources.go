package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moontide/.ci/results"
	"moontide/trace"
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
		return results.WriteTrace(path, draw())
	}}
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

// drift goes over from lengths to twice as long ones in the second of three thirds.
func drift() []trace.Request {
	return described("1h",
		client("[{for: 20m, at: 2.5}, {for: 20m, to: 0}]", 1500, 250, templates, turns("geometric:2.5", "40s", 300)),
		client("[{for: 20m, at: 0}, {for: 20m, to: 2.5}]", 3000, 500, templates, turns("geometric:2.5", "40s", 600)))
}

func regimes() []trace.Request {
	return described("1h", talk("[{for: 20m, at: 2.5}, {for: 20m, at: .5}, {for: 20m, at: 2.5}]"),
		client("[{for: 20m, at: 0}, {for: 20m, at: 3}, {for: 20m, at: 0}]", 400, 40, "shared: {count: 3, tokens: 6144, zipf: 1}"))
}

// diurnal has a client with a daily cycle, and one with long prompts that remains at night.
func diurnal() []trace.Request {
	return described("24h", talk(".09")+", arrival: {cycle: {peak: 12h, amplitude: 1}}",
		client(".01", 3000, 500, templates, turns("geometric:2.5", "40s", 300)))
}

func bursts() []trace.Request {
	all := described("20m", talk("3.75"))[:3000]
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

// opposite has two clients with opposite cycles; rows name their client as the model.
func opposite() []trace.Request {
	const cycle = ", arrival: {cycle: {period: 1h, amplitude: 1, peak: %s}}"
	all := named("assistant", 0, described("4h", talk(".375")+fmt.Sprintf(cycle, "30m")))
	one := client(".5", 600, 20, "shared: {count: 2, tokens: 10240, zipf: 1}") + fmt.Sprintf(cycle, "0m")
	return inOrder(append(all, named("extraction", 1<<32, described("4h", one))...))
}

// named gives rows their model, and block ids that start at a number.
func named(model string, ids uint64, rows []trace.Request) []trace.Request {
	for i := range rows {
		rows[i].Extra = fmt.Appendf(nil, `{"model": %q}`, model)
		for k := range rows[i].HashIDs {
			rows[i].HashIDs[k] += ids
		}
	}
	return rows
}

func giant() []trace.Request {
	return described("1h", client("1.1", 1500, 250, templates), client(".4", 1500, 30, "arrival: constant", templates, turns("1500", "1s", 60)))
}

func hourly() []trace.Request {
	all := described("12h", client(".15", 1500, 250, templates))
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
		if requests, err := results.ReadTrace(path); err == nil && len(requests) > 0 { // else no trace
			name, _, _ := strings.Cut(e.Name(), ".")
			all = append(all, source{name: name, about: e.Name() + " of `--traces`", path: path})
		}
	}
	return append(all, others...), nil
}

// prepare makes a source, unless it is there, and counts its rows.
func (s *source) prepare(work string) error {
	if s.make != nil {
		s.path = filepath.Join(work, s.name+".jsonl")
		if err := s.make(s.path); err != nil {
			return fmt.Errorf("making %s: %w", s.name, err)
		}
	}
	requests, err := results.ReadTrace(s.path)
	s.rows = len(requests)
	return err
}
