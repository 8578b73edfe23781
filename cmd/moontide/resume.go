package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/secret"
)

// ownFlags lists the flags that may differ when a run is resumed, because they affect neither
// the requests nor the measurement.
var ownFlags = []string{
	"out", "resume", "wait-ready", "api-key-env", "percentiles", "slo", "fail-if", "force",
	"json", "html", outputFlag, metricsListenFlag,
	partFlag, rendezvousFlag, timeoutFlag, partByFlag,
}

// setFlags returns the given flags in the form of run.json, except some.
func setFlags(c *cli.Context, without ...string) (flags []string) {
	given := c.LocalFlagNames() // IsSet searches all flags each time
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !slices.Contains(given, name) || slices.Contains(ownFlags, name) || slices.Contains(without, name) {
			continue
		}
		values, several := c.Value(name).([]string)
		if !several {
			values = []string{fmt.Sprint(c.Value(name))}
		}
		for _, value := range values {
			mask, _ := maskOf(name)
			flags = append(flags, "--"+name+"="+mask(value))
		}
	}
	return flags
}

// autoResume is the value of --resume that starts a run or, if it was stopped or killed,
// continues it.
const autoResume = "auto"

// resumeFolder returns the folder of the run that --resume continues, or "".
func resumeFolder(c *cli.Context, std streams, path string) (dir string, err error) {
	switch dir = c.String("resume"); {
	case !c.IsSet("resume"):
		return "", nil
	case dir != autoResume && c.IsSet("out"):
		return "", misused("replay: --resume continues in the run's folder: omit --out")
	case dir != autoResume && !c.IsSet(partFlag):
		return dir, nil
	case c.IsSet(partFlag):
		part, err := partConfig(c, std, path)
		if err != nil {
			return "", err
		}
		dir = part.Folder()
	default:
		if dir = c.String("out"); dir == "" {
			return "", misused("replay: --resume auto needs --out, the folder of the run")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, runfile.RunFile)); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return dir, nil
}

// resumeFlags reads the run named by --resume and sets omitted flags to its values. Given
// flags must have the same values. Without a run to continue, dir is "".
func resumeFlags(c *cli.Context, std streams, path string) (dir string, err error) {
	if dir, err = resumeFolder(c, std, path); dir == "" || err != nil {
		return "", err
	}
	earlier, err := experiment.Resumable(dir)
	if err != nil {
		return "", err
	}
	was, given := byName(earlier.Flags), byName(setFlags(c))
	for name, values := range was {
		if given[name] != nil {
			continue
		}
		if secret.Masked(strings.Join(values, " ")) {
			return "", misused("replay: --resume %s: pass --%s again: run folders do not store values that may be secret", dir, name)
		}
		for _, value := range values {
			if err := setFlag(c, name, value); err != nil {
				return "", fmt.Errorf("--resume %s: invalid --%s=%s in %s: %w", dir, name, value, runfile.RunFile, err)
			}
		}
	}
	var others []string
	for name, values := range given {
		switch {
		case was[name] == nil:
			others = append(others, fmt.Sprintf("that run had no --%s; omit it", name))
		case !slices.Equal(values, was[name]):
			others = append(others, fmt.Sprintf("that run had --%s %s", name, strings.Join(was[name], ", ")))
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		return "", misused("replay: --resume %s: different flags: %s", dir, strings.Join(others, "; "))
	}
	return dir, nil
}

// setFlag sets a flag as if it had been given.
func setFlag(c *cli.Context, name, value string) error {
	if f := findFlag(c.Command.Flags, name); f != nil {
		if _, err := checkValue(f, name, value); err != nil {
			return err
		}
	}
	return c.Set(name, value)
}

// byName returns the values of flags as stored by setFlags.
func byName(flags []string) map[string][]string {
	values := map[string][]string{}
	for _, flag := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		values[name] = append(values[name], value)
	}
	return values
}
