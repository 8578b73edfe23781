package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/replay/simserver"
)

// The engine that serves where nothing else is said: about a small model on
// one large GPU.
const (
	simPrefillPerToken = 15 * time.Microsecond
	simDecodeStep      = 8 * time.Millisecond
)

func serveCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "run the simulated OpenAI-compatible endpoint by itself",
		ArgsUsage: " ",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8000", Usage: "`ADDRESS` to listen on; port 0 picks a free one"},
			&cli.StringFlag{Name: "model", Value: "sim", Usage: "name of the served model"},
			&cli.DurationFlag{Name: "prefill-per-token", Value: simPrefillPerToken, Usage: "time to compute one prompt token that is not cached; 0 is as fast as can be"},
			&cli.DurationFlag{Name: "decode-step", Value: simDecodeStep, Usage: "time between two tokens of an answer; 0 is as fast as can be"},
			&cli.IntFlag{Name: "kv-block-size", Value: 16, Usage: "tokens a block of the prefix cache"},
			&cli.IntFlag{Name: "kv-blocks", Value: 1 << 20, Usage: "blocks that the prefix cache holds"},
			&cli.IntFlag{Name: "max-model-len", Value: 1 << 20, Usage: "most tokens of a prompt and its answer"},
		},
		Action: func(c *cli.Context) error { return serve(c, std, stop) },
	}
}

func serve(c *cli.Context, std streams, stop stop) error {
	if c.NArg() > 0 {
		return misused("serve: takes no argument: %q", c.Args().Slice())
	}
	for _, name := range []string{"kv-block-size", "kv-blocks", "max-model-len"} {
		if c.Int(name) < 1 {
			return misused("serve: --%s is not a positive number: %d", name, c.Int(name))
		}
	}
	for _, name := range []string{"prefill-per-token", "decode-step"} {
		if c.Duration(name) < 0 {
			return misused("serve: --%s is negative: %v", name, c.Duration(name))
		}
	}
	ln, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	fmt.Fprintf(std.err, "moontide: simulated endpoint on http://%s, model %s; interrupt ends it\n", ln.Addr(), c.String("model"))
	return serveUntil(stop.gently, ln, simserver.Config{
		Model:           c.String("model"),
		PrefillPerToken: c.Duration("prefill-per-token"),
		DecodeStep:      c.Duration("decode-step"),
		BlockSize:       c.Int("kv-block-size"),
		KVBlocks:        c.Int("kv-blocks"),
		MaxModelLen:     c.Int("max-model-len"),
	})
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, ln net.Listener, cfg simserver.Config) error {
	server := simserver.New(cfg)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return fmt.Errorf("shutting the endpoint down: %w", err)
	}
	return <-ended
}

// embed serves the simulated endpoint within this process, until the returned
// function is called.
func embed() (url string, end func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("starting the embedded endpoint: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serveUntil(ctx, ln, simserver.Config{PrefillPerToken: simPrefillPerToken, DecodeStep: simDecodeStep})
	}()
	return "http://" + ln.Addr().String(), func() { cancel(); <-ended }, nil
}
