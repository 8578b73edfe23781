package runfile

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/trace"
)

// keepsRows makes a folder with records, as left by a killed run.
func keepsRows(t testing.TB, records ...replay.Record) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	f, err := Create(dir, Run{Outcome: Outcome{Rows: 100}})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if err := f.Record(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// folderModel is what a folder should have.
type folderModel struct {
	dir     string
	records []replay.Record
	sent    map[int]bool
	samples []Sample
	gaps    map[int64]int64
}

func (m *folderModel) check(t *testing.T, cut bool) {
	t.Helper()
	records, r := readRecords(t, m.dir)
	damaged, _ := r.Damaged()
	var samples []Sample
	for s, err := range Samples(m.dir) {
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, s)
	}
	gaps := map[int64]int64{}
	for _, g := range r.Gaps {
		gaps[g.NS] = g.Count
	}
	if d := cmp.Diff(m.records, records) + cmp.Diff(m.samples, samples) + cmp.Diff(m.gaps, gaps); d != "" || (damaged == 1) != cut || damaged > 1 {
		t.Fatalf("%d damaged lines, %s", damaged, d)
	}
	if sent := len(m.sent); r.Run.Sent != sent || sent > 0 && r.Run.NotSent != 10-sent {
		t.Fatalf("%d sent, %d not, want %d", r.Run.Sent, r.Run.NotSent, sent)
	}
}

// Whatever is written is in the folder when the call returns, however often the run is
// killed, with a cut last line in each file, or stopped, and resumed. Only one process at a
// time can resume it. Without chunk times the gaps of successful requests are counted when
// a run stops.
func TestFolderKeepsWhatWasWritten(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		counted := seed%2 == 0
		m := &folderModel{dir: filepath.Join(t.TempDir(), "run"), sent: map[int]bool{}, gaps: map[int64]int64{}}
		unwritten := map[int64]int64{} // gaps
		w := must(Create(m.dir, Run{Outcome: Outcome{Rows: 10}}))
		must(0, w.OpenFiles())
		for range 40 {
			w.NoChunkTimes = counted
			switch random.IntN(5) {
			case 0:
				rec := replay.Record{Request: trace.Request{InputLength: 1}, Row: len(m.records), Done: 1, Status: 200, Chunks: 3, Gaps: []time.Duration{100, time.Duration(100 + 100*random.IntN(2))}}
				if random.IntN(3) == 0 {
					rec.Class, rec.Error = replay.Truncated, "cut"
				}
				must(0, w.Record(rec))
				if counted {
					for _, gap := range rec.Gaps {
						if rec.Class == replay.OK {
							unwritten[int64(gap)]++
						}
					}
					rec.Gaps = nil
				}
				m.records = append(m.records, rec)
			case 1: // a resumed run may send a row twice
				row := random.IntN(10)
				must(0, w.Sending(row))
				m.sent[row] = true
			case 2:
				s := Sample{AtMS: 1000.5, CPU: 0.1, GCPauses: 2, ReadDelay: ReadDelay{Reads: 7, P99MS: 1.5}, RSSBytes: 1 << 33, Sent: len(m.samples), ServerError: "no\nanswer"}
				if random.IntN(2) == 0 {
					s.Server, s.ServerError = &ServerFigures{Engine: "vllm", Engines: 1, KVUse: new(0.0)}, ""
				}
				must(0, w.Sample(s))
				m.samples = append(m.samples, s)
			case 3: // the run is stopped
				must(0, errors.Join(w.WriteRun(Run{Outcome: Outcome{Rows: 10, Sent: len(m.sent), NotSent: 10 - len(m.sent), Ended: time.Unix(1, 0), Stopped: true}}), w.Close()))
				for gap, n := range unwritten {
					m.gaps[gap] += n
				}
				clear(unwritten)
				m.check(t, false)
				w = must(Resume(m.dir))
				must(0, w.OpenFiles())
				must(0, w.WriteRun(Run{Outcome: Outcome{Rows: 10}}))
			case 4: // the run is killed
				must(0, errors.Join(w.file.Close(), w.sent.Close(), w.samples.Close()))
				clear(unwritten)
				cut := []string{"", `{"input_length"`, strings.Repeat("x", 200_000)}[random.IntN(3)]
				for name, text := range map[string]string{RequestsFile: cut, SentFile: "x", SamplesFile: `{"at_ms": 20`} {
					f := must(os.OpenFile(filepath.Join(m.dir, name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644))
					f.WriteString(text)
					f.Close()
				}
				m.check(t, cut != "")
				w = must(Resume(m.dir))
				must(0, w.OpenFiles())
			}
			if _, err := Resume(m.dir); err == nil || !strings.Contains(err.Error(), "still going") {
				t.Fatalf("two resume one run: %v", err)
			}
		}
		// The journal ends with the run.
		must(0, errors.Join(w.WriteRun(Run{Outcome: Outcome{Rows: 10, Sent: len(m.sent), NotSent: 10 - len(m.sent), Ended: time.Unix(1, 0)}}), w.Close()))
		if _, err := os.Stat(filepath.Join(m.dir, SentFile)); err == nil {
			t.Fatal("a run that ended keeps its journal")
		}
	}
	if _, err := Resume(t.TempDir()); err == nil {
		t.Error("a folder without a run is resumed")
	}
}

