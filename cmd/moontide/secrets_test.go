package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"moontide/replay/runfile"
	"moontide/replay/secret"
	"moontide/replay/settings"
)

// Secrets in --extra-body are in no file of a run folder. A run with them is
// resumed with the same values only.
func TestSecretsOfTheExtraBody(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	write(t, dir, "t.jsonl", shortTrace)
	with := func(token string) []string {
		return []string{"--extra-body", `{"api_token": "` + token + `", "top_k": 5, "auth": {"keys": ["` + token + `"]}, "reasoning_effort": "low"}`}
	}
	must(t, dir, append([]string{"replay", "t.jsonl", "--url", url, "--out", "run"}, with("hush")...)...)
	run := runOfFolder(t, dir+"/run")
	for what, text := range map[string]string{"command": strings.Join(run.Command, " "), "settings": settings.Find("extra-body").Text(&run.Settings), "body": run.Target.Body} {
		if what == "command" && !strings.Contains(text, "extra-body") { // of the worker of the tests
			continue
		}
		if !strings.Contains(text, `"api_token":"***`) || !strings.Contains(text, `"top_k":5`) || !strings.Contains(text, `"reasoning_effort":"low"`) {
			t.Errorf("%s: %s", what, text)
		}
	}
	staysSecret(t, dir, with, "pass extra-body again", "extra-body was")
}

// Values of a URL's query, and what looks like a key in its path or in the salt, are in no
// file and no message of a run. It is resumed with the same values only.
func TestSecretsOfTheURL(t *testing.T) {
	t.Parallel()
	behind, err := url.Parse(serveFast(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	strip := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/sk-hush-12345678")
	}, Transport: new(http.Transport)}
	server := httptest.NewServer(strip)
	t.Cleanup(server.Close)
	write(t, dir, "t.jsonl", shortTrace)
	with := func(token string) []string {
		return []string{"--url", server.URL + "/sk-hush-12345678/v1/chat/completions?version=2&key=" + token, "--salt", "hf_" + token + "12345678"}
	}
	r := try(t, dir, "", append([]string{"replay", "t.jsonl", "--out", "run", "--limit", "sk-hush-87654321"}, with("hush")...)...)
	if strings.Contains(r.out+r.err, "hush") || r.status != exitMisused {
		t.Errorf("exit status %d: %s%s", r.status, r.out, r.err)
	}
	r = try(t, dir, "", append([]string{"replay", "t.jsonl", "--out", "run"}, with("hush")...)...)
	out := r.out + r.err
	if !r.measured() {
		t.Fatalf("exit status %d: %s", r.status, out)
	}
	run := runOfFolder(t, dir+"/run")
	if strings.Contains(out, "hush") || run.Target.Endpoint != "chat" || run.Target.URL != secret.URL(with("hush")[1]) {
		t.Errorf("endpoint %s at %s\n%s", run.Target.Endpoint, run.Target.URL, out)
	}
	staysSecret(t, dir, with, "again: run folders", "url was")
}

// staysSecret fails if a run has its secret in a file, or is resumed with another one.
func staysSecret(t *testing.T, dir string, with func(secret string) []string, missing, differs string) {
	t.Helper()
	for _, file := range files(t, filepath.Join(dir, "run")) {
		if text := readFile(t, filepath.Join(dir, "run", file)); strings.Contains(text, "hush") {
			t.Errorf("%s has the secret", file)
		}
	}
	rewritten(t, filepath.Join(dir, "run", runfile.RunFile), func(text string) string { // as if it had been killed
		return strings.Replace(text, `"ended": "`, `"not_ended": "`, 1)
	})
	resume := func(flags ...string) result {
		return try(t, dir, "", append([]string{"replay", "t.jsonl", "--resume", "run"}, flags...)...)
	}
	for want, flags := range map[string][]string{missing: nil, differs: with("other")} {
		if r := resume(flags...); r.status != exitMisused || !strings.Contains(r.err, want) || strings.Contains(r.err, "hush") {
			t.Errorf("%s: exit status %d: %s", want, r.status, r.err)
		}
	}
	if r := resume(with("hush")...); r.status == exitMisused {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
}

// Secrets are masked under the names that other tools have for a flag, too.
func TestMaskedNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"url", "base-url", "target", "server-metrics"} {
		if mask, listed := maskOf(name); !listed || strings.Contains(mask("http://h?key=hush"), "hush") {
			t.Errorf("--%s is not masked", name)
		}
	}
	for _, name := range []string{"model", "rate"} {
		if mask, listed := maskOf(name); listed || mask("meta-llama/Llama-3.1-8B-Instruct") != "meta-llama/Llama-3.1-8B-Instruct" {
			t.Errorf("--%s is masked, without secrets", name)
		}
	}
}

