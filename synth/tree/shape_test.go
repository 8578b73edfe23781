package tree

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
)

func drawShape(t testing.TB, tree *Model, seed uint64, n int, shape Shape) (*Drawing, []trace.Request) {
	t.Helper()
	d, err := tree.Draw(seed, n, shape)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := trace.Collect(d.Requests())
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != n {
		t.Fatalf("%d rows, want %d", len(rows), n)
	}
	return d, rows
}

func TestDrawGolden(t *testing.T) {
	_, rows := drawShape(t, mustFit(t, example, 4), 1, 8, Shape{
		PrefixLenMultiplier: 1.5, PrefixRootMultiplier: 2, PromptLenMultiplier: 3, OSLMultiplier: .25,
		SpeedupRatio: 2, MaxISL: 24, MinOSL: 4,
	})
	const want = `{"timestamp": 250.125, "input_length": 20, "output_length": 8, "hash_ids": [5, 6, 10, 11, 12], "context_len": 8, "unique_user_prompt_len": 12}
{"timestamp": 250.125, "input_length": 17, "output_length": 5, "hash_ids": [0, 1, 13, 14, 15], "context_len": 8, "unique_user_prompt_len": 9}
{"timestamp": 1250.125, "input_length": 20, "output_length": 8, "hash_ids": [5, 6, 7, 8, 9], "context_len": 20, "unique_user_prompt_len": 0}
{"timestamp": 1500.25, "input_length": 20, "output_length": 5, "hash_ids": [5, 6, 7, 8, 9], "context_len": 20, "unique_user_prompt_len": 0}
{"timestamp": 1500.25, "input_length": 12, "output_length": 4, "hash_ids": [0, 1, 2], "context_len": 12, "unique_user_prompt_len": 0}
{"timestamp": 1750.375, "input_length": 20, "output_length": 5, "hash_ids": [0, 1, 2, 3, 4], "context_len": 20, "unique_user_prompt_len": 0}
{"timestamp": 2000.5, "input_length": 20, "output_length": 5, "hash_ids": [0, 1, 16, 17, 18], "context_len": 8, "unique_user_prompt_len": 12}
{"timestamp": 2250.625, "input_length": 12, "output_length": 8, "hash_ids": [0, 1, 2], "context_len": 12, "unique_user_prompt_len": 0}
`
	if got := lines(rows); got != want {
		t.Errorf("seed 1 draws\n%s\nwant\n%s", got, want)
	}
	source := chats(4000)
	slices.SortStableFunc(source, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	_, rows = drawShape(t, mustFit(t, source, 512), 1, 10_000, Shape{PrefixLenMultiplier: 16, PromptLenMultiplier: 10, MaxISL: 600_000})
	if digest := digestOf(rows); digest != "74aef46524e977f9" {
		t.Errorf("the bytes of seed 1 have changed: their digest begins with %s", digest)
	}
}

// multiplier draws factors of every kind: none, whole, below and above 1.
func multiplier(t *rapid.T, name string) float64 {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{0, .01, .5, 1, 1.5, 2, 16}),
		rapid.Float64Range(.001, 20),
	).Draw(t, name)
}

// TestShapeChangesEachRow draws with and without a shape from the same seed and
// checks each row against the shape.
func TestShapeChangesEachRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, blockSize := source(t)
		tree, err := Fit(trace.FromSlice(rows), Options{BlockSize: blockSize})
		if err != nil {
			t.Fatal(err)
		}
		given := Shape{
			PrefixLenMultiplier:  multiplier(t, "prefix"),
			PrefixRootMultiplier: rapid.IntRange(0, 3).Draw(t, "roots"),
			PromptLenMultiplier:  multiplier(t, "prompt"),
			OSLMultiplier:        multiplier(t, "osl"),
			SpeedupRatio:         multiplier(t, "speedup"),
			MinOSL:               rapid.IntRange(0, 50).Draw(t, "min OSL"),
			MaxOSL:               rapid.SampledFrom([]int{0, 50, 80}).Draw(t, "max OSL"),
		}
		seed := rapid.Uint64().Draw(t, "seed")
		plain := draw(t, tree, seed, 30)
		d, err := tree.Draw(seed, 30, given)
		if err != nil {
			t.Fatal(err)
		}
		shaped, _ := trace.Collect(d.Requests())
		s := given.withDefaults()
		for i, r := range shaped {
			checkLengths(t, r, blockSize)
			checkShaped(t, plain[i], r, blockSize, s)
			for j := range i {
				checkSharing(t, plain[i], plain[j], r, shaped[j], s)
			}
		}
	})
}

