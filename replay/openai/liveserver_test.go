package openai_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
	"moontide/trace"
	"moontide/trace/tracetest"
)

const (
	serverBlock = 16
	traceBlock  = 64
)

// simulated serves simulated engines that keep generated tokens.
func simulated(t *testing.T, cfg server.Config) string {
	t.Helper()
	cfg.CacheGenerated = true
	cfg.Deployment = engine.Deployment{Engine: engine.Config{BlockSize: serverBlock, MaxModelLen: 2000}}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(listener)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return "http://" + listener.Addr().String()
}

// conversation returns rows of a session with these input lengths.
func conversation(session string, first uint64, osl int, lengths ...int) (rows []trace.Request) {
	for _, isl := range lengths {
		r := trace.Request{SessionID: session, InputLength: isl, OutputLength: osl}
		for at := 0; at < isl; at += traceBlock {
			id := first + uint64(at/traceBlock)
			if at+traceBlock > isl { // partial blocks have ids of their own
				id += 1000 * uint64(isl)
			}
			r.HashIDs = append(r.HashIDs, id)
		}
		rows = append(rows, r)
	}
	return rows
}

// replayed sends rows one after the other with live answers.
func replayed(t *testing.T, cfg openai.Config, rows []trace.Request) (*openai.Client, []replay.Outcome) {
	t.Helper()
	cfg.Answers, cfg.Graph, cfg.Source = openai.LiveAnswers, tracetest.Graph(t, rows...), prompt.Source{BlockSize: traceBlock}
	cfg.Timeout = time.Hour
	c, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if notes, err := c.Probe(context.Background()); err != nil {
		t.Fatal(notes, err)
	}
	var all []replay.Outcome
	for i, r := range rows {
		call, err := c.Prepare(r, i)
		if err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
		o := call.Send(context.Background())
		if o.Class != replay.OK {
			t.Fatalf("row %d: %s %s", i, o.Class, o.Error)
		}
		all = append(all, o)
	}
	return c, all
}

// ways are the forms of prompts and answers.
var ways = []openai.Config{
	{Endpoint: openai.Completions, Prompt: openai.Tokens},
	{Endpoint: openai.Chat},
	{Endpoint: openai.Chat, ExactISL: true},
	{Endpoint: openai.Responses},
	{Endpoint: openai.Messages},
	{Endpoint: openai.Generate, Prompt: openai.Tokens},
}

// A server that keeps generated tokens finds the whole prompt of the turn before and
// all of its answer but the last token, and prompts have the lengths of the trace.
func TestAnswersAreCached(t *testing.T) {
	t.Parallel()
	rows := conversation("s", 1, 37, 100, 110, 160, 161, 300, 333, 600)
	rows = append(rows, conversation("t", 500, 1, 70, 72, 140)...)
	for _, reasoning := range []int{0, 9} {
		for _, way := range ways {
			way.URL = simulated(t, server.Config{ReasoningTokens: reasoning})
			name := fmt.Sprintf("%s %s, exact %v, reasoning %d", way.Endpoint, way.Prompt, way.ExactISL, reasoning)
			c, outcomes := replayed(t, way, rows)
			for i, o := range outcomes {
				if i == 0 || rows[i-1].SessionID != rows[i].SessionID {
					if o.Base.Row.Set {
						t.Errorf("%s: row %d continues row %d", name, i, o.Base.Row.Value)
					}
					continue
				}
				n := o.Base.Answer.Tokens
				off := o.Counts.Input.Value - rows[i].InputLength
				if rows[i-1].InputLength+n > rows[i].InputLength && way.Prompt != openai.Tokens { // the beginning of a text
					off = max(off-1, 0)
				}
				if off != 0 || o.Base.Row != trace.Some(i-1) || n+o.Base.Answer.Dropped != outcomes[i-1].Counts.Output.Value {
					t.Errorf("%s: row %d has %+v prompt tokens of %d and continues %+v", name, i, o.Counts.Input, rows[i].InputLength, o.Base)
				}
				shared := min(rows[i-1].InputLength+n-1, rows[i].InputLength-1)
				if o.Base.Answer.Dropped > 0 {
					shared = rows[i-1].InputLength // what was generated after it follows reasoning
				}
				if want := shared / serverBlock * serverBlock; o.Counts.Cached.Value != want {
					t.Errorf("%s: row %d has %d cached tokens, want %d", name, i, o.Counts.Cached.Value, want)
				}
			}
			if got := c.AnswerCounts(); got != (openai.AnswerCounts{Continued: 8}) {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}
