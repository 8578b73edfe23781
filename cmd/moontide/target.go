package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/experiment"
	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/replay/secret"
	"moontide/trace"
)

// targetFlags returns the flags for the endpoint and the content of requests.
func targetFlags() []cli.Flag {
	return append(networkFlags(),
		&cli.StringFlag{Name: "model", Category: inTarget, Usage: "`NAME`: model name, optional if the endpoint serves one model, or a mix such as a=0.7,b=0.3, from which each session draws a model"},
		&cli.BoolFlag{Name: "model-from-trace", Category: inTarget, Usage: "send the model in the model key of a row; --model is for rows without one"},
		&cli.StringFlag{Name: "session-header", Category: inTarget, Value: openai.DefaultSessionHeader, Usage: "`NAME` of the header with the session of a request, for session affinity; none sends no such header"},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "endpoint", Category: inTarget, Usage: "`API` to call: %s", DefaultText: "that of --url or --server, else completions"},
			Choices:    oneOf(openai.Endpoints()...),
		},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "server", Category: inTarget, Usage: "`KIND` of server, whose usual parameters the probe tries first: %s", DefaultText: "vllm; the probe omits what the endpoint rejects"},
			Choices:    serverChoices(),
		},
		&cli.StringFlag{Name: "api-key-env", Category: inTarget, Usage: "environment `VARIABLE` with the API key, sent as a bearer token or as the kind of --server has it"},
		repeatable(cli.GenericFlag{Name: "header", Category: inTarget, Usage: "HTTP header `'Name: value'` to send with every request; repeatable"}),
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "balance", Category: inTarget, Value: openai.RoundRobin, Usage: "`POLICY` to distribute requests over several URLs: %s"},
			Choices:    oneOf(openai.Balances()...).Noted(openai.BySession, "all turns of a session to one URL"),
		},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "connections", Category: inTarget, Value: openai.Pooled, Usage: "connection `MODE`: %s"},
			Choices:    oneOf(openai.ConnectionModes()...).Noted(openai.Pooled, "reused").Noted(openai.Fresh, "a new one for each request"),
		},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "prompt", Category: inRequests, Usage: "`FORM`: prompt form: %s", DefaultText: "tokens for completions, words for chat"},
			Choices:    oneOf(openai.PromptForms()...).Noted(openai.Tokens, "token ids, exact length").Noted(openai.Words, "one token each"),
		},
		&cli.StringFlag{Name: "token-range", Category: inRequests, Usage: "draw token ids from `LO:HI`, including LO and excluding HI", DefaultText: fmt.Sprintf("%d:%d", prompt.DefaultLow, prompt.DefaultHigh)},
		&cli.StringFlag{Name: "tokenizer", Category: inRequests, Usage: "`FILE`: the model's tokenizer.json, to build prompts from words that are a single token each"},
		&cli.StringFlag{Name: "dataset", Category: inRequests, Usage: "`FILE` with text for prompts, which are cut to exact lengths: ShareGPT conversations or plain text; needs --tokenizer"},
		&cli.BoolFlag{Name: "exact-isl", Category: inRequests, Usage: "shorten prompts by the tokens of the chat template, so that the server's count matches the trace"},
		&cli.BoolFlag{Name: "no-ignore-eos", Category: inRequests, Usage: "let the model decide when to stop: send neither ignore_eos nor min_tokens"},
		&cli.Float64Flag{Name: "temperature", Category: inRequests, Usage: "`T`: sampling temperature from 0 to 2", DefaultText: "the endpoint's"},
		&cli.Float64Flag{Name: "top-p", Category: inRequests, Usage: "`P`: top-p sampling, above 0 and at most 1", DefaultText: "the endpoint's"},
		&cli.StringFlag{Name: "extra-body", Category: inRequests, Usage: "`JSON` object to merge into every request body, such as '{\"top_k\": 5}'"},
		&cli.DurationFlag{Name: "first-byte-timeout", Category: inRunControl, Value: openai.DefaultFirstByteTimeout, Usage: "fail a request whose first token takes longer than `TIME`"},
		&cli.DurationFlag{Name: "idle-timeout", Category: inRunControl, Value: openai.DefaultIdleTimeout, Usage: "fail a request that receives nothing for `TIME` after its first token"},
	)
}

func serverChoices() choiceSet {
	names, titles := openai.Servers()
	choices := oneOf(names...)
	for i, name := range names {
		choices = choices.Noted(name, titles[i])
	}
	return choices
}

