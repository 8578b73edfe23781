package main

import (
	"bytes"
	"encoding/base64"
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

	"moontide/replay/runfile"
)

// manifest is what matters here of an object in the output of launch kubernetes.
type manifest struct {
	Kind       string
	StringData map[string]string `yaml:"stringData"`
	BinaryData map[string]string `yaml:"binaryData"`
	Spec       struct {
		Completions      int
		PodFailurePolicy struct {
			Rules []struct {
				Action          string
				OnPodConditions []struct{ Type string } `yaml:"onPodConditions"`
				OnExitCodes     struct{ Values []int }  `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec struct{ Containers []struct{ Args []string } }
		}
	}
}

// indexedJob stands for the Job of manifests in a cluster: its pods are processes, with
// the environment, files and names that Kubernetes documents.
type indexedJob struct {
	manifest
	dir, token, runs string
	paths            *strings.Replacer
}

func newIndexedJob(t *testing.T, dir, manifests string) *indexedJob {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	input := mkdir(t, dir, "input")
	j := &indexedJob{dir: dir, runs: filepath.Join(dir, "runs", "moontide-uid")}
	j.paths = strings.NewReplacer("/input/", input+"/", "=/runs/", "="+filepath.Join(dir, "runs")+"/", "$(JOB_UID)", "uid", "moontide-0.moontide:7117", free.Addr().String(), "$$", "$")
	for _, text := range strings.Split(manifests, "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		switch m.Kind {
		case "Secret":
			j.token = m.StringData["MOONTIDE_TOKEN"]
		case "ConfigMap":
			for name, content := range m.BinaryData {
				decoded, err := base64.StdEncoding.DecodeString(content)
				if err = errors.Join(err, os.WriteFile(filepath.Join(input, name), decoded, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
		case "Job":
			j.manifest = m
		}
	}
	return j
}

// start starts all pods.
func (j *indexedJob) start(t *testing.T) (pods []*exec.Cmd, said []*bytes.Buffer) {
	t.Helper()
	for i := range j.Spec.Completions {
		var args []string
		for _, arg := range j.Spec.Template.Spec.Containers[0].Args {
			args = append(args, j.paths.Replace(arg))
		}
		cmd := pod(j.dir, i, j.Spec.Completions, args...)
		cmd.Env = append(cmd.Env, "MOONTIDE_TOKEN="+j.token)
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
	for _, evicted := range []int{0, 2} {
		t.Run(fmt.Sprint(evicted), func(t *testing.T) {
			t.Parallel()
			const pods, rows = 3, 200
			url, reached := counting(t, rows/4)
			dir := t.TempDir()
			write(t, dir, "t.jsonl", steadyRows(rows))
			r := try(t, dir, "", "launch", "kubernetes", "--ranks", fmt.Sprint(pods), "--", "replay", "t.jsonl", "--url", url)
			if r.status != exitDone {
				t.Fatal(r.err)
			}
			job := newIndexedJob(t, dir, r.out)
			first, said := job.start(t)
			<-reached
			interrupt(t, first[evicted])
			for i, cmd := range first {
				cmd.Wait()
				if status := cmd.ProcessState.ExitCode(); job.action(status, i == evicted) != "Ignore" {
					t.Fatalf("pod %d ends with %d after pod %d was evicted:\n%s", i, status, evicted, said[i])
				}
			}
			again, said := job.start(t)
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
		})
	}
}
