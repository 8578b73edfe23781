package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"moontide/.ci/results"
	analysis "moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/trace"
)

// turn is a request of a run of agents: what moontide predicted of the cache, and what
// the server found in it.
type turn struct {
	isl, osl            int
	predicted, measured int
	cause               analysis.Cause // if they differ
}

// mode is a way to replay agents.
type mode struct {
	name  string
	flags []string
	text  bool // answers are text, which may encode to other tokens than those generated
}

// modes returns the ways that the engine's APIs allow. The first has no answers.
func (s *session) modes() []mode {
	chat := append(s.tokenizer(), "--endpoint", "chat", "--exact-isl")
	traced, live := []string{"--answers", "trace"}, []string{"--answers", "live"}
	if s.engine.name != "vllm" { // no token ids of answers
		words := append(s.tokenizer(), "--prompt", "words")
		return []mode{{"trace", append(traced, words...), true}, {"live, words", append(live, words...), true}}
	}
	return []mode{{"trace", traced, false}, {"live", live, false}, {"live, chat", append(live, chat...), true}}
}

// agents replays sessions whose context grows by answers and results of tools, is
// compacted and rewritten, with sub-agents that run in parallel and join.
func agents(s *session) error {
	rows, flags := agentRows(3), []string{"--block-size", fmt.Sprint(traceBlock)}
	if s.engine.name != "vllm" { // a prompt can only be found right after it was sent
		rows, flags = chains(4, 5), append(flags, "--max-sessions", "1")
	}
	path := filepath.Join(s.tools.out, s.engine.name+"-agents.jsonl")
	if err := writeTrace(path, rows); err != nil {
		return err
	}
	return s.agentsOf(path, flags...)
}

// weka replays recorded conversations of coding agents without their delays.
func weka(s *session) error {
	files, err := filepath.Glob(filepath.Join(s.tools.weka, "*.json"))
	if err != nil || s.tools.weka == "" {
		return err
	}
	path := filepath.Join(s.tools.out, "weka.jsonl")
	convert := preferred(s.tools.moontide, append([]string{"convert", "-o", path, "--ids", "separate"}, files...)...)
	if text, err := convert.CombinedOutput(); err != nil {
		return fmt.Errorf("converting %s: %w: %s", s.tools.weka, err, text)
	}
	return s.agentsOf(path, "--time-scale-tool", "0", "--time-scale-think", "0")
}

// agentsOf replays a trace in every mode, one request at a time, and checks each turn.
func (s *session) agentsOf(path string, flags ...string) error {
	var measured []int // of each mode
	lost := 0          // in the first one, as the second one's run says
	for i, m := range s.modes() {
		dir, err := s.folder(results.Slug(m.name))
		if err != nil {
			return err
		}
		args := slices.Concat([]string{path, "--url", s.server.url, "--salt", s.check + m.name, "--server-block-size", fmt.Sprint(s.engine.blockOf)}, flags, m.flags, oneByOne)
		o, err := s.finish(s.command(dir, args...), dir)
		if err != nil {
			return err
		}
		if err := o.ran(); err != nil {
			return err
		}
		turns, fromAnswers, err := turnsOf(o)
		if err != nil {
			return err
		}
		if i == 1 {
			lost = fromAnswers
		}
		measured = append(measured, s.agentLaws(m, o, turns))
	}
	s.law("cached tokens that prompts without real answers lose", fmt.Sprintf("%d of %d, as the report says", lost, measured[1]),
		fmt.Sprintf("%d of %d", measured[1]-measured[0], measured[1]), measured[1]-measured[0] == lost && lost > 0)
	return nil
}

// turnsOf returns the turns of a run, and how many cached tokens it has because of answers.
func turnsOf(o *outcome) (turns []turn, fromAnswers int, err error) {
	r, err := bench.Measure(bench.MeasureConfig{EachPrediction: true}, o.dir)
	if err != nil {
		return nil, 0, err
	}
	predicted := map[int]analysis.PredictedRequest{}
	for _, p := range r.Metrics.Cache.Prediction.Each {
		predicted[p.Row] = p
	}
	for i, rec := range o.records {
		p := predicted[i]
		turns = append(turns, turn{rec.InputLength, rec.OutputLength, p.Predicted, rec.Counts.Cached.Value, p.Cause})
	}
	return turns, r.Metrics.Cache.Prediction.FromAnswers.Value, nil
}

