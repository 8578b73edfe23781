package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/runfile"
	"moontide/trace/atomicfile"
)

// refuseOverwrite returns an error if a command would overwrite one of its inputs, also
// through a link or as standard output. Outputs are the files of the flags in the OUTPUT
// group, inputs all other files on the command line and the files of a run's folder.
func refuseOverwrite(c *cli.Context, std streams) error {
	inputs := inputFiles(c)
	refuse := func(output os.FileInfo, name string) error {
		for path, input := range inputs {
			if output.Mode().IsRegular() && os.SameFile(input, output) {
				return misused("%s would overwrite its input %s", name, path)
			}
		}
		return nil
	}
	written, err := outputsOf(c)
	if err != nil {
		return err
	}
	for flag, path := range pathFlags(c, true) {
		if flag != "html" { // is in written
			written = append(written, output{flag: "--" + flag, path: path})
		}
	}
	toFile := false
	hasKey := slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "key" })
	for _, o := range written {
		if o.path == "" || o.path == "-" {
			continue
		}
		toFile = true
		if info, err := os.Stat(o.path); err == nil {
			if err := refuse(info, o.flag+" "+o.path); err != nil {
				return err
			}
			if isRecording(o.path) {
				return misused("%s %s would overwrite the record of a run", o.flag, o.path)
			}
		}
		if hasKey && absolutePath(o.path) == absolutePath(keyFile(c)) {
			return misused("%s %s is the file of the key", o.flag, o.path)
		}
		if o.form != "" || namesFile(c, strings.TrimPrefix(o.flag, "--")) {
			if err := atomicfile.Check(o.path); err != nil {
				return misused("%s: %w", o.flag, err)
			}
		}
	}
	if out, ok := std.out.(*os.File); ok && !toFile {
		if info, err := out.Stat(); err == nil {
			return refuse(info, "standard output")
		}
	}
	return nil
}

// namesFile reports whether a flag names a file, as its help text says.
func namesFile(c *cli.Context, flag string) bool {
	for _, f := range c.Command.Flags {
		if named, ok := f.(*cli.StringFlag); ok && f.Names()[0] == flag {
			return strings.Contains(named.Usage, "`FILE`")
		}
	}
	return false
}

// pathFlags returns the values of flags that may name a file, in the OUTPUT group or not.
func pathFlags(c *cli.Context, output bool) map[string]string {
	paths, given := map[string]string{}, c.LocalFlagNames()
	for _, f := range c.Command.Flags {
		category, named := f.(cli.CategorizableFlag)
		if !named || (category.GetCategory() == inOutput) != output || !slices.Contains(given, f.Names()[0]) {
			continue
		}
		_, text := f.(*cli.StringFlag)
		if choice, ok := f.(*choiceFlag); text || ok && choice.Choices.Open {
			paths[f.Names()[0]] = c.String(f.Names()[0])
		}
	}
	return paths
}

// inputFiles returns the existing input files of the command line, by path, with those in
// folders.
func inputFiles(c *cli.Context) map[string]os.FileInfo {
	var names []string
	for _, arg := range c.Args().Slice() {
		names = append(names, arg)
		_, list, _ := strings.Cut(arg, "=") // LABEL=DIR,DIR
		names = append(names, strings.Split(list, ",")...)
	}
	for _, path := range pathFlags(c, false) {
		names = append(names, path)
	}
	files := map[string]os.FileInfo{}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		if !info.IsDir() {
			files[name] = info
			continue
		}
		entries, _ := os.ReadDir(name) // an unreadable folder is no input
		for _, entry := range entries {
			if reports := []string{".html", ".png"}; slices.Contains(reports, filepath.Ext(entry.Name())) {
				continue
			}
			path := filepath.Join(name, entry.Name())
			if info, err := os.Stat(path); err == nil {
				files[path] = info
			}
		}
	}
	return files
}

// isRecording reports whether an existing file is part of the record of a run.
func isRecording(path string) bool {
	records := []string{runfile.RunFile, runfile.RequestsFile, runfile.SamplesFile, runfile.GapsFile, runfile.SentFile}
	_, err := os.Stat(filepath.Join(filepath.Dir(path), runfile.RunFile))
	return err == nil && slices.Contains(records, filepath.Base(path))
}
