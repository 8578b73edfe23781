package virtual_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/virtual"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/routing"
	"moontide/trace/tracetest"
)

const ms = time.Millisecond

// memory is a recorder that keeps records by row.
type memory map[int]replay.Record

func (m memory) Record(rec replay.Record) error {
	m[rec.Row] = rec
	return nil
}

func run(t testing.TB, cfg virtual.Config, limit int, rows ...trace.Request) memory {
	t.Helper()
	e, err := virtual.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := memory{}
	tally, err := (&replay.VirtualRunner{Model: e, Recorder: m, MaxConcurrency: limit, Graph: cfg.Graph}).Run(t.Context(), trace.FromSlice(rows))
	if err != nil || tally.Sent+tally.Cut != len(rows) || len(m) != tally.Sent {
		t.Fatalf("%+v, %d records, %v", tally, len(m), err)
	}
	if s := e.Stats(); s.KVUsed != 0 || s.Running+s.Waiting != 0 {
		t.Errorf("at the end: %+v", s)
	}
	return m
}

func row(at float64, isl, osl int, ids ...uint64) trace.Request {
	return trace.Request{Timestamp: trace.Some(at), InputLength: isl, OutputLength: osl, HashIDs: ids}
}

func TestRecordsByHand(t *testing.T) {
	cfg := virtual.Config{Deployment: engine.Deployment{Engine: engine.Config{
		Costs:       engine.Costs{Step: 10 * engine.Millisecond, PrefillToken: engine.Millisecond},
		MaxModelLen: 2000,
	}}}
	turn := row(0, 600, 2, 1, 3)
	turn.Timestamp, turn.Delay, turn.SessionID = trace.Opt[float64]{}, trace.Some(5.0), "s"
	first := row(0, 600, 3, 1, 2)
	first.SessionID = "s"
	m := run(t, cfg, 0, first, row(1, 1999, 2, 9), row(2, 10, 0), turn)
	for i, want := range []struct {
		due, first, done time.Duration
		gaps             int
		cached, output   int
		status           int
	}{
		{0, 610 * ms, 640 * ms, 2, 0, 3, 200}, // prefill, a step with row 2's prefill in it, a step
		{1 * ms, 0, 1 * ms, 0, 0, 0, 400},     // 2001 tokens
		{2 * ms, 630 * ms, 630 * ms, 0, 0, 1, 200},
		{645 * ms, 743 * ms, 753 * ms, 1, 512, 2, 200}, // 88 tokens, 5 ms after its first turn
	} {
		r := m[i]
		if r.Due != want.due || r.Ready != want.due || r.Sent.Value != want.due || r.First.Value != want.first || r.Done != want.done ||
			len(r.Gaps) != want.gaps || r.Counts.Cached.Value != want.cached || r.Counts.Output.Value != want.output || r.Status != want.status {
			t.Errorf("row %d: %+v\nwant %+v", i, r, want)
		}
	}
	if r := m[1]; r.Class != replay.HTTPError || r.First.Set || r.Error != "status 400: a prompt of 1999 tokens and an answer of 2 do not fit into the model's context of 2000 tokens" {
		t.Errorf("%+v", r)
	}
	if r := m[0]; r.Chunks != 3 || r.Gaps[0] != 20*ms || r.Gaps[1] != 10*ms || r.Last.Value != r.Done || r.Counts.Input.Value != 600 {
		t.Errorf("%+v", r)
	}
}

// Cached generated tokens take room from prompts.
func TestCachedAnswersTakeRoom(t *testing.T) {
	// Of 100 blocks the rows take 2, 64 and 40.
	rows := []trace.Request{row(0, 32, 1, 1, 2), row(10, 32, 1000, 3, 4), row(20, 33, 600, 5, 6, 7), row(30, 33, 1, 1, 2, 8)}
	for _, tt := range []struct {
		generated bool
		want      int
	}{{false, 32}, {true, 0}} {
		cfg := virtual.Config{
			Deployment:     engine.Deployment{Engine: engine.Config{KVBlocks: 100}},
			TraceBlockSize: 16, CacheGenerated: tt.generated,
		}
		if got := run(t, cfg, 1, rows...)[3].Counts.Cached.Value; got != tt.want {
			t.Errorf("generated tokens cached: %v: %d tokens of the first prompt are left, want %d", tt.generated, got, tt.want)
		}
	}
}

