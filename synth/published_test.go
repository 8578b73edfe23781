package synth

import (
	"fmt"
	"math"
	"os"
	"testing"

	"moontide/trace"
	"moontide/trace/prefix"
)

// published reads the conversation trace that the Mooncake project published.
func published(t testing.TB) []trace.Request {
	t.Helper()
	const path = "../../shared/traces/conversation_trace.jsonl"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no published trace here: %v", err)
	}
	f, err := trace.Open(path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := trace.Collect(f.Requests())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// statistics are means over the requests of a trace.
type statistics struct {
	isl, osl, span, blockHitRate float64
}

// measure takes the block hit rate of an infinite cache: the leading blocks of
// each request that an earlier one had.
func measure(rows []trace.Request) statistics {
	var s statistics
	hits, blocks := 0, 0
	seen := prefix.New()
	for _, r := range rows {
		s.isl += float64(r.InputLength) / float64(len(rows))
		s.osl += float64(r.OutputLength) / float64(len(rows))
		hits += seen.Depth(seen.Find(r.HashIDs))
		blocks += len(r.HashIDs)
		seen.Add(r.HashIDs)
	}
	s.span = rows[len(rows)-1].Timestamp.Value - rows[0].Timestamp.Value
	s.blockHitRate = float64(hits) / float64(blocks)
	return s
}

func TestPublishedTraceIsRead(t *testing.T) {
	rows := published(t)
	got := measure(rows)
	for _, c := range []struct {
		name           string
		got, want, tol float64
	}{
		{"ISL mean", got.isl, 12035.06, .005},
		{"OSL mean", got.osl, 342.62, .005},
		{"span in ms", got.span, 3_536_999, 0},
		{"block hit rate", got.blockHitRate, .366412, .0000005},
	} {
		if math.Abs(c.got-c.want) > c.tol {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
	tree := mustFit(t, rows, 0)
	same(t, "block size", trace.BlockSize{Tokens: 512, How: trace.Detected, Low: 512, High: 512}, tree.BlockSize())
	same(t, "irregular rows", 0, tree.Irregular())
	same(t, "requests that the core accounts for", uint64(12_031), tree.nodes[0].ways.total())
}

// TestTreeIsLikeThePublishedTrace draws as many requests as the source has and
// compares the means of some seeds with the source's. The hit rate of the
// method lies some points above it; see the package comment.
func TestTreeIsLikeThePublishedTrace(t *testing.T) {
	rows := published(t)
	tree := mustFit(t, rows, 0)
	const seeds = 8
	var mean statistics
	for seed := range uint64(seeds) {
		s := measure(draw(t, tree, seed, len(rows)))
		t.Logf("seed %d: %+v", seed, s)
		mean.isl += s.isl / seeds
		mean.osl += s.osl / seeds
		mean.span += s.span / seeds
		mean.blockHitRate += s.blockHitRate / seeds
	}
	for _, c := range []struct {
		name           string
		got, want, tol float64
	}{
		{"ISL mean", mean.isl, 12_035.06, .05 * 12_035.06},
		{"OSL mean", mean.osl, 342.62, .03 * 342.62},
		{"span in ms", mean.span, 3_537_000, .10 * 3_537_000},
		{"block hit rate", mean.blockHitRate, .366, .03},
	} {
		if math.Abs(c.got-c.want) > c.tol {
			t.Errorf("%s is %v, want %v within %v", c.name, c.got, c.want, c.tol)
		}
	}
}

// chats makes n requests of conversations that extend their own prompts under
// one system prompt, in blocks of 512 tokens.
func chats(n int) []trace.Request {
	rows := make([]trace.Request, n)
	random := stream(1, "chats")
	turns := [][]uint64{{0}}
	for i := range rows {
		next := turns[random.IntN(len(turns))]
		ids := appendRun(append([]uint64{}, next...), uint64(1+i)<<8, 1+random.IntN(24))
		if len(ids) < 200 {
			turns = append(turns, ids)
		}
		isl := len(ids)*512 - random.IntN(512)
		rows[i] = request(float64(random.IntN(n))*300, isl, 1+random.IntN(800), ids...)
	}
	return rows
}

func BenchmarkFitTree(b *testing.B) {
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

func BenchmarkTreeRequests(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("requests=%d", n), func(b *testing.B) {
			tree := mustFit(b, chats(n), 512)
			b.ReportAllocs()
			for b.Loop() {
				for range tree.Requests(1, n) {
				}
			}
			reportPerRequest(b, n)
		})
	}
}

func reportPerRequest(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/request")
}
