package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// otherName is a flag of vLLM's bench serve, AIPerf, guidellm or an earlier moontide. It is an
// alias of moontide's equivalent; without one, the error names moontide's flags.
type otherName struct {
	names []string
	flags []string // equivalents; a verb uses the first that it has
	// convert converts the value for moontide's flag; nil keeps it.
	convert func(string) (string, error)
	// verbs accept the flag without effect, because moontide always does so, or refuse it
	// with what to use instead.
	verbs   []string
	instead string
}

var (
	runVerbs   = []string{"replay", "bench"}
	sendVerbs  = []string{"replay", "bench", "simulate"}
	shapeVerbs = []string{"bench", "synth"}
)

var otherNames = []otherName{
	{names: words("base-url target"), flags: words("url")},
	{names: words("backend endpoint-type request-type"), flags: words("endpoint"), convert: apiOf},
	{names: words("served-model-name"), verbs: runVerbs, instead: "use --model NAME, which is the name in the requests"},
	{names: words("processor"), flags: words("tokenizer")},
	{names: words("request-rate"), flags: words("rate")},
	{names: words("request-rate-mode arrival-pattern"), flags: words("arrival")},
	{names: words("arrival-smoothness"), flags: words("burstiness")},
	{names: words("request-count num-requests max-requests num-prompts"), flags: words("limit num-prompts num-requests")},
	{names: words("benchmark-duration max-seconds"), flags: words("duration")},
	{names: words("request-timeout-seconds"), flags: words("timeout")},
	{names: words("num-warmups warmup-request-count num-warmup-requests"), flags: words("warmup-requests")},
	{names: words("ready-check-timeout-sec"), flags: words("wait-ready")},
	{names: words("max-errors"), flags: words("abort-after-errors")},
	{names: words("random-seed"), flags: words("seed")},
	{names: words("fixed-schedule-start-offset"), flags: words("start"), convert: inMilliseconds},
	{names: words("fixed-schedule-end-offset"), flags: words("end"), convert: inMilliseconds},
	{names: words("random-input-len synthetic-input-tokens-mean"), flags: words("isl")},
	{names: words("random-output-len output-tokens-mean"), flags: words("osl")},
	{names: words("metric-percentiles"), flags: words("percentiles")},
	{names: words("percentile-metrics"), flags: words("metrics")},
	{names: words("artifact-dir output-artifact-dir"), flags: words("out")},
	{names: words("output-file"), flags: words("out")},
	{names: words("o"), flags: words(outputFlag), convert: asEngineFile},
	{names: words("no-enable-prefix-caching"), flags: words("no-prefix-cache")},

	{names: words("ignore-eos streaming save-result save-detailed"), verbs: runVerbs},
	{names: words("fixed-schedule"), verbs: words("replay simulate")},

	{names: words("concurrency"), verbs: words("replay simulate"),
		instead: "for a closed loop use --closed --max-concurrency N, to limit requests in flight --max-concurrency N, for a sweep moontide bench --concurrency N,N,..."},
	{names: words("request-cancellation-delay request-cancellation-rate"), verbs: sendVerbs, instead: "use --cancel-after TIME, which abandons every request that is not complete by then"},
	{names: words("conversation-concurrency num-users users"), verbs: sendVerbs, instead: "use --max-sessions N for N sessions at a time, with --closed if they are to start as soon as possible"},
	{names: words("rate-type profile"), verbs: sendVerbs,
		instead: "use --rate R --arrival constant or poisson for a rate, --closed --max-concurrency N for a fixed concurrency, and moontide bench for a sweep"},
	{names: words("dataset-name dataset-path custom-dataset-type"), verbs: sendVerbs,
		instead: "give the trace as an argument, its format is auto-detected; --dataset FILE fills prompts with text"},
	{names: words("input-file"), verbs: words("replay simulate analyze check convert fit"), instead: "give the trace as an argument"},
	{names: words("input-file"), flags: words("from")},
	{names: words("data"), verbs: sendVerbs, instead: "describe requests with moontide bench --isl DIST --osl DIST, or give a trace as an argument"},
	{names: words("random-prefix-len shared-system-prompt-length"), verbs: shapeVerbs, instead: "use --shared-len N with --unique-isl for the rest of the prompt"},
	{names: words("num-sessions conversation-num session-turns-mean conversation-turn-mean"), verbs: shapeVerbs, instead: "use --turns DIST for conversations, and --num-requests or --num-prompts for their number of requests"},
	{names: words("api-key"), verbs: runVerbs, instead: "use --api-key-env VARIABLE; other users can read a key on the command line"},
	{names: words("extra-inputs"), verbs: runVerbs, instead: "use --extra-body JSON"},
	{names: words("closed ramp limit"), verbs: words("bench"),
		instead: "use --concurrency N,N,... for closed loops, or --rate R,R,..., with --num-prompts"},
	{names: words("url base-url target host port"), verbs: words("simulate"), instead: "the engines run in virtual time: use moontide replay to send requests"},
	{names: words("result-dir result-filename output-path"), verbs: sendVerbs, instead: "use --out DIR for the run's folder, and moontide report for its results in other forms"},
	{names: words("part part-by rendezvous"), verbs: words("bench"), instead: "moontide replay --part runs one load on several machines"},
	{names: words("events"), verbs: runVerbs, instead: "read samples.jsonl in the run folder, for example with tail -f"},
	{names: words("keep-reasoning"), verbs: runVerbs, instead: "reasoning is omitted from later prompts"},
	{names: words("find"), verbs: words("simulate"), instead: "use a list such as --engines 1..16 with --slo, or moontide bench --virtual --find speedup or concurrency"},
	{names: words("draws"), verbs: words("simulate"), instead: "the held-out error is shown with each answer"},
	{names: words("json"), verbs: words("fit-engine"), instead: "use --output csv, and the engine file of -o"},
	{names: words("format"), verbs: words("report"), instead: "use --output vllm, dynamo, moreh or aiperf"},
	{names: words("deployment"), verbs: words("fit-engine"), instead: "give a table for each deployment"},
	{names: words("goodput percentile-metrics"), verbs: sendVerbs, instead: "use it with moontide report, on the run's folder"},
}

func words(text string) []string { return strings.Fields(text) }

// findOther returns the verb's equivalent of another tool's flag, or "" if it
// has none.
func findOther(verb *cli.Command, name string) (*otherName, string) {
	for i, other := range otherNames {
		if !slices.Contains(other.names, name) {
			continue
		}
		if slices.Contains(other.verbs, verb.Name) {
			return &otherNames[i], ""
		}
		if flag := other.flagOf(verb.Flags); flag != "" {
			return &otherNames[i], flag
		}
	}
	return nil, ""
}

func (o *otherName) flagOf(flags []cli.Flag) string {
	for _, name := range o.flags {
		if slices.ContainsFunc(flags, func(f cli.Flag) bool { return f.Names()[0] == name }) {
			return name
		}
	}
	return ""
}

// apiOf returns the API of a path or of another tool's backend.
func apiOf(value string) (string, error) {
	switch strings.ToLower(value) {
	case "/v1/completions", "v1/completions", "completions", "text_completions", "vllm", "openai":
		return "completions", nil
	case "/v1/chat/completions", "v1/chat/completions", "chat", "chat_completions", "openai-chat":
		return "chat", nil
	}
	return value, nil
}

// asEngineFile is the value of -o of fit-engine.
func asEngineFile(path string) (string, error) { return engineForm + "=" + path, nil }

func inMilliseconds(value string) (string, error) { return value + "ms", nil }