// hostileName has a terminal title, a colour, a C1 control sequence, a carriage
// return, a tab and DEL.
const hostileName = "t\x1b]0;owned\x07\x1b[31m\u009b31m\r\t\x7f\u202e"

// Control characters in names of files, folders and models never reach the
// console, in any verb, form or message.
func TestControlCharactersInNamesStayOffTheConsole(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t), t.TempDir()
	trace, broken := hostileName+".jsonl", hostileName+"broken.jsonl"
	row := `{"timestamp": %d, "input_length": 20, "output_length": 2, "hash_ids": [%d, %d], "session_id": "s\u001b[31m\u009b%d"}` + "\n"
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, row, 10*i, i%3, 10+i, i)
	}
	write(t, dir, trace, text.String())
	write(t, dir, broken, text.String()+`{"timestamp": "\u001b[31m`+"\x1b[31m\u009b"+`", "input_length": 1}`+"\n")
	run, other, sweep := hostileName+"run", hostileName+"other", hostileName+"sweep"
	for _, args := range [][]string{
		{"analyze", trace}, {"analyze", trace, "--json"}, {"analyze", trace, "--output", "markdown"}, {"analyze", trace, trace},
		{"analyze", broken}, {"analyze", broken, "--skip-bad-rows"},
		{"analyze", trace, "--html", hostileName + "/no.html"},
		{"check", trace}, {"check", trace, "--json"}, {"check", broken}, {"check", broken, "--json"}, {"check", hostileName},
		{"convert", trace, "-o", hostileName + "out.jsonl"}, {"convert", broken, "-o", hostileName + "out.jsonl"}, {"convert", trace, "-o", trace},
		{"fit", trace, "-o", hostileName + "model.json"}, {"fit", broken},
		{"synth", "--from", trace, "-n", "20", "-o", hostileName + "synth.jsonl"}, {"synth", "--from", broken}, {"synth", "--spec", hostileName},
		{"simulate", trace, "--out", run}, {"simulate", trace, "--out", run}, {"simulate", broken, "--out", "never"},
		{"replay", trace, "--url", url, "--out", other}, {"replay", broken, "--url", url}, {"replay", trace, "--resume", run},
		{"replay", trace, "--url", url, "--model", hostileName, "--out", hostileName + "third"},
		{"replay", trace, "--url", "http://" + hostileName}, {"replay", trace, "--" + hostileName, "1"},
		{"report", run}, {"report", run, "--json"}, {"report", run, "--output", "csv"}, {"report", run, "--output", "markdown"},
		{"report", run, "--output", "vllm"}, {"report", run, "--output", "aiperf"},
		{"report", run, other}, {"report", hostileName + "=" + run, "--output", "markdown"}, {"report", run, "--format", hostileName},
		{"report", run, "--html", "-"}, {"report", hostileName},
		{"compare", run, other, "--force"}, {"compare", run, other}, {"compare", run, other, "--force", "--json"},
		{"compare", run, other, "--force", "--output", "csv"}, {"compare", run, other, "--force", "--output", "markdown"}, {"compare", run, hostileName},
		{"bench", "--isl", "20", "--osl", "2", "--concurrency", "1", "--num-prompts", "4", "--url", hostileName + "=" + url, "--out", sweep},
		{"bench", "--isl", "20", "--osl", "2", "--concurrency", "1", "--num-prompts", "4", "--url", hostileName + "=" + url, "--out", sweep + "2", "--output", "csv"},
		{hostileName}, {hostileName, "--help"}, {"replay", hostileName, "--help"}, {"replay", "--help=" + hostileName},
		{"serve", "--listen", hostileName}, {"help", hostileName},
	} {
		r := try(t, dir, "", args...)
		for stream, text := range map[string]string{"output": r.out, "error": r.err} {
			for i, c := range text {
				if c != '\n' && !strconv.IsPrint(c) {
					t.Errorf("moontide %q: %q on standard %s: %q", args, c, stream, text[max(i-60, 0):min(i+20, len(text))])
					break
				}
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, run, "report.html")); err != nil {
		t.Error(err)
	}
}

