package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The launched command is checked, with the names of other tools replaced and the block
// size of the whole trace.
func TestLaunch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", `{"timestamp": 0, "input_length": 1025, "output_length": 1, "hash_ids": [1, 2, 3]}
{"timestamp": 1, "input_length": 1024, "output_length": 1, "hash_ids": [1, 4]}
{"timestamp": 2, "input_length": 513, "output_length": 1, "hash_ids": [1, 5]}
{"timestamp": 3, "input_length": 512, "output_length": 1, "hash_ids": [1]}
`)
	r := try(t, dir, "", "launch", "slurm", "--ranks", "3", "--", "replay", "t.jsonl", "--base-url", "http://server:8000")
	for _, want := range []string{"#SBATCH --ntasks=3\n", "moontide replay \\\n  t.jsonl \\\n  --url=http://server:8000 \\\n  --block-size=512 \\\n  --part=auto \\\n  --resume=auto\n"} {
		if r.status != exitDone || !strings.Contains(r.out, want) {
			t.Errorf("exit status %d, no %q in\n%s%s", r.status, want, r.out, r.err)
		}
	}
	r = try(t, dir, "", "launch", "mpi", "--", "replay", "t.jsonl", "--url", "http://u:secret@localhost:8000", "--header", "X-Key: secret", "--block-size", "16")
	for _, want := range []string{"holds the value of --header", "holds the value of --url", "each process takes localhost for its own machine"} {
		if r.status != exitDone || !strings.Contains(r.err, want) {
			t.Errorf("exit status %d, no %q in\n%s", r.status, want, r.err)
		}
	}
	if strings.Contains(r.err, "secret@") || strings.Contains(r.out, "512") {
		t.Errorf("a secret in the messages, or another block size:\n%s%s", r.err, r.out)
	}
}

// Small input is in the manifests. Larger input is on the volume. A private key, or a key
// of an API, never is in the manifests, and two outputs have different tokens.
func TestLaunchKubernetes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	row := `{"timestamp": 0, "input_length": 5, "output_length": 1}` + "\n"
	write(t, dir, "small.jsonl", row)
	write(t, dir, "large.jsonl", strings.Repeat(row, 4000))
	write(t, dir, "ca.pem", "CERTIFICATE")
	write(t, dir, "key.pem", "PRIVATE")
	launch := func(args ...string) result {
		return try(t, dir, "", append([]string{"launch", "kubernetes", "--", "replay", "--url", "https://server"}, args...)...)
	}
	one, other := launch("small.jsonl", "--ca-file", "ca.pem"), launch("small.jsonl", "--ca-file", "ca.pem")
	for _, want := range []string{`"small.jsonl": "eyJ0`, `"ca.pem": "Q0VS`, `- "/input/small.jsonl"`, `- "--ca-file=/input/ca.pem"`, `kind: Secret`} {
		if one.status != exitDone || !strings.Contains(one.out, want) {
			t.Errorf("exit status %d, no %q in\n%s%s", one.status, want, one.out, one.err)
		}
	}
	if one.out == other.out || !strings.Contains(one.err, "the output holds a secret") {
		t.Errorf("two outputs have one token, or no warning is given: %s", one.err)
	}
	if r := launch("/runs/large.jsonl"); r.status != exitDone || strings.Contains(r.out, "ConfigMap") || !strings.Contains(r.out, `- "/runs/large.jsonl"`) {
		t.Errorf("a trace on the volume: exit status %d\n%s%s", r.status, r.out, r.err)
	}
	for want, args := range map[string][]string{
		"large.jsonl has 224000 bytes, more than the 184320": {"large.jsonl"},
		"--client-key is not written to manifests":           {"small.jsonl", "--client-cert", "ca.pem", "--client-key", "key.pem"},
		"no such file": {"small.jsonl", "--tokenizer", "none.json"},
	} {
		if r := launch(args...); r.status != exitFailed || r.out != "" || !strings.Contains(r.err, want) {
			t.Errorf("%v: exit status %d, want %q\n%s%s", args, r.status, want, r.out, r.err)
		}
	}
	r := try(t, dir, "", "launch", "kubernetes", "--secret", "keys", "--", "bench", "--isl", "5", "--osl", "2", "--rate", "1", "--url", "https://server", "--api-key-env", "KEY")
	if r.status != exitDone || strings.Contains(r.out, "kind: Secret") || strings.Contains(r.out, "--resume") || !strings.Contains(r.out, `secretKeyRef: {name: "keys", key: "KEY"}`) {
		t.Errorf("an existing Secret: exit status %d\n%s%s", r.status, r.out, r.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs")); err == nil {
		t.Error("launch made a folder")
	}
}
