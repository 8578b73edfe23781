package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/replay/experiment"
	"moontide/replay/settings"
	"moontide/replay/sim/server"
	"moontide/trace/tokenizer"
)

func serveCommand(std streams, stop stop) *cli.Command {
	d, flags := newCommandLine(nil, func(row *settings.Setting) bool { return row.Group == settings.Engine || row.Name == "seed" })
	return &cli.Command{
		Usage: "run the simulated OpenAI-compatible endpoint",
		Description: "Serves OpenAI's /v1/chat/completions, /v1/completions and /v1/responses, Anthropic's /v1/messages, " +
			"SGLang's /generate, /v1/models, /health, /version, and /metrics with vLLM's metric names.\n\n" +
			"Request headers: X-Session-ID names the conversation for --routing session; X-Moontide-Stamps: 1 adds the " +
			"write time of each event (CLOCK_MONOTONIC, ns); X-Moontide-Fault applies a --fault to one request. On " +
			"exit, serve prints the latencies of its answers as it wrote them, so that you can check a client.",
		Flags: append(flags,
			&cli.StringFlag{Name: "listen", Category: inTarget, Value: "127.0.0.1:8000", Usage: "`ADDRESS` to listen on; port 0 picks a free one"},
			&cli.StringFlag{Name: "model", Category: inTarget, Value: "sim", Usage: "`NAME` of the model"},
			repeatable(cli.GenericFlag{Name: "fault", Category: inRunControl, Usage: "inject `KIND[:SHARE[:TIME]]` into a share of the responses, such as reset:0.01 or delay:1:2s; repeatable. KIND is " + oneOf(server.FaultKinds...).String()}),
			&choiceFlag{
				StringFlag: cli.StringFlag{Name: "refuse", Category: inRunControl, Usage: "reject requests that use a parameter or API in the comma-separated `LIST`, to test how clients adapt: %s"},
				Choices:    choiceSet{Names: server.Refusable(), List: true, Open: true}.Noted("token_ids", "as prompts"),
			},
			&cli.BoolFlag{Name: untilInputEndsFlag, Category: inRunControl, Usage: "exit when standard input is closed"},
			&cli.BoolFlag{Name: "json", Category: inOutput, Usage: "print JSON lines to standard output: the endpoint's URL once it accepts connections, and the latencies it served when it ends"},
			&cli.Float64Flag{Name: "time-scale", Category: inEngine, Value: 1, Usage: "run the engines `X` times as fast as real time"},
			&cli.IntFlag{Name: "reasoning-tokens", Category: inEngine, Usage: "mark the first `N` tokens of each answer as reasoning, which chat, responses and messages separate from visible text", DefaultText: "none"},
			&cli.StringFlag{Name: "tokenizer", Category: inEngine, Usage: "tokenizer.json `FILE` for prompts", DefaultText: "one token per word"},
		),
		Action: func(c *cli.Context) error { return serve(c, std, stop, d) },
	}
}

const untilInputEndsFlag = "until-input-ends"

func serve(c *cli.Context, std streams, stop stop, d *commandLine) error {
	if c.NArg() > 0 {
		return misused("takes no argument: %q", c.Args().Slice())
	}
	if c.String("listen") == "" {
		return misused("--listen is empty")
	}
	deployment, file, err := d.deployment()
	if err != nil {
		return err
	}
	faults, err := faultsOf(c)
	if err != nil {
		return err
	}
	var refuse []string
	if list := c.String("refuse"); list != "" {
		refuse = strings.Split(strings.ReplaceAll(list, " ", ""), ",")
	}
	var encode server.Encoder
	if file := c.String("tokenizer"); file != "" {
		vocabulary, err := tokenizer.Open(file)
		if err != nil {
			return err
		}
		encode = vocabulary.Append
	}
	leaveRoomForThreads()
	ln, err := net.Listen("tcp", c.String("listen"))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("serving: %w: end the program that uses the port, or choose another with --listen", err)
	}
	if err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	std.say("simulated endpoint on http://%s, model %s, %s; interrupt ends it", ln.Addr(), c.String("model"), experiment.DescribeEngines(deployment, file))
	if c.Bool("json") {
		if err := experiment.AnnounceEndpoint(std.out, "http://"+ln.Addr().String()); err != nil {
			return err
		}
	}
	until, end := context.WithCancel(stop.gently)
	defer end()
	if c.Bool(untilInputEndsFlag) {
		go func() { io.Copy(io.Discard, std.in); end() }()
	}
	summary, err := server.Run(until, ln, server.Config{
		Model: c.String("model"), Deployment: deployment, TimeScale: c.Float64("time-scale"), CacheGenerated: d.CacheGenerated,
		Faults: faults, Refuse: refuse, ReasoningTokens: c.Int("reasoning-tokens"), Seed: d.Seed, Encode: encode, Version: version(),
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(std.out).Encode(summary)
	}
	saySummary(std, summary)
	return nil
}

// saySummary reports the latencies of an endpoint, for comparison with a client's.
func saySummary(std streams, s server.Summary) {
	std.say("served %s and %s; %s aborted", doc.Count(s.Completed, "request"), doc.Count(s.OutputTokens, "output token"), doc.Count(s.Aborted, "request"))
	for _, l := range []struct {
		name string
		server.Latency
	}{{"TTFT", s.TTFT}, {"ITL", s.ITL}, {"E2EL", s.E2EL}} {
		if l.Count > 0 {
			std.say("%-4s as written (ms): mean %.2f, median %.2f, p99 %.2f, max %.2f", l.name, l.MeanMS, l.MedianMS, l.P99MS, l.MaxMS)
		}
	}
}

func faultsOf(c *cli.Context) ([]server.Fault, error) {
	var faults []server.Fault
	for _, text := range textsOf(c, "fault") {
		f, err := server.ParseFault(text)
		if err != nil {
			return nil, misused("--fault: %w", err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// leaveRoomForThreads sets GOMAXPROCS to three more than the CPU cores, unless the user set
// it. The client's timer, its reading thread and the endpoint wait in the kernel, which the
// Go scheduler counts as running for up to 10 ms: on two cores under little load, nothing
// else would run, and requests would be sent that late.
var leaveRoomForThreads = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 3)
	}
})
