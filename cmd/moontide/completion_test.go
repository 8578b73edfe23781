package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// completionCase is a command line up to the cursor and what it may continue with.
type completionCase struct {
	line string
	has  []string // among the completions
	not  string   // no completion contains it
}

var completionCases = []completionCase{
	{line: "moontide rep", has: []string{"replay", "report"}, not: "bench"},
	{line: "moontide ", has: []string{"analyze", "serve", "completion"}, not: "__complete"},
	{line: "moontide help sy", has: []string{"synth"}},
	{line: "moontide completion ", has: []string{"bash", "zsh", "fish"}},
	{line: "moontide replay --max-c", has: []string{"--max-concurrency"}},
	{line: "moontide replay --request-r", not: "request-rate"}, // another tool's name
	{line: "moontide replay trace.jsonl --lim", has: []string{"--limit"}},
	{line: "moontide replay --limit 5 trace.jsonl --lim", not: "--limit"}, // given already
	{line: "moontide convert -o x.jsonl trace.jsonl --sor", has: []string{"--sort"}},
	{line: "moontide convert --sort tra", has: []string{"trace.jsonl"}}, // --sort takes no value
	{line: "moontide replay --endpoint ch", has: []string{"chat"}},
	{line: "moontide replay --endpoint=ch", has: []string{"chat"}},
	{line: "moontide replay trace.jsonl --arrival ", has: []string{"constant", "poisson", "gamma"}},
	{line: "moontide simulate trace.jsonl --routing pre", has: []string{"prefix"}},
	{line: "moontide report --format v", has: []string{"vllm"}},
	{line: "moontide analyze --format wek", has: []string{"weka"}},
	{line: "moontide synth --method ", has: []string{"sessions", "tree"}},
	{line: "moontide synth --spec ag", has: []string{"agent"}},
	{line: "moontide synth --spec fo", has: []string{"folder"}},
	{line: "moontide analyze --cache lru,b", has: []string{"lru,belady"}, not: "lru,lru"},
	{line: "moontide analyze --kv-dtype b", has: []string{"bf16"}},
	{line: "moontide analyze --kv-model llama-3.1-7", has: []string{"llama-3.1-70b"}},
	{line: "moontide serve --fault rese", has: []string{"reset:"}},
	{line: "moontide analyze tr", has: []string{"trace.jsonl"}},
	{line: "moontide analyze --html=tr", has: []string{"trace.jsonl"}},
	{line: "moontide report fo", has: []string{"folder"}, not: "trace"},
	{line: "moontide compare before=fo", has: []string{"folder"}},
	{line: "moontide replay --seed ", not: "trace.jsonl"},
	{line: "moontide analyze -- --js", not: "--json"},
}

// inShells selects the cases that the shells run: each takes a second on a busy
// machine.
var inShells = []string{
	"moontide rep", "moontide replay trace.jsonl --lim", "moontide replay --endpoint=ch", "moontide analyze --cache lru,b",
	"moontide serve --fault rese", "moontide convert --sort tra", "moontide analyze --html=tr", "moontide report fo",
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	manual := manualOf(newApp(streams{}, stop{}))
	for _, c := range completionCases {
		found := manual.Complete(strings.Split(c.line, " ")[1:])
		var got []string
		for _, word := range found.Words {
			got = append(got, word.Word)
		}
		if found.Files {
			got = append(got, "trace.jsonl")
		}
		if found.Files || found.Folders {
			got = append(got, "folder")
		}
		c.check(t, got)
	}
}

// The scripts complete verbs, flags in any place, values and files in each shell.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	for shell, driver := range map[string]string{"bash": bashDriver, "zsh": zshDriver, "fish": fishDriver} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%s is not installed", shell)
			}
			dir := t.TempDir()
			write(t, dir, "trace.jsonl", "")
			mkdir(t, dir, "folder")
			write(t, dir, "script", must(t, dir, "completion", shell))
			bin := mkdir(t, dir, "bin")
			if err := os.Symlink(absolute(t, os.Args[0]), filepath.Join(bin, "moontide")); err != nil {
				t.Skipf("cannot link: %v", err)
			}
			for _, c := range completionCases {
				if slices.Contains(inShells, c.line) {
					c.check(t, completions(t, shell, driver, dir, c.line))
				}
			}
		})
	}
}

