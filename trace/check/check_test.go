package check_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/check"
	"moontide/trace/format"
)

// rows is a source in memory; the i-th row is on line i+1.
type rows struct {
	all  []trace.Request
	next int
}

func (s *rows) Read(r *trace.Request) error {
	if s.next == len(s.all) {
		return io.EOF
	}
	*r = s.all[s.next]
	s.next++
	return nil
}

func (s *rows) Line() int               { return s.next }
func (s *rows) Skipped() (int, []error) { return 0, nil }

func run(t interface {
	Helper()
	Fatal(...any)
}, all []trace.Request, opts check.Options) *check.Report {
	t.Helper()
	report, err := check.Run(&rows{all: all}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// blockSize is the number of tokens per block in test traces.
const blockSize = 64

// chain makes the ids of a prompt of isl tokens: the first shared ids are those of
// a conversation, the others are unique to the row.
func chain(isl, shared, row int) []uint64 {
	ids := []uint64{}
	for i := range (isl + blockSize - 1) / blockSize {
		if i < shared {
			ids = append(ids, uint64(i))
		} else {
			ids = append(ids, uint64(1000*row+i))
		}
	}
	return ids
}

// read returns a trace of testdata. clean has 30 rows without findings: uneven arrivals,
// mixed lengths, shared prefixes, a block size that the rows determine, and a conversation
// of two turns on lines 10 and 30. agents is clean with an agent on lines 5, 6 and 9, two
// sub-agents that run in parallel on lines 7 and 8, and a second request of the agent beside
// its first.
func read(t *testing.T, name string) []trace.Request {
	t.Helper()
	all, err := trace.Collect(open(t, "trace/check/testdata/"+name+".jsonl").Requests())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// place is an expected example.
type place struct {
	line  int
	value string
}

// want is an expected finding.
type want struct {
	kind     check.Kind
	severity check.Severity
	count    int
	evidence string
	places   []place
}

func compare(t *testing.T, report *check.Report, wants ...want) {
	t.Helper()
	got := []want{}
	for _, f := range report.Findings {
		w := want{f.Kind, f.Severity, f.Count, f.Evidence, nil}
		for _, e := range f.Examples {
			w.places = append(w.places, place{e.Line, e.Value})
		}
		got = append(got, w)
	}
	if wants == nil {
		wants = []want{}
	}
	if diff := cmp.Diff(wants, got, cmp.AllowUnexported(want{}, place{})); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestCleanTrace(t *testing.T) {
	report := run(t, read(t, "clean"), check.Options{})
	compare(t, report)
	if !report.Replayable() || report.Requests != 30 || report.Grid != nil {
		t.Errorf("%+v", report)
	}
	if b := report.BlockSize; b.Tokens != blockSize || b.How != block.Detected {
		t.Errorf("block size %v", b)
	}
}

func TestEachKindIsDescribed(t *testing.T) {
	broken := read(t, "clean")
	broken[0].InputLength, broken[0].OutputLength, broken[5].Timestamp.Value = 0, 0, 0
	for _, f := range run(t, broken, check.Options{}).Findings {
		if f.Message == "" || f.Of != check.OfRows && f.Of != check.OfIDs || !strings.HasSuffix(f.Message, ".") {
			t.Errorf("%+v", f)
		}
	}
}

// What is no row is a finding, as is an invalid count that a replay does not need. A
// file in another format has one finding, which names the format.
func TestBadRows(t *testing.T) {
	good := string(format.AppendRow(nil, read(t, "clean")[0])) + "\n"
	for name, test := range map[string]struct {
		text     string
		requests int
		want     want
	}{
		"rows": {good + "TIMESTAMP,ContextTokens\n\n" + strings.Repeat(`{"input_length": -5, "output_length": 1}`+"\n", 20), 1,
			want{check.BadRow, check.Error, 21, "", []place{
				{2, `not a JSON object`}, {4, `input_length is out of range: -5 tokens`}}}},
		"declarations": {good + `{"timestamp": 1, "input_length": 5, "output_length": 1, "context_len": -3}` + "\n" + `{"timestamp": 1, "input_length": 500000000, "output_length": 1}` + "\n", 1,
			want{check.BadRow, check.Error, 2, "", []place{
				{2, `context_len is out of range: -3 tokens`}, {3, `input_length is out of range: 500000000 tokens`}}}},
		"another format": {"TIMESTAMP,ContextTokens,GeneratedTokens\r\n" + strings.Repeat("2023-11-16 18:15:46.6805900,374,44\r\n", 30), 0,
			want{check.NotTrace, check.Error, 31, "", []place{
				{1, `a row of an Azure trace among those of a Mooncake trace: the header of an Azure trace in CSV, not a JSON object`},
				{2, `not a JSON object`}}}},
		"no rows": {"", 0, want{check.Empty, check.Error, 0, "", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := format.NewReader(strings.NewReader(test.text), "t", format.Options{Format: format.Mooncake, SkipBadRows: true})
			if err != nil {
				t.Fatal(err)
			}
			report, err := check.Run(r, check.Options{Examples: 2, BlockSize: blockSize})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, report, test.want)
			if report.Replayable() || report.Requests != test.requests {
				t.Errorf("replayable %v, %d requests", report.Replayable(), report.Requests)
			}
		})
	}
}

// long is a source of many rows without ids, the turns of one session.
type long struct{ rows, next int }

func (s *long) Read(r *trace.Request) error {
	if s.next == s.rows {
		return io.EOF
	}
	*r = trace.Request{Timestamp: trace.Some(float64(s.next) * 300), InputLength: 5 + s.next%7, OutputLength: 1 + s.next%3, Delay: trace.Some(4000.0), SessionID: "s"}
	s.next++
	return nil
}

func (s *long) Line() int               { return s.next }
func (s *long) Skipped() (int, []error) { return 0, nil }

// Rows that a check did not examine are reported.
func TestLongTraces(t *testing.T) {
	const kept = 1 << 20
	for _, test := range []struct {
		rows int
		want string
	}{
		{kept, ""},
		{kept + 3, "the clock and bursts were checked on the first 1048576 of 1048579 timestamps; the unit of delays was checked on the first 1048576 of 1048579"},
	} {
		report, err := check.Run(&long{rows: test.rows}, check.Options{})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, f := range report.Findings {
			if f.Kind == check.CheckedInPart {
				said = f.Evidence
				if f.Severity != check.Note || f.Count != 3 {
					t.Errorf("%+v", f)
				}
			}
		}
		if said != test.want {
			t.Errorf("%d rows: %q, want %q", test.rows, said, test.want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	r, err := format.NewReader(strings.NewReader("x\n"), "t.jsonl", format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check.Run(r, check.Options{}); err == nil || !strings.HasPrefix(err.Error(), "checking trace: t.jsonl:1: ") {
		t.Errorf("a source that does not skip: %v", err)
	}
	for _, size := range []int{-1, trace.MaxLength + 1} {
		if _, err := check.Run(&rows{}, check.Options{BlockSize: size}); err == nil || !strings.Contains(err.Error(), "block size is out of range") {
			t.Errorf("block size %d: %v", size, err)
		}
	}
}

func TestExamplesAreBounded(t *testing.T) {
	all := read(t, "clean")
	for i := range all {
		all[i].OutputLength = 0
	}
	for asked, kept := range map[int]int{0: 5, -1: 0, 1: 1, 100: 30} {
		for _, f := range run(t, all, check.Options{Examples: asked}).Findings {
			if f.Kind == check.ZeroOutput && (f.Count != 30 || len(f.Examples) != kept) {
				t.Errorf("asked for %d examples: count %d, %d examples", asked, f.Count, len(f.Examples))
			}
		}
	}
}

// open opens a real trace or skips the test.
func open(t testing.TB, name string) *format.Reader {
	t.Helper()
	path := filepath.Join("..", "..", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the trace is not here: %v", err)
	}
	r, err := format.Open(path, format.Options{SkipBadRows: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestRealTraces(t *testing.T) {
	for _, test := range []struct {
		file  string
		grid  float64
		wants []want
	}{
		{"../shared/traces/conversation_trace.jsonl", 3000, []want{
			{check.TimeGrid, check.Warning, 12031, "1180 distinct timestamps for 12031 rows: 100 % of them are within 3 ms of one of 1180 ticks, 3000 ms apart", nil},
		}},
		{"../shared/traces/dynamo_mooncake_tiny.jsonl", 0, []want{
			{check.BlockSizeAssumed, check.Warning, 16, "512 tokens (assumed: every size from 508 to 513 fits)", nil},
		}},
		{"traces/conversation.jsonl", 0, nil},
	} {
		t.Run(filepath.Base(test.file), func(t *testing.T) {
			report, err := check.Run(open(t, test.file), check.Options{})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, report, test.wants...)
			if !report.Replayable() {
				t.Error("not replayable")
			}
			if (report.Grid != nil) != (test.grid > 0) || report.Grid != nil && report.Grid.Step != test.grid {
				t.Errorf("grid %+v", report.Grid)
			}
		})
	}
}

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
