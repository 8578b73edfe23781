package launch

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"moontide/replay/cluster"
)

// Kubernetes is what a run in a Kubernetes cluster needs.
type Kubernetes struct {
	Image     string
	Namespace string // "" is that of kubectl
	Memory    string // of each process, such as 2Gi
	// Secret names an existing Secret with the token of the job, and the API key. ""
	// writes one with Token.
	Secret string
	Token  string
	// APIKey names the environment variable with the API key, which Secret has.
	APIKey string
	// Claim names an existing claim of a volume, which all pods can write. "" writes one.
	Claim string
	Files []File // input of the command
	Out   string // folder of the results; "" is one for each job
	// ExitInvalid and ExitLost are the exit statuses of a run that was measured but is
	// INVALID, and of one that ended because another process was lost.
	ExitInvalid, ExitLost int
}

// File is an input file that the manifests bring along.
type File struct {
	Path    string // on this machine, as in the command
	Content []byte
}

const (
	// VolumeFolder is the folder of the volume in the image, where commands start.
	VolumeFolder = "/runs"
	// MaxFiles is the size of all files that manifests can bring along, in bytes. A
	// ConfigMap holds 1 MiB, but kubectl apply keeps a copy of it, in base64, in an
	// annotation, which holds 256 KiB.
	MaxFiles = 180 << 10

	filesFolder    = "/input"
	rendezvousPort = 7117
)

// InPod returns the path of a file in the pods.
func (f File) InPod() string { return filesFolder + "/" + path.Base(f.Path) }

func (k *Kubernetes) check() error {
	size, names := 0, map[string]bool{}
	for _, f := range k.Files {
		name := path.Base(f.Path)
		switch {
		case names[name]:
			return fmt.Errorf("two files are called %s", name)
		case !isKey(name):
			return fmt.Errorf("the file name %q cannot be the key of a ConfigMap: use letters, digits, dots, dashes and underscores", name)
		}
		names[name] = true
		size += len(f.Content)
	}
	for what, name := range map[string]string{"namespace": k.Namespace, "Secret": k.Secret, "claim": k.Claim} {
		if name != "" && !isName(name) {
			return fmt.Errorf("%q cannot be the name of a %s", name, what)
		}
	}
	switch {
	case k.Image == "" || strings.ContainsAny(k.Image, " \t\r\n"):
		return fmt.Errorf("%q is no image", k.Image)
	case !quantity.MatchString(k.Memory):
		return fmt.Errorf("%q is no size of memory, such as 2Gi", k.Memory)
	case size > MaxFiles:
		return fmt.Errorf("the input has %d bytes, more than the %d that manifests can bring along", size, MaxFiles)
	case k.Secret == "" && k.Token == "":
		return errors.New("there is no token")
	case k.Secret == "" && k.APIKey != "":
		return errors.New("the API key needs an existing Secret")
	}
	return nil
}

var quantity = regexp.MustCompile(`^[1-9][0-9]*(\.[0-9]+)?([KMGT]i|[kMGT])$`)

// isName reports whether a name can be that of a Kubernetes object.
func isName(name string) bool {
	ends := func(r byte) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
	inside := func(r rune) bool { return r < 0x80 && ends(byte(r)) || r == '-' || r == '.' }
	return len(name) <= 253 && ends(name[0]) && ends(name[len(name)-1]) && strings.IndexFunc(name, func(r rune) bool { return !inside(r) }) < 0
}

// isKey reports whether a name can be the key of a ConfigMap.
func isKey(name string) bool {
	inside := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
	}
	return len(name) <= 253 && name != "." && !strings.HasPrefix(name, "..") && strings.IndexFunc(name, func(r rune) bool { return !inside(r) }) < 0
}

