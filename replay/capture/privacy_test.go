package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"moontide/trace/format"
	"moontide/trace/log"
	"moontide/trace/tokenizer"
)

// canary returns a text that is nowhere in the process: it is kept masked.
func canary(n int) []byte {
	masked := fmt.Appendf(nil, "%d\x1a\x1b\x14\x1b\x08\x03\x57\x4e\x4f\x0b\x14\x10", n%10)
	for i := range masked[1:] {
		masked[i+1] ^= 0x7a
	}
	return masked
}

// fill replaces each place %N of a text by the canary N, in new memory.
func fill(text string) []byte {
	b := []byte(text)
	for n := range 10 {
		b = bytes.ReplaceAll(b, fmt.Appendf(nil, "%%%d", n), canary(n))
	}
	return b
}

// wipe overwrites memory.
func wipe(b []byte) {
	for i := range b {
		b[i] = 0
	}
}

// No text of a request or an answer, no header value and no name of a session or a user
// is in the trace, the metrics, or the memory of the process after the requests.
func TestNoTextLeaves(t *testing.T) {
	// Preemption by signals copies vector registers, which may have pieces of a text that
	// is moved, to memory that the runtime keeps.
	const cooperative = "asyncpreemptoff=1"
	if debug := os.Getenv("GODEBUG"); !strings.Contains(debug, cooperative) {
		var said []byte
		var err error
		for range 3 { // new objects may have what was in their memory before, once in 30 runs; what is kept is found in each
			cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
			cmd.Env = append(os.Environ(), "GODEBUG="+strings.TrimPrefix(debug+","+cooperative, ","))
			if said, err = cmd.CombinedOutput(); err == nil {
				return
			}
		}
		t.Errorf("%v\n%s", err, said)
		return
	}
	vocabulary, err := tokenizer.Open("../../traces/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("bytes", func(t *testing.T) { noTextLeaves(t, nil, vocabulary) })
	t.Run("tokens", func(t *testing.T) { noTextLeaves(t, vocabulary, vocabulary) })
}

func noTextLeaves(t *testing.T, encoder log.Encoder, vocabulary *tokenizer.Tokenizer) {
	running := runtime.NumGoroutine()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer []byte
		w.Header().Set("X-Secret", string(fill("%0")))
		switch {
		case strings.Contains(r.URL.Path, "messages"):
			w.WriteHeader(400)
			answer = fill(`{"error":{"message":"no model %1"}}`)
		case r.Header.Get("Accept") == "text/event-stream":
			w.Header().Set("Content-Type", "text/event-stream")
			answer = fill("data: {\"id\":\"%2\",\"choices\":[{\"delta\":{\"content\":\"%3\",\"reasoning_content\":\"%4\"}}]}\n\n: %5\n\ndata: [DONE]\n\n")
		default:
			answer = fill(`{"id":"%6","choices":[{"message":{"content":"%7"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`)
		}
		defer wipe(answer)
		w.Write(answer)
	}))
	dir := t.TempDir()
	path := filepath.Join(dir, "t.jsonl")
	files, err := CreateFiles(FilesConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	c := capturing(t, upstream.URL, func(cfg *Config) {
		cfg.SessionHeader, cfg.SessionField, cfg.Encoder = "X-Session", "metadata.user_id", encoder
	})
	c.Proxy.out = files
	const body = `{"model":"m","user":"%0","metadata":{"user_id":"%1"},"stop":["%2"],"prompt":"%3","system":"%4",` +
		`"tools":[{"name":"%5","description":"%6"}],"messages":[{"role":"%7","content":[{"type":"text","text":"%8"},{"type":"image_url","image_url":{"url":"%9"}}],"tool_calls":[{"id":"%0","function":{"name":"%1","arguments":"%2"}}]}]}`
	for _, request := range []struct{ path, body, accept string }{
		{"/v1/chat/completions", body, ""}, {"/v1/chat/completions", body, "text/event-stream"},
		{"/v1/completions", `{"model":"m","prompt":"%3 %4"}`, ""}, {"/v1/completions", `{"model":"m","prompt":"%3`, ""}, // not JSON
		{"/v1/messages", strings.ReplaceAll(body, `"m"`, `"%8"`), ""}, // an unknown model
		{"/v1/chat/completions?key=%9", body, ""}, {"/v1/%9", body, ""},
	} {
		long := strings.Repeat("the tide rises ", 20) // a memory keeps tokens of long texts
		send(t, c.url, request.path, strings.ReplaceAll(request.body, "%8", long+"%8 "+long), request.accept)
	}
	c.stop()
	upstream.Close()
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	trace, err := os.ReadFile(path)
	if err != nil || bytes.Count(trace, []byte("\n")) != 6 {
		t.Fatalf("%v, %d rows of 6", err, bytes.Count(trace, []byte("\n")))
	}
	for name, text := range map[string][]byte{"the trace": trace, "the metrics": c.AppendText(nil), "the counts": fmt.Appendf(nil, "%+v", c.Counts())} {
		if found := canaries(text); found != "" {
			t.Errorf("%s has %s", name, found)
		}
	}
	if _, err := format.Open(path, format.Options{}); err != nil {
		t.Error(err)
	}
	for runtime.NumGoroutine() > running { // those of closed connections have texts
		runtime.Gosched()
	}
	all := heap(t, filepath.Join(dir, "heap"))
	if found := canaries(all); found != "" {
		t.Errorf("the memory has %s", found)
	}
	for i := range 10 {
		ids, err := vocabulary.Append(nil, " "+string(canary(i)))
		if err != nil || len(ids) < 4 {
			t.Fatal(ids, err)
		}
		if bytes.Contains(all, asBytes(ids)) {
			t.Errorf("the memory has the tokens of canary %d", i)
		}
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(encoder)
}

// asBytes returns token ids as the memory of a process has them.
func asBytes(ids []uint32) (b []byte) {
	for _, id := range ids {
		b = binary.NativeEndian.AppendUint32(b, id)
	}
	return b
}

// send sends a request over a connection of its own and leaves nothing of it in memory.
func send(t *testing.T, url, path, body, accept string) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	content := fill(body)
	request := fill(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %%0\r\nX-Session: %%1\r\nCookie: %%2\r\nAccept: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", path, accept, len(content)))
	conn.Write(append(request, content...))
	answer := make([]byte, 64<<10)
	for {
		if _, err := conn.Read(answer); err != nil {
			break
		}
	}
	wipe(answer)
	wipe(request)
	wipe(content)
}

// canaries returns the first canary in a text and what is around it, "" if none is.
func canaries(text []byte) string {
	for i := range 10 {
		if at := bytes.Index(text, canary(i)); at >= 0 {
			return fmt.Sprintf("canary %d: %q", i, text[max(0, at-100):min(len(text), at+100)])
		}
	}
	return ""
}

// heap returns the contents of all objects that the process refers to.
func heap(t *testing.T, path string) []byte {
	for range 4 { // pools are emptied by two
		runtime.GC()
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	debug.WriteHeapDump(f.Fd())
	all, err := os.ReadFile(path)
	if err != nil || len(all) < 100_000 {
		t.Fatal(err, len(all))
	}
	return all
}