// gpu is about an 8B model on one large GPU.
var gpu = engine.Config{
	Costs:   engine.Costs{Step: 4 * engine.Millisecond, PrefillToken: 15 * engine.Microsecond, Sequence: 10 * engine.Microsecond, ContextToken: 26},
	MaxSeqs: 1024, MaxBatchedTokens: 8192, KVBlocks: 57_000, MaxModelLen: 131_072,
}

// conversations are rows of chats: each turn extends the prompt before.
func conversations(n int) []trace.Request {
	random := rand.New(rand.NewPCG(1, 2))
	var rows []trace.Request
	var sessions [][]uint64
	next := uint64(0)
	for i := range n {
		s := random.IntN(len(sessions) + 1)
		if s == len(sessions) || len(sessions[s]) > 100 {
			s = len(sessions)
			sessions = append(sessions, []uint64{0, 1})
		}
		for range 1 + random.IntN(25) {
			next++
			sessions[s] = append(sessions[s], 1<<20+next)
		}
		ids := append([]uint64(nil), sessions[s]...)
		rows = append(rows, row(float64(i)*150, len(ids)*512-random.IntN(512), 1+random.IntN(700), ids...))
	}
	return rows
}

// totals replays a trace, one request at a time, on an engine with room for everything.
func totals(t *testing.T, path string) (input, output, cached int) {
	r, err := format.Open(path, format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := trace.Collect(trace.Pacing{Rebase: true}.Apply(r.Requests()))
	if err != nil {
		t.Fatal(err)
	}
	roomy := gpu
	roomy.KVBlocks = 20_000_000
	for _, rec := range run(t, virtual.Config{Deployment: engine.Deployment{Engine: roomy, Engines: 1}}, 1, rows...) {
		input, output, cached = input+rec.Counts.Input.Value, output+rec.Counts.Output.Value, cached+rec.Counts.Cached.Value
	}
	return input, output, cached
}

// No token is lost. A separate program computed the cached ones of the sample, for an
// infinite cache of 16-token blocks; those of the public conversation trace are the token
// hit rate of 512-token blocks, less the tails that are no full block of 16 and the last
// tokens of 118 prompts that are cached whole.
func TestTraces(t *testing.T) {
	if input, output, cached := totals(t, "../../../traces/conversation.jsonl"); input != 1_756_343 || output != 26_901 || cached != 1_372_672 {
		t.Errorf("%d tokens in, %d out, %d cached", input, output, cached)
	}
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
	input, output, cached := totals(t, tracetest.Published(t, "conversation_trace.jsonl"))
	if share := float64(cached) / float64(input); input != 144_793_823 || output != 4_122_048 || share > 0.373624 || share < 0.373 {
		t.Errorf("%d tokens in, %d out, %v cached", input, output, share)
	}
}

func BenchmarkSimulate(b *testing.B) {
	rows := conversations(3000)
	output := 0
	for _, r := range rows {
		output += r.OutputLength
	}
	for _, d := range []engine.Deployment{
		{Engine: gpu},
		{Engine: gpu, Engines: 8, Routing: routing.RoundRobin},
		{Engine: gpu, Engines: 8, Routing: routing.Prefix},
		{Engine: gpu, Prefill: 4, Decode: 4, Routing: routing.Prefix, Transfer: engine.Transfer{Base: ms, PerToken: 1500}},
	} {
		b.Run(fmt.Sprintf("engines=%d/prefill=%d/decode=%d/routing=%s", d.Engines, d.Prefill, d.Decode, d.Routing), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e, err := virtual.New(virtual.Config{Deployment: d})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := (&replay.VirtualRunner{Model: e, Recorder: nothing{}}).Run(b.Context(), trace.FromSlice(rows)); err != nil {
					b.Fatal(err)
				}
			}
			ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(ns/float64(len(rows)), "ns/request")
			b.ReportMetric(ns/float64(output), "ns/token")
		})
	}
}

type nothing struct{}

func (nothing) Record(replay.Record) error { return nil }
