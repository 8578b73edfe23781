package launch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"moontide/trace/tracetest"
)

var sample = Job{
	Name: "nightly", Ranks: 4, CPUs: 2, Grace: 11 * time.Minute,
	Command: Command{"replay", []string{"trace.jsonl"}, []string{"--url=http://server:8000", `--header=X-Team: "a" $(b) {{c}}`, "--part=auto", "--resume=auto"}},
}

var sampleCluster = Kubernetes{Image: "registry.example/moontide:1", Memory: "2Gi", Token: "SECRET", ExitInvalid: 3, ExitLost: 5}

func TestGolden(t *testing.T) {
	inCluster := sample
	trace := File{"traces/trace.jsonl", []byte(`{"timestamp": 0, "input_length": 1, "output_length": 1}` + "\n")}
	inCluster.Command.Arguments = []string{trace.InPod()}
	all, existing := sampleCluster, sampleCluster
	all.Files = []File{trace}
	existing.Secret, existing.Token, existing.APIKey, existing.Claim, existing.Namespace, existing.Out = "keys", "", "API_KEY", "shared", "load", "/runs/today"
	for name, write := range map[string]func() ([]byte, error){
		"slurm.sh":                 sample.Slurm,
		"mpi.sh":                   sample.MPI,
		"kubernetes.yaml":          func() ([]byte, error) { return inCluster.Kubernetes(all) },
		"kubernetes-existing.yaml": func() ([]byte, error) { return sample.Kubernetes(existing) },
	} {
		text, err := write()
		if err != nil {
			t.Fatal(err)
		}
		tracetest.Golden(t, filepath.Join("testdata", name), string(text))
	}
}

// hostile draws arguments that shells, YAML, Helm and Kubernetes may interpret.
func hostile() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"'", `"`, "$", "$$", "$(JOB_UID)", "`id`", "\\", "\n", "\r\n", "\t", " ", "\x01", "\x7f", "{{ .Values }}", "{{", "#", "# x", ": ", "- ", "N", "yes", "null", "~",
		"1e3", "0x1f", "*", "?", "[a]", "!!", "&", "|", ";", "%s", "--", "<<EOF", "é", "日本", "\u0085", "\u2028", "\ufeff", "𝄞", "a", "=",
	})
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "") })
}

// anyCommand draws a command whose flags and arguments are hostile.
func anyCommand(t *rapid.T, arg *rapid.Generator[string]) Command {
	c := Command{Verb: "replay", Arguments: rapid.SliceOfN(arg, 0, 3).Draw(t, "arguments")}
	for _, value := range rapid.SliceOfN(arg, 0, 5).Draw(t, "flags") {
		c.Flags = append(c.Flags, "--header="+value)
	}
	return c
}

// programs writes programs and returns a PATH on which they are the first.
func programs(t *testing.T, all map[string]string) (path string) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin + string(os.PathListSeparator) + os.Getenv("PATH")
}

// The script for mpirun exits with the status of rank 0 or, if that is 0, with the worst
// of the others, although no rank fails in the eyes of mpirun. A process that is killed
// has a status, too.
func TestMPIStatus(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	script, err := sample.MPI()
	if err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + programs(t, map[string]string{
		"mpirun":   "#!" + bash + "\ncat >/dev/null\nshift 2\nfor r in 0 1 2 3; do OMPI_COMM_WORLD_RANK=$r \"$@\" || exit 99; done\nexit ${MPIRUN:-0}\n",
		"moontide": "#!" + bash + "\nset -- $STATUSES\nshift $OMPI_COMM_WORLD_RANK\necho report\nprintf 'half a line' >&2\n[ $1 = 9 ] && kill -9 $$\nexit $1\n",
	})
	for statuses, want := range map[string]int{"0 0 0 0": 0, "3 0 0 0": 3, "3 5 5 5": 3, "0 5 0 2": 5, "0 0 9 5": 137, "9 0 0 0": 137} {
		cmd := exec.Command(bash)
		cmd.Stdin, cmd.Env = bytes.NewReader(script), []string{path, "STATUSES=" + statuses}
		out, _ := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != want || string(out) != strings.Repeat("report\n", 4) {
			t.Errorf("ranks exit with %s, the script with %d, want %d; output %q", statuses, got, want, out)
		}
	}
	cmd := exec.Command(bash)
	cmd.Stdin, cmd.Env = bytes.NewReader(script), []string{path, "STATUSES=0 0 0 0", "MPIRUN=77"}
	if cmd.Run(); cmd.ProcessState.ExitCode() != 77 {
		t.Errorf("mpirun fails with 77, the script with %d", cmd.ProcessState.ExitCode())
	}
}

