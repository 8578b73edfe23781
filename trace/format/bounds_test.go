package format

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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
	var n notes
	for i := range 1000 {
		n.count(fmt.Sprint("kind ", i%200))
	}
	sum := 0
	for _, note := range n.list {
		sum += note.Count
	}
	if len(n.list) != maxNotes+1 || sum != 1000 || n.list[maxNotes].Text != otherNotes {
		t.Errorf("%d notes with a sum of %d: %v", len(n.list), sum, n.list[len(n.list)-1])
	}
}

// TestLineOf: the line of an offset does not depend on earlier calls.
func TestLineOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(rapid.StringMatching(`[a\n]{1,40}`).Draw(t, "raw"))
		x := indexer{raw: raw, line: 7}
		for _, at := range rapid.SliceOfN(rapid.IntRange(0, len(raw)), 1, 8).Draw(t, "places") {
			if got, want := x.lineOf(at), 7+strings.Count(string(raw[:at]), "\n"); got != want {
				t.Fatalf("%q[%d] is on line %d, want %d", raw, at, got, want)
			}
		}
	})
}

// TestSpool: the temporary copy is bounded, and removed on Close.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := spool{size: maxSpooled - 3}
	if _, err := s.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("d")); err == nil || !strings.Contains(err.Error(), "more than 4096 MiB") {
		t.Errorf("beyond the limit: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files left: %v, error %v", left, err)
	}
}
