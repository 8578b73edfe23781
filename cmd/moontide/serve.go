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

	"github.com/urfave/cli/v2"

	"moontide/replay/bench"
	"moontide/replay/sim/server"
)

func serveCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "run the simulated OpenAI-compatible endpoint",
		Description: "Serves /v1/chat/completions, /v1/completions, /v1/models, /tokenize, /health, /version, and\n" +
			"/metrics with vLLM's names. Request headers: X-Session-ID names the conversation for\n" +
			"--routing session; X-Moontide-Stamps: 1 adds the write time of each event (CLOCK_MONOTONIC, ns);\n" +
			"X-Moontide-Fault applies a --fault to one request.",
		Flags: append(engineFlags(),
			&cli.StringFlag{Name: "listen", Category: inTarget, Value: "127.0.0.1:8000", Usage: "`ADDRESS` to listen on; port 0 picks a free one"},
			&cli.StringFlag{Name: "model", Category: inTarget, Value: "sim", Usage: "`NAME` of the served model"},
			&cli.StringSliceFlag{Name: "fault", Category: inRunControl, Usage: "inject `KIND[:SHARE[:AMOUNT]]` into a share of the responses, such as reset:0.01 or delay:1:2s; repeatable. KIND is " + faultKinds()},
			&cli.BoolFlag{Name: untilInputEndsFlag, Category: inRunControl, Usage: "exit when standard input is closed"},
			&cli.BoolFlag{Name: "json", Category: inOutput, Usage: "print a JSON line with the endpoint's URL to standard output once it accepts connections"},
			&cli.Float64Flag{Name: "time-scale", Category: inEngine, Value: 1, Usage: "run the engines `X` times as fast as real time"},
			&cli.Uint64Flag{Name: "seed", Category: inEngine, Usage: "seed of the random router and of the faults"},
		),
		Action: func(c *cli.Context) error { return serve(c, std, stop) },
	}
}

const untilInputEndsFlag = "until-input-ends"

func serve(c *cli.Context, std streams, stop stop) error {
	if c.NArg() > 0 {
		return misused("serve: takes no argument: %q", c.Args().Slice())
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
	std.say("simulated endpoint on http://%s, model %s, %v; interrupt ends it", ln.Addr(), c.String("model"), deployment)
	if c.Bool("json") {
		if err := bench.AnnounceEndpoint(std.out, "http://"+ln.Addr().String()); err != nil {
			return err
		}
	}
	until, end := context.WithCancel(stop.gently)
	defer end()
	if c.Bool(untilInputEndsFlag) {
		go func() { io.Copy(io.Discard, std.in); end() }()
	}
	return server.Run(until, ln, server.Config{
		Model: c.String("model"), Deployment: deployment, TimeScale: c.Float64("time-scale"), CacheGenerated: c.Bool("cache-generated"),
		Faults: faults, Seed: c.Uint64("seed"), Version: version(),
	})
}

func faultKinds() string { return strings.Join(server.FaultKinds(), ", ") }

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

// leaveRoomForEndpoint allows one more thread than there are CPU cores to run
// Go code, unless the user set GOMAXPROCS. Client and embedded endpoint each
// have a thread that waits in the kernel, which the Go scheduler counts as
// running for up to ten milliseconds: with two cores, nothing else would run in
// that time.
var leaveRoomForEndpoint = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
})
