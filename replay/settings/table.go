package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xrash/smetrics"

	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/replay/secret"
	"moontide/replay/sim/engine"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/routing"
)

// Setting is a row of [Table].
type Setting struct {
	Name  string // words joined by hyphens
	Group Group
	// Help says what it is, in a line; a word in backquotes stands for the value.
	Help string
	// Field returns a pointer to the setting: *bool, *string, *[]string (repeatable), *int,
	// *uint64, *float64, *trace.Opt[float64], *time.Duration, or a [Value].
	Field   func(*Settings) any
	Default string   // what happens if it is not set, unless its zero value says so
	Range   *Range   // of numbers, and of durations in seconds; nil has no limits
	Choices []Choice // of texts
	Open    bool     // there are other values than Choices
	Mask    func(string) string
	Axis    bool // the runs of a set may differ in it
	Mode    Mode
	File    bool // is set in files and by name only: it is no flag
	Own     bool // affects neither the requests nor the measurement
	Here    bool // is of one process, and not recorded
	// Others are the names of the setting in other tools.
	Others []string
}

// Choice is a value of a setting.
type Choice struct{ Name, Note string }

// Mode is the kind of run that a setting affects.
type Mode int

const (
	AnyMode Mode = iota
	Live         // requests over HTTP
	Virtual      // simulated in virtual time
)

// Group is a heading of settings.
type Group string

const (
	Target       Group = "TARGET"
	Requests     Group = "REQUESTS"
	Load         Group = "LOAD"
	Sessions     Group = "SESSIONS"
	Control      Group = "RUN CONTROL"
	Machines     Group = "SEVERAL MACHINES"
	Input        Group = "TRACE INPUT"
	Descriptions Group = "FROM A DESCRIPTION"
	Validity     Group = "VALIDITY"
	Gates        Group = "GATES"
	Outputs      Group = "OUTPUT"
	Engine       Group = "ENGINE"
)

// NoProxy is the value of proxy that uses none.
const NoProxy = "none"