// canary is a text that must not leave the traffic.
const canary = "CANARY-7d1e"

// misbehaving are answers of servers that break HTTP; all have the canary.
var misbehaving = map[string]string{
	"bytes after an answer":      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\n\r\n{}" + canary,
	"an answer nobody asked":     "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 500 " + canary + "\r\n\r\n",
	"bytes after no content":     "HTTP/1.1 204 " + canary + "\r\n\r\n" + canary,
	"a malformed chunk":          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n" + canary + "\r\n",
	"a chunk without end":        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}" + canary + "\r\n",
	"a bad trailer":              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + canary + " " + canary + "\r\n\r\n",
	"a bad status line":          canary + "\r\n\r\n",
	"a bad status":               "HTTP/1.1 " + canary + " OK\r\n\r\n",
	"a bad header":               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + canary + " " + canary + "\r\nContent-Length: 2\r\n\r\n{}",
	"a bad length":               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " + canary + "\r\n\r\n{}",
	"two lengths":                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\nContent-Length: 1" + canary + "\r\n\r\n{}",
	"a coding nobody knows":      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: " + canary + "\r\n\r\n{}",
	"half a head":                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX: " + canary,
	"half an answer":             "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\n" + canary,
	"a flood of 1xx":             strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: "+canary+"\r\n\r\n", 3000),
	"an upgrade":                 "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + canary + "\r\n\r\n" + canary,
	"gzip that is not":           "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: 11\r\n\r\n" + canary,
	"an answer that is not JSON": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n" + canary,
	"events that are not JSON":   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: {" + canary + "\n\ndata: [DONE]\n\n",
	"a redirect":                 "HTTP/1.1 307 " + canary + "\r\nLocation: http://" + canary + ":pw@h/?k=" + canary + "#" + canary + "\r\nContent-Length: 0\r\n\r\n",
	"an answer with a long line": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX: " + strings.Repeat(canary, 1<<17) + "\r\n\r\n",
}

// misbehavingServer answers each request, once its head is there, with a text and closes
// the connection once the client sends no more.
func misbehavingServer(t *testing.T, answer string) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				if r.Header.Get("Expect") == "" {
					io.Copy(io.Discard, io.LimitReader(r.Body, r.ContentLength))
				}
				io.WriteString(c, answer)
				c.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}

// speak sends the text of a request over a connection of its own and reads what comes. A
// request that may not be complete ends with the connection.
func speak(t *testing.T, address, request string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, request)
	if !strings.Contains(request, "Connection: close") {
		c.(*net.TCPConn).CloseWrite()
	}
	io.Copy(io.Discard, c)
}

