package format

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/tracetest"
)

// TestSecondsAreRounded: decimal seconds become the float64 nearest to a thousand
// times their value.
func TestSecondsAreRounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,11}(\.[0-9]{0,18})?(e-?[0-9])?`).Draw(t, "text")
		exact, ok := new(big.Rat).SetString(strings.Replace(text, ".e", "e", 1))
		if !ok {
			t.Skip(text)
		}
		want, _ := exact.Mul(exact, big.NewRat(1000, 1)).Float64()
		got, err := parseSeconds([]byte(text))
		if want > trace.MaxMS {
			if err == nil {
				t.Fatalf("%s is read as %v", text, got)
			}
			return
		}
		// A number with an exponent is rounded twice.
		if err != nil || got != want && !(strings.Contains(text, "e") && math.Abs(got-want) <= want*1e-15) {
			t.Fatalf("%s is read as %v, want %v: %v", text, got, want, err)
		}
	})
}

// TestDates: dates formatted by the standard library round-trip in every layout.
func TestDates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 7_000_000_000).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		zone := time.FixedZone("", rapid.IntRange(-14*60, 14*60).Draw(t, "zone")*60)
		layout := rapid.SampledFrom([]string{
			"2006-01-02 15:04:05.000000000", "2006-01-02T15:04:05.999999999Z", "2006-01-02 15:04:05.000000000-07:00", "2006-01-02T15:04:05.999999999-07:00",
		}).Draw(t, "layout")
		spelled := at.UTC()
		if strings.HasSuffix(layout, "-07:00") {
			spelled = at.In(zone)
		}
		if y := spelled.Year(); y < 1970 || y > 2200 {
			t.Skip(y)
		}
		text := spelled.Format(layout)
		if got, err := parseDate([]byte(text)); err != nil || got != at.UnixNano() {
			t.Fatalf("%s is read as %d, want %d: %v", text, got, at.UnixNano(), err)
		}
	})
}

// TestChain: two chained ids are equal if and only if the prefixes are.
func TestChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks := rapid.SliceOfN(rapid.Uint64Range(0, 2), 1, 8)
		a, b := blocks.Draw(t, "a"), blocks.Draw(t, "b")
		chainedA, chainedB := slices.Clone(a), slices.Clone(b)
		chain(chainedA)
		chain(chainedB)
		for i := range a {
			for k := range b {
				same := i == k && slices.Equal(a[:i+1], b[:k+1])
				if (chainedA[i] == chainedB[k]) != same {
					t.Fatalf("%v and %v are chained to %v and %v", a, b, chainedA, chainedB)
				}
			}
		}
		for _, id := range chainedA {
			if id > maxID {
				t.Fatalf("%d is no signed integer", id)
			}
		}
	})
}

// TestNamespaces: ids of a conversation keep their differences, and those of
// different conversations are disjoint.
func TestNamespaces(t *testing.T) {
	seen := map[uint64]string{}
	for i := range 1000 {
		name := fmt.Sprint("trace_", i)
		ids := []uint64{0, 1, 2, 1<<32 - 1, 1 << 32, 1<<64 - 1}
		namespaceOf(name).apply(ids)
		if ids[1] != ids[0]+1 || ids[2] != ids[0]+2 {
			t.Fatalf("%s: the order is lost: %v", name, ids)
		}
		for _, id := range ids {
			if other, taken := seen[id]; taken || id > maxID {
				t.Fatalf("id %d of %s is also of %q", id, name, other)
			}
			seen[id] = name
		}
	}
}

// TestFields: the fields of a line agree with the standard library, without the
// spaces around them, and lines that it rejects are rejected.
func TestFields(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "1.5", ",", ",", `"`, `""`, `"a,b"`, `"x ""y"" z"`, `""""`, "日"})
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(piece, 1, 12).Draw(t, "line"), "")
		want, err := csv.NewReader(strings.NewReader(line)).Read()
		fields, got := splitFields(nil, []byte(line))
		if (err == nil) != (got == nil) {
			t.Fatalf("%s: %v, want %v", line, got, err)
		}
		if err != nil {
			return
		}
		if texts := asStrings(fields); !slices.Equal(texts, want) {
			t.Fatalf("%s: %q, want %q", line, texts, want)
		}
	})
	for line, want := range map[string][]string{
		` a ,  "b , c",d `: {"a", "b , c", "d"},
		`a, `:              {"a", ""},
		` `:                {""},
	} {
		if fields, err := splitFields(nil, []byte(line)); err != nil || !slices.Equal(asStrings(fields), want) {
			t.Errorf("%q: %q, %v", line, asStrings(fields), err)
		}
	}
	for _, long := range []string{strings.Repeat(",", 1000), `"a"` + strings.Repeat(",", 1000), strings.Repeat(`"",`, 1000)} {
		if fields, err := splitFields(nil, []byte(long)); err != nil || len(fields) != maxColumns+1 {
			t.Errorf("%.10s: %d fields, %v", long, len(fields), err)
		}
	}
}

func asStrings(fields [][]byte) (texts []string) {
	for _, f := range fields {
		texts = append(texts, string(f))
	}
	return texts
}

func TestEstimate(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "abcd": 1, "abcde": 2, "日本語日": 3, "\xff\xfe": 2} {
		if got := estimateTokens(text); got != want {
			t.Errorf("%q is estimated at %d tokens, want %d", text, got, want)
		}
	}
}

// TestAgentNames: the names of a conversation's sub-agents are unique, even if an
// agent's name looks like a numbered one, and numbering takes linear time.
func TestAgentNames(t *testing.T) {
	taken := map[string]int{}
	var names []string
	for _, agent := range []string{"a", "a", "a#2", "a", "", "", "a#2", "agent"} {
		names = append(names, agentName("c", agent, taken))
	}
	if want := []string{"c/a", "c/a#2", "c/a#2#2", "c/a#3", "c/agent", "c/agent#2", "c/a#2#3", "c/agent#3"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	tries := 0
	for range 1000 {
		agentName("d", "a", taken)
		tries = taken["d/a"]
	}
	if tries != 1000 {
		t.Errorf("%d tries for 1000 names", tries)
	}
}

// TestNotesAreBounded: notes beyond the limit are counted together.
func TestNotesAreBounded(t *testing.T) {
	n := notes{counts: map[string]int{}}
	for i := range 1000 {
		n.count(fmt.Sprint("kind ", i%200))
	}
	sum := 0
	for _, count := range n.counts {
		sum += count
	}
	if len(n.texts) != maxNotes+1 || sum != 1000 || n.texts[maxNotes] != otherNotes {
		t.Errorf("%d notes with a sum of %d: %v", len(n.texts), sum, n.texts)
	}
}

// traces/README.md documents every key of the native format, every alias, and every
// format.
func TestPageHasAllKeysAndFormats(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tracetest.Root(t), "traces", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, native, _ := strings.Cut(string(text), "\n## The native format\n")
	native, formats, found := strings.Cut(native, "\n## Formats\n")
	if !found {
		t.Fatal("the page has no sections on the native format and on formats")
	}
	keys := maps.Clone(aliases)
	for _, key := range nativeKeys {
		keys[key.name] = key.name
	}
	for name, key := range keys {
		row := ""
		for line := range strings.Lines(native) {
			if cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |"); strings.HasPrefix(line, "| ") && strings.Contains(cell, "`"+key+"`") {
				row = line
			}
		}
		if !strings.Contains(row, "`"+name+"`") {
			t.Errorf("no %s in the row of %s: %q", name, key, row)
		}
	}
	for _, f := range Formats() {
		if !strings.Contains(formats, "\n| `"+string(f)+"` |") {
			t.Errorf("no row of format %s", f)
		}
	}
}