func (c completionCase) check(t *testing.T, got []string) {
	t.Helper()
	for _, want := range c.has {
		if !slices.ContainsFunc(got, func(word string) bool { return completes(word, c.line, want) }) {
			t.Errorf("%q: %q is not among %q", c.line, want, got)
		}
	}
	if c.not != "" && strings.Contains(strings.Join(got, "\n"), c.not) {
		t.Errorf("%q: %q is among %q", c.line, c.not, got)
	}
}

// completes reports whether a completion stands for a word: a shell completes all of
// it, or what follows =.
func completes(got, line, want string) bool {
	got, _, _ = strings.Cut(got, "\t") // fish adds the text
	got = strings.TrimRight(strings.TrimSpace(got), "/")
	if _, value, joined := strings.Cut(got, "="); joined && strings.Contains(line, "=") {
		got = value
	}
	return got == want
}

func completions(t *testing.T, shell, driver, dir, line string) []string {
	t.Helper()
	cmd := exec.Command(shell, "-c", driver)
	if shell == "zsh" {
		cmd = exec.Command(shell, "-f", "-c", driver)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asMoontide+"=1", "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "LINE="+line,
		"HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "TERM=dumb")
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, talk.String())
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// Bash splits the line as readline does.
const bashDriver = `
source ./script
read -ra words <<<"${LINE//[=:]/ & }"
[[ $LINE == *' ' ]] && words+=('')
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$LINE COMP_POINT=${#LINE}
_moontide moontide
printf '%s\n' "${COMPREPLY[@]}"
`

const fishDriver = `source ./script; complete -C "$LINE"`

// Zsh completes on a terminal only. It runs another zsh on one, whose compadd writes
// down what it adds.
const zshDriver = `zmodload zsh/zpty
cat >rc <<'END'
PROMPT= RPROMPT=
autoload -Uz compinit && compinit -u -D
source ./script
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return $?
    fi
    local -a added
    builtin compadd -O added "$@"
    for name in $added; do print -r -- "<<$IPREFIX$name>>"; done >>found
    builtin compadd "$@"
}
bindkey '^I' complete-word
finish() { print -r -- END >>found; exit 0 }
zle -N finish
bindkey '^X' finish
END
: >found
zpty z zsh -f -i
zpty -w z 'stty -echo; source ./rc; print READ''Y'
zpty -r -m z out '*READY*'
zpty -n -w z "$LINE"$'\t'$'\C-x'
zpty -r -m z out '*NEVER*'
zpty -d z
while read -r line; do
    [[ $line == '<<'* ]] && print -r -- ${${line#'<<'}%'>>'}
done <found
exit 0
`

// Every flag with a fixed set of values refuses all others, with a message that names
// the set, and takes each of them: it is the set that completion offers.
func TestChoicesAreThoseAccepted(t *testing.T) {
	t.Parallel()
	flags := 0
	for _, verb := range allVerbs() {
		for _, f := range manualOf(&cli.App{Name: appName}).Verb(verb).Flags() {
			choices := f.Values.Choices
			if len(choices.Names) == 0 || choices.Open {
				continue
			}
			flags++
			r := try(t, t.TempDir(), "", verb.Name, "--"+f.Name, "nonsense")
			for _, name := range choices.Names {
				if r.status != exitMisused || !strings.Contains(r.err, name) {
					t.Errorf("%s --%s nonsense: exit status %d, %s", verb.Name, f.Name, r.status, r.err)
				}
				if r := try(t, t.TempDir(), "", verb.Name, "none.jsonl", "--"+f.Name, name); strings.Contains(r.err, "unknown") || strings.Contains(r.err, "not one of") || strings.Contains(r.err, "must be") {
					t.Errorf("%s --%s %s: %s", verb.Name, f.Name, name, r.err)
				}
			}
		}
	}
	if flags < 25 {
		t.Errorf("only %d flags have choices", flags)
	}
}
