package run_test

import (
	"testing"

	"moontide/analyze/run"
	"moontide/replay"
)

// The groups of the models divide the requests of the run.
func TestModels(t *testing.T) {
	records := mixed()
	for i := range records {
		records[i].Model = []string{"b", "a", "b", "a", "a"}[i]
	}
	r := compute(t, run.Options{}, records...)
	if len(r.Models) != 2 || r.Models[0].Name != "a" || r.Models[1].Name != "b" {
		t.Fatalf("%+v", r.Models)
	}
	a, b := r.Models[0], r.Models[1]
	if a.Requests != 2 || b.Requests != 2 || a.Share != 0.5 || b.Share != 0.5 { // row 4 was not sent
		t.Errorf("requests %d and %d, shares %g and %g", a.Requests, b.Requests, a.Share, b.Share)
	}
	if a.Completed+b.Completed != r.Completed || a.Failed != 2 || a.Failed+b.Failed != r.Failed || a.TTFT.Count+b.TTFT.Count != r.TTFT.Count {
		t.Errorf("%+v", r.Models)
	}
	if a.TTFT.Quantile(0.5) != 100 || b.TTFT.Quantile(0) != 40 || b.TTFT.Quantile(1) != 100 {
		t.Errorf("TTFT %v and %v", a.TTFT, b.TTFT)
	}
	if r := compute(t, run.Options{}, mixed()...); r.Models != nil {
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
	r := compute(t, run.Options{BlockSize: 32, ServerBlockSize: 16},
		prompt(0, 0, "a", 0), prompt(100, 1, "b", 0), prompt(200, 2, "a", 48), prompt(300, 3, "b", 48))
	if p := r.Cache.Prediction; p.Equal != 4 || p.Predicted != 96 {
		t.Errorf("%d tokens are predicted, for %d of %d requests as measured", p.Predicted, p.Equal, p.Requests)
	}
}
