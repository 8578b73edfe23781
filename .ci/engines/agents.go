package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"moontide/.ci/results"
)

// mode is a way to replay agents.
type mode struct {
	name, flags string
	text        bool // answers are text, which may encode to other tokens than those generated
}

// modes are the ways that an engine's APIs allow. The first has no answers.
var modes = map[string][]mode{
	"vllm": {
		{"trace", "--answers trace", false},
		{"live", "--answers live", false},
		{"live, chat", "--answers live --set exact-isl=true" + inChat, true},
	},
	"llamacpp": { // it returns no token ids
		{"trace, chat", "--answers trace --set exact-isl=true" + inChat, false},
		{"live, chat", "--answers live --set exact-isl=true" + inChat, true},
	},
}

// before returns how many tokens of the chat template are cached before a prompt.
func (m mode) before(e *engine) int {
	if strings.Contains(m.flags, inChat) {
		return templateBefore / e.blockOf
	}
	return 0
}

// agents replays sessions whose context grows by answers and results of tools, is
// compacted and rewritten, with sub-agents that run in parallel and join.
func agents(s *session) error {
	rows, flags := agentRows(3), "--block-size "+fmt.Sprint(traceBlock)
	if s.engine.name != "vllm" { // a prompt can only be found right after it was sent
		rows, flags = chains(4, 5), flags+" --max-sessions 1"
	}
	path := filepath.Join(s.tools.out, s.engine.name+"-agents.jsonl")
	if err := results.WriteTrace(path, rows); err != nil {
		return err
	}
	return s.agentsOf(path, flags)
}

// weka replays recorded conversations of coding agents without their delays.
func weka(s *session) error {
	if s.tools.weka == "" {
		return nil
	}
	path := filepath.Join(s.tools.out, "weka.jsonl")
	if text, err := exec.Command(s.tools.moontide, "convert", s.tools.weka, "-o", path, "--ids", "separate").CombinedOutput(); err != nil {
		return fmt.Errorf("converting %s: %w: %s", s.tools.weka, err, text)
	}
	return s.agentsOf(path, "--set time-scale-tool=0 --set time-scale-think=0")
}

// agentsOf replays a trace in every mode, one request at a time, and checks each turn.
func (s *session) agentsOf(path, flags string) error {
	var runs []*outcome
	for _, m := range modes[s.engine.name] {
		dir, err := s.folder(results.Slug(m.name))
		if err != nil {
			return err
		}
		more := s.flags(fmt.Sprintf("%s %s %s --set server-block-size=%d", oneByOne, flags, m.flags, s.engine.blockOf))
		o, err := s.finish(s.command(path, append(more, "--salt", s.check.name+m.name, "--out", dir)...), dir)
		if err != nil {
			return err
		}
		if len(o.records) == 0 {
			return errors.New(o.text)
		}
		s.agentLaws(m, o)
		runs = append(runs, o)
	}
	without, with := runs[0].Cached.Value, runs[1].Cached.Value
	if lost := runs[1].Cache.Prediction.FromAnswers.Value; !modes[s.engine.name][1].text {
		s.law("cached tokens that prompts without real answers lose", fmt.Sprintf("%d of %d, as the report says", lost, with),
			fmt.Sprintf("%d of %d", with-without, with), with-without == lost && lost > 0)
	}
	return nil
}

// agentLaws checks the turns of a run. Where answers are text, a prompt with n tokens of
// answers may differ by up to n tokens from its row, and what is cached lies between the
// prompt before the answer and the whole.
func (s *session) agentLaws(m mode, o *outcome) {
	s.trusted(m.name+": ", o)
	var isl, osl []int
	answers := map[string]int{} // tokens by main agent
	near, worst := 0, 0
	for _, r := range o.records {
		isl, osl = append(isl, r.InputLength), append(osl, r.OutputLength)
		agent, _, _ := strings.Cut(r.SessionID, "/")
		off := r.Counts.Input.Value - r.InputLength
		off = max(off, -off)
		if off <= answers[agent] {
			near++
		}
		worst = max(worst, off)
		answers[agent] += r.OutputLength
	}
	n := len(isl)
	if m.text {
		s.law(m.name+": input tokens differ by no more than the answers' tokens", fmt.Sprintf("%d of %d turns", n, n), fmt.Sprintf("%d of %d turns, by up to %d", near, n, worst), near == n)
	} else {
		s.each(m.name+": input tokens", o, isl, input)
	}
	s.each(m.name+": output tokens", o, osl, output)
	p := o.Cache.Prediction
	equal, within, first := 0, 0, ""
	for i, t := range p.Each {
		switch whole := t.Predicted + m.before(s.engine); {
		case t.Measured == whole:
			equal++
		case m.text && t.Cause == "" && t.Measured < whole && t.Measured >= t.Predicted-t.AsText:
			within++
		case first == "":
			first = fmt.Sprintf("; turn %d: %d, not %d", i, t.Measured, t.Predicted)
		}
	}
	got := fmt.Sprintf("%d of %d turns, %d tokens%s", equal, n, p.Measured, first)
	if m.text {
		got += fmt.Sprintf("; %d between the prompt before the answer and the whole", within)
	}
	s.law(m.name+": cached tokens as predicted", fmt.Sprintf("%d of %d turns, %d tokens", n, n, p.Predicted+n*m.before(s.engine)), got, equal+within == n && p.Predicted > 0)
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
	r := newRow(0, isl, osl)
	r.ID, r.After, r.HashIDs, r.SessionID = "r"+strconv.Itoa(len(b.rows)), after, slices.Clone(ids), session
	b.next = fill(&r, b.next)
	b.rows = append(b.rows, r)
	return r
}

// extend adds a row that begins with the prompt of another.
func (b *agentTrace) extend(session string, after []string, before row, isl, osl int) row {
	return b.add(session, after, before.HashIDs[:before.InputLength/traceBlock], isl, osl)
}

// turn adds a row that keeps some blocks of the session's last prompt, or all if keep
// is negative.
func (b *agentTrace) turn(session string, after []string, keep, isl, osl int) row {
	i := len(b.rows) - 1
	for b.rows[i].SessionID != session {
		i--
	}
	if keep < 0 {
		return b.extend(session, after, b.rows[i], isl, osl)
	}
	return b.add(session, after, b.rows[i].HashIDs[:keep], isl, osl)
}
