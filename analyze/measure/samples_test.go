package measure_test

import (
	"testing"

	"moontide/analyze/measure"
	"moontide/replay/runfile"
	"moontide/trace"
)

func figures(kvUse, running, queried, hit float64) *runfile.ServerFigures {
	return &runfile.ServerFigures{
		Engine: "vllm", Engines: 1, Aborted: new(queried / 500), KVUse: &kvUse, KVUseMax: new(2 * kvUse), Running: &running,
		QueriedTokens: &queried, HitTokens: &hit, BlockSize: new(16.0), CapacityTokens: new(3200.0),
	}
}

func TestSummarizeSamples(t *testing.T) {
	samples := []runfile.Sample{
		{AtMS: 0, Server: figures(0, 0, 1000, 300)}, // before the run
		{AtMS: 1000, SpanMS: 1000, CPU: 0.5, MachineShare: 0.25, GCPauses: 2, GCPauseMaxMS: 3, SchedP99MS: 1, RSSBytes: 7},
		{AtMS: 4000, SpanMS: 3000, CPU: 1.5, MachineShare: 0.75, GCPauses: 1, GCPauseMaxMS: 4, SchedP99MS: 5, RSSBytes: 9, Server: figures(0.2, 4, 1500, 400)},
		{AtMS: 5000, SpanMS: 1000, CPU: 0.5, MachineShare: 0.25, RSSBytes: 8, ServerError: "busy"},
		{AtMS: 6000, SpanMS: 1000, CPU: 0.5, MachineShare: 0.25, Server: figures(0.4, 8, 2500, 700), ServerError: ""},
		{AtMS: 6100, SpanMS: 100, CPU: 0.5, ServerError: "gone"},
		{AtMS: 6200, SpanMS: 100, CPU: 0.5, Server: figures(0.1, 0, 3000, 900)}, // after it
	}
	o, err := measure.SummarizeSamples(each(samples), measure.Span{})
	if err != nil {
		t.Fatal(err)
	}
	c, s := o.Client, o.Server
	// 0.5 for 3.2 s and 1.5 for 3 s.
	if c.Samples != 6 || c.CPU != (0.5*3.2+1.5*3)/6.2 || c.MachineShare.Max != 0.75 || c.GCPauses != 3 || c.GCPauseMaxMS != 4 || c.SchedMS.Max != 5 || c.RSSBytes != 9 {
		t.Errorf("%+v", c)
	}
	if s.Engine != "vllm" || s.Engines != 1 || s.Scrapes != 4 || s.Failures != 2 || s.Failure != "busy" || s.BlockSize != 16 || s.CapacityTokens != 3200 {
		t.Errorf("%+v", s)
	}
	if s.KVUse.Count != 2 || s.KVUseMax.Max != 0.8 || s.Running.Mean != 6 || s.Running.Max != 8 || s.Waiting.Count != 0 {
		t.Errorf("gauges %v %v %v %v", s.KVUse, s.KVUseMax, s.Running, s.Waiting)
	}
	if s.QueriedTokens != trace.Some(2000) || s.HitTokens != trace.Some(600) || s.Preemptions.Set {
		t.Errorf("counters %v %v %v", s.QueriedTokens, s.HitTokens, s.Preemptions)
	}
	if s.Aborted != trace.Some(4) || s.RunningAfter != trace.Some(0) {
		t.Errorf("aborted %v, running after the run %v", s.Aborted, s.RunningAfter)
	}
	// The client's samples are those of the window, the server's all.
	o, err = measure.SummarizeSamples(each(samples), measure.Span{From: at(4000), To: at(5000)})
	if err != nil || o.Client.Samples != 2 || o.Server.Scrapes != 4 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestCountersThatBeganAnew(t *testing.T) {
	first := runfile.Sample{Server: figures(0, 0, 100, 5)}
	s := sampled(t, first, runfile.Sample{Server: figures(0, 0, 10, 5)}, runfile.Sample{Server: figures(0, 0, 500, 5)}).Samples.Server
	if s.QueriedTokens.Set || s.HitTokens != trace.Some(0) {
		t.Errorf("%+v", s)
	}
	if s := sampled(t, first).Samples.Server; s.QueriedTokens.Set {
		t.Errorf("of one answer %+v", s)
	}
}

// A newer start time, or counters that fell, show that the server restarted, and the
// run is SUSPECT.
func TestRestarts(t *testing.T) {
	started := func(at, queried float64) runfile.Sample {
		f := figures(0, 0, queried, 0)
		f.StartTime = &at
		return runfile.Sample{Server: f}
	}
	unknown := func(queried float64) runfile.Sample { return runfile.Sample{Server: figures(0, 0, queried, 0)} }
	for name, test := range map[string]struct {
		samples []runfile.Sample
		want    int
	}{
		"none":               {[]runfile.Sample{started(100, 10), started(100, 20), started(100.5, 30)}, 0},
		"newer start time":   {[]runfile.Sample{started(100, 10), started(150, 20), started(150, 30)}, 1},
		"counters fell":      {[]runfile.Sample{unknown(10), unknown(20), unknown(5), unknown(30)}, 1},
		"twice":              {[]runfile.Sample{started(100, 10), started(150, 20), started(200, 5)}, 2},
		"nothing is scraped": {[]runfile.Sample{{}, {}}, 0},
	} {
		opts := sampled(t, test.samples...)
		opts.BlockSize = 16
		if n := opts.Samples.Server.Restarts; n != test.want {
			t.Errorf("%s: %d restarts, want %d", name, n, test.want)
		}
		if v := compute(t, opts, sound(10)...).Verdict; (v.Level == measure.Suspect) != (test.want > 0) || v.Level == measure.Invalid {
			t.Errorf("%s: %v", name, v)
		}
	}
}
