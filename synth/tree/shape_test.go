package tree

import (
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
		plain, _ := trace.Collect(tree.Requests(seed, 30))
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

func TestZeroShapeChangesNothing(t *testing.T) {
	tree := mustFit(t, chats(300), 512)
	want := lines(draw(t, tree, 5, 500))
	for _, shape := range []Shape{{}, {1, 1, 1, 1, 1, 0, 0, 0, 0, false}, {MinISL: 1, MaxISL: 1e8, KeepRate: true}} {
		if _, rows := drawShape(t, tree, 5, 500, shape); lines(rows) != want {
			t.Errorf("%+v changes the trace", shape)
		}
	}
}

func TestOSLMultiplier(t *testing.T) {
	for _, c := range []struct {
		shape     Shape
		osl, want int
	}{
		{Shape{}, 7, 7},
		{Shape{}, 0, 0},
		{Shape{OSLMultiplier: .1}, 0, 0}, // nothing was asked for
		{Shape{OSLMultiplier: .1}, 1, 1}, // something was
		{Shape{OSLMultiplier: .1}, 24, 2},
		{Shape{OSLMultiplier: .1}, 25, 3},
		{Shape{OSLMultiplier: 2.5}, 3, 8},
		{Shape{OSLMultiplier: 10, MaxOSL: 99}, 10, 99},
		{Shape{OSLMultiplier: 10, MinOSL: 99}, 9, 99},
		{Shape{MinOSL: 5, MaxOSL: 5}, 0, 5},
	} {
		if got := c.shape.withDefaults().osl(c.osl); got != c.want {
			t.Errorf("%+v makes %d of %d output tokens, want %d", c.shape, got, c.osl, c.want)
		}
	}
}

func TestRootCopies(t *testing.T) {
	const copies, n = 5, 20_000
	tree := mustFit(t, chats(300), 512)
	core := tree.nodes[len(tree.nodes)-1].first + uint64(tree.nodes[len(tree.nodes)-1].blocks)
	plain := draw(t, tree, 3, n)
	_, rows := drawShape(t, tree, 3, n, Shape{PrefixRootMultiplier: copies})
	var inCopy [copies]float64
	for i, r := range rows {
		shared := r.ContextLen.Value / 512 // at least one: every chat has the system prompt
		which := r.HashIDs[0] / core
		inCopy[which]++
		for k, id := range r.HashIDs[:shared] {
			if id != plain[i].HashIDs[k]+which*core {
				t.Fatalf("row %d has %v, not copy %d of %v", i, r.HashIDs[:shared], which, plain[i].HashIDs[:shared])
			}
		}
		for k, id := range r.HashIDs[shared:] { // after all copies
			if id != plain[i].HashIDs[shared+k]+(copies-1)*core {
				t.Fatalf("row %d has the unique blocks %v, was %v", i, r.HashIDs[shared:], plain[i].HashIDs[shared:])
			}
		}
		r.HashIDs, plain[i].HashIDs = nil, nil
		same(t, "the rest of a row", plain[i], r)
	}
	sd := math.Sqrt(n * (1. / copies) * (1 - 1./copies))
	for which, got := range inCopy {
		if math.Abs(got-n/copies) > 4*sd {
			t.Errorf("%v of %d requests are in copy %d", got, n, which)
		}
	}
}

// TestPrefixMultiplierScalesContext takes the mean over a wide tree, where
// rounding errors cancel out.
func TestPrefixMultiplierScalesContext(t *testing.T) {
	rows := published(t)
	tree := mustFit(t, rows, 0)
	context := func(by float64) float64 {
		_, rows := drawShape(t, tree, 2, 20_000, Shape{PrefixLenMultiplier: by})
		return measure(rows, 512).context
	}
	one := context(1)
	for _, by := range []float64{.3, .5, .9, 1.1, 1.25, 1.5, 2, 2.75, 16} {
		// Most requests have a core of one block: its rounding is no noise.
		if got := context(by); math.Abs(got-by*one) > 256 || by == math.Trunc(by) && math.Abs(got/(by*one)-1) > 1e-12 {
			t.Errorf("prefixes %v times as long have a mean context of %v tokens, want %v", by, got, by*one)
		}
	}
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

func TestRequestsAreOwned(t *testing.T) {
	tree := mustFit(t, example, 4)
	rows := draw(t, tree, 1, 50)
	for i := range rows {
		rows[i].HashIDs = append(rows[i].HashIDs, 99)
		rows[i].HashIDs[0] = 99
	}
	for i, r := range draw(t, tree, 1, 50) {
		if got := rows[i].HashIDs[1:len(r.HashIDs)]; !slices.Equal(got, r.HashIDs[1:]) {
			t.Fatalf("row %d has become %v, was %v", i, got, r.HashIDs[1:])
		}
	}
}
