package main

import (
	"reflect"
	"strings"

	"github.com/urfave/cli/v2"
)

// Groups of flags in the help of a command.
const (
	inTarget       = "TARGET"
	inRequests     = "REQUESTS"
	inLoad         = "LOAD"
	inSessions     = "SESSIONS"
	inRunControl   = "RUN CONTROL"
	inParts        = "SEVERAL MACHINES"
	ofTraces       = "FROM A TRACE"
	ofSessions     = "FROM A TRACE, --method sessions"
	ofTree         = "FROM A TRACE, --method tree"
	ofDescriptions = "FROM A DESCRIPTION"
	inTraceInput   = "TRACE INPUT"
	inCache        = "CACHE"
	inServer       = "SERVER"
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
