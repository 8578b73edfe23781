package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"moontide/cmd/moontide/launch"
	"moontide/replay/cluster"
	"moontide/trace"
)

// Engines that moontide launch writes for.
const (
	slurmEngine      = "slurm"
	mpiEngine        = "mpi"
	kubernetesEngine = "kubernetes"
)

const defaultImage = "moontide:latest"

func launchCommand(std streams, stop stop) *cli.Command {
	return &cli.Command{
		Usage: "print a script or manifests for a distributed run",
		Description: "Prints an sbatch script, Kubernetes manifests, or a script for mpirun to standard output, and submits " +
			"nothing. Everything after -- is a command line of replay or bench without --part; launch validates it.\n\n" +
			"The manifests include input files of up to 180 KiB in total, compressed or not. Copy larger ones to the " +
			"volume and use their path there, such as /runs/trace.jsonl.zst; launch does not read them. Without " +
			"--secret, the manifests contain a new token with which the pods authenticate to each other: do not " +
			"publish them.",
		Flags: slices.Concat(group(inParts,
			&cli.IntFlag{Name: "ranks", Value: 2, Usage: "number `N` of processes, each a part of the run"},
			&cli.IntFlag{Name: "cpus", Value: 2, Usage: "number `N` of CPUs per process"},
			&cli.StringFlag{Name: "name", Value: appName, Usage: "`NAME` of the job and its objects"},
		), group(inKubernetes,
			&cli.StringFlag{Name: "image", Value: defaultImage, Usage: "container `IMAGE` with moontide as its entrypoint"},
			&cli.StringFlag{Name: "memory", Value: "2Gi", Usage: "memory `SIZE` of each pod"},
			&cli.StringFlag{Name: "namespace", Usage: "`NAMESPACE` of the objects", DefaultText: "that of kubectl"},
			&cli.StringFlag{Name: "secret", Usage: "`NAME` of an existing Secret with the key MOONTIDE_TOKEN and that of --api-key-env", DefaultText: "a new one in the output"},
			&cli.StringFlag{Name: "claim", Usage: "`NAME` of an existing volume claim that all pods can write to, for results and large traces", DefaultText: "a new one in the output"},
		)),
		Action: func(c *cli.Context) error { return launchRun(c, std, stop) },
	}
}

