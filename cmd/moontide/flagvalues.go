package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
	"moontide/trace"
)

// firstGiven returns the name of the first of the flags that was given, or "".
func firstGiven(c *cli.Context, flags []cli.Flag) string {
	return firstGivenOf(c, namesOf(flags)...)
}

func firstGivenOf(c *cli.Context, names ...string) string {
	for _, name := range names {
		if c.IsSet(name) {
			return name
		}
	}
	return ""
}

// namesOf returns the names of flags, without their aliases.
func namesOf(flags []cli.Flag) (names []string) {
	for _, f := range flags {
		names = append(names, f.Names()[0])
	}
	return names
}

// valueRange is the range of some flags.
type valueRange struct {
	wanted  string
	accepts func(float64) bool
	flags   []string
}

// flagRanges lists the accepted values of numbers and durations, by flag.
var flagRanges = []valueRange{
	{"positive", positive, words("end limit speedup ramp max-think long-isl max-concurrency " +
		"num-requests rate-scale speedup-ratio prefix-len-multiplier prefix-root-multiplier " +
		"prompt-len-multiplier osl-multiplier max-isl max-osl")},
	{"positive", func(rate float64) bool { return rate > 0 }, words("rate session-rate")},
	{"0 or positive", func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }, words("time-scale-think time-scale-tool")},
	{"above 0 and at most 1", func(share float64) bool { return share > 0 && share <= 1 }, words("sample")},
	fromTo(1, engine.MaxEngines, "engines prefill-engines decode-engines"),
	fromTo(1, 1<<31-2, "max-num-seqs max-num-batched-tokens engine-block-size num-gpu-blocks max-model-len"),
	fromTo(server.LeastTimeScale, server.MostTimeScale, "time-scale"),
	fromTo(0, trace.MaxLength, "block-size reasoning-tokens"),
	fromTo(1, 4096, "workers"),
	fromTo(1, 1_000_000_000, "kv-bytes-per-token"),
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func fromTo[N int | float64](low, high N, flags string) valueRange {
	accepts := func(x float64) bool { return x >= float64(low) && x <= float64(high) }
	return valueRange{fmt.Sprintf("from %v to %v", low, high), accepts, words(flags)}
}

// checkRange rejects a value that the flag does not accept.
func checkRange[N int64 | float64 | time.Duration](f cli.Flag, value N) error {
	name := f.Names()[0]
	for _, r := range flagRanges {
		if slices.Contains(r.flags, name) && !r.accepts(float64(value)) {
			return fmt.Errorf("--%s must be %s: %v", name, r.wanted, value)
		}
	}
	return nil
}

// flagName returns the flag that sets a field of [bench.Config].
func flagName(field string) string {
	switch field {
	case "Retries":
		return "retry"
	case "MaxErrors":
		return "abort-after-errors"
	}
	wordStart := regexp.MustCompile("([a-z])([A-Z])")
	return strings.ToLower(wordStart.ReplaceAllString(field, "$1-$2"))
}
