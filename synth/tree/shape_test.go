package tree

import (
	"cmp"
	"slices"
	"testing"

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

// Read takes no memory for a row, and leaves nothing of the one before.
func TestDrawingReadReusesItsRow(t *testing.T) {
	tree := mustFit(t, chats(300), 512)
	shape := Shape{PrefixLenMultiplier: 3, PrefixRootMultiplier: 2, MaxISL: 100_000}
	_, want := drawShape(t, tree, 1, 1, shape)
	d, err := tree.Draw(1, 2000, shape)
	if err != nil {
		t.Fatal(err)
	}
	r := trace.Request{HashIDs: make([]uint64, 0, 1000), SessionID: "stale", Extra: []byte("{}"), Delay: trace.Some(1.)}
	if err := d.Read(&r); err != nil {
		t.Fatal(err)
	}
	same(t, "row 0", want[0], r)
	if allocs := testing.AllocsPerRun(1500, func() { d.Read(&r) }); allocs > 0 {
		t.Errorf("%v allocations a request", allocs)
	}
}