// Table has all settings, in groups. It must not be changed.
var Table = slices.Concat([]Setting{
	{Name: "trace", Group: Input, File: true, Help: "`FILE` or folder of the trace", Field: func(s *Settings) any { return &s.Trace.Path }},
	{Name: "format", Group: Input, Help: "`NAME` of the trace format: %s", Default: "auto-detected", Choices: choices(format.Formats()...), Field: func(s *Settings) any { return (*text[format.Format])(&s.Trace.Format) }},
	{Name: "block-size", Group: Input, Help: "block size in tokens", Default: "detected", Range: fromTo(1, trace.MaxLength), Field: func(s *Settings) any { return &s.Trace.BlockSize }},
	{Name: "block-ids", Group: Input, File: true, Help: "`METHOD` to make up missing block ids: %s", Default: "none", Choices: choices("none", "unique"), Field: func(s *Settings) any { return &named{&s.Trace.UniqueIDs, "none", "unique"} }},
	{Name: "recorded-times", Group: Input, File: true, Help: "send later turns of WEKA, Dynamo and TraceLab traces at their recorded times, not after the previous response", Field: func(s *Settings) any { return &s.Trace.RecordedTimes }},
	{Name: "skip-bad-rows", Group: Input, Help: "skip and count invalid rows instead of stopping at the first", Field: func(s *Settings) any { return &s.Trace.SkipBadRows }},

	{Name: "url", Group: Target, Mode: Live, Axis: true, Mask: secret.URL, Help: "`URL` of an OpenAI-compatible endpoint, such as http://127.0.0.1:8000; repeatable", Default: "an embedded simulated endpoint", Others: words("base-url target"), Field: func(s *Settings) any { return &s.Client.URLs }},
	{Name: "model", Group: Target, Mode: Live, Help: "`NAME`: model name, optional if the endpoint serves one model, or a mix such as a=0.7,b=0.3, from which each session draws a model", Field: func(s *Settings) any { return &models{&s.Client} }},
	{Name: "model-from-trace", Group: Target, Mode: Live, File: true, Help: "send the model in the model key of a row; the setting model is for rows without one", Field: func(s *Settings) any { return &s.Client.ModelFromTrace }},
	{Name: "endpoint", Group: Target, Mode: Live, Help: "`API` to call: %s", Default: "that of the URL or the server, else completions", Choices: choices(openai.Endpoints()...), Others: words("backend endpoint-type"), Field: func(s *Settings) any { return &s.Client.Endpoint }},
	{Name: "server", Group: Target, Mode: Live, Help: "`KIND` of server, whose usual parameters the probe tries first: %s", Default: "vllm; the probe omits what the endpoint rejects", Choices: servers(), Field: func(s *Settings) any { return &s.Client.Server }},
	{Name: "api-key-env", Group: Target, Mode: Live, Own: true, Help: "environment `VARIABLE` with the API key, sent as a bearer token or as the kind of server has it", Field: func(s *Settings) any { return &s.APIKeyEnv }},
	{Name: "header", Group: Target, Mode: Live, Mask: secret.Header, Help: "HTTP header `'Name: value'` to send with every request; repeatable", Field: func(s *Settings) any { return &headers{&s.Client.Headers} }},
	{Name: "session-header", Group: Target, Mode: Live, File: true, Help: "`NAME` of the header with the session of a request, for session affinity; none sends no such header", Default: openai.DefaultSessionHeader, Field: func(s *Settings) any { return &s.Client.SessionHeader }},
	{Name: "balance", Group: Target, Mode: Live, File: true, Help: "`POLICY` to distribute requests over several URLs: %s", Default: openai.RoundRobin, Choices: noted(choices(openai.Balances()...), openai.BySession, "all turns of a session to one URL"), Field: func(s *Settings) any { return &s.Client.Balance }},
	{Name: "connections", Group: Target, Mode: Live, File: true, Help: "connection `MODE`: %s", Default: openai.Pooled, Choices: noted(noted(choices(openai.ConnectionModes()...), openai.Pooled, "reused"), openai.Fresh, "a new one for each request"), Field: func(s *Settings) any { return &s.Client.Connections }},
	{Name: "proxy", Group: Target, Mode: Live, File: true, Mask: secret.URL, Help: "`URL` of an HTTP, HTTPS or SOCKS5 proxy, or none", Default: "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; none for loopback", Field: func(s *Settings) any { return &s.Proxy }},
	{Name: "tls", Group: Target, Mode: Live, Help: "certificates of an https endpoint: `insecure` does not verify them, ca=FILE verifies with a CA bundle (PEM)", Default: "the system's CAs", Field: func(s *Settings) any { return &certificates{s} }},

	{Name: "prompt", Group: Requests, Mode: Live, Help: "`FORM` of prompts: %s", Default: "tokens for completions, words for chat", Choices: noted(noted(choices(openai.PromptForms()...), openai.Tokens, "token ids, exact length"), openai.Words, "one token each"), Field: func(s *Settings) any { return &s.Client.Prompt }},
	{Name: "token-range", Group: Requests, Mode: Live, File: true, Help: "draw token ids from `LO:HI`, including LO and excluding HI", Default: fmt.Sprintf("%d:%d", prompt.DefaultLow, prompt.DefaultHigh), Field: func(s *Settings) any { return &tokenRange{&s.Client.Source} }},
	{Name: "tokenizer", Group: Requests, Help: "`FILE`: the model's tokenizer.json, to build prompts from words that are a single token each", Field: func(s *Settings) any { return &s.Tokenizer }},
	{Name: "dataset", Group: Requests, Mode: Live, Help: "`FILE` with text for prompts, which are cut to exact lengths: ShareGPT conversations or plain text; needs a tokenizer", Field: func(s *Settings) any { return &s.Dataset }},
	{Name: "exact-isl", Group: Requests, Mode: Live, File: true, Help: "shorten prompts by the tokens of the chat template, so that the server's count matches the trace", Field: func(s *Settings) any { return &s.Client.ExactISL }},
	{Name: "no-ignore-eos", Group: Requests, Mode: Live, Help: "let the model decide when to stop: send neither ignore_eos nor min_tokens", Field: func(s *Settings) any { return &s.Client.StopAtEOS }},
	{Name: "temperature", Group: Requests, Mode: Live, Help: "`T`: sampling temperature from 0 to 2", Default: "the endpoint's", Range: fromTo(0, 2), Field: func(s *Settings) any { return &s.Client.Temperature }},
	{Name: "top-p", Group: Requests, Mode: Live, File: true, Help: "`P`: top-p sampling, above 0 and at most 1", Default: "the endpoint's", Range: share, Field: func(s *Settings) any { return &s.Client.TopP }},
	{Name: "extra-body", Group: Requests, Mode: Live, Mask: secret.Body, Help: "`JSON` object to merge into every request body, such as '{\"top_k\": 5}'", Field: func(s *Settings) any { return &s.Client.ExtraBody }},
	{Name: "salt", Group: Requests, Mode: Live, Mask: secret.Text, Help: "`TEXT` that changes the prompts but keeps their shared prefixes, to avoid a warm cache", Field: func(s *Settings) any { return &s.Salt }},
	{Name: "seed", Group: Requests, Help: "random seed for prompts, drawn arrivals and random routing; the same seed sends the same bytes", Others: words("random-seed"), Field: func(s *Settings) any { return &s.Seed }},

	{Name: "isl", Group: Descriptions, Axis: true, Help: "`DIST`: prompt length (ISL) in tokens", Others: words("random-input-len synthetic-input-tokens-mean"), Field: func(s *Settings) any { return &s.Description.ISL }},
	{Name: "osl", Group: Descriptions, Axis: true, Help: "`DIST`: output length (OSL) in tokens", Others: words("random-output-len output-tokens-mean"), Field: func(s *Settings) any { return &s.Description.OSL }},
	{Name: "unique-isl", Group: Descriptions, File: true, Help: "`DIST`: prompt length after the shared prefix in tokens; replaces isl", Field: func(s *Settings) any { return &s.Description.UniqueISL }},
	{Name: "correlation", Group: Descriptions, File: true, Help: "`R`: rank correlation of ISL and OSL, -1 to 1", Default: "0", Field: func(s *Settings) any { return &s.Description.Correlation }},
	{Name: "turns", Group: Descriptions, Help: "`DIST`: turns per conversation", Default: "1", Field: func(s *Settings) any { return &s.Description.Turns }},
	{Name: "think-time", Group: Descriptions, File: true, Help: "`DIST`: pause between a response and the next prompt, such as 10s or lognormal:20s:1.5", Default: "0s", Field: func(s *Settings) any { return &s.Description.ThinkTime }},
	{Name: "new-tokens", Group: Descriptions, File: true, Help: "`DIST`: tokens added by each later turn", Default: "as in a first prompt", Field: func(s *Settings) any { return &s.Description.NewTokens }},
	{Name: "shared-len", Group: Descriptions, Help: "`DIST`: length of a shared system prompt in tokens", Field: func(s *Settings) any { return &s.Description.SharedLen }},
	{Name: "shared-prompts", Group: Descriptions, File: true, Help: "`N`: number of shared system prompts", Default: "1 with shared-len, else none", Field: func(s *Settings) any { return &s.Description.SharedPrompts }},
	{Name: "zipf", Group: Descriptions, File: true, Help: "`S`: Zipf exponent of the popularity of shared prompts", Default: "0, uniform", Field: func(s *Settings) any { return &s.Description.Zipf }},
	{Name: "cv", Group: Descriptions, File: true, Help: "`CV`: coefficient of variation of gamma inter-arrival times; above 1 is bursty", Field: func(s *Settings) any { return &s.Description.CV }},
	{Name: "spec", Group: Descriptions, Help: "`FILE`: description in YAML, or the name of a ready-made one", Field: func(s *Settings) any { return &s.Description.Spec }},

	{Name: "start", Group: Load, Help: "drop rows before `TIME`, which becomes time 0", Field: func(s *Settings) any { return &s.Pacing.Start }},
	{Name: "end", Group: Load, Help: "drop rows from `TIME` on", Default: "the end of the trace", Range: positive, Field: func(s *Settings) any { return &s.Pacing.End }},
	{Name: "limit", Group: Load, Help: "use the first `N` rows; a shorter trace is not repeated", Default: "all", Range: positive, Others: words("num-prompts num-requests request-count"), Field: func(s *Settings) any { return &s.Pacing.Limit }},
	{Name: "spread-grid", Group: Load, File: true, Help: "spread requests that share a coarse timestamp evenly over the clock's step", Field: func(s *Settings) any { return &s.Pacing.SpreadGrid }},
	{Name: "rate", Group: Load, Axis: true, Help: "replace the arrivals: `R` requests per second, or inf for all at once", Default: "the trace's arrivals", Range: positiveOrInf, Others: words("request-rate"), Field: func(s *Settings) any { return &s.Pacing.Rate }},
	{Name: "session-rate", Group: Load, Axis: true, Help: "replace the session starts: `R` sessions per second, or inf for all at once; an agent with its sub-agents is one session, and so is a row without a session", Default: "the trace's arrivals", Range: positiveOrInf, Field: func(s *Settings) any { return &s.Pacing.SessionRate }},
	{Name: "arrival", Group: Load, Help: "`PROCESS` of arrivals at a rate: %s", Default: trace.Poisson + "; gamma with burstiness", Choices: choices(trace.Processes()...), Field: func(s *Settings) any { return &s.Pacing.Arrival }},
	{Name: "burstiness", Group: Load, Help: "`K`: shape of gamma arrivals; below 1 is bursty", Default: "1", Range: positive, Field: func(s *Settings) any { return &s.Pacing.Burstiness }},
	{Name: "time-scale-think", Group: Load, File: true, Help: "multiply think times by `X`: delays whose delay_kind is think or missing", Default: "1", Range: notNegative, Field: func(s *Settings) any { return &s.Pacing.ThinkScale }},
	{Name: "time-scale-tool", Group: Load, File: true, Help: "multiply tool times by `X`: delays whose delay_kind is tool", Default: "1", Range: notNegative, Field: func(s *Settings) any { return &s.Pacing.ToolScale }},
	{Name: "max-think", Group: Load, File: true, Help: "limit think times to `TIME`, after time-scale-think and before speedup", Default: "no limit", Range: positive, Field: func(s *Settings) any { return &s.Pacing.MaxThink }},
	{Name: "speedup", Group: Load, Axis: true, Help: "divide all times by `X`", Default: "1", Range: positive, Field: func(s *Settings) any { return &s.Pacing.Speedup }},
	{Name: "ramp", Group: Load, Help: "ramp the rate up linearly from 0 over `TIME`, after speedup", Range: positive, Field: func(s *Settings) any { return &s.Pacing.Ramp }},
	{Name: "max-concurrency", Group: Load, Axis: true, Help: "at most `N` requests in flight; later ones wait in the client, and their queue time is measured", Default: "no limit", Range: mostConcurrent, Others: words("concurrency"), Field: func(s *Settings) any { return &s.MaxConcurrency }},
	{Name: "closed", Group: Load, Help: "closed loop: ignore the trace's arrivals and always keep max-concurrency requests, or max-sessions sessions, in progress", Field: func(s *Settings) any { return &s.Closed }},

	{Name: "answers", Group: Sessions, Help: "`SOURCE` of the earlier responses in later prompts: %s", Default: openai.AnswersFromTrace, Choices: noted(noted(choices(openai.AnswerModes()...), openai.AnswersFromTrace, "made up from block ids, like the rest of the prompt"), openai.LiveAnswers, "what the server generated; prompts keep the lengths of the trace"), Field: func(s *Settings) any { return &s.Client.Answers }},
	{Name: "max-sessions", Group: Sessions, Axis: true, Help: "at most `N` sessions in progress; the next one starts when one ends; an agent and its sub-agents are one session", Default: "no limit", Range: mostConcurrent, Field: func(s *Settings) any { return &s.Sessions.Open }},
	{Name: "max-turns", Group: Sessions, File: true, Help: "end sessions after `N` turns", Default: "no limit", Range: positive, Field: func(s *Settings) any { return &s.Sessions.Turns }},
	{Name: "cancel-after", Group: Sessions, Help: "abandon requests that are not complete `TIME` after they were sent, like a user who gives up; dependent requests are not sent", Default: "never", Range: positive, Field: func(s *Settings) any { return &s.Client.CancelAfter }},

	{Name: "duration", Group: Control, Help: "stop sending after `TIME`; requests in flight finish", Default: "no limit", Range: positive, Others: words("benchmark-duration max-seconds"), Field: func(s *Settings) any { return &s.Duration }},
	{Name: "timeout", Group: Control, Mode: Live, Help: "time limits of a request: `TOTAL[,FIRST[,IDLE]]`, to the end of its response, to its first token, and without a byte after it", Default: "1h,30m,2m", Others: words("request-timeout-seconds"), Field: func(s *Settings) any { return &timeouts{&s.Client} }},
	{Name: "retry", Group: Control, Mode: Live, Help: "retry requests that got 429 or 503 up to `N` times, after Retry-After or else 1 s, 2 s, 4 s", Range: fromTo(0, 100), Field: func(s *Settings) any { return &s.Retries }},
	{Name: "abort-after-errors", Group: Control, Mode: Live, Help: "stop the run after `N` failed requests", Default: "never", Range: positive, Field: func(s *Settings) any { return &s.MaxErrors }},
	{Name: "warmup-requests", Group: Control, Mode: Live, Help: "first send `N` unmeasured requests with the lengths of the trace but different text", Range: fromTo(0, 100_000), Others: words("num-warmups warmup-request-count"), Field: func(s *Settings) any { return &s.WarmupRequests }},
	{Name: "wait-ready", Group: Control, Mode: Live, Own: true, Here: true, Help: "wait up to `TIME` for the endpoint to become ready", Field: func(s *Settings) any { return &s.WaitReady }},
	{Name: "metrics-listen", Group: Control, Mode: Live, Own: true, Here: true, Help: "serve live Prometheus metrics at /metrics on `ADDRESS`, such as 127.0.0.1:9464", Default: "no metrics", Field: func(s *Settings) any { return &s.Output.MetricsListen }},
	{Name: "virtual", Group: Control, File: true, Help: "simulate in virtual time, without a client", Field: func(s *Settings) any { return &s.Virtual }},

	{Name: "part", Group: Machines, Mode: Live, Own: true, Here: true, Help: "send part `i/n` of the requests, with i from 1, while other processes send the others; auto takes i and n from Slurm, MPI or a Kubernetes Indexed Job", Field: func(s *Settings) any { return &s.Parts.Part }},
	{Name: "part-by", Group: Machines, Mode: Live, Own: true, Here: true, File: true, Help: "`UNIT` that is never split between parts: %s", Default: trace.BySession, Choices: noted(noted(choices(trace.PartUnits()...), trace.ByRequest, "with what waits for it"), trace.ByPrefix, "sessions that begin with the same block"), Field: func(s *Settings) any { return &s.Parts.By }},
	{Name: "rendezvous", Group: Machines, Mode: Live, Own: true, Here: true, Help: "`HOST:PORT` on which part 1 listens for the others", Default: "any port, which part 1 writes next to the run's folder", Field: func(s *Settings) any { return &s.Parts.Rendezvous }},
	{Name: "rendezvous-timeout", Group: Machines, Mode: Live, Own: true, Here: true, File: true, Help: "fail if a part has not arrived after `TIME`", Default: "5m", Range: positive, Field: func(s *Settings) any { return &s.Parts.Timeout }},

	{Name: "warmup-time", Group: Validity, Help: "exclude the first `TIME` of the run from the metrics", Field: func(s *Settings) any { return (*seconds)(&s.Window.WarmupSeconds) }},
	{Name: "cooldown-time", Group: Validity, Help: "exclude the last `TIME` of the run from the metrics", Field: func(s *Settings) any { return (*seconds)(&s.Window.CooldownSeconds) }},
	{Name: "exclude-first", Group: Validity, File: true, Help: "exclude the first `N` requests sent from the metrics", Range: notNegative, Field: func(s *Settings) any { return &s.Window.WarmupRequests }},
	{Name: "exclude-last", Group: Validity, File: true, Help: "exclude the last `N` requests sent from the metrics", Range: notNegative, Field: func(s *Settings) any { return &s.Window.CooldownRequests }},
	{Name: "verdict", Group: Validity, Help: "limits of the verdict, above which a run is INVALID: `LIMITS` such as lag=10ms,failed=5%; also lag-share (of the median TTFT), prompts and responses (shares with another length than requested)", Default: "lag=10ms,lag-share=5%,failed=5%,prompts=1%,responses=1%", Field: func(s *Settings) any { return &limits{&s.Thresholds} }},
	{Name: "server-metrics", Group: Validity, Mode: Live, Mask: secret.URL, Help: "Prometheus metrics `URL` of the server (vLLM, SGLang, TensorRT-LLM, Dynamo, llama.cpp) to record every second; repeatable", Field: func(s *Settings) any { return &s.ServerMetrics }},
	{Name: "server-block-size", Group: Validity, Mode: Live, File: true, Help: "block size of the server's prefix cache, in `TOKENS`, to predict cached tokens exactly", Default: "from the server's metrics", Range: positive, Field: func(s *Settings) any { return &s.ServerBlockSize }},

	{Name: "slo", Group: Gates, Own: true, Help: "comma-separated `CONDITIONS` that must hold, such as 'p99_ttft<2s,failed<1%'; repeatable", Field: func(s *Settings) any { return &s.Objectives.SLO }},
	{Name: "fail-if", Group: Gates, Own: true, Help: "comma-separated `CONDITIONS` that must not hold, such as 'p99_ttft>2s'; repeatable", Field: func(s *Settings) any { return &s.Objectives.FailIf }},
	{Name: "force", Group: Gates, Own: true, Help: "judge percentiles of too few requests and incomplete runs", Field: func(s *Settings) any { return &s.Objectives.Force }},
	{Name: "goodput", Group: Gates, Own: true, Help: "count the requests that meet `OBJECTIVES`, such as ttft:2000,tpot:25,e2el:30000 (ms)", Field: func(s *Settings) any { return &s.Objectives.Goodput }},

	{Name: "out", Group: Outputs, Own: true, Here: true, Help: "folder `DIR` for the results", Default: "a new folder under runs", Others: words("artifact-dir"), Field: func(s *Settings) any { return &s.Output.Dir }},
	{Name: "percentiles", Group: Outputs, Own: true, Help: "comma-separated `PERCENTILES` to show besides mean and median", Default: "99", Others: words("metric-percentiles"), Field: func(s *Settings) any { return &s.Output.Percentiles }},
	{Name: "keep-text", Group: Outputs, File: true, Help: "record text from the trace instead of its SHA-256", Field: func(s *Settings) any { return &s.Output.KeepText }},
	{Name: "no-chunk-times", Group: Outputs, Mode: Live, File: true, Help: "do not record the time of each token chunk (most of a record); ITL then comes from a histogram", Field: func(s *Settings) any { return &s.Output.NoChunkTimes }},

	{Name: "engine", Group: Engine, Help: "engine `FILE` written by moontide fit-engine, which the other settings of engines override, for both prefill and decode engines", Default: "about Llama 3.1 8B on one H100", Field: func(s *Settings) any { return &s.EngineFile }},
	{Name: "cache-generated", Group: Engine, Help: "keep generated tokens in the prefix cache, as vLLM and SGLang do; prompts with live responses reuse them", Field: func(s *Settings) any { return &s.CacheGenerated }},
}, engineSettings())

