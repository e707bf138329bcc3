package main

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

//go:embed requirements/*.txt
var requirementFiles embed.FS

// documents lists the parts of the report, in order; requirement numbers and test names
// begin with the prefix.
var documents = []document{
	{prefix: "MPA", count: 87, title: "MPA framing (RFC 5044)"},
	{prefix: "MPA2", count: 38, title: "Enhanced MPA connection set-up (RFC 6581)"},
	{prefix: "SCTP", count: 63, title: "DDP over SCTP (RFC 5043, RFC 6581)"},
	{prefix: "DDP", count: 82, title: "Direct Data Placement (RFC 5041)"},
	{prefix: "RDMAP", count: 134, title: "RDMA Protocol (RFC 5040)"},
	{prefix: "EXT", count: 69, title: "RDMA Protocol extensions (RFC 7306)"},
	{prefix: "CMT", count: 59, title: "RDMA Commit (draft-talpey-rdma-commit-00, and what was decided)"},
	{prefix: "VERBS", count: 90, title: "Verbs (draft-hilland-rddp-verbs, libibverbs)"},
	{prefix: "ARCH", count: 42, title: "Architecture (RFC 4296, RFC 4297)"},
	{prefix: "SEC", count: 42, title: "Security (RFC 5042)"},
	{prefix: "REG", count: 14, title: "Registered numbers (RFC 6580)"},
	{prefix: "CM", count: 61, title: "Authenticated set-up of many connections (SECM, and what was decided)"},
	{prefix: "SOL", count: 22, title: "Solicitation (1RMA, and what was decided)"},
	{prefix: "KEY", count: 20, title: "Keys of regions (1RMA, and what was decided)"},
	{prefix: "RMA", count: 47, title: "Operations with keys and outcomes (1RMA, and what was decided)"},
	{prefix: "NVME", count: 96, title: "NVMe over RDMA: the target (NVMe over Fabrics, and what was decided)"},
	{prefix: "HOST", count: 25, title: "NVMe over RDMA: the host (NVMe over Fabrics, and what was decided)"},
	{prefix: "RSK", count: 20, title: "Stream sockets (librdmacm, and what was decided)"},
	{prefix: "RPR", count: 22, title: "RPC over RDMA (RFC 8166, RFC 8267, RFC 8797, and what was decided)"},
	{prefix: "P9R", count: 14, title: "9P over RDMA: the server (Linux's client, and what was decided)"},
}

// A document is one series of requirements, numbered from 1 without gaps.
type document struct {
	prefix string
	count  int
	title  string
	// unfinished: rows that nothing shows yet are in the report, but are not a problem.
	unfinished bool
}

// file returns the name of the file with the list.
func (d document) file() string { return "requirements/" + strings.ToLower(d.prefix) + ".txt" }

// A requirement is one numbered sentence of a specification.
type requirement struct {
	id     string // "DDP-64"
	prefix string // "DDP"
	source string // RFC and section
	level  string // the RFC's keywords, "-" where it uses none
	text   string // in our own words

	unfinished bool // whether the document is
}

// mandatory reports whether the RFC says MUST, MUST NOT or REQUIRED, alone or
// together with a weaker word.
func (r requirement) mandatory() bool {
	return strings.Contains(r.level, "MUST") || strings.Contains(r.level, "REQUIRED")
}

// requirements reads the lists of all documents.
func requirements() ([]requirement, error) {
	if err := checkFiles(requirementFiles); err != nil {
		return nil, err
	}
	var all []requirement
	for _, d := range documents {
		text, err := fs.ReadFile(requirementFiles, d.file())
		if err != nil {
			return nil, err
		}
		rs, err := parseRequirements(d, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, rs...)
	}
	return all, nil
}

// checkFiles checks that each list belongs to a document: the requirements of any other list would be ignored.
func checkFiles(files fs.FS) error {
	names, err := fs.Glob(files, "requirements/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(documents, func(d document) bool { return d.file() == name }) {
			return fmt.Errorf("%s belongs to no series: add a row to documents, in internal/conformance/requirement.go", name)
		}
	}
	return nil
}

// parseRequirements reads lines of the form "DDP-1 | RFC 5041, 3.1 | MUST | text".
func parseRequirements(d document, text string) ([]requirement, error) {
	var rs []requirement
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), " | ")
		want := d.prefix + "-" + strconv.Itoa(len(rs)+1)
		if len(f) != 4 || f[0] != want {
			return nil, fmt.Errorf("requirements of %s: want a line of four fields for %s, got %q", d.prefix, want, line)
		}
		rs = append(rs, requirement{id: f[0], prefix: d.prefix, source: f[1], level: f[2], text: f[3], unfinished: d.unfinished})
	}
	if len(rs) != d.count {
		return nil, fmt.Errorf("requirements of %s: want %d lines, got %d: write the number into documents, in internal/conformance/requirement.go",
			d.prefix, d.count, len(rs))
	}
	return rs, nil
}
