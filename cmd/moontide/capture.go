package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/replay/capture"
	"moontide/replay/live"
	"moontide/replay/secret"
	"moontide/replay/settings"
	"moontide/trace/log"
)

func captureCommand(std streams, stop stop) *cli.Command {
	d, certificates := newCommandLine(nil, func(row *settings.Setting) bool { return row.Name == "tls" })
	return &cli.Command{
		Usage: "record live traffic as a trace, without its text",
		Description: "A reverse proxy for an OpenAI-compatible server. Requests and responses are forwarded unchanged. The trace " +
			"records their lengths, times, outcomes and sessions, and keyed hashes of prompt prefixes as block ids, " +
			"but no text, header values or user names. The first interrupt waits for requests in flight and exits.",
		Flags: append(append(recordFlags(inRequests), certificates...),
			&cli.StringFlag{Name: "upstream", Category: inTarget, Usage: "base `URL` of the server"},
			&cli.StringFlag{Name: "listen", Category: inTarget, Value: "127.0.0.1:9000", Usage: "`ADDRESS` to listen on; port 0 picks a free one"},
			dataFlag("", "`FILE` of the trace, which must not exist; .gz and .zst compress"),
			&cli.StringFlag{Name: "rotate", Category: inOutput, Usage: "start a new file after a `LIMIT`: a time such as 1h, a size on disk such as 1GiB, or 1h,1GiB for whichever comes first", DefaultText: "one file"},
			&cli.StringFlag{Name: "metrics-listen", Category: inOutput, Usage: "`ADDRESS` to serve Prometheus metrics at /metrics, and /healthz"},
			&cli.IntFlag{Name: "block-size", Category: inRequests, Value: 512, Usage: "block size in `TOKENS`"},
			&cli.StringFlag{Name: "tokenizer", Category: inRequests, Usage: "tokenizer.json `FILE` for text prompts", DefaultText: "block ids of text are estimated"},
			&cli.StringFlag{Name: "session-header", Category: inSessions, Usage: "`NAME` of the header that identifies a request's session", DefaultText: "sessions are inferred from prompts that continue each other"},
			&cli.Float64Flag{Name: "sample", Category: inSessions, Value: 1, Usage: "`SHARE` of the sessions to record, one in N: 0.1 for one in ten"},
			&cli.StringFlag{Name: "memory", Category: inRunControl, Value: "512MiB", Usage: "maximum `SIZE` of memory for the contents of requests and responses, of which two fifths hold them and the rest is for decoding and garbage collection; what does not fit is forwarded, and recorded without block ids. Connections come on top, about 10 kB each, and 20 kB with a request"},
		),
		Action: func(c *cli.Context) error { return captureTraffic(c, std, stop, d) },
	}
}

func captureTraffic(c *cli.Context, std streams, stop stop, d *commandLine) error {
	cfg, files, err := captureConfig(c, d)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("capturing: %w", err)
	}
	defer l.Close()
	var metrics net.Listener
	if address := c.String("metrics-listen"); address != "" {
		if metrics, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("serving metrics: %w", err)
		}
		defer metrics.Close()
	}
	if cfg.Key, err = keyOf(c); err != nil {
		return err
	}
	out, err := capture.CreateFiles(files)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" { // else garbage takes as much again as what is held
		defer debug.SetGCPercent(debug.SetGCPercent(50))
	}
	p, err := capture.New(cfg, out)
	if err != nil {
		out.Close()
		return err
	}
	if metrics != nil {
		defer live.Serve(metrics, p).Close()
		std.say("metrics on http://%s/metrics", metrics.Addr())
	}
	std.say("capturing http://%s -> %s into %s; interrupt ends it", l.Addr(), secret.URL(cfg.Upstream.String()), files.Path)
	served := p.Serve(stop.gently, stop.now, l)
	closed := out.Close()
	sayCaptured(std, p.Counts(), out.Paths())
	if served != nil {
		return served
	}
	return closed
}