// engineSettings returns the settings of simulated engines.
func engineSettings() (rows []Setting) {
	more := map[string]Setting{
		"engines":                {Range: fromTo(1, engine.MaxEngines)},
		"prefill-engines":        {Range: fromTo(1, engine.MaxEngines)},
		"decode-engines":         {Range: fromTo(1, engine.MaxEngines)},
		"max-num-seqs":           {Range: fromTo(1, 1<<31-2)},
		"max-num-batched-tokens": {Range: fromTo(1, 1<<31-2)},
		"num-gpu-blocks":         {Range: fromTo(1, 1<<31-2)},
		"engine-block-size":      {Range: fromTo(1, 1<<31-2)},
		"max-model-len":          {Range: fromTo(1, 1<<31-2)},
		"routing":                {Choices: choices(routing.Policies()...)},
		"transfer-sharing":       {Choices: choices(engine.Sharings...)},
	}
	for _, p := range engine.Parameters {
		row := more[p.Name]
		row.Name, row.Group, row.Help = p.Name, Engine, p.Usage
		if row.Choices != nil {
			row.Help += ": %s"
		}
		_, count := p.Field(&engine.Deployment{}).(*int)
		row.Axis = count || p.Name == "routing"
		row.Field = func(s *Settings) any {
			if s.Engines.IsZero() {
				s.Engines = engine.Default()
			}
			switch field := p.Field(&s.Engines).(type) {
			case *int, *bool:
				return field
			}
			return parameter{p, &s.Engines}
		}
		if d := engine.Default(); !p.IsZero(&d) {
			row.Default = p.Text(&d)
		}
		rows = append(rows, row)
	}
	return rows
}