// canaryRequests are requests with the canary, most of which break HTTP.
func canaryRequests() []string {
	body := `{"prompt":"` + canary + `"}`
	post := func(head, body string) string {
		return "POST /v1/completions?" + canary + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + canary + "\r\n" + head + "\r\n" + body
	}
	whole := post(fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n", len(body)), body)
	return []string{
		whole, whole,
		post("Transfer-Encoding: chunked\r\n", canary+"\r\n"+canary), post("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n"+canary+" "+canary+"\r\n\r\n"),
		post("Content-Length: 2\r\n", "{}"+canary+" / "+canary+"\r\n\r\n"), post("Content-Length: "+canary+"\r\n", ""), post("Content-Length: 99\r\n", body),
		post(canary+" "+canary+"\r\n", ""), post("Upgrade: "+canary+"\r\nConnection: Upgrade\r\n", canary), canary + "\r\n\r\n", "GET " + canary + " HTTP/1.1\r\nHost: " + canary + "\r\n\r\n",
		"GET /" + canary + " HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: " + canary + "\r\n\r\n" + canary, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + canary, post("Content-Encoding: gzip\r\nContent-Length: 11\r\n", canary),
	}
}

// No text of a capture's traffic is said or written, whatever breaks HTTP.
func TestCaptureSaysNoText(t *testing.T) {
	t.Parallel()
	for name, answer := range misbehaving {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := moontide(dir, "capture", "--listen", "127.0.0.1:0", "--upstream", misbehavingServer(t, answer), "-o", "t.jsonl")
			var out bytes.Buffer
			cmd.Stdout = &out
			line, talk := startChild(t, cmd)
			for _, request := range canaryRequests() {
				speak(t, strings.TrimPrefix(strings.Fields(line)[2], "http://"), request)
			}
			cmd.Process.Signal(os.Interrupt)
			said, _ := io.ReadAll(talk)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, said)
			}
			noCanary(t, dir, line+string(said)+out.String())
		})
	}
}

// noCanary fails if the canary is in a text or in a file of a folder.
func noCanary(t *testing.T, dir, said string) {
	t.Helper()
	texts := map[string]string{"it says": said}
	for _, name := range files(t, dir) {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			texts[name+" has"] = string(text)
		}
	}
	for where, text := range texts {
		if at := strings.Index(text, canary); at >= 0 {
			t.Errorf("%s %q", where, text[max(0, at-200):min(len(text), at+100)])
		}
	}
}

// No bytes of a server that breaks HTTP are said or written by a replay or a scrape of its
// metrics, nor is anything secret that the requests have.
func TestReplaySaysNoText(t *testing.T) {
	t.Parallel()
	for name, answer := range misbehaving {
		if name == "events that are not JSON" { // a replay quotes what is not of the API
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "t.jsonl", shortTrace)
			address := misbehavingServer(t, answer)
			r := try(t, dir, "", "replay", "t.jsonl", "--url", "http://"+address+"/v1/completions?key=hush-hush", "--header", "X-Key: hush-hush", "--server-metrics", "http://"+address+"/metrics",
				"--model", "m", "--endpoint", "completions", "--server", "openai", "--prompt", "words", "--out", "run", "--timeout", "5s")
			if strings.Contains(r.out+r.err, "hush") {
				t.Errorf("a secret is said: %s%s", r.out, r.err)
			}
			noCanary(t, dir, r.out+r.err)
		})
	}
}

// The simulated endpoint says no text of its requests, its faults included.
func TestServeSaysNoText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, flags := range [][]string{nil, {"--fault", "garbage"}, {"--fault", "reset"}} {
		cmd := moontide(dir, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
		var out bytes.Buffer
		cmd.Stdout = &out
		line, talk := startChild(t, cmd)
		for _, request := range canaryRequests() {
			speak(t, regexp.MustCompile(`127[0-9.:]+`).FindString(line), request)
		}
		cmd.Process.Signal(os.Interrupt)
		said, _ := io.ReadAll(talk)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		noCanary(t, dir, line+string(said)+out.String())
	}
}