// captureConfig reads the flags. It opens only the tokenizer's file.
func captureConfig(c *cli.Context, d *commandLine) (cfg capture.Config, files capture.FilesConfig, err error) {
	switch {
	case c.NArg() > 0:
		return cfg, files, misused("takes no argument: %q", c.Args().Slice())
	case c.String("upstream") == "":
		return cfg, files, misused("--upstream is missing: the base URL of the server, such as http://127.0.0.1:8000")
	case c.String(outFlag.Name) == "" || c.String(outFlag.Name) == "-":
		return cfg, files, misused("--out is missing: the file of the trace, such as trace.jsonl.zst")
	}
	upstream := c.String("upstream")
	if !strings.Contains(upstream, "://") {
		upstream = "http://" + upstream
	}
	to, err := url.Parse(upstream)
	if err != nil {
		return cfg, files, misused("--upstream is not a URL such as http://127.0.0.1:8000")
	}
	to.Path = strings.TrimSuffix(strings.TrimSuffix(to.Path, "/"), "/v1") // clients send it
	cfg = capture.Config{Upstream: to, SessionHeader: c.String("session-header")}
	if cfg.Config, err = textConfig(c); err != nil {
		return cfg, files, err
	}
	cfg.Key = log.Key{1} // until it is opened
	if cfg.Memory, err = parseSize(c.String("memory")); err != nil {
		return cfg, files, misused("--memory: %w", err)
	}
	cfg.Memory = cfg.Memory / 5 * 2 // the rest is for decoding, and garbage
	oneIn := math.Round(1 / c.Float64("sample"))
	if cfg.SampleOneIn = int(oneIn); !(oneIn >= 1 && oneIn <= 1<<31 && math.Abs(oneIn*c.Float64("sample")-1) < 1e-9) {
		return cfg, files, misused("--sample must be one in a whole number, such as 0.1 for one in ten: %v", c.Float64("sample"))
	}
	files.Path = c.String(outFlag.Name)
	if _, err := os.Lstat(files.Path); err == nil {
		return cfg, files, misused("%s exists: capture writes new files only", files.Path)
	}
	if limits := c.String("rotate"); limits != "" {
		if files.Every, files.Size, err = parseRotation(limits); err != nil {
			return cfg, files, misused("--rotate: %w", err)
		}
	}
	if err := cfg.Check(); err != nil {
		return cfg, files, misused("%w", err)
	}
	cfg.TLS = &tls.Config{InsecureSkipVerify: d.Client.Insecure}
	if d.CAFile != "" {
		cfg.TLS.RootCAs, err = readCAs(d.CAFile)
	}
	return cfg, files, err
}

// parseRotation parses a time, a size, or both with a comma between them.
func parseRotation(limits string) (every time.Duration, size int64, err error) {
	for limit := range strings.SplitSeq(limits, ",") {
		if t, err := time.ParseDuration(limit); err == nil && t > 0 && every == 0 {
			every = t
		} else if n, err := parseSize(limit); err == nil && size == 0 {
			size = n
		} else {
			return 0, 0, fmt.Errorf("%q is neither a time such as 1h nor a size such as 1GiB, or the second of its kind", limit)
		}
	}
	return every, size, nil
}

// parseSize parses a size such as 64MiB, in bytes.
func parseSize(text string) (int64, error) {
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}} {
		if n, ok := strings.CutSuffix(text, unit.name); ok {
			if x, err := strconv.ParseFloat(n, 64); err == nil && x > 0 && x*unit.bytes < 1<<62 {
				return int64(x * unit.bytes), nil
			}
		}
	}
	return 0, fmt.Errorf("%q is not a size such as 256MiB", text)
}

// sayCaptured reports what was recorded and what is missing.
func sayCaptured(std streams, n capture.Counts, paths []string) {
	in := cmp.Or(strings.Join(paths, ", "), "no file")
	std.say("%s, %s in %s", doc.Count(int(n.Requests), "request"), doc.Count(int(n.Rows), "row"), in)
	for _, class := range slices.Sorted(maps.Keys(n.Ended)) {
		if class != "" {
			std.say("%s ended as %s", doc.Count(int(n.Ended[class]), "request"), class)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(n.LostRows)) {
		std.say("warning: %s lost: %s", doc.Count(int(n.LostRows[why]), "row"), capture.Reason(why))
	}
	for _, why := range slices.Sorted(maps.Keys(n.NoBlocks)) {
		std.say("warning: %s without block ids: %s", doc.Count(int(n.NoBlocks[why]), "row"), capture.Reason(why))
	}
	if n.Other > 0 {
		std.say("%s forwarded without a record: of other paths or methods", doc.Count(int(n.Other), "request"))
	}
	if n.SampledOut > 0 {
		std.say("%s of sessions outside of the sample", doc.Count(int(n.SampledOut), "request"))
	}
	if n.PromptTokens > 0 {
		measured := float64(n.PromptBytes) / float64(n.PromptTokens)
		std.say("block ids of texts are estimated; the server counted %.3g bytes per token: pass --bytes-per-token %.3g, or --tokenizer for exact ones", measured, measured)
	}
	if n.Faults > 0 {
		std.say("warning: %s of the capture itself, which did not stop the traffic", doc.Count(int(n.Faults), "fault"))
	}
}
