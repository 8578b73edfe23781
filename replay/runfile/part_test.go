package runfile_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// A clock is corrected on the line through its measurements, whose errors bound that
// of every instant between them.
func TestClock(t *testing.T) {
	at := func(seconds float64, offset, bound float64) runfile.ClockOffset {
		return runfile.ClockOffset{At: noon.Add(time.Duration(seconds * 1e9)), OffsetMS: offset, BoundMS: bound}
	}
	for _, test := range []struct {
		name         string
		clock        runfile.Clock
		after        time.Duration // since noon
		offset, errs float64
		drift        float64
	}{
		{"never measured", runfile.Clock{}, time.Hour, 0, math.Inf(1), 0},
		{"before", runfile.Clock{Before: at(0, 250, 0.1)}, 100 * time.Second, 250, 0.1 + 10, 0},
		{"both", runfile.Clock{Before: at(0, 250, 0.1), After: at(100, 260, 0.2)}, 50 * time.Second, 255, 0.2, 1e-4},
		{"beyond", runfile.Clock{Before: at(0, 250, 0.3), After: at(100, 260, 0.2)}, 200 * time.Second, 270, 0.3, 1e-4},
		{"backwards", runfile.Clock{Before: at(10, -3000, 0.1), After: at(10, -2000, 0.2)}, time.Second, -3000, 0.2, 0},
	} {
		own := noon.Add(test.after)
		if got := test.clock.Offset(own).Seconds() * 1e3; math.Abs(got-test.offset) > 1e-6 {
			t.Errorf("%s: offset %v, want %v", test.name, got, test.offset)
		}
		if got, want := test.clock.ToReference(own), own.Add(time.Duration(test.offset*1e6)); got.Sub(want).Abs() > time.Microsecond {
			t.Errorf("%s: %v, want %v", test.name, got, want)
		}
		if got := test.clock.Drift(); math.Abs(got-test.drift) > 1e-12 {
			t.Errorf("%s: drift %v, want %v", test.name, got, test.drift)
		}
		if !test.clock.Measured() {
			continue
		}
		if got := test.clock.BoundMS(own); math.Abs(got-test.errs) > 1e-9 {
			t.Errorf("%s: error %v, want %v", test.name, got, test.errs)
		}
	}
}

// parts.json is read as it was written, and refused if its numbers or folders are
// wrong.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	if _, err := runfile.ReadParts(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without one: %v", err)
	}
	parts := runfile.Parts{RunID: "r", Of: 3, Rows: 30, Start: noon, Parts: []runfile.PartState{
		{Number: 1, Folder: "part-1", State: runfile.PartEnded},
		{Number: 2, Folder: "part-2", State: runfile.PartLost, Reason: "no word for 10 s"},
		{Number: 3, State: runfile.PartAbsent, Reason: "did not arrive"},
	}}
	if err := parts.Write(dir); err != nil {
		t.Fatal(err)
	}
	read, err := runfile.ReadParts(dir)
	if diff := cmp.Diff(parts, read); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if got := read.Folders("run"); !cmp.Equal(got, []string{filepath.Join("run", "part-1"), filepath.Join("run", "part-2")}) {
		t.Errorf("folders %v", got)
	}
	for text, want := range map[string]string{
		`{"of": 2, "parts": [{"number": 1}]}`:                                 "lists 1 of 2 parts",
		`{"of": 70000, "parts": []}`:                                          "lists 0 of 70000 parts",
		`{"of": 1, "parts": [{"number": 2}]}`:                                 "part 1 is listed as number 2",
		`{"of": 1, "parts": [{"number": 1, "folder": "../other"}]}`:           "another folder",
		`{"of": 1, "parts": [{"number": 1, "folder": "/runs/other/part-1"}]}`: "another folder",
		`{"of": 1`: "invalid JSON at byte 8",
	} {
		if err := os.WriteFile(filepath.Join(dir, runfile.PartsFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := runfile.ReadParts(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestISLEstimated(t *testing.T) {
	for extra, want := range map[string]bool{
		``:                                false,
		`{"text_input": "a"}`:             false,
		`{"estimated": ["input_length"]}`: false, // the prompt is generated
		`{"estimated": ["input_length"], "text_input": "a"}`:            true,
		`{"estimated": ["input_length"], "text_input_sha256": "a"}`:     true,
		`{"messages_sha256": "a", "estimated": ["input_length"]}`:       true,
		`{"messages": [], "estimated": ["output_length"]}`:              false,
		`{"text_input": "\"estimated\": [\"input_length\"]"}`:           false,
		`{"recorded": {"estimated": ["input_length"]}, "messages": []}`: false,
	} {
		rec := replay.Record{Request: trace.Request{Extra: []byte(extra)}}
		if got := runfile.ISLEstimated(&rec); got != want {
			t.Errorf("%s: %v", extra, got)
		}
	}
}

// Opening a named pipe in a run's folder would block.
func TestOpenRefusesOtherThanFiles(t *testing.T) {
	for _, name := range []string{runfile.RunFile, runfile.RequestsFile, runfile.GapsFile} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := runfile.Open(dir); err == nil || !strings.Contains(err.Error(), name+" is not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, runfile.PartsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := runfile.ReadParts(dir); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("%s: %v", runfile.PartsFile, err)
	}
}
