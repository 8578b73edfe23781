package main

import (
	"errors"
	"fmt"
	"log"
	"math"
	"slices"
	"strings"

	"moontide/.ci/results"
	"moontide/replay"
	"moontide/trace"
)

// check compares what moontide reports of a server with what must be so.
type check struct {
	name    string
	engines []string
	server  options
	run     func(s *session) error
}

// Servers of the checks.
var (
	plain    = options{name: "plain", model: tiny}
	roomy    = options{name: "roomy", model: tiny, context: maxPositions}
	parallel = options{name: "parallel", model: tiny, slots: 4}
	evicts   = options{name: "evicts", model: tiny, blocks: 160}
	locked   = options{name: "locked", model: tiny, interval: 5, key: "sk-engine-7f3a"}
	tight    = options{name: "small", model: small}
)

var (
	both     = []string{"vllm", "llamacpp"}
	onlyVLLM = []string{"vllm"}
)

// checks are all checks. Those of one server that restart it or kill it are last.
var checks = []check{
	{"token ids", both, plain, tokenIDs},
	{"words", both, plain, words},
	{"chat", both, plain, chat},
	{"chat, exact ISL", both, plain, chatExact},
	{"sessions with delays", both, parallel, sessionsWithDelays},
	{"closed loop", both, parallel, closedLoop},
	{"rate", both, parallel, rate},
	{"server metrics", both, plain, serverMetrics},
	{"wrong model name", both, plain, wrongModel},
	{"prompt beyond the context", both, plain, beyondContext},
	{"interrupt and resume", both, plain, interruptAndResume},
	{"capture", onlyVLLM, plain, captured},
	{"restart between runs", both, plain, restartBetweenRuns},
	{"restart before resume", both, plain, restartBeforeResume},
	{"killed mid-run", both, plain, killedMidRun},
	{"agents", onlyVLLM, roomy, agents},
	{"agents", []string{"llamacpp"}, plain, agents},
	{"WEKA conversations", onlyVLLM, roomy, weka},
	{"eviction", onlyVLLM, evicts, eviction},
	{"several tokens a chunk", onlyVLLM, locked, severalTokens},
	{"API key", both, locked, apiKey},
	{"small vocabulary", both, tight, smallVocabulary},
	{"few one-token words", both, tight, fewWords},
}

// stage is a server with the checks that use it.
type stage struct {
	server options
	checks []check
}

// stagesOf returns the checks of an engine whose names begin with a wanted one, by
// server.
func stagesOf(e *engine, names []string) (stages []stage) {
	for _, c := range checks {
		if !results.Wanted(c.name, names) || !slices.Contains(c.engines, e.name) {
			continue
		}
		server := c.server
		if e.name == "vllm" { // it batches without slots
			server.slots = 0
			if server.name == parallel.name {
				server.name = plain.name
			}
		}
		i := slices.IndexFunc(stages, func(st stage) bool { return st.server.name == server.name })
		if i < 0 {
			i, stages = len(stages), append(stages, stage{server: server})
		}
		stages[i].checks = append(stages[i].checks, c)
	}
	return stages
}

// session is a check that runs.
type session struct {
	tools  *tools
	engine *engine
	server *server
	check  string
	rows   []result
}

// run starts the server and runs its checks.
func (st stage) run(t *tools, e *engine) ([]result, error) {
	log.Printf("%s: starting server %q", e.name, st.server.name)
	s := &session{tools: t, engine: e}
	var err error
	if s.server, err = e.start(t, st.server); err != nil {
		return nil, err
	}
	defer func() { s.server.stop() }()
	for _, c := range st.checks {
		s.check = c.name
		if err := c.run(s); err != nil {
			s.law("runs", "yes", err.Error(), false)
		}
	}
	return s.rows, nil
}

// restart ends the server at once and starts it again at the same address.
func (s *session) restart() error {
	s.server.kill()
	return s.server.launch(s.engine, s.tools)
}

// law adds a row to the results.
func (s *session) law(law, expected, measured string, ok bool) {
	measured = strings.NewReplacer(s.server.url, "URL", s.tools.out, "OUT", s.tools.models, "MODELS").Replace(measured)
	mark := "ok"
	if !ok {
		mark = "FAILED"
	}
	log.Printf("%s: %s: %s: expected %s, measured %s: %s", s.engine.name, s.check, law, expected, measured, mark)
	s.rows = append(s.rows, result{s.engine.name, s.check, law, expected, measured, ok})
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
func (s *session) within(law string, expected, measured, share float64, unit string) {
	off := math.Abs(measured/expected - 1)
	s.law(law, fmt.Sprintf("%.4g %s within %g %%", expected, unit, 100*share), fmt.Sprintf("%.4g %s (%.2f %% off)", measured, unit, 100*off), off <= share)
}

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

// counts checks the token counts of requests that were sent one after the other.
func (s *session) counts(o *outcome, sent []prompt) {
	var isl, osl []int
	for _, p := range sent {
		isl, osl = append(isl, p.length()), append(osl, p.osl)
	}
	s.each("input tokens", o, isl, func(r replay.Record) trace.Opt[int] { return r.Counts.Input })
	s.each("output tokens", o, osl, func(r replay.Record) trace.Opt[int] { return r.Counts.Output })
	s.each("cached tokens", o, s.engine.cached(s.server.opts, sent), func(r replay.Record) trace.Opt[int] { return r.Counts.Cached })
}

// trusted checks that the run ended well: its verdict may be SUSPECT on a busy
// machine.
func (s *session) trusted(o *outcome) {
	verdict := o.summary.Moontide.Verdict
	s.law("exit status and verdict", "0, not INVALID", fmt.Sprintf("%d, %s", o.exit, verdict), o.exit == 0 && verdict != "" && verdict != "INVALID")
}

var errNoRun = errors.New("no run")

// ran returns an error with the last line of the output if there was no run.
func (o *outcome) ran() error {
	if len(o.records) > 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(o.text), "\n")
	return fmt.Errorf("%w: exit status %d: %s", errNoRun, o.exit, lines[len(lines)-1])
}
