package main

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/sim/server"
	"moontide/trace"
)

// Groups of flags in the help of a command.
const (
	inTarget       = "TARGET"
	inRequests     = "REQUESTS"
	inLoad         = "LOAD"
	inSessions     = "SESSIONS"
	inRunControl   = "RUN CONTROL"
	ofTraces       = "FROM A TRACE"
	ofSessions     = "FROM A TRACE, --method sessions"
	ofTree         = "FROM A TRACE, --method tree"
	ofDescriptions = "FROM A DESCRIPTION"
	inTraceInput   = "TRACE INPUT"
	inCache        = "CACHE"
	inValidity     = "VALIDITY"
	inGates        = "GATES"
	ofCheck        = "FIDELITY CHECK"
	inFit          = "FIT"
	inOutput       = "OUTPUT"
	inEngine       = "ENGINE"
)

// texts is the value of a flag that may be repeated. Unlike those of a
// cli.StringSliceFlag, its values may contain commas.
type texts []string

func (t *texts) Set(value string) error {
	*t = append(*t, strings.TrimSpace(value))
	return nil
}

func (t *texts) Get() any       { return []string(*t) }
func (t *texts) String() string { return strings.Join(*t, " ") }

// repeatable returns a flag with texts.
func repeatable(f cli.GenericFlag) cli.Flag {
	f.Value = new(texts)
	return &f
}

// textsOf returns the values of a flag that may be repeated.
func textsOf(c *cli.Context, name string) []string { return c.Value(name).([]string) }

// categoryOf returns the group of a flag.
func categoryOf(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok {
		return c.GetCategory()
	}
	return ""
}

// group puts new flags in a group of the help.
func group(name string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		reflect.ValueOf(f).Elem().FieldByName("Category").SetString(name)
	}
	return flags
}

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
	{"positive", positive, words("long-isl max-concurrency num-requests rate-scale speedup-ratio prefix-len-multiplier prefix-root-multiplier " +
		"prompt-len-multiplier osl-multiplier max-isl max-osl")},
	{"above 0 and at most 1", func(share float64) bool { return share > 0 && share <= 1 }, words("sample")},
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
func checkRange[N int64 | float64](f cli.Flag, value N) error {
	name := f.Names()[0]
	for _, r := range flagRanges {
		if slices.Contains(r.flags, name) && !r.accepts(float64(value)) {
			return fmt.Errorf("--%s must be %s: %v", name, r.wanted, value)
		}
	}
	return nil
}

// choiceSet is the set of values of a flag or an argument, for validation and help.
type choiceSet struct {
	Names []string
	// Notes explain values, by name; they are shown in the help.
	Notes map[string]string
	// List accepts several values, separated by commas.
	List bool
	// Open means that there are other values or spellings, checked elsewhere.
	Open bool
}

// oneOf returns the choices among names.
func oneOf[T ~string](names ...T) (c choiceSet) {
	for _, name := range names {
		c.Names = append(c.Names, string(name))
	}
	return c
}

// Noted returns the choices with a note on one of them.
func (c choiceSet) Noted(name, text string) choiceSet {
	notes := map[string]string{name: text}
	for name, text := range c.Notes {
		notes[name] = text
	}
	c.Notes = notes
	return c
}

// String returns the choices in words: "a, b (note) or c".
func (c choiceSet) String() string {
	var b strings.Builder
	for i, name := range c.Names {
		switch {
		case i > 0 && i == len(c.Names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(name)
		if note := c.Notes[name]; note != "" {
			b.WriteString(" (" + note + ")")
		}
	}
	return b.String()
}

// In returns a usage text with the choices in place of %s.
func (c choiceSet) In(usage string) string { return strings.Replace(usage, "%s", c.String(), 1) }

// Resolve returns a value in the spelling of the choices. It ignores case, and accepts _ for
// -.
func (c choiceSet) Resolve(text string) (string, error) {
	if c.Open {
		return text, nil
	}
	parts := []string{text}
	if c.List {
		parts = strings.Split(text, ",")
	}
	for i, part := range parts {
		name := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(part)), "_", "-")
		if !slices.Contains(c.Names, name) {
			return "", fmt.Errorf("%q is unknown: use %s", part, choiceSet{Names: c.Names})
		}
		parts[i] = name
	}
	return strings.Join(parts, ","), nil
}

// choiceFlag is a flag with a set of values.
type choiceFlag struct {
	cli.StringFlag
	Choices choiceSet
}

// GetUsage returns the usage text with the values in place of %s.
func (f *choiceFlag) GetUsage() string { return f.Choices.In(f.Usage) }

// Accepted returns the values.
func (f *choiceFlag) Accepted() choiceSet { return f.Choices }

// String returns the flag as the help shows it.
func (f *choiceFlag) String() string { return cli.FlagStringer(f) }