// Kubernetes returns manifests: a Secret, a ConfigMap, a volume claim, a headless
// Service, and an Indexed Job.
func (j Job) Kubernetes(k Kubernetes) ([]byte, error) {
	if err := errors.Join(j.check(), k.check()); err != nil {
		return nil, err
	}
	for _, text := range append(j.Command.with(), k.Image, k.Namespace, k.Memory, k.Secret, k.APIKey, k.Claim, k.Out) {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("%q is not UTF-8, which Kubernetes needs", text)
		}
	}
	m := manifests{job: j, Kubernetes: k}
	if k.Secret == "" {
		m.secret()
	}
	if len(k.Files) > 0 {
		m.files()
	}
	if k.Claim == "" {
		m.claim()
	}
	m.service()
	m.indexedJob()
	return []byte(m.String()), nil
}

// manifests writes manifests. Texts that may contain anything are quoted; the others
// are part of the layout.
type manifests struct {
	strings.Builder
	Kubernetes
	job Job
}

func (m *manifests) line(indent int, format string, args ...any) {
	fmt.Fprintf(m, strings.Repeat("  ", indent)+format+"\n", args...)
}

func (m *manifests) begin(version, kind, name string) {
	if m.Len() > 0 {
		m.line(0, "---")
	}
	m.line(0, "apiVersion: %s", version)
	m.line(0, "kind: %s", kind)
	m.line(0, "metadata:")
	m.line(1, "name: %s", quoteYAML(name))
	if m.Namespace != "" {
		m.line(1, "namespace: %s", quoteYAML(m.Namespace))
	}
	m.line(1, "labels: {app.kubernetes.io/name: moontide}")
}

func (m *manifests) secretName() string {
	if m.Secret != "" {
		return m.Secret
	}
	return m.job.Name + "-token"
}

func (m *manifests) claimName() string {
	if m.Claim != "" {
		return m.Claim
	}
	return m.job.Name + "-runs"
}

func (m *manifests) filesName() string { return m.job.Name + "-input" }

func (m *manifests) secret() {
	m.begin("v1", "Secret", m.secretName())
	m.line(0, "# The pods know each other by this token, which is new in each output.")
	m.line(0, "stringData:")
	m.line(1, "%s: %s", cluster.TokenVariable, quoteYAML(m.Token))
}

func (m *manifests) files() {
	m.begin("v1", "ConfigMap", m.filesName())
	m.line(0, "binaryData:")
	for _, f := range m.Files {
		m.line(1, "%s: %s", quoteYAML(path.Base(f.Path)), quoteYAML(base64.StdEncoding.EncodeToString(f.Content)))
	}
}

func (m *manifests) claim() {
	m.begin("v1", "PersistentVolumeClaim", m.claimName())
	m.line(0, "spec:")
	m.line(1, "# Pods on several nodes write their records here, and a pod that is created again reads them.")
	m.line(1, "accessModes: [ReadWriteMany]")
	m.line(1, "resources: {requests: {storage: 10Gi}}")
}

func (m *manifests) service() {
	m.begin("v1", "Service", m.job.Name)
	m.line(0, "spec:")
	m.line(1, "clusterIP: None # gives each pod a name: that of pod 0 is %s", m.leader())
	m.line(1, "publishNotReadyAddresses: true")
	m.line(1, "selector: {batch.kubernetes.io/job-name: %s}", quoteYAML(m.job.Name))
	m.line(1, "ports: [{name: rendezvous, port: %d}]", rendezvousPort)
}

// leader returns the host name of pod 0.
func (m *manifests) leader() string { return m.job.Name + "-0." + m.job.Name }

func (m *manifests) indexedJob() {
	m.begin("batch/v1", "Job", m.job.Name)
	m.line(0, "spec:")
	m.line(1, "completionMode: Indexed")
	m.line(1, "completions: %d", m.job.Ranks)
	m.line(1, "parallelism: %d", m.job.Ranks)
	m.line(1, "backoffLimit: 0")
	m.line(1, "podFailurePolicy: # the first rule that fits; any other failure ends the Job")
	m.line(2, "rules:")
	m.line(2, "# A pod that was evicted is created again and continues the run.")
	m.line(2, "- action: Ignore")
	m.line(3, `onPodConditions: [{type: DisruptionTarget, status: "True"}]`)
	m.line(2, "# So are the pods that ended because it was gone.")
	m.line(2, "- action: Ignore")
	m.line(3, "onExitCodes: {containerName: moontide, operator: In, values: [%d]}", m.ExitLost)
	m.line(2, "# The run was measured, and is INVALID.")
	m.line(2, "- action: FailJob")
	m.line(3, "onExitCodes: {containerName: moontide, operator: In, values: [%d]}", m.ExitInvalid)
	m.line(1, "template:")
	m.line(2, "metadata:")
	m.line(3, "labels: {app.kubernetes.io/name: moontide}")
	m.line(2, "spec:")
	m.pod()
}

