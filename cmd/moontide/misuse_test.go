package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"moontide/trace/tracetest"
)

// argument is a word of a command in testdata/misuse.txt; quotes keep spaces.
var argument = regexp.MustCompile(`(?:'[^']*'|[^\s'])+`)

// Wrong input gives a clear message and the right exit status, prints nothing, and leaves
// nothing behind. No secret is repeated.
func TestMisuse(t *testing.T) {
	t.Parallel()
	dir := misusedFolder(t)
	before, there := contents(t, dir), files(t, dir)
	unmentioned := map[string]bool{}
	for _, v := range verbs() {
		unmentioned[v.name] = true
	}
	var got strings.Builder
	for line := range strings.Lines(readFile(t, "testdata/misuse.txt")) {
		if strings.HasPrefix(line, " ") { // what a command said
			continue
		}
		got.WriteString(line)
		if line == "\n" || strings.HasPrefix(line, "#") {
			continue
		}
		var args []string
		for _, word := range argument.FindAllString(line, -1) {
			args = append(args, strings.ReplaceAll(word, "'", ""))
		}
		r := try(t, dir, "", args...)
		if r.out != "" || strings.Contains(r.err, "secret") {
			t.Errorf("%s prints %q and says %s", line, r.out, r.err)
		}
		said := strings.TrimPrefix(strings.TrimSpace(r.err), "moontide: ")
		if r.status == exitMisused {
			delete(unmentioned, args[0])
			said, _, _ = strings.Cut(said, "\nSee moontide ")
		}
		fmt.Fprintf(&got, "  %d  %s\n", r.status, strings.ReplaceAll(said, "\n", "\n     "))
	}
	tracetest.Golden(t, "testdata/misuse.txt", got.String())
	for verb := range unmentioned {
		t.Errorf("no command misuses %s", verb)
	}
	if contents(t, dir) != before {
		t.Errorf("files are %q, were %q, or others have been written to", files(t, dir), there)
	}
}

// misusedFolder returns a folder with the files that the commands of testdata/misuse.txt
// name.
func misusedFolder(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const good = `{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}` + "\n"
	mkdir(t, dir, "used")
	mkdir(t, dir, "foreign")
	table := tableOf(t, measuredEngine())
	lines := strings.SplitAfter(table, "\n")
	for name, text := range map[string]string{
		"good":             good,
		"csv":              "TIMESTAMP,ContextTokens\r\n2023-11-16 18:15:46.6805900,374\r\n",
		"lfs":              "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
		"empty":            "",
		"negative":         good + `{"timestamp": 0, "input_length": -1, "output_length": 1}` + "\n",
		"absurd":           `{"timestamp": 0, "input_length": 1, "output_length": 1e12}` + "\n",
		"back":             `{"timestamp": 9, "input_length": 1, "output_length": 1}` + "\n" + `{"timestamp": 1, "input_length": 1, "output_length": 1}` + "\n",
		"noids":            `{"timestamp": 0, "input_length": 1, "output_length": 1}` + "\n",
		"short":            `{"input_length": 5}` + "\n",
		"header.csv":       "arrived_at,num_prefill_tokens,num_decode_tokens\n",
		"bad.csv":          "arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,x\n",
		"cut.gz":           "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
		"used/notes.txt":   "mine",
		"foreign.yaml":     "password: secret\n",
		"foreign.json":     `{"password": "secret", "keys": [{"secret": "secret"}], "timestamp": "secret", "secret word": 1}`,
		"foreign.jsonl":    good + `{"timestamp": "secret", "input_length": 5}`,
		"foreign.txt":      "root:secret:19000\nsecret secret\n",
		"foreign/run.json": `{"version": {"secret": 1}}`,
		"used/notes.token": `{"mine": 1}`,
		"few.txt":          "the boy's visit was 1984\n",
		"none.json":        `[{"id": 1}]`,
		"llama2.json":      `{"model": {"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": []}}`,
		"key.pem":          "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n",
		"few.csv":          strings.Join(lines[:2], ""),
		"shapeless.csv":    strings.Replace(table, "isl", "length", 1),
		"two.csv":          "deployment," + lines[0] + "a," + lines[1] + "b," + lines[2],
		"bad.yaml":         "isl: 5\nosl: many\n",
		"512.jsonl":        `{"timestamp": 0, "input_length": 1025, "output_length": 1, "hash_ids": [1, 2, 3]}` + "\n",
		"16.jsonl":         `{"timestamp": 1, "input_length": 33, "output_length": 1, "hash_ids": [1, 2, 3]}` + "\n",
		"bailian.jsonl":    readFile(t, foreignTraces(t)["bailian.jsonl"]),
		"old":              `{"moontide_model":3,"method":"sessions","block_size":512}`,
	} {
		write(t, dir, name, text)
	}
	for link, to := range map[string]string{"tokenizer.json": ready(t, "tokenizer.json"), "used/link.token": "notes.txt", "symbolic": "good"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skipf("cannot link: %v", err)
		}
	}
	if err := os.Link(filepath.Join(dir, "good"), filepath.Join(dir, "hard")); err != nil {
		t.Skipf("cannot link: %v", err)
	}
	for _, name := range []string{"run", "other"} {
		must(t, dir, "simulate", "good", "--out", name)
	}
	must(t, dir, "convert", "--anonymize", "--key", "capture.key", "good", "-o", "anonymous")
	must(t, dir, "fit", "good", "-o", "model")
	model := readFile(t, dir+"/model")
	write(t, dir, "broken", model[:len(model)/2])
	return dir
}

// An address that is no server of models is reported, as is one that is in use.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	shop := plainServer(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>")
	silent := plainServer(t, "220 mail.example ESMTP\r\n")
	dir := t.TempDir()
	write(t, dir, "t.jsonl", shortTrace)
	for want, args := range map[string][]string{
		"not a list of models":         {"replay", "t.jsonl", "--url", shop},
		"asking " + silent:             {"replay", "t.jsonl", "--url", silent},
		"choose another with --listen": {"serve", "--listen", strings.TrimPrefix(silent, "http://")},
	} {
		if r := try(t, dir, "", args...); r.status != exitFailed || !strings.Contains(r.err, want) || len(files(t, dir)) > 1 {
			t.Errorf("%q: exit status %d, %s", args, r.status, r.err)
		}
	}
}

// A concurrency beyond the limit on open files is refused before anything runs.
func TestTooFewOpenFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("this system has no limit on open files")
	}
	dir := t.TempDir()
	for _, args := range []string{"replay " + sample(t) + " --max-concurrency 12 --out run", "bench --isl 5 --osl 1 --num-prompts 12 --concurrency 1,12 --out run"} {
		if r := finish(t, limited(moontide(dir, strings.Fields(args)...), "-n 150")); r.status != exitFailed || !strings.Contains(r.err, "which allows 11 requests in flight") || len(files(t, dir)) > 0 {
			t.Errorf("%s: exit status %d, %s", args, r.status, r.err)
		}
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
