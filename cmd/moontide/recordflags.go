package main

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"moontide/trace/format"
	"moontide/trace/log"
	"moontide/trace/tokenizer"
)

// recordFlags returns the flags of verbs that replace texts by keyed ids.
func recordFlags(category string) []cli.Flag {
	return group(category,
		keyFlag(),
		&cli.Float64Flag{Name: "bytes-per-token", Value: 4, Usage: "assumed `BYTES` of a token of texts without --tokenizer", DefaultText: "4; of a log, as many as it counts"},
		&cli.StringFlag{Name: "session-field", Usage: "`NAME` of the member of a request that names its session, such as metadata.chat_id", DefaultText: "sessions are found by prompts that continue each other"},
	)
}

func keyFlag() *cli.StringFlag {
	return &cli.StringFlag{Name: "key", DefaultText: "capture.key in the folder of the trace", Usage: "`FILE` of the secret key of block ids and names, made if it does not exist; traces made with one key share ids"}
}

// recordConfig reads the flags of recordFlags and opens their files.
func recordConfig(c *cli.Context) (log.Config, error) {
	cfg, err := textConfig(c)
	if err == nil {
		cfg.Key, err = keyOf(c)
	}
	return cfg, err
}

// keyOf opens the key, or returns a random one for an anonymized trace without --key.
func keyOf(c *cli.Context) (log.Key, error) {
	if c.Bool("anonymize") && !c.IsSet("key") {
		return log.RandomKey(), nil
	}
	return openKey(c)
}

// openKey opens the key that --key names, else the one in the folder of the output.
func openKey(c *cli.Context) (log.Key, error) {
	return log.OpenKey(keyFile(c))
}

func keyFile(c *cli.Context) string {
	return cmp.Or(c.String("key"), filepath.Join(filepath.Dir(c.String(outFlag.Name)), "capture.key"))
}

// textConfig is recordConfig without the key.
func textConfig(c *cli.Context) (cfg log.Config, err error) {
	cfg = log.Config{BlockSize: c.Int(blockSizeFlag.Name), SessionField: c.String("session-field")}
	if c.IsSet("bytes-per-token") {
		cfg.BytesPerToken = c.Float64("bytes-per-token")
	}
	if file := c.String("tokenizer"); file != "" {
		vocabulary, err := tokenizer.Open(file)
		if err != nil {
			return cfg, err
		}
		cfg.Encoder, cfg.EncoderID = vocabulary, vocabulary.SHA256()
	}
	return cfg, nil
}

// readsLogs adds the configuration for request logs, from recordFlags, or an error with the
// remedy.
func readsLogs(c *cli.Context, opts *format.Options) {
	opts.Record = func() (log.Config, error) {
		if c.Float64("bytes-per-token") == 0 {
			return log.Config{}, errors.New("a log of requests with their texts: first convert it to a trace without them, with moontide convert LOG -o trace.jsonl")
		}
		return recordConfig(c)
	}
}
