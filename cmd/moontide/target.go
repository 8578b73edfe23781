package main

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/trace"
)

// targetFlags say where a replay's requests go and what they are like.
func targetFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "url", Usage: "`URL` of an OpenAI-compatible endpoint, such as http://127.0.0.1:8000; may be given often"},
		&cli.StringFlag{Name: "balance", Value: openai.RoundRobin, Usage: "how requests go to several URLs: round-robin, or session (all turns of one to one)"},
		&cli.StringFlag{Name: "connections", Value: openai.Pooled, Usage: "pooled (kept for other requests) or fresh (one for each request)"},
		&cli.StringFlag{Name: "ca-file", Usage: "`PEM` file with who may vouch for an https endpoint, in place of whom the system trusts"},
		&cli.StringFlag{Name: "model", Usage: "model to ask for; the only one that the endpoint serves may be left out"},
		&cli.StringFlag{Name: "endpoint", Value: openai.Completions, Usage: "completions or chat"},
		&cli.StringFlag{Name: "prompt", Usage: "tokens (ids, exact) or words (one token each); default: tokens on completions, words on chat"},
		&cli.StringFlag{Name: "token-range", Usage: fmt.Sprintf("draw token ids from `LO:HI`, LO on and below HI; default: %d:%d", prompt.DefaultLow, prompt.DefaultHigh)},
		&cli.StringFlag{Name: "tokenizer", Usage: "`FILE`, the model's tokenizer.json: words are of one token each in its vocabulary"},
		&cli.StringFlag{Name: "dataset", Usage: "`FILE` of ShareGPT conversations, book, or folder of books (*.txt): prompts are passages of it, cut to exact lengths; needs --tokenizer"},
		&cli.BoolFlag{Name: "exact-isl", Usage: "make prompts shorter by what the endpoint adds to each (a chat template), so that it counts the trace's ISL"},
		&cli.BoolFlag{Name: "no-ignore-eos", Usage: "let answers end where the model ends them: ask neither for ignore_eos nor for min_tokens"},
		&cli.Float64Flag{Name: "temperature", Usage: "`T` of sampling, 0 to 2; default: the endpoint's"},
		&cli.Float64Flag{Name: "top-p", Usage: "share of the probability that is sampled from, above 0 and at most 1; default: the endpoint's"},
		&cli.DurationFlag{Name: "idle-timeout", Usage: "most time without a byte from the endpoint, from sending on; default: no limit but --timeout"},
		&cli.StringFlag{Name: "extra-body", Usage: "`JSON` object whose members every request gets, such as '{\"temperature\": 0}'"},
		&cli.StringSliceFlag{Name: "header", Usage: "'Name: value' sent with every request; may be given often"},
		&cli.StringFlag{Name: "api-key-env", Usage: "environment `VARIABLE` that holds the API key"},
	}
}

func clientConfig(c *cli.Context, in input) (openai.Config, error) {
	cfg := openai.Config{
		URLs: c.StringSlice("url"), Balance: c.String("balance"), Connections: c.String("connections"),
		Model: c.String("model"), Endpoint: c.String("endpoint"), Prompt: c.String("prompt"),
		ExtraBody: c.String("extra-body"),
		Timeout:   c.Duration("timeout"), IdleTimeout: c.Duration("idle-timeout"),
		Temperature: given(c, "temperature"), TopP: given(c, "top-p"),
		StopAtEOS: c.Bool("no-ignore-eos"), ExactISL: c.Bool("exact-isl"),
		Source: prompt.Source{Seed: c.Uint64("seed"), Salt: c.String("salt"), BlockSize: in.blockSize.Tokens},
	}
	if slices.Contains(cfg.URLs, "") {
		return cfg, misused("replay: --url is empty")
	}
	if c.IsSet("idle-timeout") && cfg.IdleTimeout <= 0 {
		return cfg, misused("replay: --idle-timeout is not a positive time: %v", cfg.IdleTimeout)
	}
	for i, h := range c.StringSlice("header") {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			// It may be a value, which is secret.
			return cfg, misused("replay: --header %d is not 'Name: value'", i+1)
		}
		cfg.Headers = append(cfg.Headers, openai.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	if variable := c.String("api-key-env"); variable != "" {
		if cfg.APIKey = os.Getenv(variable); cfg.APIKey == "" {
			// It may be a key, which is secret.
			return cfg, misused("replay: --api-key-env is not the name of an environment variable that is set")
		}
	}
	if c.IsSet("ca-file") {
		if !slices.ContainsFunc(cfg.URLs, func(url string) bool { return strings.HasPrefix(url, "https:") }) {
			return cfg, misused("replay: --ca-file is for https, which no --url has")
		}
		var err error
		if cfg.RootCAs, err = readCAs(c.String("ca-file")); err != nil {
			return cfg, err
		}
	}
	return cfg, promptsFrom(c, &cfg.Source)
}

// given is a flag that was set.
func given(c *cli.Context, flag string) trace.Opt[float64] {
	return trace.Opt[float64]{Value: c.Float64(flag), Set: c.IsSet(flag)}
}

// maxCAFile is far more than all authorities that a system trusts take, in
// bytes.
const maxCAFile = 16 << 20

// readCAs reads the certificates of a PEM file. Nothing of a file that has none
// is printed: it may well be a key.
func readCAs(path string) (*x509.CertPool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading --ca-file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCAFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading --ca-file: %w", err)
	case len(text) > maxCAFile:
		return nil, fmt.Errorf("reading --ca-file: %s has more than %d bytes", path, maxCAFile)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading --ca-file: %s has no certificate in PEM", path)
	}
	return pool, nil
}

// maskedCommand is the command line without what may be secret: the values of
// headers. A URL with credentials is refused, a key comes by the environment.
func maskedCommand() []string {
	masked := append([]string{"moontide"}, os.Args[1:]...)
	for i, arg := range masked {
		flag, value, joined := strings.Cut(arg, "=")
		name := strings.TrimLeft(flag, "-")
		mask, secret := masks[name]
		switch {
		case !secret || name == flag:
		case joined:
			masked[i] = flag + "=" + mask(value)
		case i+1 < len(masked):
			masked[i+1] = mask(masked[i+1])
		}
	}
	return masked
}

// masks are the flags with values that may be secret, and what is left of such
// a value.
var masks = map[string]func(string) string{
	serverMetricsFlag: maskQuery,
	"header": func(header string) string {
		name, _, _ := strings.Cut(header, ":")
		return name + ": ***"
	},
}
