package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenseFile has the licenses of all modules that moontide's binaries contain, on every
// platform: moontide --licenses prints it.
const licenseFile = "cmd/moontide/licenses.txt"

// licensed is a module with the license files of its linked packages.
type licensed struct {
	name, root string
	folders    map[string]bool // of license files
}

func writeLicenses() error {
	modules, err := linked()
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	goroot := strings.TrimSpace(string(out))
	modules = append(modules, &licensed{name: "Go standard library", root: goroot, folders: map[string]bool{goroot: true}})
	var table, texts strings.Builder
	rule := strings.Repeat("=", 80)
	owners := map[string][]string{} // by license text
	var order []string
	for _, m := range modules {
		files, err := m.files()
		if err != nil {
			return err
		}
		var names []string
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
			if id := identify(text); id != "" && filepath.Dir(path) == m.root && !slices.Contains(names, id) {
				names = append(names, id)
			}
			inside, _ := filepath.Rel(m.root, path)
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], m.name+": "+filepath.ToSlash(inside))
		}
		if len(names) == 0 {
			return fmt.Errorf("%s: no known license in %s", m.name, m.root)
		}
		fmt.Fprintf(&table, "%s  %s\n", m.name, strings.Join(names, " AND "))
	}
	for _, text := range order {
		fmt.Fprintf(&texts, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(owners[text], "\n"), rule, text)
	}
	return os.WriteFile(licenseFile, []byte(table.String()+texts.String()), 0o644)
}

// linked returns the modules that binaries contain, on any platform.
func linked() ([]*licensed, error) {
	modules := map[string]*licensed{}
	for _, p := range platforms {
		list := exec.Command("go", "list", "-deps", "-json=Dir,Module", "./cmd/moontide")
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.system, "GOARCH="+p.architecture)
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for packages := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				Dir    string
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := packages.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := modules[p.Module.Path]
			if m == nil {
				m = &licensed{name: p.Module.Path + " " + p.Module.Version, root: p.Module.Dir, folders: map[string]bool{}}
				modules[p.Module.Path] = m
			}
			for dir := p.Dir; len(dir) >= len(m.root); dir = filepath.Dir(dir) {
				m.folders[dir] = true
			}
		}
	}
	return slices.SortedFunc(maps.Values(modules), func(a, b *licensed) int { return cmp.Compare(a.name, b.name) }), nil
}

var (
	named  = regexp.MustCompile(`(?i)^[a-z0-9]*[-_]?(licen[cs]e|copying|notice|patents)([-_.][a-z0-9_.-]*)?$`)
	folder = regexp.MustCompile(`(?i)licenses$`)
)

// files returns the license files of the folders, and those in a folder for them.
func (m *licensed) files() (files []string, err error) {
	for dir := range m.folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case !e.IsDir() && named.MatchString(e.Name()):
				files = append(files, path)
			case e.IsDir() && dir == m.root && folder.MatchString(e.Name()):
				more, err := filepath.Glob(filepath.Join(path, "*"))
				if err != nil {
					return nil, err
				}
				files = append(files, more...)
			}
		}
	}
	slices.Sort(files)
	return files, nil
}

// identify returns the SPDX expression of a license text, or "".
func identify(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case has("Apache License Version 2.0"):
		return "Apache-2.0"
	case has("SIL OPEN FONT LICENSE Version 1.1"):
		return "OFL-1.1"
	case has("The FreeType License") || has("FreeType License (FTL)"):
		return "(FTL OR GPL-2.0-or-later)"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Redistribution and use in source and binary forms") && (has("endorse or promote products")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return ""
}
