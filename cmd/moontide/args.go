package main

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"moontide/replay/settings"
)

const (
	helpFlag       = "--help"                     // requests the help of a verb
	completionFlag = "--generate-bash-completion" // asks the library for completions
)

// parseArgs normalizes a command line for the library: flags precede the other
// arguments and have moontide's names, and durations have units. Unknown names
// and values of the wrong type are rejected.
func parseArgs(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	switch verb := args[0]; {
	case args[len(args)-1] == completionFlag: // the library reads it
		return args, nil
	case verb == "help" && len(args) > 2:
		return args, misused("help: want one command, got %d", len(args)-1)
	case verb == "help":
		return parseArgs(app, append(args[1:], helpFlag))
	case strings.HasPrefix(verb, "-"):
		return args, nil
	case app.Command(verb) == nil:
		return args, unknownVerb(app, verb)
	}
	p := argParser{verb: app.Command(args[0])}
	if err := p.parse(args[1:]); err != nil || p.help {
		return []string{args[0], helpFlag}, err
	}
	err := p.joinHostPort()
	return slices.Concat(args[:1], p.flags, []string{"--"}, p.others), err
}

// removedVerbs lists the replacements of verbs of older versions.
var removedVerbs = map[string]string{
	"version": "use moontide --version", "licenses": "use moontide --licenses", "man": "use moontide --man",
	"completion": "use moontide --completion SHELL", "anonymize": "use moontide convert --anonymize",
	"launch": "use the scripts and manifests in replay/launch",
}

func unknownVerb(app *cli.App, name string) error {
	if instead := removedVerbs[name]; instead != "" {
		return misused("there is no command %s: %s", name, instead)
	}
	suggested := strings.TrimPrefix(cli.SuggestCommand(app.Commands, name), "Did you mean ") // "replay"?
	return misused("unknown command %q%s", name, didYouMean(name, strings.TrimSuffix(suggested, "?")))
}

// didYouMean returns the library's suggestion for a misspelt name if the two are alike: the
// library always suggests one.
func didYouMean(misspelt, suggested string) string {
	const leastLikeness, boostFrom, prefix = 0.85, 0.7, 4 // the last two are the library's
	name := strings.Trim(suggested, `-"`)
	if name == "" || smetrics.JaroWinkler(misspelt, name, boostFrom, prefix) < leastLikeness {
		return ""
	}
	return "; did you mean " + suggested + "?"
}

type argParser struct {
	verb       *cli.Command
	flags      []string // with moontide's names, as --name=value
	others     []string
	host, port string
	help       bool // is wanted
}

