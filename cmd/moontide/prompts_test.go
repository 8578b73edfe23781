package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// Whatever the source of prompts, the count of the endpoint, embedded or served, matches the
// trace, and the run records the source.
func TestPromptsHaveTheLengthOfTheTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var rows strings.Builder
	for i := range 24 {
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": %d, "output_length": 2, "hash_ids": [%d, %d]}`+"\n", i, 17+i%15, i%3, 10+i)
	}
	write(t, dir, "t.jsonl", rows.String())
	served := serveFast(t, "--tokenizer", ready(t, "tokenizer.json"))
	digests := map[string]string{}
	for flags, recorded := range map[string]func(runfile.Run) bool{
		"": func(to runfile.Run) bool { return to.Target.Prompt == "tokens" && to.Target.Tokenizer.Name == "" },
		"--set token-range=500:900": func(to runfile.Run) bool {
			return to.Settings.Client.Source.Low == 500 && to.Settings.Client.Source.High == 900
		},
		"--prompt words": func(to runfile.Run) bool {
			return to.Target.Tokenizer.Name == "tokenizer.json" && len(to.Target.Tokenizer.SHA256) == 64
		},
		"--dataset opticks.txt": func(to runfile.Run) bool {
			return to.Target.Dataset.Name == "opticks.txt" && to.Target.Prompt == "words"
		},
		"--dataset sharegpt.json":                                    func(to runfile.Run) bool { return len(to.Target.Dataset.SHA256) == 64 },
		"--dataset opticks.txt --endpoint chat --set exact-isl=true": func(to runfile.Run) bool { return to.Settings.Client.ExactISL },
	} {
		for _, url := range []string{"", served} {
			run := strings.ReplaceAll(fmt.Sprint("run", flags, url != ""), " ", "-")
			args := append([]string{"replay", "t.jsonl", "--block-size", "16", "--out", run}, strings.Fields(strings.ReplaceAll(flags, "--dataset ", "--dataset "+ready(t, "")+"/"))...)
			if strings.Contains(flags, "words") || strings.Contains(flags, "dataset") {
				args = append(args, "--tokenizer", ready(t, "tokenizer.json"))
			}
			if url != "" {
				args = append(args, "--url", url)
			}
			must(t, dir, args...)
			info := runOfFolder(t, filepath.Join(dir, run))
			if !recorded(info) || !info.Target.MinTokens || !strings.Contains(info.Target.Body, `"ignore_eos":true`) {
				t.Errorf("%s %s: target %+v", flags, url, info.Target)
			}
			digests[info.Prompts] = flags
			for _, rec := range recordsOf(t, filepath.Join(dir, run)) {
				if got := rec.Counts.Input.Value; got != rec.InputLength {
					t.Errorf("%s %s: %d tokens are counted of %d", flags, url, got, rec.InputLength)
				}
			}
		}
	}
	if len(digests) != 6 {
		t.Errorf("prompts are equal: %v", digests)
	}
}