func clientConfig(c *cli.Context) (openai.Config, error) {
	cfg := openai.Config{
		URLs: urlsOf(c), Balance: c.String("balance"), Connections: c.String("connections"),
		ModelFromTrace: c.Bool("model-from-trace"), SessionHeader: c.String("session-header"),
		Server: c.String("server"), Endpoint: c.String("endpoint"), Prompt: c.String("prompt"),
		ExtraBody: c.String("extra-body"),
		Timeout:   c.Duration("timeout"), FirstByteTimeout: c.Duration("first-byte-timeout"), IdleTimeout: c.Duration("idle-timeout"),
		Temperature: given(c, "temperature"), TopP: given(c, "top-p"),
		StopAtEOS: c.Bool("no-ignore-eos"), ExactISL: c.Bool("exact-isl"),
	}
	setAnswers(c, &cfg)
	if slices.Contains(cfg.URLs, "") {
		return cfg, misused("replay: --url is empty")
	}
	for _, flag := range []string{"tokenizer", "dataset", "token-range"} {
		if c.IsSet(flag) && c.String(flag) == "" {
			return cfg, misused("replay: --%s is empty", flag)
		}
	}
	var err error
	if cfg.Model, cfg.Models, err = openai.ParseModels(c.String("model")); err != nil {
		return cfg, misused("replay: --model: %w", err)
	}
	for i, h := range textsOf(c, "header") {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			// Do not show the text: it may be a secret value.
			return cfg, misused("replay: --header %d is not 'Name: value'", i+1)
		}
		cfg.Headers = append(cfg.Headers, openai.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	if variable := c.String("api-key-env"); variable != "" {
		if cfg.APIKey = os.Getenv(variable); cfg.APIKey == "" {
			// Do not show the text: it may be an API key.
			return cfg, misused("replay: --api-key-env is not the name of an environment variable that is set")
		}
	}
	if err := setNetwork(c, &cfg); err != nil {
		return cfg, err
	}
	if c.IsSet("token-range") {
		if cfg.Source.Low, cfg.Source.High, err = parseTokenRange(c.String("token-range")); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// setAnswers sets the answers in later prompts, and when requests are abandoned.
func setAnswers(c *cli.Context, cfg *openai.Config) {
	cfg.Answers, cfg.CancelAfter = c.String("answers"), c.Duration("cancel-after")
}

// remedies names the flags that may help if an endpoint refuses all requests.
var remedies = map[openai.Remedy]string{
	openai.UseChat:         "try --endpoint chat",
	openai.UseWords:        "try --prompt words",
	openai.UseSmallerIDs:   "choose token ids of the model's vocabulary with --token-range",
	openai.UseOtherModel:   "name a model that the endpoint serves with --model",
	openai.NameModel:       "name the model with --model, or check the path of --url",
	openai.UseKey:          "give a valid key with --api-key-env VARIABLE",
	openai.UseOtherURL:     "check the path of --url and --endpoint",
	openai.UseLessExtra:    "leave it out of --extra-body, --temperature and --top-p",
	openai.UseShorterText:  "serve the model with a longer context",
	openai.UseOtherAnswers: "use --answers trace, or --endpoint chat, which needs a server that reports output tokens",
	openai.UseOtherSetting: "try --server, --endpoint or --prompt, or give a key with --api-key-env VARIABLE",
}

// remedyOf returns the remedy of an error, for the end of its message.
func remedyOf(err error) string {
	var refused *openai.RefusedError
	if !errors.As(err, &refused) {
		return ""
	}
	return "\nTo fix it, " + remedies[refused.Remedy] + "."
}

// urlsOf returns the URLs of --url, without the labels of moontide bench.
func urlsOf(c *cli.Context) []string {
	urls := slices.Clone(textsOf(c, "url"))
	if c.Command.Name != "bench" {
		return urls
	}
	targets, err := experiment.ParseTargets(urls)
	for i := range urls {
		if err == nil { // else the sweep's plan fails
			urls[i] = targets[i].URL
		}
	}
	return urls
}

func parseTokenRange(text string) (low, high uint32, err error) {
	first, last, ok := strings.Cut(text, ":")
	lo, errLow := strconv.ParseUint(first, 10, 32)
	hi, errHigh := strconv.ParseUint(last, 10, 32)
	if !ok || errLow != nil || errHigh != nil || lo == 0 || hi == 0 {
		return 0, 0, misused("replay: --token-range is not LO:HI with token ids from 1 to 4294967295: %q", text)
	}
	return uint32(lo), uint32(hi), nil
}

// given is a flag that was set.
func given(c *cli.Context, flag string) trace.Opt[float64] {
	return trace.Opt[float64]{Value: c.Float64(flag), Set: c.IsSet(flag)}
}

// maskedCommand returns the command line without secret values. API keys come from
// the environment.
func maskedCommand() []string {
	masked := append([]string{"moontide"}, os.Args[1:]...)
	for i := 1; i < len(masked); i++ {
		flag, value, joined := strings.Cut(masked[i], "=")
		switch mask, dashed := maskOf(strings.TrimLeft(flag, "-")); {
		case !strings.HasPrefix(flag, "-"):
			masked[i] = secret.Message(masked[i])
		case joined:
			masked[i] = flag + "=" + mask(value)
		case dashed && i+1 < len(masked):
			i++
			masked[i] = mask(masked[i])
		}
	}
	return masked
}

// masks lists the flags whose values may be secret, and their replacements. In the values
// of others, what is recognized as a key is masked.
var masks = map[string]func(string) string{
	"url":             secret.URL,
	"upstream":        secret.URL,
	"proxy":           secret.URL,
	serverMetricsFlag: secret.URL,
	"extra-body":      secret.Body,
	"header":          secret.Header,
	"salt":            secret.Text,
}

// maskOf returns the replacement of a flag's values, or of those of another tool's
// flag for the same, and whether the flag may have secret ones.
func maskOf(name string) (mask func(string) string, listed bool) {
	if mask := masks[name]; mask != nil {
		return mask, true
	}
	for _, other := range otherNames {
		for _, flag := range other.flags {
			if mask := masks[flag]; mask != nil && slices.Contains(other.names, name) {
				return mask, true
			}
		}
	}
	return secret.Message, false
}
