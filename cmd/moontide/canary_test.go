package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
