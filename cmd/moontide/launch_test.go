package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"moontide/replay/cluster"
	"moontide/replay/runfile"
)

var launchFolder = filepath.Join(root, "replay", "launch")

// The scripts start every part with the command that they were given, and mpi.sh exits
// with the status of rank 0 or the worst of the others.
func TestLaunchScripts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	for name, script := range map[string]string{
		"moontide": `printf '<%s>' "$@"; exit "${STATUS:-0}"`,
		"srun":     `while [[ $1 == -* ]]; do shift; done; exec "$@"`,
		"mpirun":   `n=$2; shift 2; for ((i = 0; i < n; i++)); do s=STATUS$i; OMPI_COMM_WORLD_RANK=$i STATUS=${!s} "$@"; done`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(env string, script string, args ...string) result {
		cmd := exec.Command("bash", append([]string{absolute(t, filepath.Join(launchFolder, script))}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), env)
		return finish(t, cmd)
	}
	const replayed = "<replay><a b.jsonl><--url><http://s><--part=auto><--resume=auto>"
	for _, test := range []struct {
		env    string
		args   []string
		out    string
		status int
	}{
		{"", []string{"slurm.sh", "replay", "a b.jsonl", "--url", "http://s"}, replayed, 0},
		{"STATUS=3", []string{"slurm.sh", "replay"}, "<replay><--part=auto><--resume=auto>", 3},
		{"", []string{"mpi.sh", "-n", "2", "--", "replay", "a b.jsonl", "--url", "http://s"}, replayed + replayed, 0},
		{"STATUS1=5", []string{"mpi.sh", "-n", "2", "--", "replay"}, strings.Repeat("<replay><--part=auto><--resume=auto>", 2), 5},
		{"STATUS0=3", []string{"mpi.sh", "-n", "2", "--", "replay"}, strings.Repeat("<replay><--part=auto><--resume=auto>", 2), 3},
	} {
		if r := run(test.env, test.args[0], test.args[1:]...); r.out != test.out || r.status != test.status {
			t.Errorf("%s %v: %q, exit status %d; want %q, %d\n%s", test.env, test.args, r.out, r.status, test.out, test.status, r.err)
		}
	}
}

// indexedJob stands for the Job of the manifests in a cluster: its pods are processes,
// with the environment and names that Kubernetes documents.
type indexedJob struct {
	Spec struct {
		PodFailurePolicy struct {
			Rules []struct {
				Action          string
				OnPodConditions []struct{ Type string } `yaml:"onPodConditions"`
				OnExitCodes     struct{ Values []int }  `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec struct {
				Containers []struct {
					Env []struct{ Name string }
				}
			}
		}
	}
	dir, runs string
	args      []string
}

func readYAML(t *testing.T, name string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(launchFolder, "kubernetes", name))
	if err = errors.Join(err, yaml.Unmarshal(text, to)); err != nil {
		t.Fatal(err)
	}
}

// newIndexedJob reads the Job, with the arguments of kustomization.yaml.
func newIndexedJob(t *testing.T, dir, url string) *indexedJob {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	j := &indexedJob{dir: dir, runs: filepath.Join(dir, "runs", "moontide-uid")}
	readYAML(t, "job.yaml", j)
	var kustomization struct {
		Resources []string
		Patches   []struct{ Patch string }
	}
	readYAML(t, "kustomization.yaml", &kustomization)
	for _, name := range kustomization.Resources {
		var object struct{ Metadata struct{ Name string } }
		if readYAML(t, name, &object); !strings.HasPrefix(object.Metadata.Name, appName) {
			t.Errorf("%s is called %q", name, object.Metadata.Name)
		}
	}
	var operations []struct {
		Path  string
		Value any
	}
	if err := yaml.Unmarshal([]byte(kustomization.Patches[0].Patch), &operations); err != nil {
		t.Fatal(err)
	}
	paths := strings.NewReplacer("/input/trace.jsonl", filepath.Join(dir, "trace.jsonl"), "/runs", filepath.Join(dir, "runs"), "$(JOB_UID)", "uid",
		"moontide-0.moontide:7117", free.Addr().String(), "http://server:8000", url)
	for _, arg := range operations[1].Value.([]any) {
		j.args = append(j.args, paths.Replace(arg.(string)))
	}
	var names []string
	for _, v := range j.Spec.Template.Spec.Containers[0].Env {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, []string{"MOONTIDE_PARTS", "JOB_UID"}) {
		t.Errorf("environment: %q", names)
	}
	return j
}

// start starts all pods.
func (j *indexedJob) start(t *testing.T, of int) (pods []*exec.Cmd, said []*bytes.Buffer) {
	t.Helper()
	for i := range of {
		cmd := pod(j.dir, i, of, j.args...)
		cmd.Env = append(cmd.Env, cluster.TokenVariable+"=secret")
		pods, said = append(pods, cmd), append(said, talks(t, cmd))
	}
	return pods, said
}

// action returns what the Job does about a pod that ended: "" fails it, for its backoff
// limit is 0.
func (j *indexedJob) action(status int, evicted bool) string {
	for _, rule := range j.Spec.PodFailurePolicy.Rules {
		if evicted && len(rule.OnPodConditions) > 0 || slices.Contains(rule.OnExitCodes.Values, status) {
			return rule.Action
		}
	}
	return ""
}

// A pod is evicted halfway: all end, and the Job creates all of them again. The same
// command then continues the run, and every row is sent once.
func TestEvictedPod(t *testing.T) {
	t.Parallel()
	const pods, rows, evicted = 2, 100, 0
	url, reached := counting(t, rows/4)
	dir := t.TempDir()
	write(t, dir, "trace.jsonl", steadyRows(rows))
	job := newIndexedJob(t, dir, url)
	for status, want := range map[int]string{exitPartLost: "Ignore", exitInvalid: "FailJob", exitFailed: "", exitMisused: "", exitThreshold: ""} {
		if got := job.action(status, false); got != want {
			t.Errorf("exit status %d: %q, want %q", status, got, want)
		}
	}
	first, said := job.start(t, pods)
	<-reached
	interrupt(t, first[evicted])
	for i, cmd := range first {
		cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); job.action(status, i == evicted) != "Ignore" {
			t.Fatalf("pod %d ends with %d after pod %d was evicted:\n%s", i, status, evicted, said[i])
		}
	}
	again, said := job.start(t, pods)
	for i, cmd := range again {
		cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status != exitDone && (i > 0 || status != exitInvalid) { // on a busy machine
			t.Errorf("pod %d ends with %d:\n%s", i, status, said[i])
		}
	}
	seen := map[int]int{}
	for i := range pods {
		folder := filepath.Join(job.runs, fmt.Sprintf("part-%d", i+1))
		if run := runOfFolder(t, folder); len(run.Resumed) != 1 {
			t.Errorf("part %d was resumed %d times", i+1, len(run.Resumed))
		}
		for row := range recordsOf(t, folder) {
			seen[row]++
		}
	}
	for row := range rows {
		if seen[row] != 1 {
			t.Errorf("row %d was recorded %d times", row, seen[row])
		}
	}
	if parts, err := runfile.ReadParts(job.runs); err != nil || parts.Ended.IsZero() || parts.Of != pods {
		t.Errorf("%+v, %v", parts, err)
	}
}
