package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"moontide/replay/settings"
)

// Flags of other tools work here, in any position.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	app := newApp(streams{}, stop{})
	for _, test := range []struct{ line, want string }{
		// vLLM
		{"replay t --base-url http://a:1 --num-prompts 5", "replay --url=http://a:1 --limit=5 -- t"},
		{"replay --host a --port 9 t", "replay --url=http://a:9 -- t"},
		{"replay t --port 9", "replay --url=http://127.0.0.1:9 -- t"},
		{"replay t --host ::1", "replay --url=http://[::1]:8000 -- t"},
		{"serve --host 0.0.0.0 --port 9", "serve --listen=0.0.0.0:9 --"},
		{"replay t --endpoint /v1/chat/completions", "replay --endpoint=chat -- t"},
		{"replay t --endpoint /v1/completions --ignore-eos", "replay --endpoint=completions -- t"},
		{"replay t --backend openai-chat", "replay --endpoint=chat -- t"},
		{"replay t --request-rate 4 --burstiness 0.5", "replay --rate=4 --burstiness=0.5 -- t"},
		{"replay t --request-rate inf --max-concurrency 8", "replay --rate=inf --max-concurrency=8 -- t"},
		{"bench --request-rate inf --max-concurrency 8 --isl 1 --osl 1", "bench --rate=inf --max-concurrency=8 --isl=1 --osl=1 --"},
		{"replay t --metric-percentiles 50,90", "replay --percentiles=50,90 -- t"},
		{"bench --random-input-len 1 --random-output-len 2 --request-rate 1,2", "bench --isl=1 --osl=2 --rate=1,2 --"},
		{"replay t --num-warmups 3 --save-result", "replay --warmup-requests=3 -- t"},
		{"report r --metric-percentiles 50,90", "report --percentiles=50,90 -- r"},
		// AIPerf
		{"replay t --request-count 5 --benchmark-duration 30 --random-seed 3", "replay --limit=5 --duration=30 --seed=3 -- t"},
		{"bench --isl 1 --osl 1 --concurrency 4,8 --num-prompts 5", "bench --isl=1 --osl=1 --max-concurrency=4,8 --limit=5 --"},
		{"synth --from t --num-prompts 3 --output-file o", "synth --from=t --num-requests=3 --out=o --"},
		// guidellm
		{"replay t --target http://a:1 --max-seconds 2.5", "replay --url=http://a:1 --duration=2.5 -- t"},
	} {
		got, err := parseArgs(app, strings.Fields(test.line))
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s\nbecame %q (%v)\nwant   %q", test.line, got, err, test.want)
		}
	}
}

// The table names existing flags and verbs and hides no flag of moontide.
func TestOtherNamesTable(t *testing.T) {
	t.Parallel()
	verbs := allVerbs()
	for _, other := range slices.Concat(otherNames, olderNames) {
		for _, verb := range verbs {
			for _, name := range other.names {
				if slices.Contains(other.verbs, verb.Name) && hasFlag(verb.Flags, name) {
					t.Errorf("%s has a --%s of its own", verb.Name, name)
				}
			}
		}
		for _, name := range other.verbs {
			if _, ok := verbPages[name]; !ok {
				t.Errorf("%v: there is no verb %s", other.names, name)
			}
		}
	}
	for _, row := range settings.Table {
		for _, name := range row.Others {
			if settings.Find(name) != nil || !slices.ContainsFunc(verbs, func(verb *cli.Command) bool { flag, _ := findOther(verb, name); return flag != "" }) {
				t.Errorf("no verb has a flag for %s, or there is a setting of that name", name)
			}
		}
	}
}