func BenchmarkSending(b *testing.B) {
	f, err := Create(filepath.Join(b.TempDir(), "run"), Run{})
	if err != nil {
		b.Fatal(err)
	}
	must(0, f.OpenFiles())
	defer f.Close()
	for i := 0; b.Loop(); i++ {
		if err := f.Sending(i); err != nil {
			b.Fatal(err)
		}
	}
}

// Each gap is counted once, with the right length within the resolution.
func TestGapsAreCountedAsLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := time.Duration(rapid.Int64Range(0, int64(300*time.Hour)).Draw(t, "gap"))
		counts := gapCounts{}
		counts.add(gap)
		list := counts.list()
		if len(list) != 1 || list[0].Count != 1 {
			t.Fatal(list)
		}
		if off := float64(list[0].NS - int64(gap)); max(off, -off) > GapResolution*float64(gap) {
			t.Fatalf("%d ns is counted as %d", gap, list[0].NS)
		}
	})
}

// The run.json of versions without settings has them in several places.
func TestOlderRun(t *testing.T) {
	run, err := Unmarshal([]byte(`{"version": "v0.9", "seed": 7, "salt": "x", "rows": 3, "flags": ["--isl=3000", "--gone=1", "--header=A: ***", "--routing=prefix"],
		"limits": {"max_concurrency": 4, "closed": true, "max_turns": 2, "timeout_s": 3600, "first_byte_timeout_s": 1800, "idle_timeout_s": 120, "duration_s": 1.5, "retries": 1},
		"window": {"warmup_s": 2.5}, "thresholds": {"max_lag_ms": 5}, "no_chunk_times": true, "leg": {"deployment": "a", "shape": "3000:150", "axis": "concurrency", "level": "8"},
		"part": {"run_id": "r", "number": 1, "of": 2}, "target": {"url": "http://h", "exact_isl": true, "live_answers": true}, "trace": {"name": "t", "speedup": 2, "rate": 6, "limit": 3}, "schedule_sha256": "s"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, text := range run.Settings.Given() {
		got[name] = text
	}
	want := map[string]string{
		"seed": "7", "salt": "x", "isl": "3000", "routing": "prefix", "max-concurrency": "8", "closed": "true", "max-turns": "2", "timeout": "1h,30m,2m", "duration": "1.5s", "retry": "1",
		"warmup-time": "2.5s", "verdict": "lag=5ms", "no-chunk-times": "true", "exact-isl": "true", "answers": "live", "speedup": "2", "rate": "3", "limit": "3",
	}
	if diff := cmp.Diff(want, got); diff != "" || run.Rows != 3 || run.Target.URL != "http://h" || run.Trace.Name != "t" || run.MaxConcurrency() != 4 || run.Point.String() != "a, 3000:150, concurrency 8" {
		t.Errorf("%+v, point %v, -want +got:\n%s", run.Outcome, run.Point, diff)
	}
	for text, want := range map[string]string{`{"settings": {"verdict": "late=1"}}`: "verdict \"late\" is no limit", `{"settings": 1}`: "cannot unmarshal", "[]": "cannot unmarshal"} {
		if _, err := Unmarshal([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
