package main

import (
	"reflect"

	"github.com/urfave/cli/v2"
)

// Groups of flags in the help of a command, in display order.
const (
	inTarget       = "TARGET"
	inRequests     = "REQUESTS"
	inLoad         = "LOAD"
	inRunControl   = "RUN CONTROL"
	ofTraces       = "FROM A TRACE"
	ofSessions     = "FROM A TRACE, --method sessions"
	ofTree         = "FROM A TRACE, --method tree"
	ofDescriptions = "FROM A DESCRIPTION"
	inTraceInput   = "TRACE INPUT"
	inCache        = "CACHE"
	inServer       = "SERVER"
	inValidity     = "VALIDITY"
	inGates        = "GATES"
	inOutput       = "OUTPUT"
	inEngine       = "ENGINE"
)

var groups = []string{
	inTarget, inRequests, inLoad, inRunControl, ofTraces, ofSessions, ofTree, ofDescriptions,
	inTraceInput, inCache, inServer, inValidity, inGates, inOutput, inEngine,
}

// group puts new flags in a group of the help.
func group(name string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		reflect.ValueOf(f).Elem().FieldByName("Category").SetString(name)
	}
	return flags
}
