package main

import (
	_ "embed"
	"io"

	"github.com/urfave/cli/v2"
)

// moduleLicenses has a line for each module in the binary, and the license texts.
// It is written by go run ./.ci/package -licenses.
//
//go:embed licenses.txt
var moduleLicenses string

const licensesHead = `The owner of moontide has not chosen a license for it yet.

The binary contains these modules under their own licenses, whose texts follow:

`

// Completion scripts: the shell runs the command line so far with a last argument, which
// the library answers.
const (
	bashCompletion = `_moontide() {
  local words=("${COMP_WORDS[@]:0:COMP_CWORD}") current=${COMP_WORDS[COMP_CWORD]}
  local flag=${current#-}
  [[ $current == -* ]] && words+=("-${flag#-}")
  mapfile -t COMPREPLY < <(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$current")
}
complete -o bashdefault -o default -F _moontide moontide
`
	zshCompletion = `#compdef moontide
_moontide() {
  local -a line=(${words[1,CURRENT-1]}) found
  local flag=${words[CURRENT]#-}
  [[ ${words[CURRENT]} == -* ]] && line+=("-${flag#-}")
  found=(${(f)"$(_CLI_ZSH_AUTOCOMPLETE_HACK=1 $line --generate-bash-completion 2>/dev/null)"})
  if (( $#found )); then _describe values found; else _files; fi
}
compdef _moontide moontide
`
)

// printAbout handles the flags of the command itself; without any it prints the verbs.
func printAbout(c *cli.Context, std streams) error {
	var text string
	var err error
	switch shell := c.String("completion"); {
	case c.Bool("licenses"):
		text = licensesHead + moduleLicenses
	case c.Bool("man"):
		text, err = c.App.ToManWithSection(1)
	case shell == "fish":
		text, err = c.App.ToFishCompletion()
	case shell == "bash":
		text = bashCompletion
	case shell == "zsh":
		text = zshCompletion
	case shell != "":
		return misused("--completion %s: want bash, zsh or fish", shell)
	default:
		return cli.ShowAppHelp(c)
	}
	if err != nil {
		return err
	}
	return std.print(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