// The processes that a script starts have the arguments of the command, byte by byte.
func TestScriptsKeepArguments(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	launcher := "#!" + bash + "\nwhile [ \"$1\" != moontide ] && [ \"$1\" != bash ]; do shift; done\nexec \"$@\"\n"
	path := "PATH=" + programs(t, map[string]string{"srun": launcher, "mpirun": launcher, "moontide": "#!" + bash + "\nprintf '%s\\0' moontide \"$@\"\n"})
	bytes8 := rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 8), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		job := sample
		job.Command = anyCommand(t, rapid.OneOf(hostile(), bytes8))
		for name, write := range map[string]func() ([]byte, error){"slurm": job.Slurm, "mpi": job.MPI} {
			script, err := write()
			if err != nil {
				t.Fatal(err)
			}
			if i := bytes.IndexFunc(script, func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
				t.Fatalf("%s: a control character in\n%s", name, script)
			}
			cmd := exec.Command(bash, "-s", "--", "--option", "of mpirun")
			cmd.Stdin, cmd.Env = bytes.NewReader(script), []string{path, "LC_ALL=C"}
			out, err := cmd.Output()
			got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			if want := append([]string{"moontide"}, job.Command.with()...); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: %v\n got %q\nwant %q\n%s", name, err, got, want, script)
			}
		}
	})
}

// expand replaces $(VARIABLE) in the arguments of a container as Kubernetes does: $$ is
// a dollar sign, and references to unknown variables stay.
func expand(text string, env map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		switch end := strings.IndexByte(text[i:], ')'); {
		case text[i+1] == '$':
			b.WriteByte('$')
			i++
		case text[i+1] == '(' && end > 0:
			if value, known := env[text[i+2:i+end]]; known {
				b.WriteString(value)
			} else {
				b.WriteString(text[i : i+end+1])
			}
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

// container is what matters here of the container in a Job.
type container struct {
	Args []string
}

// containerOf returns the container of the Job in manifests.
func containerOf(t interface{ Fatal(...any) }, manifests []byte) container {
	for _, text := range bytes.Split(manifests, []byte("\n---\n")) {
		var object struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct{ Containers []container }
				}
			}
		}
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err, string(text))
		}
		if object.Kind == "Job" {
			return object.Spec.Template.Spec.Containers[0]
		}
	}
	t.Fatal("no Job")
	return container{}
}

// So have the containers of the pods.
func TestManifestsKeepArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job, k := sample, sampleCluster
		job.Command, k.Out = anyCommand(t, hostile()), hostile().Draw(t, "out")
		text, err := job.Kubernetes(k)
		if err != nil {
			t.Fatal(err)
		}
		c := containerOf(t, text)
		var got []string
		for _, arg := range c.Args {
			got = append(got, expand(arg, map[string]string{"JOB_UID": "1-2"}))
		}
		out := "--out=" + k.Out
		if k.Out == "" {
			out = "--out=/runs/nightly-1-2"
		}
		want := job.Command.with("--rendezvous=nightly-0.nightly:7117", out)
		if !slices.Equal(got, want) {
			t.Fatalf(" got %q\nwant %q\n%s", got, want, text)
		}
	})
}

func TestRefused(t *testing.T) {
	file := func(path string, size int) Kubernetes {
		k := sampleCluster
		k.Files = []File{{path, make([]byte, size)}}
		return k
	}
	for want, write := range map[string]func() ([]byte, error){
		"0 ranks":                    func() ([]byte, error) { j := sample; j.Ranks = 0; return j.Slurm() },
		"not between 1 and 10000":    func() ([]byte, error) { j := sample; j.Ranks = 1 << 20; return j.MPI() },
		`the name "n\nx"`:            func() ([]byte, error) { j := sample; j.Name = "n\nx"; return j.Slurm() },
		`the name "N"`:               func() ([]byte, error) { j := sample; j.Name = "N"; return j.Kubernetes(sampleCluster) },
		`the name "aaaaaaaaaaaaaaaa`: func() ([]byte, error) { j := sample; j.Name = strings.Repeat("a", 51); return j.MPI() },
		"NUL byte":                   func() ([]byte, error) { j := sample; j.Command.Flags = []string{"--x=\x00"}; return j.Slurm() },
		"is not UTF-8": func() ([]byte, error) {
			j := sample
			j.Command.Flags = []string{"--x=\xff"}
			return j.Kubernetes(sampleCluster)
		},
		`"a b" is no image`:                 func() ([]byte, error) { k := sampleCluster; k.Image = "a b"; return sample.Kubernetes(k) },
		`"2 GB" is no size of memory`:       func() ([]byte, error) { k := sampleCluster; k.Memory = "2 GB"; return sample.Kubernetes(k) },
		`"A" cannot be the name of a claim`: func() ([]byte, error) { k := sampleCluster; k.Claim = "A"; return sample.Kubernetes(k) },
		"no token":                          func() ([]byte, error) { k := sampleCluster; k.Token = ""; return sample.Kubernetes(k) },
		"needs an existing Secret":          func() ([]byte, error) { k := sampleCluster; k.APIKey = "KEY"; return sample.Kubernetes(k) },
		"more than the 184320":              func() ([]byte, error) { return sample.Kubernetes(file("t.jsonl", MaxFiles+1)) },
		`"a b.jsonl" cannot be the key`:     func() ([]byte, error) { return sample.Kubernetes(file("x/a b.jsonl", 1)) },
		"two files are called t.jsonl": func() ([]byte, error) {
			k := file("a/t.jsonl", 1)
			k.Files = append(k.Files, File{"b/t.jsonl", nil})
			return sample.Kubernetes(k)
		},
	} {
		if _, err := write(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
