package slo_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
)

func mustParse(t testing.TB, text string) slo.Condition {
	t.Helper()
	c, err := slo.ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseCondition(t *testing.T) {
	for text, want := range map[string]struct {
		canonical string
		limit     float64
		kind      slo.LimitKind
	}{
		"p99_ttft_ms<2000":           {"p99_ttft_ms<2000", 2000, slo.OfValue},
		"p99_ttft<2s":                {"p99_ttft_ms<2000", 2000, slo.OfValue},
		"p99_ttft <= 1m30s":          {"p99_ttft_ms<=90000", 90000, slo.OfValue},
		"p99_ttft<2 s":               {"p99_ttft_ms<2000", 2000, slo.OfValue},
		"p99.9_itl>=250us":           {"p99.9_itl_ms>=0.25", 0.25, slo.OfValue},
		"mean_client_queue_time<1ms": {"mean_client_queue_time_ms<1", 1, slo.OfValue},
		"mean_held_ms<1":             {"mean_client_queue_time_ms<1", 1, slo.OfValue},
		"duration<1h":                {"duration<3600", 3600, slo.OfValue},
		"failed<1%":                  {"failed_share<1%", 0.01, slo.OfValue},
		"abandoned<=2%":              {"abandoned_share<=2%", 0.02, slo.OfValue},
		"failed<3":                   {"failed<3", 3, slo.OfValue},
		"failed_share<=0.05 %":       {"failed_share<=0.05%", 0.0005, slo.OfValue},
		"failed>+10%":                {"failed_share>+10%", 0.1, slo.OfRelativeChange},
		"good_share>99.9%":           {"good_share>99.9%", 0.999, slo.OfValue},
		"goodput>2":                  {"request_goodput>2", 2, slo.OfValue},
		"output_throughput>=1e3":     {"output_throughput>=1000", 1000, slo.OfValue},
		"output_throughput<-200":     {"output_throughput<-200", -200, slo.OfChange},
		"output_throughput<-3%":      {"output_throughput<-3%", -0.03, slo.OfRelativeChange},
		"p99_ttft_ms>+5%":            {"p99_ttft_ms>+5%", 0.05, slo.OfRelativeChange},
		"p99_ttft>-20ms":             {"p99_ttft_ms>-20", -20, slo.OfChange},
	} {
		c, err := slo.ParseCondition(text)
		if err != nil || c.String() != want.canonical || c.Limit != want.limit || c.Kind != want.kind {
			t.Errorf("%s: %v, limit %v, kind %v, %v; want %s", text, c, c.Limit, c.Kind, err, want.canonical)
		}
	}
}

// A condition that can be misread, or can never decide anything, is an error.
func TestBadConditions(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "has no < or >",
		"p99_ttft_ms":            "has no < or >",
		"p99_ttft_ms=>2000":      `unknown metric "p99_ttft_ms="`,
		"p99_ttft<2000":          "the limit has no unit: want, for example, p99_ttft<2s, or p99_ttft_ms in milliseconds",
		"ttft<2s":                `unknown metric "ttft": want a key of a run's summary, such as p99_ttft_ms`,
		"p99_tftt_ms<2000":       `unknown metric "p99_tftt_ms": want a key of a run's summary, such as p99_ttft_ms`,
		"p101_ttft_ms<2":         `"p101" is none of mean`,
		"pNaN_ttft_ms<2":         `"pNaN" is none of mean`,
		"p99_ttft_ms>5%":         "want p99_ttft_ms>+5% or p99_ttft_ms>-5%",
		"failed_share<0.01":      "a share needs a percentage",
		"failed_share>+5":        "a share cannot exceed 100 %",
		"p99_ttft_ms<-101%":      "no metric can fall by more than 100 %",
		"output_throughput>5s":   "output_throughput is not a time",
		"p99_ttft_ms>":           `"" is not a number`,
		"p99_ttft_ms>+Inf":       "is not a number",
		"p99_ttft_ms>1e999":      "is not a number",
		"p99_ttft_ms>+-5":        "is not a number",
		"p99_ttft<99999999999h":  "is not a number",
		"p99_ttft_ms<2,5":        `condition "5" has no < or >`,
		"mean_itl_ms<2,,e2el<3s": `condition "" has no < or >`,
	} {
		if _, err := slo.ParseConditions(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// checkText checks that the text of a condition parses to the same condition.
func checkText(t *testing.T, c slo.Condition) {
	t.Helper()
	again, err := slo.ParseCondition(c.String())
	if err != nil || again.Metric.Key != c.Metric.Key || again.Op != c.Op || again.Kind != c.Kind || again.Limit != c.Limit {
		t.Errorf("%s parses to %s with the limit %v, not %v: %v", c, again, again.Limit, c.Limit, err)
	}
	if again.String() != c.String() {
		t.Errorf("%s is written as %s", c, again)
	}
}

var (
	gatedMetrics = []string{"p99_ttft_ms", "median_itl_ms", "p99.9_e2el_ms", "max_tpot_ms", "failed", "failed_share", "cached_share", "duration", "output_throughput", "good_share_ttft"}
	operators    = []slo.Operator{slo.Less, slo.AtMost, slo.More, slo.AtLeast}
	kinds        = []slo.LimitKind{slo.OfValue, slo.OfChange, slo.OfRelativeChange}
)

// drawnCondition draws a valid condition with an arbitrary limit.
func drawnCondition(r *rand.Rand) slo.Condition {
	c := slo.Condition{
		Metric: measure.MustMetric(gatedMetrics[r.IntN(len(gatedMetrics))]), Op: operators[r.IntN(len(operators))], Kind: kinds[r.IntN(len(kinds))],
		Limit: math.Exp(20*r.NormFloat64()) * r.Float64(),
	}
	if r.IntN(3) == 0 {
		c.Limit = math.Round(c.Limit)
	}
	if c.Kind != slo.OfValue && r.IntN(2) == 0 {
		c.Limit = -c.Limit
	}
	switch {
	case c.Kind == slo.OfRelativeChange && c.Metric.Key == "failed": // is failed_share
		c.Kind = slo.OfChange
	case c.Kind == slo.OfRelativeChange:
		c.Limit = max(c.Limit, -1)
	case c.Metric.Unit == measure.Share:
		c.Limit = math.Mod(c.Limit, 1)
	}
	return c
}

func FuzzParseConditions(f *testing.F) {
	for _, text := range []string{"p99_ttft<2s,failed<1%", "p99_ttft_ms>+5%", "output_throughput>=-200", "duration<1h2m3.5s", "good_share>99.9%", "p5_e2el_ms<1e3", "p99_ttft>+20ms"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := slo.ParseConditions(text)
		if err != nil {
			return
		}
		for _, c := range all {
			if math.IsNaN(c.Limit) || math.IsInf(c.Limit, 0) {
				t.Errorf("%q has the limit %v", text, c.Limit)
			}
			checkText(t, c)
			for _, forbidden := range []bool{false, true} {
				g := slo.Gate{Condition: c, Forbidden: forbidden}
				if j := g.JudgeValue(c.Limit, c.Limit, math.MaxInt, ""); strings.ContainsAny(j.String(), "\n\x00") || !j.Margin.Set || j.Margin.Value != 0 {
					t.Errorf("%q: %s", text, j)
				}
			}
		}
	})
}
