package main

import (
	"github.com/urfave/cli/v2"

	"moontide/cmd/moontide/clidoc"
)

const appName = "moontide"

// manualOf returns the documentation of the command, or of the verbs in app.
func manualOf(app *cli.App) *clidoc.Manual {
	return &clidoc.Manual{
		App: app, Pages: verbPages, Groups: groups, OtherNames: otherNamesOf,
		Sections: []string{"Replay and measure", "Analyze traces", "Generate and convert traces", "Simulate", aboutItself},
		Examples: []string{
			"replay traces/conversation.jsonl",
			"analyze traces/conversation.jsonl",
			"bench --isl 500 --osl 50 --concurrency 1,2,4,8,16",
		},
		Elsewhere: map[string]clidoc.Reference{inEngine: {Verb: "serve", Text: "Flags of the simulated engines"}},
		Statuses:  exitStatuses, Environment: environment, Files: userFiles,
	}
}

// aboutItself is the section of the verbs that work with neither traces nor runs.
const aboutItself = "Help and setup"

var (
	traceArgument = clidoc.Values{Files: true}
	runArgument   = clidoc.Values{Folders: true}
)

var verbPages = map[string]clidoc.Page{
	"replay": {
		Section:   "Replay and measure",
		Arguments: traceArgument,
		Usage:     []string{"TRACE [FLAGS]"},
		Examples: []string{
			"traces/conversation.jsonl",
			"trace.jsonl --url http://127.0.0.1:8000 --speedup 2 --max-concurrency 64",
			"trace.jsonl --url http://127.0.0.1:8000 --endpoint chat --rate 20 --limit 500",
		},
		Common: []string{"url", "model", "endpoint", "limit", "speedup", "rate", maxConcurrencyFlag.Name, outFlag.Name},
	},
	"bench": {
		Section:   "Replay and measure",
		Arguments: traceArgument,
		Usage: []string{
			"--isl DIST --osl DIST (--concurrency N,N,... | --rate R,R,...) [FLAGS]",
			"TRACE [--speedup X,X,... | --rate R,R,... | --concurrency N,N,...] [FLAGS]",
		},
		Examples: []string{
			"--isl 3000 --osl 150 --concurrency 1,2,4,8,16,32 --out runs/sweep",
			"--isl 500 --osl 50 --rate 1,2,4,8 --url old=http://a:8000 --url new=http://b:8000",
			"trace.jsonl --speedup 0.5,1,2,4 --url http://127.0.0.1:8000 --slo 'p99_ttft<2s'",
		},
		Common: []string{"isl", "osl", "concurrency", "rate", "num-prompts", "url", "model", "out"},
	},
	"launch": {
		Section:   "Replay and measure",
		Arguments: clidoc.Values{Choices: clidoc.OneOf(slurmEngine, kubernetesEngine, mpiEngine)},
		Usage:     []string{"slurm|kubernetes|mpi [FLAGS] -- replay TRACE --url URL [FLAGS OF REPLAY]", "slurm|kubernetes|mpi [FLAGS] -- bench [FLAGS OF BENCH]"},
		Examples: []string{
			"slurm --ranks 8 -- replay trace.jsonl --url http://server:8000 | sbatch --nodes 4",
			"kubernetes --ranks 4 -- replay trace.jsonl.zst --url http://server:8000 | kubectl apply -f -",
			"mpi --ranks 4 -- replay trace.jsonl --url http://server:8000 > run.sh",
		},
		Common: []string{"ranks", "name", "image", "secret", "claim"},
	},
	"report": {
		Section:   "Replay and measure",
		Arguments: runArgument,
		Usage:     []string{"[LABEL=]RUN... [FLAGS]", "[LABEL=]SWEEP... [FLAGS]"},
		Examples: []string{
			"runs/a --percentiles 50,90,99 --goodput ttft:2000,tpot:50",
			"before=runs/a after=runs/b --markdown --png latencies.png",
			"runs/a --slo 'p99_ttft<2s,failed<1%'",
		},
		Common: []string{"metrics", "percentiles", "goodput", "json", "csv", "markdown", "html", "png"},
	},
	"compare": {
		Section:   "Replay and measure",
		Arguments: runArgument,
		Usage:     []string{"[NAME=]A[,A...] [NAME=]B[,B...] [FLAGS]"},
		Examples: []string{
			"runs/before runs/after",
			"old=runs/a1,runs/a2,runs/a3 new=runs/b1,runs/b2,runs/b3",
			"runs/before runs/after --fail-if 'p99_ttft_ms>+5%'",
		},
		Common: []string{"fail-if", "metric", "goodput", "force", "json", "markdown"},
	},
	"calibrate": {
		Section:  "Replay and measure",
		Usage:    []string{"[FLAGS]"},
		Examples: []string{"", "--json --out calibration.json"},
	},
	"analyze": {
		Section:   "Analyze traces",
		Arguments: traceArgument,
		Usage:     []string{"TRACE... [FLAGS]"},
		Examples: []string{
			"trace.jsonl --html trace.html",
			"trace.jsonl --cache lru,belady --capacities 64GiB,256GiB --kv-model llama-3.1-70b",
			"production.jsonl synthetic.jsonl --json",
		},
		Common: []string{"json", "markdown", "html", "png", "cache", "capacities", "kv-model", "workers"},
	},
	"check": {
		Section:   "Analyze traces",
		Arguments: traceArgument,
		Usage:     []string{"TRACE [FLAGS]"},
		Examples:  []string{"trace.jsonl", "azure.csv --json"},
	},
	"convert": {
		Section:   "Generate and convert traces",
		Arguments: traceArgument,
		Usage:     []string{"TRACE... [-o FILE] [FLAGS]"},
		Examples: []string{
			"azure.csv -o trace.jsonl.zst",
			"trace.jsonl --start 10m --end 20m --sample 0.1 -o part.jsonl",
			"a.jsonl b.jsonl --rate 20 --arrival poisson --seed 1 -o merged.jsonl",
		},
		Common: []string{"output", "limit", "start", "end", "rate", "speedup", "sample", "part"},
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
		Common: []string{"from", "method", "spec", "isl", "osl", "num-requests", "seed", "output"},
	},
	"fit": {
		Section:   "Generate and convert traces",
		Arguments: traceArgument,
		Usage:     []string{"TRACE [-o MODEL] [FLAGS]"},
		Examples:  []string{"production.jsonl -o model.json"},
	},
	"fit-engine": {
		Section:   "Simulate",
		Arguments: runArgument,
		Usage:     []string{"RUN... [-o FILE] [FLAGS]", "--table FILE [-o FILE] [FLAGS]", "--url URL [-o FILE] [FLAGS]"},
		Examples: []string{
			"--url http://127.0.0.1:8000 --out runs/engine -o engine.json --html fit.html",
			"runs/engine/* -o engine.json",
			"--table measurements.csv --prefill-engines 3 --decode-engines 1 --png fit.png",
		},
		Common: []string{"url", "table", "budget", "hold-out", "refit", "engine", "output", "html"},
	},
	"simulate": {
		Section:   "Simulate",
		Arguments: traceArgument,
		Usage:     []string{"TRACE [FLAGS]"},
		Examples: []string{
			"traces/agent.jsonl --prefill-engines 3 --decode-engines 1 --out runs/pd",
			"traces/conversation.jsonl --engines 1..8 --routing round-robin,prefix --png plan.png",
			"traces/conversation.jsonl --find engines --slo 'p90_ttft<500ms,p90_tpot<20ms'",
		},
		Common: []string{"limit", "speedup", "rate", "engines", "routing", "slo", "find", "out"},
	},
	"anonymize": {
		Section:   "Generate and convert traces",
		Arguments: traceArgument,
		Usage:     []string{"TRACE [-o FILE] [FLAGS]"},
		Examples: []string{
			"traffic.jsonl.zst -o shared.jsonl.zst",
			"traffic.jsonl.zst --time-grid 1s --hash-models --hash user --key team.key -o shared.jsonl.zst",
		},
	},
	"capture": {
		Section: "Generate and convert traces",
		Usage:   []string{"--upstream URL -o FILE [FLAGS]"},
		Examples: []string{
			"--upstream http://127.0.0.1:8000 -o traffic.jsonl.zst",
			"--upstream http://127.0.0.1:8000 -o traffic.jsonl.zst --rotate 1h --sample 1/10 --session-field metadata.chat_id",
		},
		Common: []string{"upstream", "listen", "output", "key", "tokenizer", "session-header", "sample", "metrics-listen"},
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
	"version": {
		Section:  aboutItself,
		Usage:    []string{"[FLAGS]"},
		Examples: []string{"--json"},
	},
	"licenses": {
		Section:  aboutItself,
		Usage:    []string{""},
		Examples: []string{""},
	},
	"completion": {
		Section:   aboutItself,
		Usage:     []string{"bash|zsh|fish"},
		Examples:  []string{"bash > ~/.local/share/bash-completion/completions/moontide", "zsh > ~/.zfunc/_moontide", "fish > ~/.config/fish/completions/moontide.fish"},
		Arguments: clidoc.Values{Choices: clidoc.Shells},
	},
	"man": {
		Section:   aboutItself,
		Usage:     []string{"DIR"},
		Examples:  []string{"/usr/local/share/man/man1"},
		Arguments: clidoc.Values{Folders: true},
	},
	"help": {
		Section:   aboutItself,
		Usage:     []string{"[VERB]"},
		Examples:  []string{"replay"},
		Arguments: clidoc.Values{Verbs: true},
	},
}

// exitStatuses lists the exit statuses, the one that prevails first.
var exitStatuses = []clidoc.Entry{
	{Term: "2", Text: "usage error: a wrong verb, flag, value or number of arguments"},
	{Term: "1", Text: "failed, or stopped early"},
	{Term: "5", Text: "the run ended because another part was lost or interrupted: restart all parts with --resume auto"},
	{Term: "3", Text: "measured, but the verdict of a run is INVALID"},
	{Term: "4", Text: "a gate (--slo, --fail-if) failed"},
	{Term: "0", Text: "success"},
}

// environment lists the environment variables that have an effect.
var environment = []clidoc.Entry{
	{Term: "OPENAI_API_KEY", Text: "API key, with --api-key-env OPENAI_API_KEY. The flag accepts any name; without it, no key is read."},
	{Term: "MOONTIDE_TOKEN", Text: "Secret of a distributed run whose parts share no folder; otherwise part 1 creates one."},
	{Term: "MOONTIDE_PARTS", Text: "Number of parts of a Kubernetes Indexed Job, for --part auto."},
	{Term: "XDG_CACHE_HOME", Text: "Folder of moontide/calibration.json (default: ~/.cache, on macOS ~/Library/Caches, on Windows %LocalAppData%)."},
	{Term: "TERM", Text: "With dumb, progress is printed line by line instead of on a live screen."},
	{Term: "TMPDIR", Text: "Folder for temporary copies of traces from pipes that are read more than once; on Windows, TEMP."},
	{Term: "GOMAXPROCS", Text: "Number of threads that run at once (default: the number of CPU cores, plus three with replay, bench, calibrate and serve)."},
	{Term: "SSL_CERT_FILE, SSL_CERT_DIR", Text: "CA certificates on Linux, unless --ca-file is given."},
}

// userFiles lists the files outside the folders named on the command line.
var userFiles = []clidoc.Entry{
	{Term: "runs/", Text: "Run folders without --out, in the current folder."},
	{Term: "~/.cache/moontide/calibration.json", Text: "Result of moontide calibrate, read by later runs."},
}
