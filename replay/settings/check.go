package settings

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"moontide/replay/openai"
	"moontide/trace"
)

// Error reports settings that are wrong. Text has their names in braces, as in "{closed}
// needs {max-concurrency} or {max-sessions}".
type Error struct{ Text string }

var nameInBraces = regexp.MustCompile(`\{([a-z-]+)\}`)

func (e *Error) Error() string { return e.Named(func(name string) string { return name }) }

// Named returns the text with the result of name in place of the name of each setting.
func (e *Error) Named(name func(string) string) string {
	return nameInBraces.ReplaceAllStringFunc(e.Text, func(found string) string { return name(found[1 : len(found)-1]) })
}

func wrong(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Embedded reports whether requests go to an endpoint in this process.
func (s *Settings) Embedded() bool { return s.Client.URL == "" && len(s.Client.URLs) == 0 }

// LiveAnswers reports whether prompts have the real responses to earlier turns.
func (s *Settings) LiveAnswers() bool { return s.Client.Answers == openai.LiveAnswers }

// Described reports whether requests are drawn from a description.
func (s *Settings) Described() bool { return !s.Description.IsZero() }

// Check returns an [*Error] if settings contradict each other. It reads no file.
func (s *Settings) Check() error {
	for _, rules := range []func() error{s.checkTrace, s.CheckDescription, s.checkLoad, s.checkTarget, s.checkPrompts, s.checkEngines, s.checkParts} {
		if err := rules(); err != nil {
			return err
		}
	}
	return s.checkValues()
}

// checkValues checks the values: a program may have set fields.
func (s *Settings) checkValues() error {
	for _, row := range s.given() {
		var scratch Settings
		for _, text := range row.texts(s) {
			if err := row.set(&scratch, text); err != nil && text != "" {
				return wrong("{%s} %v", row.Name, err)
			}
		}
	}
	return nil
}

func (s *Settings) checkTrace() error {
	ofTrace := s.FirstSet("start", "end", "spread-grid", "time-scale-think", "time-scale-tool", "max-think", "speedup", "format", "skip-bad-rows", "recorded-times", "block-ids")
	switch d := &s.Description; {
	case s.Trace.Path != "" && s.Described():
		return wrong("{%s} describes requests, and a trace has its own", s.FirstSet("spec", "isl", "unique-isl", "osl", "correlation", "turns", "think-time", "new-tokens", "shared-len", "shared-prompts", "zipf", "cv"))
	case !s.Described():
	case ofTrace != "":
		return wrong("{%s} needs a trace: requests that are drawn have only a rate or a concurrency", ofTrace)
	case d.Spec == "-":
		return wrong("{spec} must be a file: it is read for each run")
	case d.CV != "" && s.IsSet("burstiness"):
		return wrong("{cv} and {burstiness} are both set: use one of them")
	}
	return nil
}

// CheckDescription returns an [*Error] if a description has no lengths.
func (s *Settings) CheckDescription() error {
	switch d := &s.Description; {
	case d.Spec != "" || !s.Described():
	case d.ISL == "" && d.UniqueISL == "":
		return wrong("{isl} is missing: the prompt length in tokens, such as 3000")
	case d.OSL == "":
		return wrong("{osl} is missing: the output length in tokens, such as 150")
	}
	return nil
}

func (s *Settings) checkLoad() error {
	p := &s.Pacing
	rate := s.FirstSet("rate", "session-rate")
	switch {
	case s.Closed && s.MaxConcurrency == 0 && s.Sessions.Open == 0:
		return wrong("{closed} needs {max-concurrency} or {max-sessions}")
	case p.Rate.Set && p.SessionRate.Set:
		return wrong("{rate} and {session-rate} exclude each other: arrivals are of requests or of sessions")
	case rate == "" && !s.Described() && s.IsSet("arrival", "burstiness"):
		return wrong("{%s} needs {rate} or {session-rate}", s.FirstSet("arrival", "burstiness"))
	case p.Burstiness != 0 && p.Burstiness != 1 && p.Arrival != "" && p.Arrival != trace.Gamma:
		return wrong("{burstiness} is the shape of gamma arrivals, and {arrival} is %s", p.Arrival)
	case s.Closed && rate != "":
		return wrong("{closed} ignores arrivals, and {%s} sets them: omit one", rate)
	case s.Closed && (p.SpreadGrid || p.Ramp > 0):
		return wrong("{closed} ignores arrivals: omit {%s}", s.FirstSet("spread-grid", "ramp"))
	case p.SpreadGrid && rate != "":
		return wrong("{spread-grid} and {%s}: the arrivals are either replaced or spread over their grid", rate)
	case p.Ramp > 0 && (math.IsInf(p.Rate.Value, 1) || math.IsInf(p.SessionRate.Value, 1)):
		return wrong("{ramp} cannot ramp an infinite rate, see {%s}", rate)
	case p.End > 0 && p.End <= p.Start:
		return wrong("the window from {start} %v to {end} %v is empty", p.Start, p.End)
	case s.Output.NoChunkTimes && s.Window != (Window{}):
		return wrong("{no-chunk-times} discards what {warmup-time} and {cooldown-time} are cut by")
	}
	return nil
}

// ofClient returns the first setting that only requests over HTTP have.
func (s *Settings) ofClient() string {
	for _, row := range s.given() {
		if row.Mode == Live && !row.Own {
			return row.Name
		}
	}
	return ""
}

func (s *Settings) checkTarget() error {
	https := false
	for _, url := range s.Client.URLs {
		https = https || len(url) > 6 && strings.EqualFold(url[:6], "https:")
	}
	name := s.ofClient()
	switch {
	case s.Virtual && name != "":
		return wrong("{%s} is for requests over HTTP: a run in virtual time sends none", name)
	case s.Virtual && s.IsSet("part"):
		return wrong("{part} does not work in virtual time: one process simulates all")
	case s.Virtual:
	case s.Embedded() && len(s.Client.Models) > 0:
		return wrong("{model} names several models, which needs {url}: the embedded endpoint has one")
	case s.Embedded() && s.Client.ModelFromTrace:
		return wrong("{model-from-trace} needs {url}: the embedded endpoint has one model")
	case s.Proxy != "" && s.Embedded():
		return wrong("{proxy} needs {url}")
	case s.IsSet("tls") && !https:
		return wrong("{tls} is for https, but no {url} is https")
	}
	return nil
}

func (s *Settings) checkPrompts() error {
	form, ranged := s.Client.Prompt, s.Client.Source.Low != 0 || s.Client.Source.High != 0
	ids := s.Client.WithDefaults().Prompt == openai.Tokens && (form != "" || s.Dataset == "")
	switch {
	case s.Dataset != "" && s.Tokenizer == "":
		return wrong("{dataset} needs the model's own {tokenizer} (tokenizer.json) to cut texts to exact lengths")
	case s.Dataset != "" && form == openai.Tokens:
		return wrong("{dataset} is text, and {prompt} is tokens: leave the form out")
	case s.Tokenizer != "" && ids && !s.Virtual && !s.LiveAnswers():
		return wrong("{tokenizer} applies to text prompts, but prompts are token ids: choose {prompt} words, or a {dataset}")
	case ranged && !ids:
		return wrong("{token-range} applies to token-id prompts, but prompts are text: choose {prompt} tokens")
	}
	return nil
}

// engineNames returns the names of the settings of simulated engines.
func engineNames() (names []string) {
	for i := range Table {
		if Table[i].Group == Engine {
			names = append(names, Table[i].Name)
		}
	}
	return names
}

func (s *Settings) checkEngines() error {
	name := s.FirstSet(engineNames()...)
	switch {
	case name != "" && !s.Virtual && !s.Embedded():
		return wrong("{%s} is for simulated engines, which {url} replaces", name)
	case s.IsSet("prefill-engines") != s.IsSet("decode-engines") && s.EngineFile == "":
		return wrong("{prefill-engines} and {decode-engines} go together")
	case s.IsSet("engines") && s.IsSet("prefill-engines"):
		return wrong("{engines} and {prefill-engines}, {decode-engines} exclude each other")
	}
	return nil
}

func (s *Settings) checkParts() error {
	switch {
	case s.Parts.Part == "" && s.IsSet("part-by", "rendezvous", "rendezvous-timeout"):
		return wrong("{%s} needs {part}", s.FirstSet("part-by", "rendezvous", "rendezvous-timeout"))
	case s.Parts.Part != "" && s.Embedded():
		return wrong("{part} needs {url}: each part would have an embedded endpoint of its own")
	case s.Parts.Part != "" && s.Sessions != (Settings{}).Sessions && s.Parts.By == trace.ByRequest:
		return wrong("{part-by} must be session or prefix: sessions have limits")
	}
	return nil
}
