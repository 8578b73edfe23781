package tree

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"testing"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/format"
	"moontide/trace/stats"
	"moontide/trace/tracetest"
)

func published(t testing.TB) []trace.Request {
	t.Helper()
	return tracetest.Conversation(t, format.Open, format.Options{})
}

// statistics are what the data generator's users compare.
type statistics struct {
	isl, islMin, islMax, osl   float64 // tokens
	context, unique            float64 // tokens, declared, means
	blocks, distinct           float64
	blockHitRate, tokenHitRate float64 // of an infinite cache
	span                       float64 // ms
}

// measure counts hits of an infinite cache: leading blocks that an earlier request
// had. Ids must be dense and chained to their prefix.
func measure(rows []trace.Request, blockSize int) statistics {
	s := statistics{islMin: math.Inf(1)}
	var hits, hitTokens, tokens float64
	var seen []bool
	for _, r := range rows {
		isl := float64(r.InputLength)
		tokens += isl
		s.islMin, s.islMax = min(s.islMin, isl), max(s.islMax, isl)
		s.osl += float64(r.OutputLength) / float64(len(rows))
		s.context += float64(r.ContextLen.Value) / float64(len(rows))
		s.unique += float64(r.UniquePromptLen.Value) / float64(len(rows))
		s.blocks += float64(len(r.HashIDs))
		for len(r.HashIDs) > 0 && int(slices.Max(r.HashIDs)) >= len(seen) {
			seen = append(seen, make([]bool, 1+len(seen))...)
		}
		hit, still := 0, true
		for _, id := range r.HashIDs {
			if still = still && seen[id]; still {
				hit++
			}
			if !seen[id] {
				seen[id] = true
				s.distinct++
			}
		}
		hits += float64(hit)
		hitTokens += min(isl, float64(hit*blockSize))
	}
	s.isl = tokens / float64(len(rows))
	s.span = rows[len(rows)-1].Timestamp.Value - rows[0].Timestamp.Value
	s.blockHitRate, s.tokenHitRate = hits/s.blocks, hitTokens/tokens
	return s
}

// TestDrawsLikeTheDataGenerator draws the trace that was published with the
// data generator (prefixes 16 and prompts 10 times as long, up to 110,000
// tokens) and compares it with what that generator draws: means and standard
// deviations of a dozen runs.
func TestDrawsLikeTheDataGenerator(t *testing.T) {
	tree := mustFit(t, published(t), 0)
	same(t, "block size", block.Size{Tokens: 512, How: block.Detected, Low: 512, High: 512}, tree.BlockSize())
	same(t, "irregular rows", 0, tree.Irregular())
	same(t, "requests that the core accounts for", 12_031, tree.nodes[0].next.Total())
	const seeds = 5
	var runs []statistics
	for seed := range uint64(seeds) {
		_, rows := drawShape(t, tree, seed, 10_000, Shape{PrefixLenMultiplier: 16, PromptLenMultiplier: 10, MaxISL: 110_000})
		if digest := digestOf(rows); seed == 1 && digest != "0cb335e650078671" {
			t.Errorf("the bytes of seed 1 have changed: their digest begins with %s", digest)
		}
		runs = append(runs, measure(rows, 512))
	}
	for _, c := range []struct {
		name     string
		of       func(statistics) float64
		mean, sd float64
	}{
		{"ISL mean", func(s statistics) float64 { return s.isl }, 39_611, 216},
		{"ISL min", func(s statistics) float64 { return s.islMin }, 12_801, 0},
		{"ISL max", func(s statistics) float64 { return s.islMax }, 109_510, 25}, // 109,459 to 109,560
		{"OSL mean", func(s statistics) float64 { return s.osl }, 343.1, 2.2},
		{"distinct blocks", func(s statistics) float64 { return s.distinct }, 434_172, 5_198},
		{"blocks", func(s statistics) float64 { return s.blocks }, 778_347, 4_355},
		{"block hit rate", func(s statistics) float64 { return s.blockHitRate }, .442, .006},
		{"token hit rate", func(s statistics) float64 { return s.tokenHitRate }, .445, .006},
		{"declared context", func(s statistics) float64 { return s.context }, 22_699, 280},
		{"declared unique prompt", func(s statistics) float64 { return s.unique }, 16_912, 291},
		{"span in ms", func(s statistics) float64 { return s.span }, 5_100_000, 44_000},
	} {
		mean := 0.
		for seed, s := range runs {
			if got := c.of(s); math.Abs(got-c.mean) > 4*c.sd {
				t.Errorf("%s of seed %d is %v, want %v within %v", c.name, seed, got, c.mean, 4*c.sd)
			}
			mean += c.of(s) / seeds
		}
		if math.Abs(mean-c.mean) > 2*c.sd+1e-9 {
			t.Errorf("%s is %v over all seeds, want %v within %v", c.name, mean, c.mean, 2*c.sd)
		}
		t.Logf("%-22s %12.5g, the generator's %12.5g +- %g", c.name, mean, c.mean, c.sd)
	}
}

// digestOf returns the beginning of the digest of rows as in a trace file.
func digestOf(rows []trace.Request) string {
	sum := sha256.Sum256([]byte(lines(rows)))
	return fmt.Sprintf("%x", sum[:8])
}

// chats makes n requests of conversations that extend their own prompts under
// one system prompt, in blocks of 512 tokens.
func chats(n int) []trace.Request {
	rows := make([]trace.Request, n)
	random := stats.NewStream(1, "chats")
	turns := [][]uint64{{0}}
	for i := range rows {
		next := turns[random.IntN(len(turns))]
		ids := synth.BlockRun{First: uint64(1+i) << 8, Blocks: 1 + random.IntN(24)}.AppendIDs(slices.Clone(next))
		if len(ids) < 200 {
			turns = append(turns, ids)
		}
		isl := len(ids)*512 - random.IntN(512)
		rows[i] = request(float64(random.IntN(n))*300, isl, 1+random.IntN(800), ids...)
	}
	return rows
}

func BenchmarkFit(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("requests=%d", n), func(b *testing.B) {
			rows := chats(n)
			b.ReportAllocs()
			for b.Loop() {
				mustFit(b, rows, 512)
			}
			reportPerRequest(b, n)
		})
	}
}

// BenchmarkPublishedDraw draws and encodes requests as the command does, with the shape
// that was published with the data generator.
func BenchmarkPublishedDraw(b *testing.B) {
	tree := mustFit(b, published(b), 0)
	benchmarkDraw(b, tree, 100_000, Shape{PrefixLenMultiplier: 16, PromptLenMultiplier: 10, MaxISL: 110_000})
}

func benchmarkDraw(b *testing.B, tree *Model, n int, shape Shape) {
	b.ReportAllocs()
	var row []byte
	var r trace.Request
	size := 0
	for b.Loop() {
		d, err := tree.Draw(1, n, shape)
		if err != nil {
			b.Fatal(err)
		}
		size = 0
		for d.Read(&r) == nil {
			row = append(format.AppendRow(row[:0], r), '\n')
			size += len(row)
		}
	}
	b.SetBytes(int64(size))
	reportPerRequest(b, n)
}

func reportPerRequest(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/request")
}
