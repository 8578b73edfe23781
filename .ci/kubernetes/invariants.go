package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// problems collects what is wrong.
type problems []error

func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// checkNames checks names and sizes by the rules of the API.
func (m *manifests) checkNames() error {
	var p problems
	name := func(o *meta.ObjectMeta) {
		p.check(len(validation.IsDNS1035Label(o.Name)) == 0, "the name %q is no DNS label", o.Name)
		p.check(o.Namespace == m.job.Namespace, "%s is in namespace %q, the Job in %q", o.Name, o.Namespace, m.job.Namespace)
		for key, value := range o.Labels {
			p.check(len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0, "label %q=%q", key, value)
		}
	}
	name(&m.svc.ObjectMeta)
	name(&m.job.ObjectMeta)
	host := fmt.Sprintf("%s-%d", m.job.Name, *m.job.Spec.Completions-1)
	p.check(len(validation.IsDNS1123Label(host)) == 0, "the host name %q of the last pod", host)
	if m.secret != nil {
		name(&m.secret.ObjectMeta)
		p.check(len(m.secret.StringData) == 1 && len(m.secret.StringData["MOONTIDE_TOKEN"]) >= 26, "the token is short")
	}
	if m.claim != nil {
		name(&m.claim.ObjectMeta)
		p.check(slices.Equal(m.claim.Spec.AccessModes, []core.PersistentVolumeAccessMode{core.ReadWriteMany}), "access modes %v", m.claim.Spec.AccessModes)
	}
	if m.files != nil {
		name(&m.files.ObjectMeta)
		for key := range m.files.BinaryData {
			p.check(len(validation.IsConfigMapKey(key)) == 0, "the key %q of the ConfigMap", key)
		}
		const mostAnnotations = 256 << 10 // of which kubectl apply uses one for a copy
		text, err := json.Marshal(m.files)
		p.check(err == nil && len(text) < mostAnnotations, "the ConfigMap has %d bytes of JSON, %v", len(text), err)
	}
	return errors.Join(p...)
}

// checkJob checks that the pods are the parts of one run, each once.
func (m *manifests) checkJob(want expected) error {
	var p problems
	s := &m.job.Spec
	p.check(m.job.Name == want.name && m.svc.Name == want.name, "the names are %q and %q", m.job.Name, m.svc.Name)
	p.check(*s.CompletionMode == batch.IndexedCompletion && *s.Completions == want.ranks && *s.Parallelism == want.ranks, "%v, %d completions, parallelism %d", *s.CompletionMode, *s.Completions, *s.Parallelism)
	p.check(*s.BackoffLimit == 0, "backoffLimit %d", *s.BackoffLimit)
	pod := &s.Template.Spec
	p.check(pod.RestartPolicy == core.RestartPolicyNever, "restartPolicy %s", pod.RestartPolicy)
	p.check(*pod.TerminationGracePeriodSeconds == want.grace, "a grace period of %d s", *pod.TerminationGracePeriodSeconds)
	p.check(pod.Subdomain == m.svc.Name, "subdomain %q", pod.Subdomain)
	p.check(*pod.SecurityContext.RunAsNonRoot && !*pod.AutomountServiceAccountToken, "the pod has rights that it does not need")
	p.check(action(s, 3, false) == batch.PodFailurePolicyActionFailJob, "INVALID: %q", action(s, 3, false))
	p.check(action(s, 5, false) == batch.PodFailurePolicyActionIgnore, "another part lost: %q", action(s, 5, false))
	p.check(action(s, 3, true) == batch.PodFailurePolicyActionIgnore && action(s, 143, true) == batch.PodFailurePolicyActionIgnore, "evicted: %q", action(s, 143, true))
	for _, status := range []int32{1, 2, 4, 137} {
		p.check(action(s, status, false) == "", "exit status %d: %q", status, action(s, status, false))
	}
	p.check(len(pod.Containers) == 1, "%d containers", len(pod.Containers))
	return errors.Join(append(p, m.checkContainer(want))...)
}

