package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/replay/prompt/dataset"
	"moontide/replay/runfile"
	"moontide/trace/tokenizer"
)

// promptsFrom reads what prompts are made of.
func promptsFrom(c *cli.Context, source *prompt.Source) error {
	if err := checkPromptFlags(c); err != nil {
		return err
	}
	if c.IsSet("token-range") {
		var err error
		if source.Low, source.High, err = parseTokenRange(c.String("token-range")); err != nil {
			return err
		}
	}
	if c.String("tokenizer") == "" {
		return nil
	}
	vocabulary, err := tokenizer.Open(c.String("tokenizer"))
	if err != nil {
		return err
	}
	if source.Words, err = prompt.NewWords(vocabulary); err != nil {
		return fmt.Errorf("choosing words of one token in %s: %w", c.String("tokenizer"), err)
	}
	if path := c.String("dataset"); path != "" {
		if source.Text, err = prompt.NewCorpus(dataset.Texts(path), vocabulary); err != nil {
			return fmt.Errorf("cutting %s into tokens: %w", path, err)
		}
	}
	return nil
}

// checkPromptFlags checks that what is asked for goes together.
func checkPromptFlags(c *cli.Context) error {
	set := func(flag string) bool { return c.String(flag) != "" }
	for _, flag := range []string{"tokenizer", "dataset", "token-range"} {
		if c.IsSet(flag) && !set(flag) {
			return misused("replay: --%s is empty", flag)
		}
	}
	form := c.String("prompt")
	ids := form == openai.Tokens || form == "" && c.String("endpoint") == openai.Completions && !set("dataset")
	switch {
	case set("dataset") && !set("tokenizer"):
		return misused("replay: --dataset needs --tokenizer: only the model's own tokenizer.json tells where text is to be cut for exact lengths")
	case set("dataset") && form == openai.Tokens:
		return misused("replay: --dataset is text, and --prompt tokens is not: leave --prompt out")
	case set("tokenizer") && ids:
		return misused("replay: --tokenizer is for text, and prompts are token ids: add --prompt words or --dataset")
	case set("token-range") && !ids:
		return misused("replay: --token-range is for token ids, and prompts are text: it goes with --prompt tokens")
	}
	return nil
}

// parseTokenRange parses LO:HI.
func parseTokenRange(text string) (low, high uint32, err error) {
	first, last, ok := strings.Cut(text, ":")
	lo, errLow := strconv.ParseUint(first, 10, 32)
	hi, errHigh := strconv.ParseUint(last, 10, 32)
	if !ok || errLow != nil || errHigh != nil || lo == 0 || hi == 0 {
		return 0, 0, misused("replay: --token-range is not LO:HI, token ids from 1 to 4294967295: %q", text)
	}
	return uint32(lo), uint32(hi), nil
}

// targetOf is what run.json says of what was driven.
func targetOf(c *cli.Context, client *openai.Client, source prompt.Source) runfile.Target {
	target := runfile.Target{
		URL: client.Target(), Model: client.Model(), Endpoint: client.Endpoint(), Prompt: client.PromptForm(),
		Simulated: len(c.StringSlice("url")) == 0,
		IgnoreEOS: client.IgnoresEOS(), MinTokens: client.MinTokens(), Body: client.Members(),
		TemplateTokens: client.TemplateTokens().Value, ExactISL: c.Bool("exact-isl"),
	}
	if client.PromptForm() == openai.Tokens {
		low, high := source.TokenRange()
		target.TokenRange = fmt.Sprintf("%d:%d", low, high)
	}
	if path := c.String("tokenizer"); path != "" {
		target.Tokenizer = runfile.File{Name: filepath.Base(path), SHA256: source.Words.Tokenizer()}
	}
	if source.Text != nil {
		target.Dataset = runfile.File{Name: filepath.Base(c.String("dataset")), SHA256: source.Text.SHA256()}
	}
	return target
}

// sourceNotes are what the report should say about what prompts are made of.
func sourceNotes(source prompt.Source) []string {
	var notes []string
	if n := source.Words.Replaced(); n > 0 && source.Text == nil {
		notes = append(notes, fmt.Sprintf("%d of the usual words are not one token each in the tokenizer's vocabulary: others are used", n))
	}
	if source.Text == nil {
		return notes
	}
	stats := source.Text.Stats()
	note := fmt.Sprintf("prompts are passages of %d tokens of text; %.1f %% of its words were left out because they cannot be cut at each of their tokens",
		stats.Tokens, 100*float64(stats.LeftOut)/float64(max(stats.Words, 1)))
	if stats.Partial {
		note += "; the dataset has more text"
	}
	return append(notes, note)
}
