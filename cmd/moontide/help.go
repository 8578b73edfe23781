package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

//go:generate go test -run "^Test(Reference|Schema)" . -update-docs

const appName = "moontide"

// helpWidth is the width of all help texts in columns.
const helpWidth = 80

// verbPage is the documentation of a verb besides its [cli.Command].
type verbPage struct {
	Section  string   // in the list of verbs
	Usage    []string // printed after the name of the verb
	Examples []string // the same
	Common   []string // the most used flags
}

// Help has at most 80 columns, and flags by group, each above its text: first those that are
// used most. Only that of serve has all flags of engines.
func init() {
	cli.HelpPrinter = func(w io.Writer, page string, data any) {
		cli.HelpPrinterCustom(w, page, data, map[string]any{
			"wrapAt": func() int { return helpWidth },
			"page":   func(verb string) verbPage { return verbPages[verb] },
			"groups": groupsOf,
		})
	}
	cli.FlagStringer = flagHelp
	cli.CommandHelpTemplate = `{{$command := .HelpName}}{{wrap (printf "%s - %s" .HelpName .Usage) 0}}

USAGE
{{range (page .Name).Usage}}  {{$command}} {{.}}
{{end}}
EXAMPLES
{{range (page .Name).Examples}}  {{$command}} {{.}}
{{end}}{{if .Description}}
{{wrap .Description 0}}
{{end}}{{range groups .}}
{{.Name}}
{{if .Elsewhere}}  Flags of the simulated engines: see 'moontide serve --help'.
{{else}}{{range .Flags}}  {{wrap .String 8}}
{{end}}{{end}}{{end}}`
	cli.SubcommandHelpTemplate = cli.CommandHelpTemplate
	cli.VersionPrinter = func(c *cli.Context) {
		fmt.Fprintf(c.App.Writer, "moontide %s\n%s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
}

// flagGroup is a group of flags in the help of a verb.
type flagGroup struct {
	Name      string
	Flags     []cli.Flag
	Elsewhere bool // are in the help of serve
}

// groupsOf returns the groups of a verb's flags, each flag once.
func groupsOf(verb *cli.Command) (groups []flagGroup) {
	const mostEngineFlags = 6
	var used []cli.Flag
	common := verbPages[verb.Name].Common
	for _, name := range common {
		used = append(used, findFlag(verb.Flags, name))
	}
	if used != nil {
		groups = append(groups, flagGroup{Name: "MOST USED", Flags: used})
	}
	for _, category := range verb.VisibleFlagCategories() {
		g := flagGroup{Name: cmp.Or(category.Name(), "HELP")}
		for _, f := range category.Flags() {
			if !slices.Contains(common, f.Names()[0]) {
				g.Flags = append(g.Flags, f)
			}
		}
		g.Elsewhere = g.Name == inEngine && verb.Name != "serve" && len(g.Flags) > mostEngineFlags
		if len(g.Flags) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// flagHelp returns the names of a flag, and below them its text with the default.
func flagHelp(f cli.Flag) string {
	flag := f.(cli.DocGenerationFlag)
	placeholder, text := "", flag.GetUsage()
	if before, rest, found := strings.Cut(text, "`"); found {
		name, after, _ := strings.Cut(rest, "`")
		placeholder, text = name, before+name+after
		if before == "" {
			text = strings.TrimPrefix(text, name+": ")
		}
	}
	if flag.TakesValue() {
		value := "VALUE"
		switch f := f.(type) {
		case *cli.IntFlag, *cli.Uint64Flag:
			value = "N"
		case *settingFlag:
			value = f.placeholder()
		}
		placeholder = cmp.Or(placeholder, value)
	}
	if value := strings.Trim(flag.GetDefaultText(), `"`); flag.TakesValue() && !slices.Contains([]string{"", "0", "0s", "[]"}, value) {
		text += " (default: " + plainDuration(value) + ")"
	}
	return cli.FlagNamePrefixer(f.Names(), placeholder) + "\n" + text
}

// plainDuration removes "0m0s" and "0s" from the text of a duration.
func plainDuration(text string) string {
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

var verbPages = map[string]verbPage{
	"replay": {
		Section: "Replay and measure",
		Usage:   []string{"TRACE [FLAGS]"},
		Examples: []string{
			"traces/conversation.jsonl",
			"trace.jsonl --url http://127.0.0.1:8000 --speedup 2 --max-concurrency 64",
			"trace.jsonl --url http://127.0.0.1:8000 --endpoint chat --rate 20 --limit 500",
		},
		Common: words("url model limit rate max-concurrency slo goodput html"),
	},
	"bench": {
		Section: "Replay and measure",
		Usage: []string{
			"--isl DIST --osl DIST (--max-concurrency N,N,... | --rate R,R,...) [FLAGS]",
			"TRACE [--speedup X,X,... | --rate R,R,... | --max-concurrency N,N,...] [FLAGS]",
		},
		Examples: []string{
			"--isl 3000 --osl 150 --max-concurrency 1,2,4,8,16,32 --out runs/sweep",
			"--isl 500 --osl 50 --rate 1,2,4,8 --url old=http://a:8000 --url new=http://b:8000",
			"trace.jsonl --speedup 0.5,1,2,4 --url http://127.0.0.1:8000 --slo 'p99_ttft<2s'",
		},
		Common: words("isl osl max-concurrency rate url slo goodput html"),
	},
	"report": {
		Section: "Replay and measure",
		Usage:   []string{"[LABEL=]RUN... [FLAGS]", "[LABEL=]SWEEP... [FLAGS]"},
		Examples: []string{
			"runs/a --percentiles 50,90,99 --goodput ttft:2000,tpot:50",
			"before=runs/a after=runs/b --output markdown --output png=latencies.png",
			"runs/a --slo 'p99_ttft<2s,failed<1%'",
		},
		Common: []string{"metrics", "percentiles", "goodput", "output", "json", "html"},
	},
	"compare": {
		Section: "Replay and measure",
		Usage:   []string{"[NAME=]A[,A...] [NAME=]B[,B...] [FLAGS]"},
		Examples: []string{
			"runs/before runs/after",
			"old=runs/a1,runs/a2,runs/a3 new=runs/b1,runs/b2,runs/b3",
			"runs/before runs/after --fail-if 'p99_ttft_ms>+5%'",
		},
		Common: []string{"fail-if", "metric", "goodput", "force", "output", "json"},
	},
	"calibrate": {
		Section:  "Replay and measure",
		Usage:    []string{"[FLAGS]"},
		Examples: []string{"", "--out calibration.json"},
	},
	"analyze": {
		Section: "Analyze traces",
		Usage:   []string{"[LABEL=]TRACE... [FLAGS]"},
		Examples: []string{
			"trace.jsonl --html trace.html",
			"trace.jsonl --cache lru,belady --capacities 64GiB,256GiB --kv-bytes-per-token 327680",
			"production.jsonl synthetic.jsonl --json",
		},
		Common: []string{"output", "json", "html", "cache", "capacities", "workers"},
	},
	"check": {
		Section:  "Analyze traces",
		Usage:    []string{"TRACE [FLAGS]"},
		Examples: []string{"trace.jsonl", "azure.csv --json"},
	},
	"convert": {
		Section: "Generate and convert traces",
		Usage:   []string{"TRACE... [-o FILE] [FLAGS]"},
		Examples: []string{
			"azure.csv -o trace.jsonl.zst",
			"trace.jsonl --start 10m --end 20m --sample 0.1 -o part.jsonl",
			"a.jsonl b.jsonl --rate 20 --arrival poisson --seed 1 -o merged.jsonl",
		},
		Common: []string{"out", "limit", "start", "end", "rate", "speedup", "sample", "part"},
	},
	"synth": {
		Section: "Generate and convert traces",
		Usage: []string{
			"--from TRACE [-o FILE] [FLAGS]",
			"--spec FILE [-o FILE] [FLAGS]",
			"--isl DIST --osl DIST [-o FILE] [FLAGS]",
		},
		Examples: []string{
			"--from production.jsonl -n 10000 --seed 1 -o more.jsonl",
			"--isl lognormal:3000:1 --osl 150 --rate 4 --duration 10m -o trace.jsonl",
			"--from trace.jsonl --method tree -n 10000 --prefix-len-multiplier 2",
		},
		Common: []string{"from", "method", "spec", "isl", "osl", "num-requests", "seed", "out"},
	},
	"fit": {
		Section:  "Generate and convert traces",
		Usage:    []string{"TRACE [-o MODEL] [FLAGS]"},
		Examples: []string{"production.jsonl -o model.gz"},
	},
	"fit-engine": {
		Section: "Simulate",
		Usage:   []string{"RUN... [-o FILE] [FLAGS]", "--table FILE [-o FILE] [FLAGS]", "--url URL [-o FILE] [FLAGS]"},
		Examples: []string{
			"--url http://127.0.0.1:8000 --out runs/engine -o engine.json --html fit.html",
			"runs/engine/* -o engine.json",
			"--table measurements.csv --prefill-engines 3 --decode-engines 1 --output png=fit.png",
		},
		Common: []string{"url", "table", "refit-prefill", "engine", "output", "html"},
	},
	"simulate": {
		Section: "Simulate",
		Usage:   []string{"TRACE [FLAGS]"},
		Examples: []string{
			"traces/agent.jsonl --prefill-engines 3 --decode-engines 1 --out runs/pd",
			"traces/conversation.jsonl --engines 1..8 --routing round-robin,prefix --output png=plan.png",
			"traces/conversation.jsonl --engines 1..16 --slo 'p90_ttft<500ms,p90_tpot<20ms'",
		},
		Common: []string{"limit", "speedup", "rate", "engines", "routing", "slo", "out"},
	},
	"capture": {
		Section: "Generate and convert traces",
		Usage:   []string{"--upstream URL -o FILE [FLAGS]"},
		Examples: []string{
			"--upstream http://127.0.0.1:8000 -o traffic.jsonl.zst",
			"--upstream http://127.0.0.1:8000 -o traffic.jsonl.zst --rotate 1h --sample 0.1 --session-field metadata.chat_id",
		},
		Common: []string{"upstream", "listen", "out", "key", "tokenizer", "session-header", "sample", "metrics-listen"},
	},
	"serve": {
		Section: "Simulate",
		Usage:   []string{"[FLAGS]"},
		Examples: []string{
			"--listen 127.0.0.1:8000 --engines 2 --routing prefix",
			"--fault reset:0.01 --time-scale 10",
		},
		Common: []string{"listen", "model", "engines", "routing", "time-scale", "fault"},
	},
}
