package measure_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/measure"
	"moontide/replay"
)

// Of the run of mixed, by hand, in stretches of 100 ms. See there.
func TestSeries(t *testing.T) {
	s := compute(t, measure.Options{Detail: true}, mixed()...).Detail.Series
	if s.From != 0 || s.Step != 100*time.Millisecond || len(s.Intervals) != 14 {
		t.Fatalf("from %v, %d stretches of %v", s.From, len(s.Intervals), s.Step)
	}
	type stretch struct {
		Due, Sent, Completed, Failed int
		Output, InFlight             float64
		MaxInFlight                  int
		TTFT, ClientLag              float64
	}
	want := map[int]stretch{
		0: {Due: 1, Sent: 1, InFlight: 0.99, MaxInFlight: 1, ClientLag: 1},
		// Row 0 to 152, row 1 from 153.
		1: {Due: 1, Sent: 1, Completed: 1, Output: 5, InFlight: 0.99, MaxInFlight: 1, TTFT: 100, ClientLag: 3},
		// Row 1 ends as row 2 is sent, at 260.
		2: {Due: 1, Sent: 1, Completed: 1, Output: 1, InFlight: 1, MaxInFlight: 1, TTFT: 100, ClientLag: 60},
		// What row 3 was sent is not counted, as it failed.
		3:  {Due: 1, Sent: 1, Output: 2, InFlight: 1.98, MaxInFlight: 2, TTFT: 40, ClientLag: 2},
		4:  {Completed: 1, InFlight: 1, MaxInFlight: 1},
		5:  {Due: 1, Failed: 1, InFlight: 1, MaxInFlight: 1},
		6:  {InFlight: 1, MaxInFlight: 1},
		12: {InFlight: 1, MaxInFlight: 1},
		13: {Failed: 1, InFlight: 1, MaxInFlight: 1}, // of 2 ms
	}
	for i, want := range want {
		at := s.Intervals[i]
		got := stretch{at.Due, at.Sent, at.Completed, at.Failed, at.Output, at.InFlight, at.MaxInFlight, at.TTFT.Max, at.ClientLag.Max}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })); diff != "" {
			t.Errorf("stretch %d: -want +got:\n%s", i, diff)
		}
	}
}

// A run of a year has few stretches, too, and so has one that a damaged record
// makes last for centuries.
func TestSeriesAreBounded(t *testing.T) {
	for _, length := range []float64{0, 1, 24_000, 24_001, 1e8, 3e10, 9e12} {
		s := compute(t, measure.Options{Detail: true}, answered(0, length)).Detail.Series
		end := s.From + time.Duration(len(s.Intervals))*s.Step
		if len(s.Intervals) < 1 || len(s.Intervals) > 242 || end < at(length) {
			t.Errorf("%v ms: %d stretches of %v", length, len(s.Intervals), s.Step)
		}
	}
}

// Turns of a session count up in order of rows, not of records.
func TestGroupsByTurn(t *testing.T) {
	var records []replay.Record
	for i := range 12 {
		rec := answered(float64(1000*i), float64(1000*i+100*(i/2+1)))
		rec.Row, rec.SessionID, rec.InputLength = i, fmt.Sprint(i%2), 100<<i
		records = append(records, rec)
	}
	records[11].Class = replay.Timeout
	records[0], records[7] = records[7], records[0]
	r := compute(t, measure.Options{Detail: true}, records...)
	var got string
	for _, g := range slices.Concat(r.Sessions.ByTurn, r.Detail.ByISL[:3]) {
		got += fmt.Sprintf("%s: %d, %d failed, TTFT %v; ", g.Name, g.Completed, g.Failed, g.TTFT.Max)
	}
	// ISL 100, 200, 400; 800; 1600 ..
	if want := "1: 2, 0 failed, TTFT 100; 2: 2, 0 failed, TTFT 200; 3: 2, 0 failed, TTFT 300; 4-5: 4, 0 failed, TTFT 500; 6-10: 1, 1 failed, TTFT 600; " +
		"below 512: 3, 0 failed, TTFT 200; 512 to 1023: 1, 0 failed, TTFT 200; 1024 to 2047: 1, 0 failed, TTFT 300; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The groups of the models divide the requests of the run.
func TestModels(t *testing.T) {
	records := mixed()
	for i := range records {
		records[i].Model = []string{"b", "a", "b", "a", "a"}[i]
	}
	r := compute(t, measure.Options{}, records...)
	if len(r.Models) != 2 || r.Models[0].Name != "a" || r.Models[1].Name != "b" {
		t.Fatalf("%+v", r.Models)
	}
	a, b := r.Models[0], r.Models[1]
	if a.Sent != 2 || b.Sent != 2 || a.Share != 0.5 || b.Share != 0.5 { // row 4 was not sent
		t.Errorf("requests %d and %d, shares %g and %g", a.Sent, b.Sent, a.Share, b.Share)
	}
	if a.Completed+b.Completed != r.Completed || a.Failed != 2 || a.Failed+b.Failed != r.Failed || a.TTFT.Count+b.TTFT.Count != r.TTFT.Count {
		t.Errorf("%+v", r.Models)
	}
	if a.TTFT.Quantile(0.5) != 100 || b.TTFT.Quantile(0) != 40 || b.TTFT.Quantile(1) != 100 {
		t.Errorf("TTFT %v and %v", a.TTFT, b.TTFT)
	}
	if r := compute(t, measure.Options{}, mixed()...); r.Models != nil {
		t.Errorf("a run of one model has the groups %v", r.Models)
	}
}

// Models share no blocks of the prefix cache.
func TestModelsShareNoPrefix(t *testing.T) {
	prompt := func(sent float64, row int, model string, cached int) replay.Record {
		rec := asked(row, sent, sent+10, 64, cached, 1, 2)
		rec.Model = model
		return rec
	}
	r := compute(t, measure.Options{BlockSize: 32, ServerBlockSize: 16},
		prompt(0, 0, "a", 0), prompt(100, 1, "b", 0), prompt(200, 2, "a", 48), prompt(300, 3, "b", 48))
	if p := r.Cache.Prediction; p.Equal != 4 || p.Predicted != 96 {
		t.Errorf("%d tokens are predicted, for %d of %d requests as measured", p.Predicted, p.Equal, p.Requests)
	}
}
