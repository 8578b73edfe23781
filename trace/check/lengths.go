package check

import (
	"moontide/trace"
)

const (
	// hugeLength is beyond the context of any model, and longLength beyond that
	// of nearly all: the largest that were announced are 10 and 1 to 2 million.
	hugeLength = 10_000_000
	longLength = 1_000_000
	// fewestForConstant is how many rows it takes to call equal lengths a
	// property of the trace.
	fewestForConstant = 10
)

// lengths checks ISL and OSL.
type lengths struct {
	found                *ledger
	rows                 int
	firstISL, firstOSL   int
	otherISLs, otherOSLs bool
}

func (c *lengths) add(line int, r *trace.Request) {
	if c.rows++; c.rows == 1 {
		c.firstISL, c.firstOSL = r.InputLength, r.OutputLength
	}
	c.otherISLs = c.otherISLs || r.InputLength != c.firstISL
	c.otherOSLs = c.otherOSLs || r.OutputLength != c.firstOSL
	if r.InputLength == 0 {
		c.found.add(ZeroInput, line, "input_length 0")
	}
	if r.OutputLength == 0 {
		c.found.add(ZeroOutput, line, "output_length 0")
	}
	switch length := max(r.InputLength, r.OutputLength); {
	case length > hugeLength:
		c.found.add(HugeLength, line, "input_length %d, output_length %d", r.InputLength, r.OutputLength)
	case length > longLength:
		c.found.add(LongLength, line, "input_length %d, output_length %d", r.InputLength, r.OutputLength)
	}
}

func (c *lengths) finish() {
	if c.rows < fewestForConstant {
		return
	}
	if !c.otherISLs {
		c.found.whole(ConstantInput, c.rows, "input_length is %d in every row", c.firstISL)
	}
	switch {
	case c.otherOSLs:
	case c.firstOSL == 1:
		c.found.whole(OutputsOne, c.rows, "output_length is 1 in every row")
	default:
		c.found.whole(ConstantOutput, c.rows, "output_length is %d in every row", c.firstOSL)
	}
}
