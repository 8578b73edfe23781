package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// component is a component of a CycloneDX 1.5 bill of materials.
type component struct {
	Type     string    `json:"type"`
	Ref      string    `json:"bom-ref"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	PURL     string    `json:"purl"`
	Licenses []license `json:"licenses,omitempty"`
}

type license struct {
	Expression string `json:"expression"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// materials is a bill of materials, with the fields that can be known.
type materials struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Timestamp  string     `json:"timestamp"`
		Component  component  `json:"component"`
		Properties []property `json:"properties"`
	} `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

// bill writes the bill of materials of a binary: what go version -m prints, with
// the licenses. It has no serial number and the commit's date, so that it is the
// same for every build.
func bill(path, binary string, from source) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("reading modules of %s: %w", filepath.Base(binary), err)
	}
	licenses, err := licenseTable()
	if err != nil {
		return err
	}
	b := materials{Format: "CycloneDX", Spec: "1.5", Version: 1}
	main := module("application", info.Main.Path, from.Version)
	b.Metadata.Timestamp, b.Metadata.Component = from.CommitDate, main
	b.Metadata.Properties = []property{{"vcs.revision", from.Commit}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "-ldflags":
			b.Metadata.Properties = append(b.Metadata.Properties, property{s.Key, s.Value})
		}
	}
	all := dependency{Ref: main.Ref}
	add := func(c component, terms string) error {
		if terms == "" {
			return fmt.Errorf("no license of %s %s: run go run ./.ci/package -licenses", c.Name, c.Version)
		}
		c.Licenses = []license{{terms}}
		b.Components = append(b.Components, c)
		b.Dependencies = append(b.Dependencies, dependency{Ref: c.Ref})
		all.DependsOn = append(all.DependsOn, c.Ref)
		return nil
	}
	if err := add(module("library", "std", strings.TrimPrefix(info.GoVersion, "go")), licenses["Go standard library"]); err != nil {
		return err
	}
	for _, m := range info.Deps {
		if err := add(module("library", m.Path, m.Version), licenses[m.Path+" "+m.Version]); err != nil {
			return err
		}
	}
	b.Dependencies = append(b.Dependencies, all)
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func module(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}

// licenseTable returns the licenses in the generated file by module and version.
func licenseTable() (map[string]string, error) {
	data, err := os.ReadFile(licenseFile)
	if err != nil {
		return nil, err
	}
	table, _, _ := strings.Cut(string(data), "\n\n")
	all := map[string]string{}
	for line := range strings.Lines(table) {
		module, license, _ := strings.Cut(strings.TrimSpace(line), "  ")
		all[module] = license
	}
	return all, nil
}