// action returns what the policy does about a pod that failed.
func action(s *batch.JobSpec, status int32, disrupted bool) batch.PodFailurePolicyAction {
	for _, rule := range s.PodFailurePolicy.Rules {
		for _, c := range rule.OnPodConditions {
			if disrupted && c.Type == core.DisruptionTarget && c.Status == core.ConditionTrue {
				return rule.Action
			}
		}
		if r := rule.OnExitCodes; r != nil && r.Operator == batch.PodFailurePolicyOnExitCodesOpIn && slices.Contains(r.Values, status) && *r.ContainerName == s.Template.Spec.Containers[0].Name {
			return rule.Action
		}
	}
	return ""
}

func (m *manifests) checkContainer(want expected) error {
	var p problems
	c := &m.job.Spec.Template.Spec.Containers[0]
	env := map[string]core.EnvVar{}
	for _, v := range c.Env {
		p.check(len(validation.IsEnvVarName(v.Name)) == 0, "the variable %q", v.Name)
		env[v.Name] = v
	}
	p.check(env["MOONTIDE_PARTS"].Value == strconv.Itoa(int(want.ranks)), "MOONTIDE_PARTS is %q", env["MOONTIDE_PARTS"].Value)
	uid := env["JOB_UID"].ValueFrom
	p.check(uid != nil && uid.FieldRef.FieldPath == "metadata.labels['"+batch.ControllerUidLabel+"']", "JOB_UID is %v", uid)
	for _, arg := range append(want.args, "--part=auto", "--resume=auto", fmt.Sprintf("--rendezvous=%s-0.%s:%d", m.job.Name, m.svc.Name, m.svc.Spec.Ports[0].Port)) {
		p.check(slices.Contains(c.Args, strings.ReplaceAll(arg, "$", "$$")), "no argument %q in %q", arg, c.Args)
	}
	p.check(slices.Contains(c.Args, fmt.Sprintf("--out=/runs/%s-$(JOB_UID)", m.job.Name)), "the folder of the results is none of its own: %q", c.Args)
	p.check(!c.Resources.Requests.Cpu().IsZero() && !c.Resources.Limits.Memory().IsZero() && c.Resources.Limits.Cpu().IsZero(), "resources %v", c.Resources)
	return errors.Join(p...)
}

// checkObjects checks that the Job refers to objects that are there, or are said to exist.
func (m *manifests) checkObjects(want expected) error {
	var p problems
	s := &m.svc.Spec
	p.check(s.ClusterIP == core.ClusterIPNone && s.PublishNotReadyAddresses && len(s.Selector) == 1 && s.Selector[batch.JobNameLabel] == m.job.Name, "the Service is %v", s)
	secret, claim := want.secret, want.claim
	p.check((m.secret == nil) == (secret != ""), "a Secret: %v", m.secret != nil)
	p.check((m.claim == nil) == (claim != ""), "a claim: %v", m.claim != nil)
	if m.secret != nil {
		secret = m.secret.Name
	}
	if m.claim != nil {
		claim = m.claim.Name
	}
	pod := &m.job.Spec.Template.Spec
	for _, v := range pod.Containers[0].Env {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			p.check(v.ValueFrom.SecretKeyRef.Name == secret && v.ValueFrom.SecretKeyRef.Key == v.Name, "%s is of the Secret %v", v.Name, v.ValueFrom.SecretKeyRef)
		}
	}
	mounted := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		mounted[mount.Name] = mount.MountPath
	}
	for _, v := range pod.Volumes {
		switch at := mounted[v.Name]; {
		case v.PersistentVolumeClaim != nil:
			p.check(v.PersistentVolumeClaim.ClaimName == claim && at == "/runs", "the claim %q is at %q", v.PersistentVolumeClaim.ClaimName, at)
		case v.ConfigMap != nil:
			p.check(m.files != nil && v.ConfigMap.Name == m.files.Name && at == "/input", "the ConfigMap %q is at %q", v.ConfigMap.Name, at)
		default:
			p.check(false, "the volume %s", v.Name)
		}
		delete(mounted, v.Name)
	}
	p.check(len(mounted) == 0, "no volumes for %v", mounted)
	files := 0
	if m.files != nil {
		files = len(m.files.BinaryData)
	}
	p.check(files == want.files, "%d files in the ConfigMap", files)
	return errors.Join(p...)
}
