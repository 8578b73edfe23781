package main

import (
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
)

// firstGiven returns the first of the named flags that was given, or "".
func firstGiven(c *cli.Context, flags []cli.Flag) string {
	for _, f := range flags {
		if name := f.Names()[0]; c.IsSet(name) {
			return name
		}
	}
	return ""
}

// requirePositive rejects numbers and times that were set to zero or less.
func requirePositive(c *cli.Context, flags ...string) error {
	for _, name := range flags {
		if !c.IsSet(name) {
			continue
		}
		var number float64
		switch value := c.Value(name).(type) {
		case int:
			number = float64(value)
		case float64:
			number = value
		case time.Duration:
			number = float64(value)
		}
		if !(number > 0) || math.IsInf(number, 1) {
			return misused("%s: --%s must be positive: %v", c.Command.Name, name, c.Value(name))
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
	var name strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	return name.String()
}
