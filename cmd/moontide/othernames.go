package main

import "github.com/urfave/cli/v2"

func otherNamesOf(verb string, f cli.Flag) (names []string) {
	for _, name := range f.Names()[1:] {
		if len(name) > 1 {
			names = append(names, name)
		}
	}
	return names
}
