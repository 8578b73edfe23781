package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
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
	for _, file := range files(t, filepath.Join(dir, "run")) {
		text, err := os.ReadFile(filepath.Join(dir, "run", file))
		if err != nil || strings.Contains(string(text), "hush") {
			t.Errorf("%s has the secret (%v)", file, err)
		}
	}
	run := runOfFolder(t, dir+"/run")
	for what, text := range map[string]string{"command": strings.Join(run.Command, " "), "settings": settings.Find("extra-body").Text(&run.Settings), "body": run.Target.Body} {
		if what == "command" && !strings.Contains(text, "extra-body") { // of the worker of the tests
			continue
		}
		if !strings.Contains(text, `"api_token":"***`) || !strings.Contains(text, `"top_k":5`) || !strings.Contains(text, `"reasoning_effort":"low"`) {
			t.Errorf("%s: %s", what, text)
		}
	}

	run.Stopped = true // so that it can be resumed
	if err := runfile.WriteJSON(filepath.Join(dir, "run", runfile.RunFile), run); err != nil {
		t.Fatal(err)
	}
	for want, flags := range map[string][]string{
		"pass extra-body again": nil,
		"extra-body was":        with("other"),
	} {
		r := try(t, dir, "", append([]string{"replay", "t.jsonl", "--resume", "run"}, flags...)...)
		if r.status != exitMisused || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit status %d: %s", want, r.status, r.err)
		}
	}
	if r := try(t, dir, "", append([]string{"replay", "t.jsonl", "--resume", "run"}, with("hush")...)...); strings.Contains(r.err, "flags") {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
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
	for _, file := range files(t, filepath.Join(dir, "run")) {
		text, err := os.ReadFile(filepath.Join(dir, "run", file))
		if err != nil || strings.Contains(string(text), "hush") {
			t.Errorf("%s has the secret (%v)", file, err)
		}
	}
	run := runOfFolder(t, dir+"/run")
	if strings.Contains(out, "hush") || run.Target.Endpoint != "chat" || run.Target.URL != secret.URL(with("hush")[1]) {
		t.Errorf("endpoint %s at %s\n%s", run.Target.Endpoint, run.Target.URL, out)
	}
	run.Stopped = true // so that it can be resumed
	if err := runfile.WriteJSON(filepath.Join(dir, "run", runfile.RunFile), run); err != nil {
		t.Fatal(err)
	}
	for want, flags := range map[string][]string{"again: run folders": nil, "url was": with("other")} {
		r := try(t, dir, "", append([]string{"replay", "t.jsonl", "--resume", "run"}, flags...)...)
		if r.status != exitMisused || !strings.Contains(r.err, want) || strings.Contains(r.err, "hush") {
			t.Errorf("%s: exit status %d: %s", want, r.status, r.err)
		}
	}
	if r := try(t, dir, "", append([]string{"replay", "t.jsonl", "--resume", "run"}, with("hush")...)...); strings.Contains(r.err, "flags") {
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
