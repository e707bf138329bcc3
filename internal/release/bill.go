package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// The bill of materials has the format CycloneDX 1.6, https://cyclonedx.org/docs/1.6/json/. Only the parts used are defined here.
type (
	bill struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		PURL       string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// bill lists the components of a program, according to its own build information: the modules that are linked into it, and
// Go's standard library.
func (r *release) bill(t target, info *debug.BuildInfo, program []byte) ([]byte, error) {
	sum := sha256.Sum256(program)
	main := component{
		Type: "application", Name: info.Main.Path, Version: r.version,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum)}},
		Properties: []property{
			{"iwarp:commit", r.commit}, {"iwarp:package", info.Path}, {"iwarp:platform", t.String()},
		},
	}
	main.identify()
	goVersion, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	std := component{Type: "library", Name: "std", Version: goVersion}
	std.identify()
	components := []component{std}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("go.mod replaces %s, which a release must not", m.Path)
		}
		if m.Sum == "" {
			return nil, errors.New(m.Path + " has no sum: it is no module of a module proxy")
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, Properties: []property{{"go:sum", m.Sum}}}
		c.identify()
		components = append(components, c)
	}
	all := dependency{Ref: main.Ref}
	for _, c := range components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	return encode(bill{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Serial: serial(sum), Version: 1,
		Metadata:   metadata{r.time.UTC().Format(time.RFC3339), main},
		Components: components, Dependencies: []dependency{all},
	})
}

// identify sets the package URL, by which scanners know a module: https://github.com/package-url/purl-spec.
func (c *component) identify() {
	c.PURL = "pkg:golang/" + strings.ToLower(c.Name) + "@" + strings.ReplaceAll(c.Version, "+", "%2B")
	c.Ref = c.PURL
}

// serial returns a UUID of version 8, derived from the sum of the program, so that identical builds have the same UUID.
func serial(sum [sha256.Size]byte) string {
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
