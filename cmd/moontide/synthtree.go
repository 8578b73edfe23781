package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/synth/tree"
	"moontide/trace"
	"moontide/trace/format"
)

// treeFlags have the names of NVIDIA's data generator.
func treeFlags() []cli.Flag {
	return group(ofTree,
		&cli.Float64Flag{Name: "prefix-len-multiplier", Value: 1, Usage: "multiply the length of shared prefixes by `X`, which may be a fraction"},
		&cli.IntFlag{Name: "prefix-root-multiplier", Value: 1, Usage: "distribute requests over `N` copies of the shared prefixes"},
		&cli.Float64Flag{Name: "prompt-len-multiplier", Value: 1, Usage: "multiply the length of unique prompts by `X`"},
		&cli.Float64Flag{Name: "osl-multiplier", Value: 1, Usage: "multiply output lengths by `X`"},
		&cli.IntFlag{Name: "min-isl", DefaultText: "none", Usage: "reject requests with fewer than `N` input tokens"},
		&cli.IntFlag{Name: "max-isl", DefaultText: "none", Usage: "reject requests with more than `N` input tokens"},
		&cli.IntFlag{Name: "min-osl", DefaultText: "none", Usage: "raise shorter outputs to `N` tokens"},
		&cli.IntFlag{Name: "max-osl", DefaultText: "none", Usage: "cut longer outputs to `N` tokens"},
		&cli.BoolFlag{Name: "keep-rate", Usage: "skip the time of rejected requests, to keep the rate of the source"},
	)
}

func treeShape(c *cli.Context) (tree.Shape, error) {
	shape := tree.Shape{
		PrefixLenMultiplier:  c.Float64("prefix-len-multiplier"),
		PrefixRootMultiplier: c.Int("prefix-root-multiplier"),
		PromptLenMultiplier:  c.Float64("prompt-len-multiplier"),
		OSLMultiplier:        c.Float64("osl-multiplier"),
		SpeedupRatio:         c.Float64("speedup-ratio"),
		MinISL:               c.Int("min-isl"),
		MaxISL:               c.Int("max-isl"),
		MinOSL:               c.Int("min-osl"),
		MaxOSL:               c.Int("max-osl"),
		KeepRate:             c.Bool("keep-rate"),
	}
	return shape, misusedShape(shape.Check())
}

// shapeFlags names the flags of a shape's fields.
var shapeFlags = strings.NewReplacer(
	"PrefixLenMultiplier", "--prefix-len-multiplier", "PrefixRootMultiplier", "--prefix-root-multiplier",
	"PromptLenMultiplier", "--prompt-len-multiplier", "OSLMultiplier", "--osl-multiplier", "SpeedupRatio", "--speedup-ratio",
	"MinISL", "--min-isl", "MaxISL", "--max-isl", "MinOSL", "--min-osl", "MaxOSL", "--max-osl",
)

// misusedShape phrases a shape's error in terms of the flags that caused it.
func misusedShape(err error) error {
	var shape *tree.ShapeError
	if errors.As(err, &shape) {
		return misused("synth: %s", shapeFlags.Replace(shape.Error()))
	}
	return err
}

func draftTree(c *cli.Context, std streams) (draft, error) {
	if name := firstGiven(c, sessionsFlags()); name != "" {
		return draft{}, misused("synth: --%s only works with --method sessions", name)
	}
	shape, err := treeShape(c)
	if err != nil {
		return draft{}, err
	}
	model, err := fitTree(c, std)
	if err != nil {
		return draft{}, err
	}
	drawing, err := model.Draw(c.Uint64("seed"), c.Int("num-requests"), shape)
	if err != nil {
		return draft{}, misusedShape(err)
	}
	return draft{
		write: func(w *format.Writer) (int, error) {
			n, err := w.WriteAll(trace.Until(c.Context, trace.Borrow(drawing)))
			return n, misusedShape(err)
		},
		notes: func(rows int) []string { return treeNotes(drawing, rows, shape) },
	}, nil
}

func fitTree(c *cli.Context, std streams) (*tree.Model, error) {
	from := c.String("from")
	return learn(c, std, from, func(reqs trace.Requests, blockSize int) (*tree.Model, error) {
		return tree.Fit(reqs, tree.Options{BlockSize: blockSize})
	}, func(io.Reader) (*tree.Model, error) {
		return nil, fmt.Errorf("%s is a model for --method sessions; --method tree needs a trace", traceName(from))
	})
}

// treeNotes reports the requests rejected by the ISL limits.
func treeNotes(d *tree.Drawing, rows int, s tree.Shape) []string {
	if d.Rejected() == 0 {
		return nil
	}
	drawn := rows + d.Rejected()
	rejected := fmt.Sprintf("%s of %s drawn requests rejected by the limits of ISL", doc.Int(d.Rejected()), doc.Int(drawn))
	if s.KeepRate {
		return []string{fmt.Sprintf("%s; the others arrive at %.2f requests/s", rejected, d.Rate())}
	}
	return []string{fmt.Sprintf("%s; the rate drops from %.2f to %.2f requests/s (--keep-rate keeps it)",
		rejected, d.Rate()*float64(drawn)/float64(rows), d.Rate())}
}