// agentLaws checks the turns of a run and returns the measured cached tokens.
func (s *session) agentLaws(m mode, o *outcome, turns []turn) (measured int) {
	s.law(m.name+": exit status and verdict", "0, not INVALID", fmt.Sprintf("%d, %s", o.exit, o.summary.Moontide.Verdict), o.exit == 0 && o.summary.Moontide.Verdict != "INVALID")
	var isl, osl []int
	equal, explained, predicted, input, first := 0, 0, 0, 0, ""
	for i, t := range turns {
		isl, osl = append(isl, t.isl), append(osl, t.osl)
		input += t.isl
		predicted, measured = predicted+t.predicted, measured+t.measured
		switch {
		case t.predicted == t.measured:
			equal++
		case m.text && t.measured < t.predicted && t.cause == "":
			explained++
		case first == "":
			first = fmt.Sprintf("; request %d: %d, not %d", i, t.measured, t.predicted)
		}
	}
	n := len(turns)
	if m.text { // the text of an answer may encode to other tokens, of another number
		off := o.summary.Input - input
		s.law(m.name+": input tokens", fmt.Sprintf("%d within 1 %%", input), fmt.Sprintf("%d", o.summary.Input), 100*max(off, -off) <= input)
	} else {
		s.each(m.name+": input tokens", o, isl, func(r replay.Record) trace.Opt[int] { return r.Counts.Input })
	}
	s.each(m.name+": output tokens", o, osl, func(r replay.Record) trace.Opt[int] { return r.Counts.Output })
	got := fmt.Sprintf("%d of %d turns, %d tokens", equal, n, measured)
	if explained > 0 {
		got += fmt.Sprintf("; %d turns with fewer, because the text of an answer encodes to other tokens", explained)
	}
	s.law(m.name+": cached tokens as predicted", fmt.Sprintf("%d of %d turns, %d tokens", n, n, predicted), got+first, equal+explained == n && predicted > 0)
	return measured
}

// agentRows are sessions of an agent with two sub-agents each. All agents have the
// same system prompt of 4 blocks.
func agentRows(sessions int) []row {
	b := &agentTrace{next: 100}
	for i := range uint64(sessions) {
		name, more := fmt.Sprint("agent", i), int(7*i)
		b.add(name, nil, []uint64{1, 2, 3, 4}, 650+more, 61)
		second := b.turn(name, nil, -1, 900+more, 28)
		b.add(name+"/search", []string{second.ID}, []uint64{1, 2, 3, 4}, 400+more, 40)
		b.extend(name+"/edit", []string{second.ID}, second, 1100+more, 33)
		search := b.turn(name+"/search", nil, -1, 560+more, 29)
		edit := b.turn(name+"/edit", nil, -1, 1250+more, 47)
		b.turn(name, []string{second.ID, search.ID, edit.ID}, -1, 1400+more, 90)
		b.turn(name, nil, -1, 1480+more, 10) // no room for all of the answer
		b.turn(name, nil, 10, 1100+more, 64) // compacted, after the first answer
		b.turn(name, nil, -1, 1300+more, 59)
		b.turn(name, nil, 15, 1700+more, 31) // rewritten, after the answer before
		b.turn(name, nil, -1, 1900+more, 20)
	}
	return b.rows
}

// chains are sessions without sub-agents, one after the other.
func chains(sessions, turns int) []row {
	b := &agentTrace{next: 100}
	for i := range sessions {
		name, isl := fmt.Sprint("agent", i), 400+7*i
		b.add(name, nil, nil, isl, 30+i)
		for range turns - 1 {
			isl += 150
			b.turn(name, nil, -1, isl, 30+i)
		}
	}
	return b.rows
}

// agentTrace collects rows.
type agentTrace struct {
	rows []row
	next uint64 // new block id
}

// add adds a row that begins with some blocks.
func (b *agentTrace) add(session string, after []string, ids []uint64, isl, osl int) row {
	r := row{ID: "r" + strconv.Itoa(len(b.rows)), After: after, ISL: isl, OSL: osl, IDs: slices.Clone(ids), Session: session}
	for len(r.IDs)*traceBlock < isl {
		r.IDs = append(r.IDs, b.next)
		b.next++
	}
	b.rows = append(b.rows, r)
	return r
}

// extend adds a row that begins with the prompt of another.
func (b *agentTrace) extend(session string, after []string, before row, isl, osl int) row {
	return b.add(session, after, before.IDs[:before.ISL/traceBlock], isl, osl)
}

// turn adds a row that keeps some blocks of the session's last prompt, or all if keep
// is negative.
func (b *agentTrace) turn(session string, after []string, keep, isl, osl int) row {
	i := len(b.rows) - 1
	for b.rows[i].Session != session {
		i--
	}
	if keep < 0 {
		return b.extend(session, after, b.rows[i], isl, osl)
	}
	return b.add(session, after, b.rows[i].IDs[:keep], isl, osl)
}
