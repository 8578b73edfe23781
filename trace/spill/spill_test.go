package spill_test

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace/spill"
)

type record struct {
	key  uint64
	data string
}

func sorted(t interface{ Fatal(...any) }, memory int, records []record) (got []record) {
	s := spill.Sorter{Memory: memory}
	defer s.Close()
	for _, r := range records {
		if err := s.Add(r.key, []byte(r.data)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // they can be read again
		got = nil
		for r, err := range s.All {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, record{r.Key, string(r.Data)})
		}
	}
	return got
}

// The result is that of a stable sort in memory, however little memory there is.
func TestSortsStably(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64())
		records := rapid.SliceOf(rapid.Custom(func(t *rapid.T) record {
			return record{key.Draw(t, "key"), rapid.String().Draw(t, "data")}
		})).Draw(t, "records")
		memory := rapid.IntRange(1, 500).Draw(t, "memory")
		want := slices.Clone(records)
		slices.SortStableFunc(want, func(a, b record) int { return cmp.Compare(a.key, b.key) })
		if got := sorted(t, memory, records); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestFewRecordsNeedNoFile(t *testing.T) {
	t.Setenv("TMPDIR", "/nowhere")
	t.Setenv("TMP", "/nowhere")
	if got := sorted(t, 0, []record{{2, "b"}, {1, "a"}}); got[0].data != "a" {
		t.Errorf("got %v", got)
	}
}

func TestNoFolderForTheFile(t *testing.T) {
	t.Setenv("TMPDIR", "/nowhere")
	t.Setenv("TMP", "/nowhere")
	s := spill.Sorter{Memory: 1}
	s.Add(1, nil)
	if err := s.Add(2, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	sorted(t, 1, []record{{2, "b"}, {1, "a"}, {3, "c"}})
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKeyOf(t *testing.T) {
	ordered := []float64{math.Inf(-1), -2, -1e-300, 0, 1e-300, 1, 1.5, 1e15, math.Inf(1)}
	for i, x := range ordered[1:] {
		if spill.KeyOf(ordered[i]) >= spill.KeyOf(x) {
			t.Errorf("the key of %v is not below that of %v", ordered[i], x)
		}
	}
	if spill.KeyOf(math.Copysign(0, -1)) != spill.KeyOf(0) {
		t.Error("zeros have different keys")
	}
}
