package runfile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"moontide/replay/openai"
	"moontide/replay/secret"
	"moontide/trace"
)

// olderRun is the run.json of versions that wrote no settings: what they had of them, in
// several places.
type olderRun struct {
	Outcome
	Seed   uint64 `json:"seed"`
	Salt   string `json:"salt"`
	Limits struct {
		MaxConcurrency   int     `json:"max_concurrency"`
		Closed           bool    `json:"closed"`
		MaxSessions      int     `json:"max_sessions"`
		MaxTurns         int     `json:"max_turns"`
		CancelAfter      float64 `json:"cancel_after_s"`
		Timeout          float64 `json:"timeout_s"`
		FirstByteTimeout float64 `json:"first_byte_timeout_s"`
		IdleTimeout      float64 `json:"idle_timeout_s"`
		Duration         float64 `json:"duration_s"`
		MaxErrors        int     `json:"max_errors"`
		Retries          int     `json:"retries"`
	} `json:"limits"`
	Window     Window     `json:"window"`
	Thresholds Thresholds `json:"thresholds"`
	Flags      []string   `json:"flags"`
	Leg        struct {
		Deployment string `json:"deployment"`
		Shape      string `json:"shape"`
		Axis       string `json:"axis"`
		Level      string `json:"level"`
		Repeat     int    `json:"repeat"`
	} `json:"leg"`
	NoChunkTimes bool `json:"no_chunk_times"`
	Target       struct {
		Target
		ModelFromTrace bool `json:"model_from_trace"`
		Virtual        bool `json:"virtual"`
		LiveAnswers    bool `json:"live_answers"`
		ExactISL       bool `json:"exact_isl"`
	} `json:"target"`
	Trace struct {
		Source
		Speedup float64 `json:"speedup"`
		Rate    float64 `json:"rate"`
		Limit   int     `json:"limit"`
	} `json:"trace"`
}

// Unmarshal reads run.json, also that of older versions.
func Unmarshal(text []byte) (r Run, err error) {
	var members struct {
		Settings, Outcome json.RawMessage
	}
	if err := json.Unmarshal(text, &members); err != nil {
		return r, err
	}
	if members.Outcome != nil || members.Settings != nil {
		return r, json.Unmarshal(text, &r)
	}
	var older olderRun
	if err := json.Unmarshal(text, &older); err != nil {
		return r, err
	}
	return older.run(), nil
}

func (o *olderRun) run() Run {
	r := Run{Outcome: o.Outcome}
	r.Target, r.Trace = o.Target.Target, o.Trace.Source
	s := &r.Settings
	for _, flag := range o.Flags { // what cannot be read has changed since; the fields below count
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !secret.Masked(value) {
			_ = s.Set(name, value, "")
		}
	}
	s.Seed, s.Salt, s.Window, s.Thresholds = o.Seed, o.Salt, o.Window, o.Thresholds
	s.MaxConcurrency, s.Closed, s.MaxErrors, s.Retries = o.Limits.MaxConcurrency, o.Limits.Closed, o.Limits.MaxErrors, o.Limits.Retries
	s.Sessions.Open, s.Sessions.Turns = o.Limits.MaxSessions, o.Limits.MaxTurns
	if n := o.Part.Of; n > 1 { // their run.json had the limits of the part
		s.MaxConcurrency, s.Sessions.Open = n*s.MaxConcurrency, n*s.Sessions.Open
	}
	for name, value := range map[string]float64{"cancel-after": o.Limits.CancelAfter, "duration": o.Limits.Duration} {
		if value > 0 {
			_ = s.Set(name, strconv.FormatFloat(value, 'f', -1, 64), "")
		}
	}
	if l := o.Limits; l.Timeout > 0 {
		_ = s.Set("timeout", fmt.Sprintf("%gs,%gs,%gs", l.Timeout, l.FirstByteTimeout, l.IdleTimeout), "")
	}
	s.Virtual, s.Client.ModelFromTrace, s.Client.ExactISL = o.Target.Virtual, o.Target.ModelFromTrace, o.Target.ExactISL
	if o.Target.LiveAnswers {
		s.Client.Answers = openai.LiveAnswers
	}
	s.Output.NoChunkTimes, s.Pacing.Limit = o.NoChunkTimes, o.Trace.Limit
	if s.Pacing.Speedup = o.Trace.Speedup; s.Pacing.Speedup == 1 {
		s.Pacing.Speedup = 0
	}
	if o.Trace.Rate > 0 && !s.IsSet("rate", "session-rate") {
		s.Pacing.Rate = trace.Some(o.Trace.Rate / max(o.Trace.Speedup, 1e-9))
	}
	r.Point.Repeat = o.Leg.Repeat
	if isl, osl, ok := strings.Cut(o.Leg.Shape, ":"); ok {
		r.Point = r.Point.With(Value{Setting: "isl", Text: isl}).With(Value{Setting: "osl", Text: osl})
	}
	if axis := o.Leg.Axis; axis != "" {
		if axis == "concurrency" {
			axis = "max-concurrency"
		}
		r.Point = r.Point.With(Value{Setting: axis, Text: o.Leg.Level})
	}
	if o.Leg.Deployment != "" {
		r.Point = r.Point.With(Value{Setting: "url", Label: o.Leg.Deployment})
	}
	return r
}
