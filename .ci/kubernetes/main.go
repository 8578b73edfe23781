// Command kubernetes has a moontide binary print manifests and decodes them into the
// types of the Kubernetes API: strictly, and as the API server does, which knows no
// types when it reads YAML. It then checks what a run relies on. It needs no cluster.
//
//	go run . MOONTIDE
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// launched is a command line of moontide launch kubernetes.
type launched struct {
	name    string
	flags   []string // of launch
	command []string // after --
	want    expected
}

// expected is what manifests must contain.
type expected struct {
	name   string
	ranks  int32
	grace  int64
	args   []string // of the containers, among others
	secret string   // that exists, or "" for one in the manifests
	claim  string   // likewise
	files  int      // in the ConfigMap
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . MOONTIDE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(moontide string) error {
	dir, err := os.MkdirTemp("", "moontide-kubernetes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	row := `{"timestamp": 0, "input_length": 5, "output_length": 1}` + "\n"
	large := strings.Repeat(row, (180<<10)/len(row))
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "t.jsonl"), []byte(row), 0o600),
		os.WriteFile(filepath.Join(dir, "large.jsonl"), []byte(large), 0o600),
		os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("CERTIFICATE"), 0o600),
	); err != nil {
		return err
	}
	var failed error
	for _, l := range cases() {
		if err := l.check(moontide, dir); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", l.name, err))
			continue
		}
		fmt.Println("ok:", l.name)
	}
	return failed
}

func cases() []launched {
	replay := []string{"replay", "t.jsonl", "--url", "http://server:8000"}
	hostile := "X: N\n{{ .Values.x }} '\"\\ $(JOB_UID) $$ `id` # é \u0085 - yes: *a"
	return []launched{
		{"defaults", nil, replay, expected{name: "moontide", ranks: 2, grace: 3660, args: []string{"replay", "/input/t.jsonl", "--url=http://server:8000"}, files: 1}},
		{"many ranks", []string{"--ranks", "1000", "--name", "n"}, replay, expected{name: "n", ranks: 1000, grace: 3660, files: 1}},
		{"names like YAML booleans", []string{"--name", "y", "--namespace", "on", "--secret", "no", "--claim", "off", "--image", "N"}, replay, expected{name: "y", ranks: 2, grace: 3660, secret: "no", claim: "off", files: 1}},
		{"hostile values", nil, append(replay, "--header", hostile, "--salt", "N", "--timeout", "10m"),
			expected{name: "moontide", ranks: 2, grace: 660, files: 1, args: []string{"--header=" + hostile, "--salt=N"}}},
		{"largest input", nil, append(replay[:1:1], append([]string{"large.jsonl", "--ca-file", "ca.pem"}, replay[2:]...)...),
			expected{name: "moontide", ranks: 2, grace: 3660, files: 2, args: []string{"/input/large.jsonl", "--ca-file=/input/ca.pem"}}},
		{"trace on the volume", nil, append(replay[:1:1], append([]string{"/runs/t.jsonl"}, replay[2:]...)...),
			expected{name: "moontide", ranks: 2, grace: 3660, args: []string{"/runs/t.jsonl"}}},
		{"API key", []string{"--secret", "keys"}, append(replay, "--api-key-env", "API_KEY"), expected{name: "moontide", ranks: 2, grace: 3660, secret: "keys", files: 1}},
	}
}

// check prints the manifests and checks them.
func (l *launched) check(moontide, dir string) error {
	args := append(append([]string{"launch", "kubernetes"}, l.flags...), "--")
	cmd := exec.Command(moontide, append(args, l.command...)...)
	var messages bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &messages
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, &messages)
	}
	m, err := decode(text)
	if err != nil {
		return err
	}
	return errors.Join(m.checkNames(), m.checkJob(l.want), m.checkObjects(l.want))
}

// manifests are the objects of one output.
type manifests struct {
	secret *core.Secret
	files  *core.ConfigMap
	claim  *core.PersistentVolumeClaim
	svc    *core.Service
	job    *batch.Job
}

// decode decodes each document, which has an object of a known kind.
func decode(text []byte) (m manifests, err error) {
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return m, err
		}
		switch kind.Kind {
		case "Secret":
			m.secret, err = decodeAs[core.Secret](document)
		case "ConfigMap":
			m.files, err = decodeAs[core.ConfigMap](document)
		case "PersistentVolumeClaim":
			m.claim, err = decodeAs[core.PersistentVolumeClaim](document)
		case "Service":
			m.svc, err = decodeAs[core.Service](document)
		case "Job":
			m.job, err = decodeAs[batch.Job](document)
		default:
			err = errors.New("unexpected")
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
	if m.svc == nil || m.job == nil {
		return m, errors.New("no Service or no Job")
	}
	return m, nil
}

// decodeAs decodes an object in two ways that must agree: with its type, which turns a
// boolean such as N into the string that the field wants, and without, as the API server
// does.
func decodeAs[T any](document []byte) (*T, error) {
	var typed, untyped T
	if err := yaml.UnmarshalStrict(document, &typed); err != nil {
		return nil, err
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&untyped); err != nil {
		return nil, fmt.Errorf("as the API server reads it: %w", err)
	}
	if !reflect.DeepEqual(typed, untyped) {
		return nil, errors.New("the API server reads other values")
	}
	return &typed, nil
}
