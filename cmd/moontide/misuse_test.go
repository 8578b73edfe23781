package main

import (
	"net"
	"slices"
	"strings"
	"testing"
)

// Wrong input gives one clear line and the right exit status, and leaves
// nothing behind.
func TestMisuse(t *testing.T) {
	t.Parallel()
	good := `{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}` + "\n"
	shop := plainServer(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>")
	silent := plainServer(t, "220 mail.example ESMTP\r\n")
	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string // in the message
	}{
		"unknown verb":          {[]string{"replya", "good"}, 2, `unknown command "replya"; did you mean "replay"?`},
		"unknown flag":          {[]string{"replay", "good", "--sped", "2"}, 2, "replay: unknown flag --sped; did you mean --speed?"},
		"flag without value":    {[]string{"replay", "good", "--speedup"}, 2, "needs a value"},
		"not a number":          {[]string{"replay", "good", "--speedup", "fast"}, 2, `--speedup "fast" is not a number`},
		"no trace":              {[]string{"replay"}, 2, "missing argument: TRACE"},
		"two traces":            {[]string{"replay", "good", "good"}, 2, "want one argument, TRACE, got 2"},
		"negative speedup":      {[]string{"replay", "good", "--speedup", "-1"}, 2, "--speedup must be positive: -1"},
		"no speedup":            {[]string{"replay", "good", "--speedup=NaN"}, 2, "--speedup must be positive: NaN"},
		"negative limit":        {[]string{"replay", "good", "--limit", "-5"}, 2, "--limit must be positive"},
		"zero concurrency":      {[]string{"replay", "good", "--max-concurrency", "0"}, 2, "--max-concurrency must be positive"},
		"zero timeout":          {[]string{"replay", "good", "--timeout", "0s"}, 2, "--timeout must be positive"},
		"timeout in words":      {[]string{"replay", "good", "--timeout", "long"}, 2, `--timeout "long" is not a duration: use a number of seconds, or a unit as in 500ms, 90s, 10m, 1h30m`},
		"negative timeout":      {[]string{"replay", "good", "--timeout", "-60"}, 2, "--timeout -1m0s is negative"},
		"duration of no number": {[]string{"replay", "--duration", "NaN", "good"}, 2, "--duration NaN s is out of range"},
		"endless duration":      {[]string{"replay", "--duration=1e12", "good"}, 2, "--duration 1e12 s is out of range: use at most 8784h"},
		"endless time":          {[]string{"convert", "good", "--start", "9000h"}, 2, "out of range: use at most 8784h"},
		"described duration":    {[]string{"synth", "--isl", "3", "--osl", "1", "--duration", "-3"}, 2, "--duration -3s is negative"},
		"flag before the trace": {[]string{"replay", "--sped", "2", "good"}, 2, "did you mean --speed?"},
		"flag of one verb":      {[]string{"analyze", "good", "--concurrency", "2"}, 2, "analyze: unknown flag --concurrency; it is a flag of bench\nSee"},
		"flag of two verbs":     {[]string{"check", "good", "--find", "rate"}, 2, "check: unknown flag --find; it is a flag of bench\nSee"},
		"flag of many verbs":    {[]string{"replay", "good", "--html", "page.html"}, 2, "replay: unknown flag --html; it is a flag of bench, report, compare and "},
		"empty verb":            {[]string{""}, 2, `unknown command ""`},
		"empty flag":            {[]string{"replay", "good", "--=x"}, 2, "replay: unknown flag --"},
		"two models":            {[]string{"serve", "--model", "a", "--model", "b"}, 2, "serve: --model is given twice"},
		"removed verb":          {[]string{"anonymize", "good"}, 2, "there is no command anonymize: use moontide convert --anonymize"},
		"removed flag":          {[]string{"replay", "good", "--path", "/x"}, 2, "replay: no --path here: give the URL with its path"},
		"flag of nothing":       {[]string{"analyze", "--xyzzy"}, 2, "analyze: unknown flag --xyzzy\nSee"},
		"value of a switch":     {[]string{"analyze", "good", "--json=maybe"}, 2, "--json takes no value"},
		"flag for a value":      {[]string{"replay", "good", "--url", "--model", "m"}, 2, "flag --url needs a value"},
		"tokens in chat":        {[]string{"replay", "good", "--endpoint", "chat", "--prompt", "tokens"}, 2, "the chat endpoint takes text"},
		"unknown endpoint":      {[]string{"replay", "good", "--endpoint", "embeddings"}, 2, `--endpoint "embeddings" is unknown: use completions, chat, responses, messages or generate`},
		"bad url":               {[]string{"replay", "good", "--url", "localhost:8000"}, 2, "url is not http://host or https://host"},
		"bad header":            {[]string{"replay", "good", "--header", "token"}, 2, "--header 1 is not 'Name: value'"},
		"unset key":             {[]string{"replay", "good", "--api-key-env", "NO_SUCH_VARIABLE_HERE"}, 2, "--api-key-env is not the name of an environment variable that is set"},
		"missing file":          {[]string{"replay", "none.jsonl"}, 1, "none.jsonl: no such file"},
		"folder for a trace":    {[]string{"analyze", "."}, 1, "is a folder"},
		"not a trace":           {[]string{"replay", "csv"}, 1, `csv:1: not a JSON object: "TIMESTAMP,ContextTokens"`},
		"another tool's CSV":    {[]string{"replay", "csv"}, 1, `want JSON lines, or CSV with the header of azure, burstgpt or vidur`},
		"replayed window":       {[]string{"replay", "good", "--start", "5h"}, 1, "good: the trace has no requests from 5h0m0s on"},
		"window of a replay":    {[]string{"replay", "good", "--start", "5h", "--end", "6h"}, 1, "good: the trace has no requests from 5h0m0s to 6h0m0s"},
		"empty standard input":  {[]string{"replay", "-"}, 1, "standard input: the trace has no requests"},
		"a trace as a run":      {[]string{"report", "good"}, 1, "not a run's folder: good is a file"},
		"no prompt length":      {[]string{"bench", "--osl", "2", "--concurrency", "1"}, 2, "bench: --isl is missing"},
		"LFS pointer":           {[]string{"analyze", "lfs"}, 1, "lfs:1: a Git LFS pointer, not the file"},
		"empty trace":           {[]string{"replay", "empty"}, 1, "empty: the trace has no requests"},
		"empty trace, analyzed": {[]string{"analyze", "empty"}, 1, "empty: no requests"},
		"negative length":       {[]string{"replay", "negative"}, 1, `negative:2: input_length is out of range: "-1" tokens`},
		"absurd length":         {[]string{"analyze", "absurd"}, 1, `absurd:1: output_length is out of range: "1e12" tokens`},
		"back in time":          {[]string{"replay", "back"}, 1, "row 2 goes back in time, from 9 to 1 ms"},
		"nobody there":          {[]string{"replay", "good", "--url", "http://127.0.0.1:1"}, 1, "connection refused"},
		"a web page":            {[]string{"replay", "good", "--url", shop}, 1, "not a list of models"},
		"not HTTP":              {[]string{"replay", "good", "--url", silent}, 1, "asking " + silent},
		"folder in use":         {[]string{"replay", "good", "--out", "used"}, 1, "used exists and is not empty: choose a new folder"},
		"out is a file":         {[]string{"replay", "good", "--out", "csv"}, 1, "making run folder"},
		"not a run":             {[]string{"report", "used"}, 1, "not a run's folder"},
		"bad shard":             {[]string{"convert", "good", "--shard", "0/4"}, 2, "--part \"0/4\" is not i/n"},
		"empty window":          {[]string{"convert", "good", "--start", "5s", "--end", "5s"}, 2, "is empty"},
		"nothing in window":     {[]string{"convert", "good", "--start", "5h", "-o", "out"}, 1, "no requests left to write"},
		"bad law":               {[]string{"convert", "good", "--rate", "1", "--arrival", "uniform"}, 2, `--arrival "uniform" is unknown: use constant`},
		"zero rate":             {[]string{"convert", "good", "--rate", "0"}, 2, "--rate must be positive: 0"},
		"law without rate":      {[]string{"convert", "good", "--arrival", "gamma"}, 2, "--arrival and --burstiness need --rate"},
		"bad row, converted":    {[]string{"convert", "negative", "-o", "out"}, 1, "negative:2: input_length"},
		"no source":             {[]string{"synth", "--num-requests", "3"}, 2, "no source: use --from TRACE, --spec FILE"},
		"tree of any size":      {[]string{"synth", "--from", "good", "--method", "tree"}, 2, "synth: --method tree needs --num-requests"},
		"negative seed":         {[]string{"synth", "--from", "good", "--seed", "-1"}, 2, `invalid value "-1" for flag -seed: use a whole number from 0 to 18446744073709551615`},
		"no number":             {[]string{"synth", "--from", "good", "-n", "0"}, 2, "--num-requests must be positive: 0"},
		"unknown policy":        {[]string{"analyze", "good", "--cache", "arc"}, 2, "arc"},
		"size without unit":     {[]string{"analyze", "good", "--capacities", "64G"}, 2, "64G"},
		"bytes of no model":     {[]string{"analyze", "good", "--capacities", "64GiB"}, 2, "need --kv-model or --kv-bytes-per-token"},
		"unknown model":         {[]string{"analyze", "good", "--kv-model", "hal-9000"}, 2, "hal-9000"},
		"unknown routing":       {[]string{"analyze", "good", "--routing", "best"}, 2, "best"},
		"no workers":            {[]string{"analyze", "good", "--workers", "0"}, 2, "--workers must be from 1 to 4096: 0"},
		"more workers than any": {[]string{"analyze", "good", "--workers", "100000000"}, 2, "--workers must be from 1 to 4096: 100000000"},
		"routing to nobody":     {[]string{"analyze", "good", "--routing", "random"}, 2, "--routing needs --workers"},
		"no policy":             {[]string{"analyze", "good", "--cache", ""}, 2, "--cache is empty"},
		"no capacity":           {[]string{"analyze", "good", "--capacities", " "}, 2, "--capacities is empty"},
		"half a list":           {[]string{"analyze", "good", "--cache", "lru,"}, 2, `--cache "" is unknown`},
		"a size beyond all":     {[]string{"analyze", "good", "--capacities", "2000000000000000000", "--cache", "fifo"}, 2, "2000000000000000000 blocks hold more tokens than any cache"},
		"infinite tokens":       {[]string{"analyze", "good", "--kv-bytes-per-token", "inf"}, 2, "--kv-bytes-per-token must be from 1 to 1000000000: +Inf"},
		"no bytes":              {[]string{"analyze", "good", "--kv-bytes-per-token", "1e-300", "--capacities", "64GiB"}, 2, "--kv-bytes-per-token must be from 1 to 1000000000: 1e-300"},
		"two sizes of a token":  {[]string{"analyze", "good", "--kv-model", "llama-3.1-8b", "--kv-bytes-per-token", "5"}, 2, "exclude each other"},
		"type of no model":      {[]string{"analyze", "good", "--kv-dtype", "fp8"}, 2, "--kv-dtype needs --kv-model"},
		"unknown type":          {[]string{"analyze", "good", "--kv-model", "llama-3.1-8b", "--kv-dtype", "int3"}, 2, `"int3" is unknown: use bf16`},
		"two forms":             {[]string{"analyze", "good", "--json", "--markdown"}, 2, "--json and --markdown: choose one"},
		"curve and text":        {[]string{"analyze", "good", "--csv", "--json"}, 2, "--json and --csv: choose one"},
		"one file for two":      {[]string{"analyze", "good", "--html", "x", "--png", "./x"}, 2, "--html and --png name the same file: ./x"},
		"two on one stream":     {[]string{"analyze", "good", "--html", "-", "--png", "-"}, 2, "--html and --png name the same file: -"},
		"page and JSON":         {[]string{"analyze", "good", "--html", "-", "--json"}, 2, "--html - and --json: only one can be standard output"},
		"page over a trace":     {[]string{"analyze", "good", "back", "--html", "./back"}, 2, "--html ./back would overwrite its input back"},
		"picture over a trace":  {[]string{"analyze", "good", "--png", "used/../good"}, 2, "--png used/../good would overwrite its input good"},
		"page of no name":       {[]string{"analyze", "good", "--html", ""}, 2, "--html names no file"},
		"picture for a folder":  {[]string{"analyze", "good", "--png", "used"}, 1, "writing used is a folder"},
		"picture nowhere":       {[]string{"analyze", "good", "--png", "none/x.png"}, 1, "writing none/x.png: no such file or directory"},
		"standard input twice":  {[]string{"analyze", "-", "-"}, 2, "standard input can be read only once"},
		"a name that commands":  {[]string{"analyze", "a\x1b[2Jb"}, 1, `opening trace: open a\x1b[2Jb: no such file`},
		"curve without ids":     {[]string{"analyze", "noids", "--csv"}, 1, "no row has block ids"},
		"bad block size":        {[]string{"analyze", "good", "--block-size", "-3"}, 2, "--block-size must be from 0 to"},
		"a port in use":         {[]string{"serve", "--listen", strings.TrimPrefix(silent, "http://")}, 1, "choose another with --listen"},
		"nowhere to listen":     {[]string{"serve", "--listen", "127.0.0.1:999999"}, 1, "serving: "},
		"negative step":         {[]string{"serve", "--step-base", "-1s"}, 2, "--step-base -1s is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "good", good)
			write(t, dir, "csv", "TIMESTAMP,ContextTokens\r\n2023-11-16 18:15:46.6805900,374\r\n")
			write(t, dir, "lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
			write(t, dir, "empty", "")
			write(t, dir, "negative", good+`{"timestamp": 0, "input_length": -1, "output_length": 1}`+"\n")
			write(t, dir, "absurd", `{"timestamp": 0, "input_length": 1, "output_length": 1e12}`+"\n")
			write(t, dir, "back", `{"timestamp": 9, "input_length": 1, "output_length": 1}`+"\n"+`{"timestamp": 1, "input_length": 1, "output_length": 1}`+"\n")
			write(t, dir, "noids", `{"timestamp": 0, "input_length": 1, "output_length": 1}`+"\n")
			mkdir(t, dir, "used")
			write(t, dir, "used/notes.txt", "mine")
			before := files(t, dir)

			r := try(t, dir, "", tc.args...)
			if r.status != tc.status || !strings.Contains(r.err, tc.want) {
				t.Errorf("exit status %d, want %d; it says\n%s\nwant in it\n%s", r.status, tc.status, r.err, tc.want)
			}
			if r.out != "" {
				t.Errorf("data on standard output: %q", r.out)
			}
			if lines := strings.Count(r.err, "\n"); lines > 3 {
				t.Errorf("it talks for %d lines:\n%s", lines, r.err)
			}
			if after := files(t, dir); !slices.Equal(before, after) {
				t.Errorf("files are %v, were %v", after, before)
			}
		})
	}
}

