package main

import (
	"fmt"
	"log"
	"slices"

	"moontide/.ci/results"
)

// check compares what moontide reports of a server with what must be so: a replay of rows
// and its laws, or a function of its own.
type check struct {
	name    string
	engines []string
	server  options
	rows    []row
	flags   string // of the replay; see session.flags
	laws    []law
	run     func(s *session) error
}

// law checks a replay.
type law func(s *session, o *outcome)

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
	both         = []string{"vllm", "llamacpp"}
	onlyVLLM     = []string{"vllm"}
	onlyLlamaCpp = []string{"llamacpp"}
)

// Flags of replays.
const (
	oneByOne = "--closed --max-concurrency 1" // cached tokens can be told from the trace
	inWords  = " --prompt words --tokenizer TOKENIZER"
	inChat   = " --endpoint chat --tokenizer TOKENIZER"
	scraped  = " --server-metrics URL"
	withKey  = " --api-key-env " + keyVariable
)

// checks are all checks. Those of one server that restart it are last, and then that which
// kills it.
var checks = []check{
	{name: "token ids", engines: both, server: plain, rows: shared(60, 0), flags: oneByOne, laws: []law{trusted, counts(0, 0, 0)}},
	{name: "words", engines: both, server: plain, rows: shared(60, 0), flags: oneByOne + inWords, laws: []law{trusted, counts(0, 0, 0)}},
	{name: "chat", engines: both, server: plain, rows: shared(60, 0), flags: oneByOne + inChat, laws: []law{trusted, counts(0, templateBefore, templateTokens)}},
	{name: "chat, exact ISL", engines: both, server: plain, rows: shared(60, 0), flags: oneByOne + inChat + " --set exact-isl=true",
		laws: []law{trusted, counts(templateTokens, templateBefore, templateTokens)}},
	{name: "sessions with delays", engines: both, server: parallel, rows: conversations(4), laws: []law{trusted, turnsInTime}},
	{name: "closed loop", engines: both, server: parallel, rows: equal(24, 200, 24, 0), flags: fmt.Sprint("--closed --max-concurrency ", streams), laws: []law{trusted, streamsInFlight}},
	{name: "rate", engines: both, server: parallel, rows: equal(40, 100, 8, 0), flags: fmt.Sprint("--arrival constant --rate ", perSecond), laws: []law{trusted, sentInTime, completed(40)}},
	{name: "server metrics", engines: onlyVLLM, server: plain, rows: shared(30, 0), flags: oneByOne + scraped, laws: []law{trusted, vllmMetrics}},
	{name: "server metrics", engines: onlyLlamaCpp, server: plain, rows: shared(30, 0), flags: oneByOne + scraped, laws: []law{trusted, llamacppMetrics}},
	{name: "wrong model name", engines: onlyVLLM, server: plain, rows: equal(2, 40, 4, 0), flags: "--model nosuch", laws: []law{refused, says("nosuch", tiny.name)}},
	{name: "wrong model name", engines: onlyLlamaCpp, server: plain, rows: equal(2, 40, 4, 0), flags: "--model nosuch", laws: []law{says("lists the model", "nosuch", tiny.name)}},
	{name: "prompt beyond the context", engines: both, server: plain, rows: slices.Insert(equal(9, 200, 8, 0), tooLong, equal(1, maxModelLen+500, 8, 0)[0]),
		flags: oneByOne, laws: []law{oneFails}},
	{name: "interrupt and resume", engines: both, server: plain, run: interruptAndResume},
	{name: "agents", engines: onlyLlamaCpp, server: plain, run: agents},
	{name: "capture", engines: onlyVLLM, server: plain, run: captured},
	{name: "restart between runs", engines: both, server: plain, run: restartBetweenRuns},
	{name: "restart before resume", engines: both, server: plain, run: restartBeforeResume},
	{name: "killed mid-run", engines: both, server: plain, run: killedMidRun},
	{name: "agents", engines: onlyVLLM, server: roomy, run: agents},
	{name: "WEKA conversations", engines: onlyVLLM, server: roomy, run: weka},
	{name: "eviction", engines: onlyVLLM, server: evicts, rows: groups(), flags: oneByOne + scraped, laws: []law{trusted, counts(0, 0, 0), evictedTokens}},
	{name: "several tokens a chunk", engines: onlyVLLM, server: locked, rows: equal(20, 200, 58, 0), flags: oneByOne + withKey, laws: []law{trusted, chunksOfFive}},
	{name: "API key", engines: both, server: locked, rows: equal(4, 40, 4, 0), flags: withKey, laws: []law{trusted, completed(4), noLeaks}},
	{name: "no API key", engines: both, server: locked, rows: equal(4, 40, 4, 0), laws: []law{refused, says("401", "--api-key-env")}},
	{name: "small vocabulary", engines: both, server: tight, rows: shared(20, 0), flags: oneByOne, laws: []law{says("token ids are drawn from", "to 1874"), trusted, counts(0, 0, 0)}},
	{name: "few one-token words", engines: both, server: tight, rows: shared(20, 0), flags: oneByOne + inWords, laws: []law{says("words of one token", "800"), trusted, counts(0, 0, 0)}},
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
		if e.name == "vllm" && server.name == parallel.name { // it batches without slots
			server = plain
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
	check  check
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
	for _, s.check = range st.checks {
		run := s.check.run
		if run == nil {
			run = (*session).replayRows
		}
		if err := run(s); err != nil {
			s.law("runs", "yes", err.Error(), false)
		}
	}
	return s.rows, nil
}

// replayRows replays the rows of a check and checks its laws.
func (s *session) replayRows() error {
	o, err := s.replay("run", s.check.rows, s.flags(s.check.flags)...)
	if err != nil {
		return err
	}
	for _, holds := range s.check.laws {
		holds(s, o)
	}
	return nil
}

// restart ends the server at once and starts it again at the same address.
func (s *session) restart() error {
	s.server.kill()
	return s.server.launch(s.engine, s.tools)
}