var byName = func() map[string]*Setting {
	rows := make(map[string]*Setting, len(Table))
	for i := range Table {
		rows[Table[i].Name] = &Table[i]
	}
	return rows
}()

var defaults = Settings{Engines: engine.Default()} // complete: many runs read it at once

// Find returns the row of a name, nil if there is none. Underscores are hyphens.
func Find(name string) *Setting { return byName[strings.ReplaceAll(name, "_", "-")] }

// Usage returns the help with the choices in place of %s.
func (row *Setting) Usage() string {
	var names []string
	for _, c := range row.Choices {
		if c.Note != "" {
			c.Name += " (" + c.Note + ")"
		}
		names = append(names, c.Name)
	}
	return strings.Replace(row.Help, "%s", listed(names), 1)
}

// suggestion ends a message about an unknown name with the most similar one.
func suggestion(name string) string {
	const least, boostFrom, prefix = 0.85, 0.7, 4
	best, likeness := "", least
	for i := range Table {
		if slices.Contains(Table[i].Others, name) {
			return "; did you mean " + Table[i].Name + "?"
		}
		if l := smetrics.JaroWinkler(strings.ReplaceAll(name, "_", "-"), Table[i].Name, boostFrom, prefix); l > likeness {
			best, likeness = Table[i].Name, l
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

func choices[T ~string](names ...T) (all []Choice) {
	for _, name := range names {
		all = append(all, Choice{Name: string(name)})
	}
	return all
}

// noted adds a note to a choice.
func noted(all []Choice, name, note string) []Choice {
	for i := range all {
		if all[i].Name == name {
			all[i].Note = note
		}
	}
	return all
}

func servers() (all []Choice) {
	names, titles := openai.Servers()
	for i, name := range names {
		all = append(all, Choice{name, titles[i]})
	}
	return all
}

func words(text string) []string { return strings.Fields(text) }
