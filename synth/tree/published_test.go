package tree

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"testing"

	"moontide/synth"
	"moontide/trace"
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

func TestPublishedTraceIsRead(t *testing.T) {
	rows := published(t)
	got := measure(rows, 512)
	for _, c := range []struct {
		name           string
		got, want, tol float64
	}{
		{"ISL mean", got.isl, 12035.06, .005},
		{"OSL mean", got.osl, 342.62, .005},
		{"span in ms", got.span, 3_536_999, 0},
		{"blocks", got.blocks, 288_500, 0},
		{"distinct blocks", got.distinct, 182_790, 0},
		{"block hit rate", got.blockHitRate, .366412, .0000005},
		{"token hit rate", got.tokenHitRate, .373624, .0000005},
	} {
		if math.Abs(c.got-c.want) > c.tol {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
	tree := mustFit(t, rows, 0)
	same(t, "block size", trace.BlockSize{Tokens: 512, How: trace.Detected, Low: 512, High: 512}, tree.BlockSize())
	same(t, "irregular rows", 0, tree.Irregular())
	same(t, "requests that the core accounts for", 12_031, tree.nodes[0].next.Total())
}

// TestDrawsLikeItsSource draws as many requests as the source has and compares the
// means of some seeds with the source's. The hit rate of the method lies some points
// above it; see the package comment.
func TestDrawsLikeItsSource(t *testing.T) {
	rows := chats(4000)
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	want := measure(dense(rows), 512)
	m := mustFit(t, rows, 512)
	const seeds = 4
	var mean statistics
	for seed := range uint64(seeds) {
		s := measure(draw(t, m, seed, len(rows)), 512)
		mean.isl += s.isl / seeds
		mean.osl += s.osl / seeds
		mean.span += s.span / seeds
		mean.blockHitRate += s.blockHitRate / seeds
	}
	for _, c := range []struct {
		name           string
		got, want, tol float64
	}{
		{"ISL mean", mean.isl, want.isl, .05 * want.isl},
		{"OSL mean", mean.osl, want.osl, .03 * want.osl},
		{"span in ms", mean.span, want.span, .10 * want.span},
		{"block hit rate", mean.blockHitRate, want.blockHitRate, .03},
	} {
		if math.Abs(c.got-c.want) > c.tol {
			t.Errorf("%s is %v, want %v within %v", c.name, c.got, c.want, c.tol)
		}
	}
	d, err := m.Draw(1, 10_000, Shape{PrefixLenMultiplier: 16, PromptLenMultiplier: 10, MaxISL: 600_000})
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := trace.Collect(d.Requests())
	if err != nil {
		t.Fatal(err)
	}
	if text := sha256.Sum256([]byte(lines(drawn))); fmt.Sprintf("%x", text[:8]) != "74aef46524e977f9" {
		t.Errorf("the bytes of seed 1 have changed: their digest begins with %x", text[:8])
	}
}

// dense numbers ids in the order of their first occurrence.
func dense(rows []trace.Request) []trace.Request {
	numbers := make(map[uint64]uint64)
	rows = slices.Clone(rows)
	for i := range rows {
		ids := slices.Clone(rows[i].HashIDs)
		for k, id := range ids {
			if _, known := numbers[id]; !known {
				numbers[id] = uint64(len(numbers))
			}
			ids[k] = numbers[id]
		}
		rows[i].HashIDs = ids
	}
	return rows
}

// TestDrawsLikeTheDataGenerator draws the trace that was published with the
// data generator (prefixes 16 and prompts 10 times as long, up to 110,000
// tokens) and compares it with what that generator draws: means and standard
// deviations of a dozen runs.
func TestDrawsLikeTheDataGenerator(t *testing.T) {
	tree := mustFit(t, published(t), 0)
	const seeds = 5
	var runs []statistics
	for seed := range uint64(seeds) {
		d, err := tree.Draw(seed, 10_000, Shape{PrefixLenMultiplier: 16, PromptLenMultiplier: 10, MaxISL: 110_000})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := trace.Collect(d.Requests())
		if err != nil {
			t.Fatal(err)
		}
		if text := sha256.Sum256([]byte(lines(rows))); seed == 1 && fmt.Sprintf("%x", text[:8]) != "0cb335e650078671" {
			t.Errorf("the bytes of seed 1 have changed: their digest begins with %x", text[:8])
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