// rounded is an independent implementation of multiply.
func rounded(n int, by float64) int { return int(math.Round(float64(n) * by)) }

func checkShaped(t *rapid.T, was, r trace.Request, blockSize int, s Shape) {
	shared := was.ContextLen.Value / blockSize
	unique, tail := len(was.HashIDs)-shared, was.InputLength-(len(was.HashIDs)-1)*blockSize
	context := rounded(shared, s.PrefixLenMultiplier)
	isl := context * blockSize
	switch {
	case unique > 0:
		isl += (max(1, rounded(unique, s.PromptLenMultiplier))-1)*blockSize + tail
	case context == 0 && shared > 0: // nothing is left: a block of its own, with any tail
		isl = min(max(1, r.InputLength), blockSize)
	}
	osl := rounded(was.OutputLength, s.OSLMultiplier)
	if was.OutputLength > 0 {
		osl = max(1, osl)
	}
	if s.MaxOSL > 0 {
		osl = min(osl, s.MaxOSL)
	}
	osl = max(osl, s.MinOSL)
	if r.ContextLen.Value != context*blockSize || r.InputLength != isl || r.OutputLength != osl {
		t.Fatalf("%+v\nbecame\n%+v\nwant context %d, ISL %d, OSL %d", was, r, context*blockSize, isl, osl)
	}
	if want := was.Timestamp.Value / s.SpeedupRatio; math.Abs(r.Timestamp.Value-want) > 1e-12*want {
		t.Fatalf("arrival %v became %v", was.Timestamp.Value, r.Timestamp.Value)
	}
}

// checkSharing checks that two requests of one copy share as much as before,
// stretched, and requests of two copies nothing.
func checkSharing(t *rapid.T, wasA, wasB, a, b trace.Request, s Shape) {
	got, want := common(a, b), rounded(common(wasA, wasB), s.PrefixLenMultiplier)
	if got != want && !(s.PrefixRootMultiplier > 1 && got == 0) {
		t.Fatalf("%v and %v became %v and %v: they share %d blocks, want %d", wasA.HashIDs, wasB.HashIDs, a.HashIDs, b.HashIDs, got, want)
	}
}

func common(a, b trace.Request) int {
	n := 0
	for n < min(len(a.HashIDs), len(b.HashIDs)) && a.HashIDs[n] == b.HashIDs[n] {
		n++
	}
	return n
}

func TestDrawingReadReusesItsRow(t *testing.T) {
	tree := mustFit(t, chats(300), 512)
	shape := Shape{PrefixLenMultiplier: 3, PrefixRootMultiplier: 2, MaxISL: 100_000}
	_, want := drawShape(t, tree, 1, 2000, shape)
	d, err := tree.Draw(1, 2000, shape)
	if err != nil {
		t.Fatal(err)
	}
	r := trace.Request{HashIDs: make([]uint64, 0, 1000), SessionID: "stale", Extra: []byte("{}"), Delay: trace.Some(1.)}
	i := 0
	read := func() {
		if err := d.Read(&r); err != nil {
			t.Fatal(err)
		}
		if len(r.HashIDs) != len(want[i].HashIDs) || r.HashIDs[len(r.HashIDs)-1] != want[i].HashIDs[len(r.HashIDs)-1] {
			t.Fatalf("row %d is %v, want %v", i, r.HashIDs, want[i].HashIDs)
		}
		i++
	}
	read()
	same(t, "row 0", want[0], r)
	if allocs := testing.AllocsPerRun(1500, read); allocs > 0 {
		t.Errorf("%v allocations a request", allocs)
	}
}
