package main

import (
	"cmp"
	"slices"

	"github.com/urfave/cli/v2"
)

// The groups of flags in the help of a verb.
const (
	inTarget     = "TARGET"
	inRequests   = "REQUESTS"
	inLoad       = "LOAD"
	inRunControl = "RUN CONTROL"
	inTraceInput = "TRACE INPUT"
	inValidity   = "VALIDITY"
	inOutput     = "OUTPUT"
	inEngine     = "ENGINE"
)

// grouped sorts flags by their groups and keeps the order within each.
func grouped(flags ...[]cli.Flag) []cli.Flag {
	order := []string{inTarget, inRequests, inLoad, inRunControl, inTraceInput, inValidity, inOutput, inEngine}
	group := func(f cli.Flag) int {
		c, ok := f.(cli.CategorizableFlag)
		if !ok {
			return len(order)
		}
		i := slices.Index(order, c.GetCategory())
		if i < 0 {
			return len(order)
		}
		return i
	}
	return slices.SortedStableFunc(slices.Values(slices.Concat(flags...)), func(a, b cli.Flag) int { return cmp.Compare(group(a), group(b)) })
}
