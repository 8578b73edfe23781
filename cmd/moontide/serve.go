package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/replay/sim/server"
)

func serveCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "run the simulated OpenAI-compatible endpoint",
		ArgsUsage: " ",
		Description: "Serves /v1/chat/completions, /v1/completions, /v1/models, /tokenize, /health, /version, and\n" +
			"/metrics with vLLM's names. Request headers: X-Session-ID names the conversation for\n" +
			"--routing session; X-Moontide-Stamps: 1 adds the write time of each event (CLOCK_MONOTONIC, ns);\n" +
			"X-Moontide-Fault applies a --fault to one request.",
		Flags: grouped([]cli.Flag{
			&cli.StringFlag{Name: "listen", Category: inTarget, Value: "127.0.0.1:8000", Usage: "`ADDRESS` to listen on; port 0 picks a free one"},
			&cli.StringFlag{Name: "model", Category: inTarget, Value: "sim", Usage: "`NAME` of the served model"},
			&cli.StringSliceFlag{Name: "fault", Category: inRunControl, Usage: "inject `KIND[:SHARE[:AMOUNT]]` into a share of the responses, such as reset:0.01 or delay:1:2s; repeatable. KIND is " + faultKinds()},
			&cli.BoolFlag{Name: untilInputEndsFlag, Category: inRunControl, DisableDefaultText: true, Usage: "exit when standard input is closed"},
			&cli.Float64Flag{Name: "time-scale", Category: inEngine, Value: 1, Usage: "run the engines `X` times as fast as real time"},
			&cli.Uint64Flag{Name: "seed", Category: inEngine, Usage: "seed of the random router and of the faults"},
		}, engineFlags()),
		Action: func(c *cli.Context) error { return serve(c, std, stop) },
	}
}

const untilInputEndsFlag = "until-input-ends"

func serve(c *cli.Context, std streams, stop stop) error {
	if c.NArg() > 0 {
		return misused("serve: takes no argument: %q", c.Args().Slice())
	}
	scale := c.Float64("time-scale")
	if !(scale >= server.LeastTimeScale && scale <= server.MostTimeScale) {
		return misused("serve: --time-scale is not from %v to %v: %v", server.LeastTimeScale, server.MostTimeScale, scale)
	}
	if c.String("listen") == "" {
		return misused("serve: --listen is empty")
	}
	deployment, err := deploymentOf(c)
	if err != nil {
		return err
	}
	faults, err := faultsOf(c)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	fmt.Fprintf(std.err, "moontide: simulated endpoint on http://%s, model %s, %v; interrupt ends it\n", ln.Addr(), c.String("model"), deployment)
	until, end := context.WithCancel(stop.gently)
	defer end()
	if c.Bool(untilInputEndsFlag) {
		go func() { io.Copy(io.Discard, std.in); end() }()
	}
	return serveUntil(until, ln, server.Config{
		Model: c.String("model"), Deployment: deployment, TimeScale: scale, CacheGenerated: c.Bool(cacheGeneratedFlag),
		Faults: faults, Seed: c.Uint64("seed"), Version: version(),
	})
}

func faultKinds() string {
	var names []string
	for _, kind := range server.FaultKinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// faultsOf reads --fault.
func faultsOf(c *cli.Context) ([]server.Fault, error) {
	var faults []server.Fault
	for _, text := range c.StringSlice("fault") {
		f, err := server.ParseFault(text)
		if err != nil {
			return nil, misused("serve: --fault: %w", err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, ln net.Listener, cfg server.Config) error {
	server, err := server.New(cfg)
	if err != nil {
		ln.Close()
		return err
	}
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

// embeddedEngines are the engines that a verb drives in its own process, and a
// note of them where flags chose them.
func embeddedEngines(c *cli.Context, embedded bool) (server.Config, []string, error) {
	chosen := ""
	for _, f := range engineFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			chosen = name
		}
	}
	if !embedded && chosen != "" {
		return server.Config{}, nil, misused("%s: --%s is of the embedded endpoint, which --url leaves out", c.Command.Name, chosen)
	}
	deployment, err := deploymentOf(c)
	if err != nil {
		return server.Config{}, nil, err
	}
	cfg := server.Config{Deployment: deployment, CacheGenerated: c.Bool(cacheGeneratedFlag), Seed: c.Uint64("seed"), Version: version()}
	if chosen == "" {
		return cfg, nil, nil
	}
	return cfg, []string{fmt.Sprintf("the embedded endpoint is %v", deployment)}, nil
}

// roomForEmbedded lets one more thread run Go code than there are processors,
// unless the user chose how many do. Client and endpoint each have a thread that
// waits in the kernel, which Go counts as running until its monitor has looked
// twice, up to ten milliseconds later: with two processors nobody might run for
// as long.
var roomForEmbedded = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
})

// embed serves the simulated endpoint within this process, until the returned
// function is called.
func embed(cfg server.Config) (url string, end func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("starting the embedded endpoint: %w", err)
	}
	roomForEmbedded()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serveUntil(ctx, ln, cfg)
	}()
	return "http://" + ln.Addr().String(), func() { cancel(); <-ended }, nil
}