func (p *argParser) parse(rest []string) error {
	for len(rest) > 0 {
		arg := rest[0]
		rest = rest[1:]
		if arg == "--" {
			p.others = append(p.others, rest...)
			return nil
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			p.others = append(p.others, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if name == "help" || name == "h" {
			p.help = true
			return nil
		}
		ofEngine := name == "o" && slices.Contains(formsOf(p.verb).Names, engineForm) // -o is the engine file
		if ofEngine {
			name = outputFlag
		}
		name, err := p.resolve(name)
		if err != nil {
			return err
		}
		if name == ignored {
			continue
		}
		f := p.find(name)
		setting, isSetting := f.(*settingFlag)
		if _, isBool := f.(*cli.BoolFlag); (isBool || isSetting && setting.row.IsBool()) && !hasValue {
			p.flags = append(p.flags, "--"+name)
			continue
		}
		if !hasValue {
			if len(rest) == 0 || p.isFlag(rest[0]) {
				return misused("flag --%s needs a value", name)
			}
			value, rest = rest[0], rest[1:]
		}
		switch {
		case ofEngine:
			value = engineForm + "=" + value
		case name == "endpoint":
			value = apiOf(value)
		}
		given := value
		if value, err = checkValue(f, name, given); err != nil {
			if p.find(given) != nil {
				err = fmt.Errorf("%w, or --%s", err, given)
			}
			return misused("%w", err)
		}
		switch {
		case name == "host":
			p.host = value
		case name == "port":
			p.port = value
		// The last value of most flags counts, but several --model are probably a list.
		case name == "model" && p.has(name) && !slices.Contains(p.flags, "--model="+value):
			return misused("--model is given twice")
		default:
			p.flags = append(p.flags, "--"+name+"="+value)
		}
	}
	return nil
}

// has reports whether a flag with a value was given.
func (p *argParser) has(name string) bool {
	return slices.ContainsFunc(p.flags, func(flag string) bool { return strings.HasPrefix(flag, "--"+name+"=") })
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func (p *argParser) find(name string) cli.Flag {
	if f := findFlag(p.verb.Flags, name); f != nil {
		return f
	}
	if (name == "host" || name == "port") && (p.find("url") != nil || p.find("listen") != nil) {
		return &cli.StringFlag{Name: name}
	}
	return nil
}

// isFlag reports whether an argument is a flag of the verb.
func (p *argParser) isFlag(arg string) bool {
	name, ok := strings.CutPrefix(arg, "--")
	name, _, _ = strings.Cut(name, "=")
	return ok && name != "" && p.find(name) != nil
}

// resolve returns moontide's name for a flag, or ignored.
func (p *argParser) resolve(name string) (string, error) {
	if f := p.find(name); f != nil {
		return f.Names()[0], nil
	}
	flag, instead := findOther(p.verb, name)
	switch {
	case flag != "":
		return flag, nil
	case slices.Contains(formsOf(p.verb).Names, name): // a flag of older versions
		return "", misused("no --%s here: use --output %[1]s, or --output %[1]s=FILE", name)
	case instead != "":
		return "", misused("no --%s here: %s", name, instead)
	}
	return "", misused("unknown flag --%s%s", name, didYouMean(name, cli.SuggestFlag(p.verb.Flags, name, true)))
}

// joinHostPort adds the flag for the endpoint of --host and --port.
func (p *argParser) joinHostPort() error {
	switch {
	case p.host == "" && p.port == "":
		return nil
	case p.has("url") || p.has("listen"):
		return misused("--host and --port conflict with --url and --listen: omit one of them")
	}
	flag := "--url=http://"
	if p.verb.Name == "serve" {
		flag = "--listen="
	}
	p.flags = append(p.flags, flag+net.JoinHostPort(cmp.Or(p.host, "127.0.0.1"), cmp.Or(p.port, "8000")))
	return nil
}

// checkValue rejects a value of the wrong type or out of range, and adds the
// unit seconds to a duration that is a bare number.
func checkValue(f cli.Flag, name, value string) (string, error) {
	if c, ok := f.(interface{ Accepted() choiceSet }); ok && len(c.Accepted().Names) > 0 {
		if strings.TrimSpace(value) == "" {
			return "", fmt.Errorf("--%s is empty", name)
		}
		value, err := c.Accepted().Resolve(value)
		if err != nil {
			return "", fmt.Errorf("--%s %w", f.Names()[0], err)
		}
		return value, nil
	}
	switch f := f.(type) {
	case *cli.BoolFlag:
		if _, err := strconv.ParseBool(value); err != nil {
			return "", fmt.Errorf("--%s takes no value: %q", name, value)
		}
	case *cli.IntFlag:
		n, err := strconv.ParseInt(value, 0, 64)
		if err != nil {
			return "", fmt.Errorf("--%s %q is not a whole number", name, value)
		}
		return value, checkRange(f, n)
	case *cli.Uint64Flag:
		if _, err := strconv.ParseUint(value, 0, 64); err != nil {
			return "", fmt.Errorf("--%s %q is not a whole number from 0 to %d", name, value, uint64(math.MaxUint64))
		}
	case *settingFlag:
		if err := f.check(value); err != nil {
			return "", fmt.Errorf("--%s %w", name, err)
		}
	case *cli.Float64Flag:
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return "", fmt.Errorf("--%s %q is not a number", name, value)
		}
		return value, checkRange(f, x)
	case *cli.StringFlag:
		if name == "duration" { // of a description
			d, err := settings.ParseDuration(value)
			if err != nil {
				return "", fmt.Errorf("--%s %w", name, err)
			}
			return d.String(), nil
		}
	}
	return value, nil
}