// plainServer answers every request with a fixed text.
func plainServer(t *testing.T, answer string) (url string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				conn.Read(make([]byte, 4096))
				conn.Write([]byte(answer))
				conn.Close()
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

// Every verb has exit status 2 for a flag that no verb has, and every verb with objectives
// for one on a metric that does not exist, with the name that was probably meant.
func TestMisuseOfEachVerb(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, verb := range newApp(streams{}, stop{}).VisibleCommands() {
		r := try(t, dir, "", verb.Name, "--xyzzy")
		if r.status != exitMisused || !strings.Contains(r.err, verb.Name+": unknown flag --xyzzy") || r.out != "" {
			t.Errorf("%s --xyzzy: exit status %d\n%s%s", verb.Name, r.status, r.out, r.err)
		}
		if !slices.Contains(flagNames(verb), "slo") {
			continue
		}
		args := []string{verb.Name}
		switch verb.Name {
		case "replay", "simulate":
			args = append(args, sample(t))
		case "bench":
			args = append(args, "--isl", "20", "--osl", "2", "--concurrency", "1", "--virtual")
		case "report":
			args = append(args, "run")
		case "compare":
			args = append(args, "run", "other")
		}
		r = try(t, dir, "", append(args, "--slo", "p99_tft_ms<2000")...)
		if r.status != exitMisused || !strings.Contains(unwrapped(r.err), "such as p99_ttft_ms") || r.out != "" {
			t.Errorf("%v --slo p99_tft_ms<2000: exit status %d\n%s%s", args, r.status, r.out, r.err)
		}
	}
}
