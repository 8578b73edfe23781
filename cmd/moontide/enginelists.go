package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/experiment"
	"moontide/replay/sim/fit"
)

// countsFlag is a flag for a whole number or a list of them.
type countsFlag struct{ cli.StringFlag }

// check checks the numbers of a list.
func (f *countsFlag) check(value string) (string, error) {
	if n, err := strconv.ParseInt(value, 0, 64); err == nil {
		return strconv.FormatInt(n, 10), checkRange(f, n)
	}
	counts, err := experiment.ParseCounts(value, math.MaxInt32)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", f.Name, err)
	}
	for _, n := range counts {
		if err := checkRange(f, int64(n)); err != nil {
			return "", err
		}
	}
	return value, nil
}

// listedEngineFlags returns the flags of simulated engines. Whole numbers and the routing
// accept lists.
func listedEngineFlags() []cli.Flag {
	flags := engineFlags()
	for i, f := range flags {
		switch f := f.(type) {
		case *cli.IntFlag:
			counts := &countsFlag{cli.StringFlag{Name: f.Name, Aliases: f.Aliases, Category: f.Category, Usage: f.Usage}}
			if !strings.Contains(f.Usage, "`") {
				counts.Usage = "`N`: " + f.Usage
			}
			if f.Value != 0 {
				counts.Value = strconv.Itoa(f.Value)
			}
			flags[i] = counts
		case *choiceFlag:
			if f.Name == routingFlag {
				f.Choices = list(f.Choices)
			}
		}
	}
	return flags
}

const mostCandidates = 10_000

// candidatesOf returns the deployments of all combinations of the lists.
func candidatesOf(c *cli.Context, file *fit.File) ([]experiment.Candidate, error) {
	choices := choicesOf(c)
	if len(choices) > mostCandidates {
		return nil, misused("%s: the lists of engine flags give more than %d deployments", c.Command.Name, mostCandidates)
	}
	var candidates []experiment.Candidate
	for _, choice := range choices {
		one, err := choice.context(c)
		if err != nil {
			return nil, err
		}
		d, err := deploymentFrom(one, file, baseOf(file))
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, experiment.Candidate{Deployment: d, Variant: choice.variant()})
	}
	return candidates, nil
}

// engineCounts are the flags for numbers of engines.
var engineCounts = words("engines prefill-engines decode-engines")

// choice has a value for each flag with a list.
type choice []struct {
	flag, value string
	varies      bool // the list has other values
}

// choicesOf returns all combinations of the values of the lists that are set: first with
// --engines, then with --prefill-engines and --decode-engines.
func choicesOf(c *cli.Context) (all []choice) {
	var others []string
	for _, f := range listedEngineFlags() {
		if name := f.Names()[0]; isList(f) && c.IsSet(name) && !slices.Contains(engineCounts, name) {
			others = append(others, name)
		}
	}
	aggregated, disaggregated := c.IsSet("engines"), c.IsSet("prefill-engines") || c.IsSet("decode-engines")
	if aggregated {
		all = append(all, combinations(c, append(slices.Clone(others), "engines"))...)
	}
	if disaggregated {
		all = append(all, combinations(c, append(slices.Clone(others), engineCounts[1:]...))...)
	}
	if !aggregated && !disaggregated {
		all = combinations(c, others)
	}
	return all
}

func isList(f cli.Flag) bool {
	_, counts := f.(*countsFlag)
	return counts || f.Names()[0] == routingFlag
}

// combinations returns the combinations of the values of flags, the last varying fastest.
func combinations(c *cli.Context, flags []string) []choice {
	all := []choice{nil}
	for _, name := range flags {
		if !c.IsSet(name) {
			continue
		}
		values := valuesOf(c, name)
		var longer []choice
		for _, before := range all {
			for _, value := range values {
				if len(longer) > mostCandidates {
					break // candidatesOf refuses them
				}
				longer = append(longer, append(slices.Clone(before), struct {
					flag, value string
					varies      bool
				}{name, value, len(values) > 1}))
			}
		}
		all = longer
	}
	return all
}

// valuesOf returns the values of a list that is set.
func valuesOf(c *cli.Context, name string) (values []string) {
	if name == routingFlag {
		for _, value := range strings.Split(c.String(name), ",") {
			if !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		return values
	}
	counts, _ := experiment.ParseCounts(c.String(name), math.MaxInt32) // checked with the flag
	for _, n := range counts {
		values = append(values, strconv.Itoa(n))
	}
	return values
}

// variant names what varies besides the numbers of engines.
func (ch choice) variant() string {
	var parts []string
	for _, v := range ch {
		switch {
		case !v.varies || slices.Contains(engineCounts, v.flag):
		case v.flag == routingFlag:
			parts = append(parts, v.value)
		default:
			parts = append(parts, v.flag+" "+v.value)
		}
	}
	return strings.Join(parts, ", ")
}

// context returns a command line with the values in place of the lists.
func (ch choice) context(c *cli.Context) (*cli.Context, error) {
	set := flag.NewFlagSet(c.Command.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if name != "seed" && categoryOf(f) != inEngine {
			continue
		}
		if err := f.Apply(set); err != nil {
			return nil, err
		}
		if !c.IsSet(name) || isList(f) {
			continue
		}
		if err := set.Set(name, fmt.Sprint(c.Value(name))); err != nil {
			return nil, err
		}
	}
	for _, v := range ch {
		if err := set.Set(v.flag, v.value); err != nil {
			return nil, err
		}
	}
	one := cli.NewContext(c.App, set, nil)
	one.Command = c.Command
	return one, nil
}