func (m *manifests) pod() {
	m.line(3, "restartPolicy: Never")
	m.line(3, "subdomain: %s", quoteYAML(m.job.Name))
	m.line(3, "# Covers the longest answer: a pod that is asked to end waits for those in flight.")
	m.line(3, "terminationGracePeriodSeconds: %d", seconds(m.job.Grace))
	m.line(3, "automountServiceAccountToken: false")
	m.line(3, "enableServiceLinks: false")
	m.line(3, "securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}")
	m.line(3, "topologySpreadConstraints: # over the nodes, if possible")
	m.line(3, "- maxSkew: 1")
	m.line(4, "topologyKey: kubernetes.io/hostname")
	m.line(4, "whenUnsatisfiable: ScheduleAnyway")
	m.line(4, "labelSelector: {matchLabels: {batch.kubernetes.io/job-name: %s}}", quoteYAML(m.job.Name))
	m.line(3, "containers:")
	m.line(3, "- name: moontide")
	m.line(4, "image: %s", quoteYAML(m.Image))
	m.line(4, "args:")
	for _, arg := range m.args() {
		m.line(4, "- %s", quoteYAML(arg))
	}
	m.line(4, "env:")
	m.line(4, `- {name: %s, value: "%d"} # the index, Kubernetes sets`, cluster.PartsVariable, m.job.Ranks)
	m.line(4, `- {name: JOB_UID, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}}`)
	m.secretVariable(cluster.TokenVariable)
	if m.APIKey != "" {
		m.secretVariable(m.APIKey)
	}
	m.line(4, "resources:")
	m.line(5, `requests: {cpu: "%d", memory: %s}`, m.job.CPUs, quoteYAML(m.Memory))
	m.line(5, "limits: {memory: %s} # none of CPU: throttling would delay requests", quoteYAML(m.Memory))
	m.line(4, "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}")
	m.line(4, "volumeMounts:")
	m.line(4, "- {name: runs, mountPath: %s}", VolumeFolder)
	if len(m.Files) > 0 {
		m.line(4, "- {name: input, mountPath: %s, readOnly: true}", filesFolder)
	}
	m.line(3, "volumes:")
	m.line(3, "- {name: runs, persistentVolumeClaim: {claimName: %s}}", quoteYAML(m.claimName()))
	if len(m.Files) > 0 {
		m.line(3, "- {name: input, configMap: {name: %s}}", quoteYAML(m.filesName()))
	}
}

func (m *manifests) secretVariable(name string) {
	m.line(4, "- {name: %s, valueFrom: {secretKeyRef: {name: %s, key: %s}}}", quoteYAML(name), quoteYAML(m.secretName()), quoteYAML(name))
}

// args returns the arguments of the container. Those of a user are no references to
// variables.
func (m *manifests) args() []string {
	out := "--out=" + escapeVariables(m.Out)
	if m.Out == "" {
		out = fmt.Sprintf("--out=%s/%s-$(JOB_UID)", VolumeFolder, m.job.Name)
	}
	command := m.job.Command
	command.Flags, command.Arguments = slices.Clone(command.Flags), slices.Clone(command.Arguments)
	for _, texts := range [][]string{command.Flags, command.Arguments} {
		for i, text := range texts {
			texts[i] = escapeVariables(text)
		}
	}
	return command.with(fmt.Sprintf("--rendezvous=%s:%d", m.leader(), rendezvousPort), out)
}

// escapeVariables escapes what the kubelet would take for $(VARIABLE).
func escapeVariables(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// quoteYAML returns a text as a double-quoted YAML scalar, so that it is a string
// whatever it looks like.
func quoteYAML(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	return b.String() + `"`
}
