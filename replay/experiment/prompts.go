package experiment

import (
	"fmt"
	"path/filepath"

	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/replay/runfile"
	"moontide/replay/secret"
	"moontide/replay/sim/server"
	"moontide/trace/tokenizer"
)

// promptSource returns the source of prompts, reading its files, and the
// encoder of the tokenizer, nil without one.
func (c *Config) promptSource(blockSize int) (source prompt.Source, encode server.Encoder, err error) {
	source = c.Client.Source
	source.Seed, source.Salt, source.BlockSize = c.Seed, c.Salt, blockSize
	if c.Tokenizer == "" {
		return source, nil, nil
	}
	vocabulary, err := tokenizer.Open(c.Tokenizer)
	if err != nil {
		return source, nil, err
	}
	if source.Words, err = prompt.NewWords(vocabulary); err != nil {
		return source, nil, fmt.Errorf("choosing words of one token in %s: %w", c.Tokenizer, err)
	}
	if c.Dataset != "" {
		if source.Text, err = prompt.NewCorpus(prompt.ReadDataset(c.Dataset), vocabulary); err != nil {
			return source, nil, fmt.Errorf("cutting %s into tokens: %w", c.Dataset, err)
		}
	}
	return source, vocabulary.Append, nil
}

// target returns the endpoint and request settings for run.json.
func (c *Config) target(client *openai.Client, source prompt.Source) runfile.Target {
	t := runfile.Target{
		URL: client.Target(), Model: client.Model(), Endpoint: client.Endpoint(), Prompt: client.PromptForm(),
		Simulated: c.Embedded(),
		IgnoreEOS: client.IgnoresEOS(), MinTokens: client.MinTokens(), Accepted: client.Accepted(), Body: secret.Body(client.Members()),
		TemplateTokens: client.TemplateTokens().Value,
	}
	if c.Embedded() {
		t.Engines = c.recordedEngines()
	}
	for _, s := range client.Shares() {
		t.Models = append(t.Models, runfile.ModelShare{Model: s.Model, Share: s.Weight})
	}
	if c.Tokenizer != "" {
		t.Tokenizer = runfile.File{Name: filepath.Base(c.Tokenizer), SHA256: source.Words.Tokenizer}
	}
	if source.Text != nil {
		t.Dataset = runfile.File{Name: filepath.Base(c.Dataset), SHA256: source.Text.SHA256()}
	}
	return t
}

// sourceNotes returns the notes on prompts for the report.
func sourceNotes(source prompt.Source) []string {
	if source.Text == nil {
		words := source.Words
		if words == nil || words.Replaced == 0 {
			return nil
		}
		note := fmt.Sprintf("%d of the usual words are not one token each in the tokenizer's vocabulary: others are used", words.Replaced)
		if words.Distinct < prompt.WordCount {
			note += fmt.Sprintf("; it has only %d suitable words of one token, so they are repeated", words.Distinct)
		}
		return []string{note}
	}
	stats := source.Text.Stats()
	note := fmt.Sprintf("prompts are passages of %d tokens of text; %.1f %% of its words were left out because they cannot be cut at each of their tokens",
		stats.Tokens, 100*float64(stats.LeftOut)/float64(max(stats.Words, 1)))
	if stats.Partial {
		note += "; the dataset has more text"
	}
	return []string{note}
}
