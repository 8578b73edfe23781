package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/check"
	"moontide/trace/format"
)

var never trace.Opt[float64]

// edit sets a member of a row to a JSON value, or removes it.
func edit(t *testing.T, r *trace.Request, key, value string) {
	t.Helper()
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(format.AppendRow(nil, *r), &members); err != nil {
		t.Fatal(err)
	}
	if members[key] = json.RawMessage(value); value == "" {
		delete(members, key)
	}
	text, _ := json.Marshal(members)
	if err := format.ParseRow(text, r); err != nil {
		t.Fatal(err)
	}
}

// TestDefects: testdata/defects.txt has traces with one defect each, and what is found. A
// case begins with "== ", its trace and its name. Then come edits, each with the lines of the
// rows (* for all), a key and its value, or "keep" and the number of rows, or rows, and the
// findings.
func TestDefects(t *testing.T) {
	text, err := os.ReadFile("testdata/defects.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Split("\n"+string(text), "\n== ")[1:] {
		name, rest, _ := strings.Cut(c, "\n")
		edits, want, _ := strings.Cut(strings.TrimSpace(rest), "=>")
		if want = strings.TrimSpace(want); want != "" {
			want = "=> " + want
		}
		t.Run(name, func(t *testing.T) {
			base, _, _ := strings.Cut(name, ":")
			var all []trace.Request
			var opts check.Options
			if base != "rows" {
				all = read(t, base)
			}
			for line := range strings.Lines(edits) {
				lines, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				key, value, _ := strings.Cut(rest, " ")
				first, last, isRange := strings.Cut(lines, "-")
				from, _ := strconv.Atoi(first)
				to, _ := strconv.Atoi(last)
				switch {
				case line[0] == '{':
					all = append(all, trace.Request{})
					if err := format.ParseRow([]byte(line), &all[len(all)-1]); err != nil {
						t.Fatal(err)
					}
					continue
				case lines == "keep":
					n, _ := strconv.Atoi(rest)
					all = all[:n]
					continue
				case lines == "block":
					opts.BlockSize, _ = strconv.Atoi(value)
					continue
				case lines == "*":
					from, to = 1, len(all)
				case !isRange:
					to = from
				}
				for i := from - 1; i < to; i++ {
					edit(t, &all[i], key, value)
				}
			}
			report := run(t, all, opts)
			var got strings.Builder
			for _, f := range report.Findings {
				fmt.Fprintln(&got, strings.TrimSpace(fmt.Sprintf("=> %s %s %d %s", f.Severity, f.Kind, f.Count, f.Evidence)))
				for _, e := range f.Examples {
					fmt.Fprintf(&got, "   %d: %s\n", e.Line, e.Value)
				}
			}
			if base == "rows" {
				fmt.Fprintln(&got, "=> block size", report.BlockSize.Tokens)
			}
			if strings.TrimSpace(got.String()) != want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
			if report.Replayable() == strings.Contains(want, "=> error") {
				t.Errorf("replayable: %v", report.Replayable())
			}
		})
	}
}

// TestOnlyUnreadableOrContradictoryIsAnError: what is unusual is a warning or a note.
func TestOnlyUnreadableOrContradictoryIsAnError(t *testing.T) {
	want := []check.Kind{
		check.Empty, check.NotTrace, check.BadRow, // unreadable
		check.NoTime, check.NoTimestamps, check.SessionNotBegun, check.DelayWithoutSession, check.ZeroInput, // incomplete
		check.TimeBackwards, check.SessionDisorder, check.WrongBlockSize, check.TwoParents, check.RepeatedID, check.Cycle, check.MissingRequest, check.DuplicateRequestID, // contradictory
	}
	got := check.KindsOf(check.Error)
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("errors are %v, want %v", got, want)
	}
}