func launchRun(c *cli.Context, std streams, stop stop) error {
	engine := c.Args().First()
	if !slices.Contains([]string{slurmEngine, mpiEngine, kubernetesEngine}, engine) {
		return misused("launch: want slurm, kubernetes or mpi, then -- and a command, got %q", engine)
	}
	if name := firstGivenOf(c, words("image memory namespace secret claim")...); name != "" && engine != kubernetesEngine {
		return misused("launch: --%s is for kubernetes", name)
	}
	inner, command, err := launchedCommand(std, stop, c.Args().Tail())
	if err != nil {
		return err
	}
	sayLaunched(std, inner, engine)
	command.Flags = append(command.Flags, "--"+partFlag+"="+autoPart)
	if engine != mpiEngine && findFlag(inner.Command.Flags, "resume") != nil { // bench resumes without a flag
		command.Flags = append(command.Flags, "--resume="+autoResume)
	}
	job := launch.Job{
		Name: c.String("name"), Ranks: c.Int("ranks"), CPUs: c.Int("cpus"), Command: command,
		Grace: inner.Duration("timeout") + time.Minute, // to save the run
	}
	var text []byte
	switch engine {
	case slurmEngine:
		text, err = job.Slurm()
	case mpiEngine:
		text, err = job.MPI()
	default:
		var k launch.Kubernetes
		if k, err = kubernetesOf(c, std, inner, &job.Command); err != nil {
			return err
		}
		text, err = job.Kubernetes(k)
	}
	if err != nil {
		return misused("launch: %w", err)
	}
	return std.print(func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// launchedCommand parses the command line of the processes.
func launchedCommand(std streams, stop stop, args []string) (*cli.Context, launch.Command, error) {
	var command launch.Command
	if len(args) == 0 || !isVerb(args) {
		return nil, command, misused("launch: want -- and a command, such as: launch slurm -- replay trace.jsonl --url http://server:8000")
	}
	app := newApp(std, stop, args[0])
	line, err := parseArgs(app, args)
	if err != nil {
		return nil, command, err
	}
	inner, err := contextOf(stop.gently, app, line)
	if err != nil {
		return nil, command, err
	}
	verb := inner.Command
	if findFlag(verb.Flags, rendezvousFlag) == nil {
		return nil, command, misused("launch: %s cannot run in parts", verb.Name)
	}
	if name := firstGivenOf(inner, words("part resume rendezvous")...); name != "" {
		return nil, command, misused("launch: omit --%s: launch sets it", name)
	}
	if !inner.IsSet("url") {
		return nil, command, misused("launch: %s needs --url: each process would have an embedded endpoint of its own", verb.Name)
	}
	between := slices.Index(line, "--")
	command = launch.Command{Verb: verb.Name, Flags: slices.Clone(line[1:between]), Arguments: slices.Clone(line[between+1:])}
	if slices.Contains(command.Arguments, "-") {
		return nil, command, misused("launch: the processes have no standard input: name a file")
	}
	if len(command.Arguments) > 0 && !inner.IsSet(blockSizeFlag.Name) {
		size, err := detectedBlocks(inner, std, command.Arguments[0])
		if err != nil {
			return nil, command, err
		}
		if size > 0 {
			command.Flags = append(command.Flags, fmt.Sprintf("--%s=%d", blockSizeFlag.Name, size))
		}
	}
	return inner, command, nil
}

// detectedBlocks returns the block size of a trace if its rows determine it, else 0.
// Traces on a volume are not read.
func detectedBlocks(inner *cli.Context, std streams, path string) (int, error) {
	if isOnVolume(path) {
		return 0, nil
	}
	reader, err := openTrace(inner, std, path)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	const enough = 100_000 // rows
	var sizes trace.BlockDetector
	n := 0
	for row, err := range reader.Requests() {
		if err != nil {
			return 0, err
		}
		sizes.Add(row)
		if n++; n == enough {
			break
		}
	}
	if size := sizes.BlockSize(); size.How == trace.Detected {
		return size.Tokens, nil
	}
	return 0, nil
}

// sayLaunched warns of what is probably not meant.
func sayLaunched(std streams, inner *cli.Context, engine string) {
	for _, text := range textsOf(inner, "url") {
		_, address, _ := strings.Cut(text, "=") // of bench: LABEL=URL
		for _, text := range []string{text, address} {
			u, err := url.Parse(text)
			if err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()) {
				std.say("note: each process takes %s for its own machine", u.Hostname())
			}
		}
	}
	for name, mask := range masks {
		for _, value := range flagValues(inner, name) {
			if inner.IsSet(name) && mask(value) != value {
				std.say("note: the output holds the value of --%s, which may be secret", name)
			}
		}
	}
	if engine != kubernetesEngine && inner.IsSet("api-key-env") {
		std.say("note: the processes need %s in their environment", inner.String("api-key-env"))
	}
}

// kubernetesOf returns what the manifests need besides the job. It reads the input files
// of the command.
func kubernetesOf(c *cli.Context, std streams, inner *cli.Context, command *launch.Command) (k launch.Kubernetes, err error) {
	k = launch.Kubernetes{
		Image: c.String("image"), Namespace: c.String("namespace"), Memory: c.String("memory"),
		Secret: c.String("secret"), Claim: c.String("claim"), APIKey: inner.String("api-key-env"),
		Out: inner.String("out"), ExitInvalid: exitInvalid, ExitLost: exitPartLost,
	}
	switch {
	case k.APIKey != "" && k.Secret == "":
		return k, misused("launch: --api-key-env needs --secret, a Secret with the keys %s and %s", cluster.TokenVariable, k.APIKey)
	case path.IsAbs(k.Out) && !isOnVolume(k.Out):
		return k, misused("launch: --out %s is not on the volume: name a folder under %s", k.Out, launch.VolumeFolder)
	}
	command.Flags = slices.DeleteFunc(command.Flags, func(flag string) bool { return strings.HasPrefix(flag, "--out=") })
	if err := bringFiles(command, &k); err != nil {
		return k, err
	}
	if k.Secret == "" {
		k.Token = rand.Text()
		std.say("note: the output holds a secret, the token of the job; --secret names an existing one instead")
	}
	return k, nil
}

// inputFlags lists the flags of input files.
var inputFlags = words("tokenizer dataset ca-file client-cert")

// bringFiles reads the input files of a command and replaces their paths by those in the
// pods.
func bringFiles(command *launch.Command, k *launch.Kubernetes) error {
	var failed error
	inPod := func(path string) string {
		if isOnVolume(path) {
			return path
		}
		file, err := readInput(path)
		failed = cmp.Or(failed, err)
		k.Files = append(k.Files, file)
		return file.InPod()
	}
	for i, path := range command.Arguments {
		command.Arguments[i] = inPod(path)
	}
	for i, flag := range command.Flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if slices.Contains(inputFlags, name) {
			command.Flags[i] = "--" + name + "=" + inPod(value)
		}
		if name == "client-key" && !isOnVolume(value) {
			failed = cmp.Or(failed, errors.New("--client-key is not written to manifests: mount the key, and name its path under /runs"))
		}
	}
	return failed
}

func isOnVolume(file string) bool {
	return strings.HasPrefix(path.Clean(file), launch.VolumeFolder+"/")
}

func readInput(path string) (launch.File, error) {
	const instead = "put it on a volume (--claim) and give its path there, such as " + launch.VolumeFolder + "/trace.jsonl"
	file := launch.File{Path: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return file, err
	case !info.Mode().IsRegular():
		return file, fmt.Errorf("%s is not a regular file: %s", path, instead)
	case info.Size() > launch.MaxFiles:
		return file, fmt.Errorf("%s has %d bytes, more than the %d that manifests can bring along: compress it (zstd -19), or %s", path, info.Size(), launch.MaxFiles, instead)
	}
	file.Content, err = os.ReadFile(path)
	return file, err
}
