package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/analyze/report/figure"
	"moontide/trace"
)

// growing has prompts that get longer, and twice the rate from half of its hour on.
func growing(t *testing.T) *analyze.Analysis {
	t.Helper()
	var rows []trace.Request
	for at := 0.0; at < 3600e3; at += 1000 {
		rows = append(rows, trace.Request{
			Timestamp: trace.Some(at + float64(len(rows)%7)), OutputLength: 100,
			InputLength: 1000 + int(at/2000) + len(rows)*31%200, HashIDs: []uint64{uint64(len(rows) % 9), 100},
		})
		if at < 1800e3 {
			at += 1000
		}
	}
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestChangeSentences(t *testing.T) {
	got := strings.Join(changeSentences(growing(t).Time), " ")
	for _, want := range []string{
		"Rate grows: the last third has 1.000 req/s, 2.00 times the first third.", "ISL grows: the last third has ",
		" at 0.50 req/s (ISL 1,", " at 1.00 req/s (ISL ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if strings.Contains(got, "OSL grows") || strings.Contains(got, "OSL falls") {
		t.Errorf("equal answers drift: %s", got)
	}
}

// Traffic in the first ten minutes of each hour has no drift, but is not steady either.
func TestVaryingRateIsNamed(t *testing.T) {
	var rows []trace.Request
	for at := 0.0; at < 24*3600e3; at += 10_000 {
		if int(at/600e3)%6 == 0 {
			rows = append(rows, trace.Request{Timestamp: trace.Some(at), InputLength: 100, OutputLength: 10})
		}
	}
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	one := *a.Time
	one.Regimes = one.Regimes[:1]
	if got := strings.Join(changeSentences(&one), " "); strings.Contains(got, "beyond chance") || !strings.Contains(got, "the rate varies more than by chance: its CV between windows of ") {
		t.Error(got)
	}
}

// Each window is in JSON, and each figure shows all of them, the regimes and the trend.
func TestTimeIsInEveryForm(t *testing.T) {
	a := growing(t)
	var out struct {
		Time struct {
			Step    float64 `json:"step_ms"`
			Windows []struct {
				From     float64 `json:"from_ms"`
				Requests int
				ISL      float64  `json:"isl_mean"`
				Hits     *float64 `json:"token_hit_rate"`
			}
			ISL     struct{ Drifts bool }
			Regimes []struct{ Requests int }
			Summary string
		}
	}
	var text bytes.Buffer
	if err := (Dataset{Name: "t", Analysis: a}).JSON(&text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	requests := 0
	for i, w := range out.Time.Windows {
		requests += w.Requests
		if w.Hits == nil || w.ISL < 1000 || w.From > float64(i)*out.Time.Step+10 {
			t.Errorf("window %d: %+v", i, w)
		}
	}
	if requests != a.Requests || !out.Time.ISL.Drifts || len(out.Time.Regimes) < 2 || out.Time.Summary == "" {
		t.Errorf("JSON: %d requests of %d, %+v", requests, a.Requests, out.Time)
	}
	figures := timeFigures(a)
	var names []string
	for _, f := range figures {
		var series []string
		for _, s := range f.Series {
			series = append(series, s.Name)
		}
		names = append(names, f.Title+": "+strings.Join(series, ", "))
	}
	want := []string{
		"Arrivals over time: arrivals, regimes, trend", "ISL over time: ISL, regimes, trend", "OSL over time: OSL, regimes",
		"Sharing over time: hits of an infinite cache, in any other prompt",
	}
	if !slices.Equal(names, want) {
		t.Errorf("figures %q", names)
	}
	if isl := figures[1].Series[0]; isl.Kind != figure.Steps || len(isl.X) != len(out.Time.Windows)+1 || len(isl.Y) != len(isl.X) {
		t.Errorf("%d windows are drawn as %d steps", len(out.Time.Windows), len(isl.X)-1)
	}
}

func TestClock(t *testing.T) {
	const minute = 60_000.0
	for _, test := range []struct {
		width, ms float64
		want      string
	}{
		{minute, 21.2 * minute, "00:21"}, {5 * minute, 298_500, "00:05"}, {15_000, 75_000, "00:01:15"}, {500, 12_500, "12.5 s"},
		{60 * minute, 30 * 60 * minute, "1d 06:00"}, {1440 * minute, 3 * 1440 * minute, "3d"}, {minute, 1e15, "11574074d 01:47"},
	} {
		if got := clockOf(test.width)(test.ms); got != test.want {
			t.Errorf("%v ms in windows of %v ms: %q, want %q", test.ms, test.width, got, test.want)
		}
	}
}
